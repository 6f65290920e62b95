-- Lambdas over arrays: each, some, all and folded, with columns of the row and with arrays inside.
-- not sqlite: SQLite has no arrays

-- each element, with a column
-- duckdb: SELECT k, x[1] AS x, x[3] AS y FROM (SELECT k, [a + k, b + k, k] AS x FROM t)
CREATE VIEW transformed AS SELECT k, x[0] AS x, element_at(x, -1) AS y FROM (SELECT k, transform(array(a, b, 0), v -> v + k) AS x FROM t) v;

-- with its place
-- duckdb: SELECT k, a + b + 1 AS x FROM t
CREATE VIEW transformed_with_places AS SELECT k, aggregate(transform(array(a, b), (v, i) -> v + i), 0, (sum, v) -> sum + v) AS x FROM t;

-- some elements
-- duckdb: SELECT k, n, CASE WHEN n > 0 THEN CASE WHEN a > 1 THEN a ELSE b END END AS x FROM (SELECT k, a, b, COALESCE((a > 1)::INT, 0) + COALESCE((b > 1)::INT, 0) AS n FROM t)
CREATE VIEW filtered AS SELECT k, size(x) AS n, get(x, 0) AS x FROM (SELECT k, filter(array(a, b), v -> v > 1) AS x FROM t) v;

-- in a condition, and as a value
-- duckdb: SELECT k, a > 1 AND b > 1 AS every FROM t WHERE a = k OR b = k
CREATE VIEW found AS SELECT k, forall(array(a, b), v -> v > 1) AS every FROM t WHERE exists(array(a, b), v -> v = k);

-- with three truths
-- duckdb: SELECT a > 2 OR b > 2 AS some, COUNT(*) AS n FROM t GROUP BY 1
CREATE VIEW groups_of_truths AS SELECT exists(array(a, b), x -> x > 2) AS some, COUNT(*) AS n FROM t GROUP BY exists(array(a, b), x -> x > 2);

-- folded
-- duckdb: SELECT k, coalesce(s, 'none') || coalesce('-' || s, '') || '-' || k || '!' AS x FROM t
CREATE VIEW folded AS SELECT k, aggregate(array(s, CAST(k AS STRING)), coalesce(s, 'none'), (acc, v) -> concat(acc, coalesce(concat('-', v), '')), acc -> concat(acc, '!')) AS x FROM t;

-- of groups
-- duckdb: SELECT a, coalesce(sum(b) FILTER (b > a), 0) AS x, count(b) AS n FROM t GROUP BY a
CREATE VIEW folded_groups AS SELECT a, aggregate(filter(collect_list(b), v -> v > a), 0L, (acc, v) -> acc + v) AS x, count(b) AS n FROM t GROUP BY a;

-- inside each other
-- duckdb: SELECT k, (a + b) * k + (a + b) * a AS x FROM t
CREATE VIEW nested AS SELECT k, aggregate(transform(array(k, a), x -> aggregate(array(a, b), 0L, (acc, y) -> acc + x * y)), 0L, (acc, y) -> acc + y) AS x FROM t;

-- pairs
-- duckdb: SELECT k, a * b AS x, coalesce(a, 7) AS y FROM t
CREATE VIEW zipped AS SELECT k, x[0] AS x, x[1] AS y FROM (SELECT k, zip_with(array(a, a), array(b), (v, w) -> CASE WHEN w IS NULL AND v IS NULL THEN 7 WHEN w IS NULL THEN v ELSE v * w END) AS x FROM t WHERE b IS NOT NULL) v UNION ALL SELECT k, CAST(NULL AS INT) AS x, coalesce(a, 7) AS y FROM t WHERE b IS NULL;

-- in another order
-- duckdb: SELECT k, greatest(a, b, k) AS x FROM t WHERE a IS NOT NULL AND b IS NOT NULL
CREATE VIEW ordered AS SELECT k, array_sort(array(a, b, k), (x, y) -> CASE WHEN x < y THEN 1 WHEN x > y THEN -1 ELSE 0 END)[0] AS x FROM t WHERE a IS NOT NULL AND b IS NOT NULL;

-- one row for each element
-- duckdb: SELECT k, unnest([a * 2, b * 2]) AS x FROM t
CREATE VIEW exploded_lambdas AS SELECT k, explode(transform(array(a, b), x -> x * 2)) AS x FROM t;

-- of structs
-- duckdb: SELECT k, a AS x, a + b AS y FROM t
CREATE VIEW folded_to_structs AS SELECT k, x.low AS x, x.sum AS y FROM (SELECT k, aggregate(transform(array(a, b), v -> struct(v AS at)), struct(a AS low, 0 AS sum), (acc, v) -> struct(acc.low AS low, acc.sum + v.at AS sum)) AS x FROM t) v;

-- groups by lambdas, whatever their parameters are called
-- duckdb: SELECT a + 1 AS x, count(*) AS n FROM t WHERE a > 0 GROUP BY a
CREATE VIEW grouped_by_lambdas AS SELECT transform(array(a), v -> aggregate(array(v), 1, (p, q) -> p + q))[0] AS x, count(*) AS n FROM t WHERE a > 0 GROUP BY transform(array(a), q -> aggregate(array(q), 1, (x, y) -> x + y));
