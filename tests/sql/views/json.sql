-- Texts of JSON.
-- not sqlite: other functions

-- values at paths
-- duckdb: SELECT one.k, CAST(two.a AS STRING) AS x, two.s AS y, '[' || two.b || ',0]' AS z, CAST(two.b AS STRING) AS w FROM t AS one LEFT JOIN t AS two ON two.k = one.k AND two.s IS NOT NULL
CREATE VIEW values_at_paths AS SELECT k, get_json_object(j, '$.a') AS x, get_json_object(j, '$.s') AS y, get_json_object(j, '$.b') AS z, get_json_object(j, '$.b[0]') AS w FROM (SELECT k, concat('{"a":', coalesce(CAST(a AS STRING), 'null'), ', "s": "', s, '", "b": ', coalesce(concat('[', b, ', 0]'), 'null'), '}') AS j FROM t);

-- lengths and names
-- duckdb: SELECT k, 2 AS x, 2 AS y FROM t WHERE a IS NOT NULL AND b IS NOT NULL AND a < b
CREATE VIEW lengths_and_names AS SELECT k, json_array_length(concat('[', a, ',', b, ']')) AS x, size(json_object_keys(concat('{"', a, '":1,"', b, '":2}'))) AS y FROM t WHERE a < b;

-- fields
-- duckdb: SELECT k, CAST(a AS STRING) AS x, CAST(b AS STRING) AS y FROM t WHERE a IS NOT NULL AND b IS NOT NULL UNION ALL SELECT k, NULL, NULL FROM t WHERE a IS NULL OR b IS NULL
CREATE VIEW fields AS SELECT k, x, y FROM t LATERAL VIEW json_tuple(concat('{"a":', a, ',"b":', b, '}'), 'a', 'b') f AS x, y;

-- groups
-- duckdb: SELECT s AS x, COUNT(*) AS n FROM t WHERE s IS NOT NULL GROUP BY s
CREATE VIEW groups_of_fields AS SELECT get_json_object(concat('{"s":"', s, '"}'), '$.s') AS x, COUNT(*) AS n FROM t WHERE s IS NOT NULL GROUP BY 1;

-- arrays and structs as JSON
-- duckdb: SELECT k, CAST(to_json([a, b]) AS STRING) AS x, CASE WHEN s IS NULL THEN '{}' ELSE CAST(to_json({'s': s}) AS STRING) END AS y FROM t
CREATE VIEW values_as_json AS SELECT k, to_json(array(a, b)) AS x, to_json(struct(s)) AS y FROM t;

-- values of a schema
-- duckdb: SELECT k, a AS x, b AS y, CASE WHEN b IS NULL THEN NULL ELSE 0 END AS z, s FROM t
CREATE VIEW values_of_a_schema AS SELECT k, j.a AS x, j.b[0] AS y, j.b[1] AS z, j.s FROM (SELECT k, from_json(concat('{"a":', coalesce(CAST(a AS STRING), 'null'), ', "b": ', coalesce(concat('[', b, ', 0]'), '"x"'), coalesce(concat(', "s": "', s, '"'), ''), '}'), 'a BIGINT, b ARRAY<INT>, s STRING') AS j FROM t);
