SELECT t.a FROM t JOIN u ON t.a = u.a

SELECT k, a FROM t

SELECT a FROM t

SELECT * FROM u

SELECT t.k, u.b FROM t, u WHERE t.a = u.a AND u.b > 1

SELECT DISTINCT a FROM u

SELECT x.k, y.k FROM t x JOIN t y ON x.a = y.a

SELECT a + 1 FROM t WHERE k < 3

SELECT q.z FROM (SELECT a + b AS z FROM u WHERE a > 0) q WHERE q.z > 2

SELECT t.a, p.z FROM t JOIN p ON t.k = p.x AND t.a = p.y

SELECT DISTINCT t.a FROM t JOIN u ON t.a IS NOT DISTINCT FROM u.a

SELECT t.k, u.b FROM t JOIN u ON t.a IS NOT DISTINCT FROM u.a

SELECT 1, 'x'

SELECT k FROM t WHERE a NOT IN (1, 2)

SELECT k FROM t WHERE a IN (1, NULL)
