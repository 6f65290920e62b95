-- Conversions that Spark makes by itself: texts beside other types are read as those.
-- not sqlite: SQLite compares values of different types by their types

-- a join of a text with a number
-- duckdb: SELECT t.k, q.a FROM t JOIN (SELECT CAST(a AS VARCHAR) AS x, a FROM u) q ON t.a = CAST(q.x AS BIGINT)
CREATE VIEW text_join AS SELECT t.k, q.a FROM t JOIN (SELECT CAST(a AS STRING) AS x, a FROM u) q ON t.a = q.x;

-- arithmetic and choices
-- duckdb: SELECT k, k + 1 AS x, coalesce(a, b) AS y, CASE WHEN b > 0 THEN k ELSE b END AS z FROM t
CREATE VIEW text_numbers AS SELECT k, CAST(k AS STRING) + 1 AS x, coalesce(CAST(a AS STRING), b) AS y, CASE WHEN b > '0' THEN CAST(k AS STRING) ELSE b END AS z FROM t;

-- a union of texts and numbers
-- duckdb: SELECT a AS x FROM u UNION ALL SELECT k FROM t
CREATE VIEW text_union AS SELECT CAST(a AS STRING) AS x FROM u UNION ALL SELECT k FROM t;

-- membership
-- duckdb: SELECT k FROM t WHERE a IN (SELECT b FROM u) AND k NOT IN (2, 3)
CREATE VIEW text_in AS SELECT k FROM t WHERE a IN (SELECT CAST(b AS STRING) FROM u) AND k NOT IN ('2', '3');

-- sums of texts, and texts of numbers
-- duckdb: SELECT a, CAST(SUM(b) AS DOUBLE) AS s, CAST(a AS VARCHAR) || '-' || CAST(COUNT(*) AS VARCHAR) AS t FROM u GROUP BY a
CREATE VIEW text_sums AS SELECT a, SUM(CAST(b AS STRING)) AS s, a || '-' || COUNT(*) AS t FROM u GROUP BY a;
