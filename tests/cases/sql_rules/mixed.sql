SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE EXISTS (SELECT 1 FROM p WHERE p.x = t.k AND p.y = u.a))

SELECT k FROM t WHERE a IN (SELECT b FROM u WHERE u.a = t.k UNION ALL SELECT x FROM p WHERE p.y = t.a)

SELECT k FROM t WHERE a IN (SELECT b FROM u WHERE u.a > t.k EXCEPT SELECT x FROM p WHERE p.y = t.a)

SELECT k, (SELECT COUNT(*) FROM (SELECT DISTINCT b FROM u WHERE u.a = t.a) q) FROM t

SELECT a, COUNT(*) FROM t GROUP BY a HAVING EXISTS (SELECT 1 FROM u WHERE u.a = t.a) OR COUNT(*) > 1

SELECT t.k, u.b, SUM(u.b) OVER (PARTITION BY t.k), COUNT(*) OVER () FROM t JOIN u ON t.a = u.a

SELECT x.k FROM t x WHERE x.k = (SELECT MIN(y.k) FROM t y WHERE y.a = x.a AND y.s IS NOT DISTINCT FROM x.s)

SELECT DISTINCT (SELECT MAX(z) FROM p WHERE p.x = t.k) FROM t

SELECT u.a FROM u WHERE NOT EXISTS (SELECT 1 FROM p WHERE p.x = u.a OR p.y = u.b)

SELECT t.k FROM t LEFT JOIN u ON t.a = u.a WHERE u.a IS NULL

SELECT t.k, COUNT(u.b) FROM t LEFT JOIN u ON t.a = u.a GROUP BY t.k

SELECT t.s, SUM(q.n) FROM t LEFT JOIN (SELECT a, COUNT(*) AS n FROM u GROUP BY a) q ON q.a = t.a GROUP BY t.s

WITH RECURSIVE r(x, y, n) AS (SELECT src, dst, 1 FROM e UNION ALL SELECT r.x, e.dst, r.n + 1 FROM r JOIN e ON r.y = e.src WHERE r.n < 4) SELECT x, y, MIN(n), COUNT(*) FROM r GROUP BY x, y

WITH RECURSIVE r(id, path) AS (SELECT id, name FROM emp WHERE up IS NULL UNION ALL SELECT x.id, r.path || '/' || x.name FROM emp x JOIN r ON x.up = r.id) SELECT r.id, r.path, t.a FROM r LEFT JOIN t ON t.k = r.id
