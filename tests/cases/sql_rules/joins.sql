SELECT t.k, u.b FROM t LEFT JOIN u ON t.a = u.a

SELECT t.k, u.a, u.b FROM t FULL JOIN u ON t.a = u.a

SELECT u.a, w.f FROM u FULL JOIN w ON u.a = w.a AND u.b > 1

SELECT COUNT(*) FROM u FULL JOIN w ON u.a = w.a

SELECT t.k, u.b, w.f FROM t LEFT JOIN u ON t.a = u.a LEFT JOIN w ON w.a = u.b

SELECT t.k, u.b, w.f, p.z FROM t LEFT JOIN u ON t.a = u.a LEFT JOIN w ON w.a = u.b LEFT JOIN p ON p.x = t.k

SELECT u.b, t.k FROM t RIGHT JOIN u ON t.a = u.a

SELECT t.k, q.m FROM t LEFT JOIN (SELECT a, COALESCE(b, 0) AS m FROM u) q ON t.a = q.a

SELECT t.k, q.one FROM t LEFT JOIN (SELECT a, 1 AS one FROM u) q ON t.a = q.a

SELECT t.k, t2.k, t3.k, t4.k FROM t LEFT JOIN t t2 ON t.a = t2.k LEFT JOIN t t3 ON t2.a = t3.k FULL JOIN t t4 ON t3.a = t4.k

SELECT t.k, x.n FROM t LEFT JOIN (SELECT a, COUNT(*) n FROM u GROUP BY a) x ON x.a = t.a

SELECT t.k, x.n FROM t LEFT JOIN (SELECT b, COUNT(*) n FROM u GROUP BY b) x ON x.b = t.a AND x.n > t.k

SELECT t.k, u.b FROM t LEFT JOIN u ON t.k IS NOT DISTINCT FROM u.a

SELECT t.k, e2.src FROM t FULL JOIN (SELECT src, dst + 1 AS d FROM e) e2 ON t.a = e2.d WHERE t.k IS NULL OR e2.src IS NULL

SELECT COALESCE(t.a, u.a), COUNT(*) FROM t FULL JOIN u ON t.a = u.a GROUP BY COALESCE(t.a, u.a)

SELECT t.k, e.dst, e2.dst, e3.dst, e4.dst FROM t LEFT JOIN e ON t.a = e.src LEFT JOIN e e2 ON e.dst = e2.src LEFT JOIN e e3 ON e2.dst = e3.src LEFT JOIN e e4 ON e3.dst = e4.src

SELECT COUNT(*) FROM t LEFT JOIN p ON t.a = p.x WHERE p.x IS NULL

SELECT t.k, u.b FROM t LEFT JOIN u ON t.a = u.a WHERE u.b > 1
