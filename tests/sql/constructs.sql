-- Constructs of SQL, each with an example over t (k, a, b, s), which has a key, and the bag u (a, b).
-- docs/sql.md shows how their views are maintained, or why they are refused: tests run them.

-- conditions and expressions
SELECT k, a + b AS x FROM t WHERE b > 1

-- inner joins
SELECT t.k, u.b FROM t JOIN u ON t.a = u.a

-- outer joins
SELECT t.k, u.b FROM t LEFT JOIN u ON t.a = u.a

-- `EXISTS`, `IN`
SELECT k FROM t WHERE a IN (SELECT a FROM u)

-- `NOT IN`, `NOT EXISTS`, anti-joins
SELECT k FROM t WHERE a NOT IN (SELECT a FROM u WHERE a IS NOT NULL)

-- scalar subqueries
SELECT k, (SELECT MAX(b) FROM u WHERE u.a = t.a) AS m FROM t

-- `LATERAL`
SELECT t.k, x.n FROM t, LATERAL (SELECT COUNT(*) AS n FROM u WHERE u.a = t.a) x

-- `DISTINCT`
SELECT DISTINCT a FROM u

-- `UNION ALL`
SELECT a FROM u UNION ALL SELECT k FROM t

-- `UNION`, `INTERSECT`, `EXCEPT`
SELECT a FROM u EXCEPT SELECT k FROM t

-- `count`, `sum`, `avg`
SELECT a, COUNT(*) AS c, SUM(b) AS s, AVG(b) AS m FROM u GROUP BY a

-- `min`, `max`
SELECT a, MIN(b) AS l, MAX(b) AS m FROM u GROUP BY a

-- `count(DISTINCT x)`
SELECT a, COUNT(DISTINCT b) AS c FROM u GROUP BY a

-- aggregates of all values: `stddev`, `median`, `max_by`, `first`, `collect_list` …
SELECT a, median(b) AS m, first(b) AS f FROM u GROUP BY a

-- `ROLLUP`, `CUBE`, `GROUPING SETS`
SELECT a, SUM(b) AS s FROM u GROUP BY ROLLUP (a)

-- `HAVING`
SELECT a FROM u GROUP BY a HAVING COUNT(*) > 1

-- `PIVOT`
SELECT * FROM (SELECT k, a, b FROM t) PIVOT (SUM(b) FOR a IN (1, 2))

-- pipes: `FROM t |> WHERE … |> AGGREGATE …`
FROM u |> WHERE b > 1 |> AGGREGATE SUM(b) AS s GROUP BY a

-- `explode`, `LATERAL VIEW`
SELECT k, x FROM t LATERAL VIEW explode(array(a, b)) v AS x

-- ranks
SELECT k, RANK() OVER (PARTITION BY a ORDER BY b) AS r FROM t

-- `lag`, `lead`, frames of `ROWS`
SELECT k, LAG(b) OVER (PARTITION BY a ORDER BY k) AS x FROM t

-- aggregates over windows
SELECT k, SUM(b) OVER (PARTITION BY a ORDER BY k) AS s, stddev(b) OVER (PARTITION BY a) AS m FROM t

-- the first rows: `LIMIT`, `QUALIFY row_number() … <= n`
SELECT k FROM t ORDER BY b, k LIMIT 3

-- groups by time
SELECT window.start, COUNT(*) AS c FROM (SELECT timestamp_seconds(k) AS at FROM t) GROUP BY window(at, '1 hour')

-- `WITH RECURSIVE`
WITH RECURSIVE r (x, y) AS (SELECT a, b FROM u WHERE a < b UNION SELECT r.x, u.b FROM r JOIN u ON r.y = u.a AND u.a < u.b) SELECT * FROM r

-- what random or changing functions give
SELECT k, rand() AS x FROM t

-- the present time
SELECT k FROM t WHERE timestamp_seconds(k) < now()

-- rows without an order
SELECT k FROM t LIMIT 3

-- samples
SELECT k FROM t TABLESAMPLE (10 PERCENT)

-- approximations
SELECT approx_percentile(b, 0.5) AS x FROM t

-- windows of sessions
SELECT COUNT(*) AS c FROM (SELECT timestamp_seconds(k) AS at FROM t) GROUP BY session_window(at, '1 hour')

-- `DISTINCT` over a window
SELECT COUNT(DISTINCT b) OVER (PARTITION BY a) AS c FROM t

-- aggregates inside a recursion
WITH RECURSIVE r (x) AS (SELECT a FROM u UNION SELECT MAX(x) + 1 FROM r) SELECT * FROM r

-- negation inside a recursion
WITH RECURSIVE r (x) AS (SELECT a FROM u UNION SELECT k FROM t WHERE k NOT IN (SELECT x FROM r)) SELECT * FROM r

-- functions that run code
SELECT java_method('java.lang.Math', 'abs', 1) AS x
