-- Maps: made, looked up, joined and taken apart, and grouped whatever the order of their entries.
-- not sqlite: SQLite has no maps

-- values of keys
-- duckdb: SELECT k, CASE WHEN s = 'a' THEN a WHEN s = 'b' THEN b END AS x, a AS y, s IN ('a', 'b') AS z FROM t
CREATE VIEW values_of_keys AS SELECT k, m[s] AS x, m.a AS y, map_contains_key(m, s) AS z FROM (SELECT k, s, map('b', b, 'a', a) AS m FROM t);

-- one row for each entry
-- duckdb: SELECT k, x, y FROM t, LATERAL (VALUES ('a', a), ('b', b)) v (x, y)
CREATE VIEW exploded_entries AS SELECT k, x, y FROM t LATERAL VIEW explode(map('b', b, 'a', a)) v AS x, y;

-- without entries
-- duckdb: SELECT t.k, v.x AS p, v.y AS q FROM t LEFT JOIN (SELECT k, k AS x, b AS y FROM t WHERE k > 2) v ON v.k = t.k
CREATE VIEW exploded_entries_outer AS SELECT k, key AS p, value AS q FROM t LATERAL VIEW OUTER explode(map_from_entries(slice(array((k, b)), 1, IF(k > 2, 1, 0)))) v;

-- groups of maps
-- not spark: Spark groups maps with null and with 0 as one
-- duckdb: SELECT COUNT(*) AS n, a AS x, b AS y FROM t GROUP BY a, b
CREATE VIEW groups_of_maps AS SELECT COUNT(*) AS n, m['a'] AS x, m['b'] AS y FROM (SELECT IF(k % 2 = 0, map('a', a, 'b', b), map_from_arrays(array('b', 'a'), array(b, a))) AS m FROM t) GROUP BY m;

-- distinct maps of a group
-- duckdb: SELECT s, COUNT(DISTINCT (a, b)) AS n FROM t GROUP BY s
CREATE VIEW distinct_maps AS SELECT s, COUNT(DISTINCT map_concat(map('a', a), map('b', b))) AS n FROM t GROUP BY s;

-- lists of both
-- duckdb: SELECT k, 2 AS n, b AS x, 'b' AS y FROM t
CREATE VIEW lists_of_entries AS SELECT k, size(m) AS n, map_values(m)[1] AS x, map_keys(m)[1] AS y FROM (SELECT k, map('a', a, 'b', b) AS m FROM t);

-- functions of entries
-- duckdb: SELECT k, a + k AS x, CAST(coalesce(a > k, false) AS INT) + CAST(coalesce(b > k, false) AS INT) AS y, b * k AS z, 'bb' AS w FROM t
CREATE VIEW functions_of_entries AS SELECT k, transform_values(m, (x, y) -> y + k).a AS x, size(map_filter(m, (x, y) -> y > k)) AS y, map_zip_with(m, map('b', k), (x, y, z) -> y * z).b AS z, map_keys(transform_keys(m, (x, y) -> concat(x, x)))[1] AS w FROM (SELECT k, map('b', b, 'a', a) AS m FROM t);
