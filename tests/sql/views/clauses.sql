-- Clauses that stand for others: QUALIFY, ALL, stars with exceptions, columns of aliases, PIVOT, range.
-- not sqlite: SQLite has none of them

-- QUALIFY chooses by a window
CREATE VIEW qualify_first AS SELECT k, a, b FROM t QUALIFY row_number() OVER (PARTITION BY a ORDER BY k) = 1;

-- QUALIFY by an alias
CREATE VIEW qualify_alias AS SELECT k, rank() OVER (PARTITION BY a ORDER BY b, k) AS r FROM t QUALIFY r <= 2;

-- QUALIFY after a filter, with a condition that has no window
CREATE VIEW qualify_where AS SELECT k, a FROM t WHERE b > 0 QUALIFY count(*) OVER (PARTITION BY a) > 1 AND k < 8;

-- QUALIFY over groups
-- not spark: Spark has no aggregates in QUALIFY
CREATE VIEW qualify_groups AS SELECT a, COUNT(*) AS c FROM u GROUP BY a QUALIFY row_number() OVER (ORDER BY count(*) DESC, a) <= 2;

-- QUALIFY over groups, after HAVING
-- not spark: Spark has no aggregates in QUALIFY
CREATE VIEW qualify_having AS SELECT a, SUM(b) AS s FROM u GROUP BY a HAVING COUNT(*) > 1 QUALIFY rank() OVER (ORDER BY SUM(b), a) = 1;

-- QUALIFY in a bag
CREATE VIEW qualify_bag AS SELECT b FROM u QUALIFY sum(b) OVER (PARTITION BY a) > 1;

-- QUALIFY with a named window
CREATE VIEW qualify_named AS SELECT k, a FROM t WINDOW w AS (PARTITION BY a ORDER BY k DESC) QUALIFY row_number() OVER w = 1;

-- QUALIFY, then DISTINCT
CREATE VIEW qualify_distinct AS SELECT DISTINCT a FROM t QUALIFY count(*) OVER (PARTITION BY b) > 1;

-- QUALIFY, then an order and a limit
CREATE VIEW qualify_limit AS SELECT k, a FROM t QUALIFY row_number() OVER (PARTITION BY a ORDER BY k) = 1 ORDER BY k DESC LIMIT 2;

-- all columns without an aggregate are keys
CREATE VIEW group_all AS SELECT a, b % 2 AS parity, COUNT(*) AS c FROM u GROUP BY ALL;

-- no column without an aggregate: one group
CREATE VIEW group_all_one AS SELECT COUNT(*) AS c, SUM(b) AS s FROM u GROUP BY ALL;

-- an item that has keys beside its aggregate
-- duckdb: SELECT a, a + SUM(b) AS s FROM u GROUP BY a
CREATE VIEW group_all_mixed AS SELECT a, a + SUM(b) AS s FROM u GROUP BY ALL;

-- all columns in their order
CREATE VIEW order_all AS SELECT a, b FROM u ORDER BY ALL LIMIT 3;

-- all columns, descending
CREATE VIEW order_all_desc AS SELECT a, b FROM u ORDER BY ALL DESC LIMIT 3;

-- a star without some columns
-- duckdb: SELECT * EXCLUDE (s, b) FROM t
CREATE VIEW star_except AS SELECT * EXCEPT (s, b) FROM t;

-- the star of one source without some columns
-- duckdb: SELECT t.* EXCLUDE (s), u.b AS c FROM t JOIN u ON t.a = u.a
CREATE VIEW star_of_except AS SELECT t.* EXCEPT (s), u.b AS c FROM t JOIN u ON t.a = u.a;

-- a star with other values
-- not spark: Spark has no REPLACE
-- duckdb: SELECT k + a AS k, a, coalesce(b, 0) AS b, s FROM t
CREATE VIEW star_replace AS SELECT * REPLACE (k + a AS k, coalesce(b, 0) AS b) FROM t;

-- QUALIFY makes a group of all rows by its aggregate
-- not spark: Spark has no aggregates in QUALIFY
CREATE VIEW qualify_one_group AS SELECT 1 AS x FROM u QUALIFY row_number() OVER (ORDER BY COUNT(*)) = COUNT(a) - 3;

-- QUALIFY over grouping sets
-- not spark: Spark has no aggregates in QUALIFY
CREATE VIEW qualify_sets AS SELECT a, SUM(b) AS s FROM u GROUP BY ROLLUP (a) QUALIFY row_number() OVER (ORDER BY SUM(b), a) <= 2;

