-- Arrays: made, taken apart, grouped, and one row for each element.
-- not sqlite: SQLite has no arrays

-- one row for each element
-- duckdb: SELECT k, unnest([a, b, a]) AS x FROM t
CREATE VIEW exploded AS SELECT k, explode(array(a, b, a)) AS x FROM t;

-- beside all columns, one of which has its name, and which WHERE means
-- duckdb: SELECT k, a, b, s, unnest([a, b]) AS z FROM t WHERE a > 0
CREATE VIEW exploded_beside (k, a, b, s, z) AS SELECT *, explode(array(a, b)) AS a FROM t WHERE a > 0;

-- with places
-- duckdb: SELECT k, p, [a, b, 7][p + 1] AS x FROM t, (VALUES (0), (1), (2)) v (p)
CREATE VIEW exploded_with_places AS SELECT k, p, x FROM t LATERAL VIEW posexplode(array(a, b, 7)) v AS p, x;

-- groups of elements
-- duckdb: SELECT x, COUNT(*) AS n FROM (SELECT unnest(range(1, k % 4 + 1)) AS x FROM t) GROUP BY x
CREATE VIEW exploded_groups AS SELECT x, COUNT(*) AS n FROM t LATERAL VIEW explode(slice(array(1, 2, 3), 1, k % 4)) v AS x GROUP BY x;

-- without elements
-- duckdb: SELECT t.k, v.x FROM t LEFT JOIN (SELECT k, unnest(range(1, k % 3 + 1)) AS x FROM t) v ON v.k = t.k
CREATE VIEW exploded_outer AS SELECT k, x FROM t LATERAL VIEW OUTER explode(slice(array(1, 2), 1, k % 3)) v AS x;

-- several generators
-- duckdb: SELECT k, x, unnest([s, 'c']) AS y FROM (SELECT k, s, unnest([a, b]) AS x FROM t)
CREATE VIEW exploded_twice AS SELECT k, x, y FROM t LATERAL VIEW explode(array(a, b)) v AS x LATERAL VIEW explode(array(s, 'c')) w AS y;

-- in FROM
-- duckdb: SELECT k, x FROM t, (VALUES (1), (2)) v (x) WHERE x = a UNION ALL SELECT k, x FROM (SELECT k, unnest([b, 1]) AS x FROM t) WHERE x = 1
CREATE VIEW exploded_in_from AS SELECT t.k, v.x FROM t JOIN explode(array(1, 2)) AS v(x) ON v.x = t.a UNION ALL SELECT t.k, v.x FROM t, LATERAL explode(array(b, 1)) AS v(x) WHERE v.x = 1;

-- rows of columns
-- duckdb: SELECT k, unnest([a, b]) AS x FROM t
CREATE VIEW stacked AS SELECT k, stack(2, a, b) AS x FROM t;

-- collected values
-- duckdb: SELECT a, len(x) AS n, x[1] AS x, len(y) AS m, y[-1] AS y FROM (SELECT a, coalesce(list(b ORDER BY b) FILTER (b IS NOT NULL), []) AS x, list(DISTINCT k ORDER BY k) AS y FROM t GROUP BY a)
-- spark: SELECT a, size(collect_list(b)) AS n, get(sort_array(collect_list(b)), 0) AS x, size(collect_set(k)) AS m, array_max(collect_set(k)) AS y FROM t GROUP BY a
CREATE VIEW collected AS SELECT a, size(collect_list(b)) AS n, get(collect_list(b), 0) AS x, size(collect_set(k)) AS m, element_at(collect_set(k), -1) AS y FROM t GROUP BY a;

-- groups of arrays, and their order
-- duckdb: SELECT COUNT(*) AS n, MAX(k) AS m, a IS NULL AND b IS NULL AS x FROM t GROUP BY a, b
CREATE VIEW groups_of_arrays AS SELECT COUNT(*) AS n, MAX(k) AS m, MIN(array(a, b)) <=> array(CAST(NULL AS INT), NULL) AS x FROM t GROUP BY array(a, b);

-- texts of times
-- duckdb: SELECT id, '[' || coalesce(CAST("at" AS VARCHAR), 'null') || ', null]' AS x FROM item
CREATE VIEW texts_of_times AS SELECT id, CAST(array(at, NULL) AS STRING) AS x FROM item;

-- columns of arrays in other types
-- duckdb: SELECT k, CAST(a AS STRING) AS x, CAST(b AS DOUBLE) AS y, CASE WHEN k > 3 THEN CAST(a AS DECIMAL(21, 1)) ELSE 0.5 END AS z FROM t
CREATE VIEW cast_arrays AS SELECT k, CAST(e AS ARRAY<STRING>)[0] AS x, CAST(e AS ARRAY<DOUBLE>)[1] AS y, IF(k > 3, e, filter(array(0.5), v -> v > 0))[0] AS z FROM (SELECT k, slice(array(a, b), 1, 2) AS e FROM t);

-- elements of arrays are parts
-- duckdb: SELECT k, concat_ws('-', s, s, 'x', s) AS x FROM t
CREATE VIEW joined_parts AS SELECT k, concat_ws('-', s, array(s, 'x', NULL), array(), s) AS x FROM t;
