SELECT t.a FROM t JOIN u ON t.a = u.a

SELECT k FROM t WHERE a NOT IN (SELECT b FROM u WHERE u.a = t.k)

SELECT a, COUNT(*) c, SUM(b) s FROM u GROUP BY a HAVING COUNT(*) > 1

WITH RECURSIVE r(p, s, q) AS (SELECT part, sub, qty FROM bom UNION ALL SELECT r.p, b.sub, r.q * b.qty FROM r JOIN bom b ON r.s = b.part) SELECT p, s, SUM(q) n FROM r GROUP BY p, s