-- rows of literals as a table
CREATE VIEW values_table AS SELECT v.x, v.y, t.k FROM VALUES (1, 'one'), (2, 'two') AS v(x, y) LEFT JOIN t ON t.a = v.x;

-- and in parentheses, with the names that they have by themselves
-- duckdb: SELECT col0 AS col1, col1 AS col2 FROM (VALUES (1, 'a'), (2, NULL)) v(col0, col1)
CREATE VIEW values_names AS SELECT col1, col2 FROM (VALUES (1, 'a'), (2, NULL)) v;

-- names of columns of a table
CREATE VIEW table_columns AS SELECT x.p, x.q + 1 AS r FROM u AS x(p, q);

-- and of a subquery, and of a common table
CREATE VIEW common_columns AS WITH c(p, n) AS (SELECT a, COUNT(*) FROM u GROUP BY a) SELECT z.x, z.y FROM c AS z(x, y);

-- windows that build on others
-- not spark: Spark takes the name of a window alone
CREATE VIEW named_windows AS SELECT k, sum(b) OVER w AS s, rank() OVER (w ORDER BY k) AS r FROM t WINDOW w AS (PARTITION BY a);

-- an aggregate of a window with FILTER
CREATE VIEW window_filter AS SELECT k, count(*) FILTER (WHERE b > 0) OVER (PARTITION BY a) AS c, sum(b) FILTER (WHERE k > 3) OVER (PARTITION BY a ORDER BY k) AS s FROM t;

-- which key is left out
CREATE VIEW grouping_ids AS SELECT a, b, grouping_id(a, b) AS g, COUNT(*) AS c FROM u GROUP BY ROLLUP (a, b);

-- PIVOT with one aggregate
-- duckdb: SELECT b, SUM(q) FILTER (WHERE a = 1) AS "1", SUM(q) FILTER (WHERE a = 2) AS two FROM (SELECT k AS q, a, b FROM t) GROUP BY b
CREATE VIEW pivot_one AS SELECT * FROM (SELECT k AS q, a, b FROM t) PIVOT (SUM(q) FOR a IN (1, 2 AS two));

-- PIVOT with two aggregates, and no column that groups
-- duckdb: SELECT SUM(b) FILTER (WHERE a = 1) AS x_s, MAX(b) FILTER (WHERE a = 1) AS x_m, SUM(b) FILTER (WHERE a = 2) AS y_s, MAX(b) FILTER (WHERE a = 2) AS y_m FROM u
CREATE VIEW pivot_two AS SELECT * FROM u PIVOT (SUM(b) AS s, MAX(b) AS m FOR a IN (1 AS x, 2 AS y));

-- PIVOT with expressions of aggregates, null where there is no row
-- duckdb: SELECT CASE WHEN COUNT(*) FILTER (WHERE a = 1) > 0 THEN ABS(SUM(b) FILTER (WHERE a = 1)) END AS x_s, CASE WHEN COUNT(*) FILTER (WHERE a = 1) > 0 THEN COALESCE(MAX(b) FILTER (WHERE a = 1), 0) END AS x_m, CASE WHEN COUNT(*) FILTER (WHERE a = 2) > 0 THEN ABS(SUM(b) FILTER (WHERE a = 2)) END AS y_s, CASE WHEN COUNT(*) FILTER (WHERE a = 2) > 0 THEN COALESCE(MAX(b) FILTER (WHERE a = 2), 0) END AS y_m FROM u
CREATE VIEW pivot_expressions AS SELECT * FROM u PIVOT (ABS(SUM(b)) AS s, COALESCE(MAX(b), 0) AS m FOR a IN (1 AS x, 2 AS y));

-- PIVOT over two columns
-- duckdb: SELECT k, MAX(s) FILTER (WHERE a = 1 AND b = 1) AS p, MAX(s) FILTER (WHERE a = 2 AND b = 0) AS q FROM t GROUP BY k
CREATE VIEW pivot_columns AS SELECT * FROM t PIVOT (MAX(s) FOR (a, b) IN ((1, 1) AS p, (2, 0) AS q));

-- PIVOT with a text among its cells: a cell without rows has the count of none
-- duckdb: SELECT k, COUNT(*) FILTER (WHERE a = 1) AS x_n, MAX(s) FILTER (WHERE a = 1) AS x_m, COUNT(*) FILTER (WHERE a = 2) AS y_n, MAX(s) FILTER (WHERE a = 2) AS y_m FROM (SELECT k, a, s FROM t) GROUP BY k
CREATE VIEW pivot_texts AS SELECT * FROM (SELECT k, a, s FROM t) PIVOT (COUNT(*) AS n, MAX(s) AS m FOR a IN (1 AS x, 2 AS y));

