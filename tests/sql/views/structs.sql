-- Structs: made, taken apart, compared, grouped and converted.
-- not sqlite: SQLite has no structs

-- fields
-- duckdb: SELECT k, a + 1 AS x, s, b FROM t WHERE a > 0
CREATE VIEW fields AS SELECT q.k, q.r.a + 1 AS x, q.r['s'] AS s, v.q.r.b FROM (SELECT struct(k, struct(a, s, b) AS r) AS q FROM t) v WHERE q.r.a > 0;

-- all fields
-- duckdb: SELECT k, a, b, s FROM t
CREATE VIEW all_fields AS SELECT k, r.* FROM (SELECT k, struct(a, b, s) AS r FROM t);

-- groups of structs
-- duckdb: SELECT COUNT(*) AS n, MAX(k) AS m, a, b FROM t GROUP BY a, b
CREATE VIEW groups_of_structs AS SELECT COUNT(*) AS n, MAX(r.k) AS m, r.q.a, r.q.b FROM (SELECT struct(k, (a, b) AS q) AS r FROM t) GROUP BY r.q;

-- extremes of structs
-- duckdb: SELECT a, max(b) AS x, arg_max(s, coalesce(b, -100) * 1000 + k) AS s FROM t GROUP BY a
CREATE VIEW extremes_of_structs AS SELECT a, MAX(struct(b, k)).b AS x, max_by(s, struct(b, k)) AS s FROM t GROUP BY a;

-- joined by structs, in which null is equal to null
-- duckdb: SELECT t.k, u.b AS l FROM t JOIN u ON t.a IS NOT DISTINCT FROM u.a AND t.b IS NOT DISTINCT FROM u.b
CREATE VIEW joined_by_structs AS SELECT t.k, u.b AS l FROM t JOIN u ON struct(t.a, t.b) = struct(u.a, u.b);

-- rows
-- duckdb: SELECT k, a IS NOT DISTINCT FROM b AND a IS NOT DISTINCT FROM 1 AS x, NOT (a IS NOT DISTINCT FROM 1 AND b IS NOT DISTINCT FROM k) AS y, coalesce(a, -100) < 1 OR a = 1 AND coalesce(b, -100) < k AS z FROM t WHERE (a IS NOT DISTINCT FROM 1 AND b IS NULL) OR k > 2
CREATE VIEW rows_as_structs AS SELECT k, (a, a) = (b, 1) AS x, (a, b) <> (1, k) AS y, (a, b) < (1, k) AS z FROM t WHERE (a, b) IN (struct(1 AS a, CAST(NULL AS INT) AS b), struct(2 AS a, 100 AS b)) OR k > 2;

-- arrays of structs
-- duckdb: SELECT k, p, q FROM t, LATERAL (VALUES (a, s), (b, 'c')) v (p, q)
CREATE VIEW inlined AS SELECT k, p, q FROM t LATERAL VIEW inline(array(struct(a, s), struct(b AS a, 'c' AS s))) v AS p, q;

-- pairs of elements
-- duckdb: SELECT k, x, y FROM t, LATERAL (VALUES (a, s), (b, NULL)) v (x, y)
CREATE VIEW zipped AS SELECT k, z.x, z.y FROM (SELECT k, explode(arrays_zip(x, y)) AS z FROM (SELECT k, array(a, b) AS x, array(s) AS y FROM t));

-- a field of each
-- duckdb: SELECT a, min(k) AS x, count(*) AS n FROM t GROUP BY a
CREATE VIEW field_of_each AS SELECT a, array_min(r.k) AS x, size(r.b) AS n FROM (SELECT a, collect_list(struct(k, b)) AS r FROM t GROUP BY a);

-- converted structs
-- duckdb: SELECT k, CAST(a AS VARCHAR) AS x, CASE WHEN a IS NOT NULL THEN CAST(b AS DECIMAL(12, 2)) END AS y, '{' || coalesce(CAST(a AS VARCHAR), 'null') || ', ' || coalesce(s, 'null') || '}' AS z FROM t
CREATE VIEW converted_structs AS SELECT k, c.x, c.y, CAST(struct(a, s) AS STRING) AS z FROM (SELECT *, CAST(CASE WHEN a IS NOT NULL THEN struct(a, b) END AS STRUCT<x: STRING, y: DECIMAL(12, 2)>) AS c FROM t);

-- structs of both sides
-- duckdb: SELECT a AS x, b AS y FROM t UNION SELECT a, b FROM u
CREATE VIEW united_structs AS SELECT r.x, r.y FROM (SELECT struct(a AS x, b AS y) AS r FROM t UNION SELECT (a, b) FROM u);

-- chosen structs
-- duckdb: SELECT k, coalesce(a, b) AS x, a IS NOT NULL OR b IS NULL AS y FROM t
CREATE VIEW chosen_structs AS SELECT k, coalesce(r, struct(b AS a, k AS n)).a AS x, IF(a IS NULL, NULL, struct(b)).b IS NOT DISTINCT FROM b AS y FROM (SELECT k, a, b, CASE WHEN a IS NOT NULL THEN named_struct('a', a, 'n', 1) END AS r FROM t);

-- none of equal structs, whatever their fields are called
-- duckdb: SELECT k, CASE WHEN a IS DISTINCT FROM b THEN a END AS x FROM t
CREATE VIEW null_if_of_structs AS SELECT k, nullif(struct(a), struct(b)).a AS x FROM t;