-- columns as rows, without nulls
CREATE VIEW unpivoted AS SELECT * FROM (SELECT k, a, b FROM t) UNPIVOT (v FOR name IN (a, b));

-- with nulls, and with names
-- duckdb: SELECT k, 'first' AS name, a AS v FROM t UNION ALL SELECT k, 'b', b FROM t
CREATE VIEW unpivot_nulls AS SELECT * FROM (SELECT k, a, b FROM t) UNPIVOT INCLUDE NULLS (v FOR name IN (a AS first, b));

-- several columns at once
-- duckdb: SELECT k, 'ab' AS name, a AS v, b AS w FROM t WHERE NOT (a IS NULL AND b IS NULL) UNION ALL SELECT k, 'ba', b, a FROM t WHERE NOT (a IS NULL AND b IS NULL)
CREATE VIEW unpivot_pairs AS SELECT * FROM (SELECT k, a, b FROM t) UNPIVOT ((v, w) FOR name IN ((a, b) AS ab, (b, a) AS ba));

-- numbers from 0
CREATE VIEW range_end AS SELECT r.id, t.k FROM range(4) AS r(id) LEFT JOIN t ON t.a = r.id;

-- numbers with a step
-- duckdb: SELECT range AS id FROM range(10, 0, -3)
CREATE VIEW range_step AS SELECT id FROM range(10, 0, -3);

-- a star in GROUP BY ALL
-- duckdb: SELECT a, b, COUNT(*) AS c FROM u GROUP BY a, b
CREATE VIEW group_all_star AS SELECT *, COUNT(*) AS c FROM u GROUP BY ALL;

-- a count of PIVOT is null where there is no row
-- duckdb: SELECT b, CASE WHEN COUNT(*) FILTER (WHERE a = 1) > 0 THEN COUNT(*) FILTER (WHERE a = 1) END AS x, CASE WHEN COUNT(*) FILTER (WHERE a IS NULL) > 0 THEN COUNT(*) FILTER (WHERE a IS NULL) END AS n FROM u WHERE b > 0 OR b IS NULL GROUP BY b
CREATE VIEW pivot_count AS SELECT * FROM u PIVOT (COUNT(*) FOR a IN (1 AS x, NULL AS n)) AS q WHERE q.b > 0 OR b IS NULL;

-- UNPIVOT of a table, joined
-- duckdb: SELECT name, v, t.k FROM (SELECT 'a' AS name, a AS v FROM u WHERE a IS NOT NULL UNION ALL SELECT 'b', b FROM u WHERE b IS NOT NULL) q JOIN t ON t.a = q.v
CREATE VIEW unpivot_joined AS SELECT name, v, t.k FROM u UNPIVOT (v FOR name IN (a, b)) AS q JOIN t ON t.a = q.v;

-- pipes
-- duckdb: SELECT a, SUM(b) AS s, COUNT(*) AS c FROM t WHERE k > 2 GROUP BY a HAVING COUNT(*) < 3
CREATE VIEW piped_groups AS FROM t |> WHERE k > 2 |> AGGREGATE SUM(b) AS s, COUNT(*) AS c GROUP BY a |> WHERE c < 3;

-- pipes with columns, and a join
-- duckdb: SELECT t.k, t.b + 1 AS z, u.b AS w FROM t JOIN u ON t.a = u.a WHERE t.k > 1
CREATE VIEW piped_columns AS FROM t |> JOIN u ON t.a = u.a |> WHERE t.k > 1 |> SELECT t.k, t.b, u.b AS w |> EXTEND b + 1 AS z |> SELECT k, z, w;

-- hints, and where Spark puts rows, have no effect
-- not sqlite: SQLite has no hints
-- duckdb: SELECT t.k, u.b FROM t JOIN u ON t.a = u.a
CREATE VIEW hinted AS SELECT /*+ BROADCAST(u) */ t.k, u.b FROM t JOIN u ON t.a = u.a DISTRIBUTE BY t.k SORT BY b DESC;

-- a join in parentheses with an alias and names of columns
-- sqlite: SELECT t.k AS p, u.b AS q FROM t LEFT JOIN u ON t.a = u.a WHERE t.k > 1
-- duckdb: SELECT t.k AS p, u.b AS q FROM t LEFT JOIN u ON t.a = u.a WHERE t.k > 1
CREATE VIEW named_join AS SELECT p, q FROM (t LEFT JOIN u ON t.a = u.a) AS j (p, x, y, z, w, q) WHERE p > 1;
