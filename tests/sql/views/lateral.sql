-- LATERAL: subqueries in FROM that name columns of the sources before them.
-- not sqlite: SQLite has no LATERAL

-- a filter
CREATE VIEW matching AS SELECT t.k, x.b FROM t, LATERAL (SELECT u.b FROM u WHERE u.a = t.a) x;

-- no row, no result
CREATE VIEW unequal AS SELECT t.k, x.b FROM t CROSS JOIN LATERAL (SELECT u.b FROM u WHERE u.a > t.a AND u.b < t.b) x;

-- a computed column
CREATE VIEW computed AS SELECT t.k, x.y FROM t, LATERAL (SELECT t.a + t.b AS y) x;

-- one that reads another
CREATE VIEW chained AS SELECT t.k, x.y, z.w FROM t, LATERAL (SELECT t.a + 1 AS y) x, LATERAL (SELECT x.y * 2 AS w WHERE x.y > 1) z;

-- one row for each, whatever there is
CREATE VIEW counted AS SELECT t.k, x.c, x.s FROM t, LATERAL (SELECT COUNT(*) AS c, SUM(u.b) AS s FROM u WHERE u.a = t.a) x;

-- groups inside
CREATE VIEW grouped AS SELECT t.k, x.b, x.c FROM t, LATERAL (SELECT u.b, COUNT(*) AS c FROM u WHERE u.a = t.a GROUP BY u.b) x;

-- the first rows of each
CREATE VIEW first_rows AS SELECT t.k, x.x, x.y FROM t, LATERAL (SELECT p.x, p.y FROM p WHERE p.q = t.a ORDER BY p.x DESC, p.y LIMIT 2) x;

-- a union inside
CREATE VIEW unions AS SELECT t.k, x.y FROM t JOIN LATERAL (SELECT t.a AS y UNION ALL SELECT t.b) x ON true;

-- a condition on the join
CREATE VIEW on_condition AS SELECT t.k, x.b FROM t JOIN LATERAL (SELECT u.b FROM u WHERE u.a = t.a) x ON x.b > t.k;

-- padded where there is none
CREATE VIEW left_rows AS SELECT t.k, x.b FROM t LEFT JOIN LATERAL (SELECT u.b FROM u WHERE u.a = t.a) x ON true;

-- padded by its condition
CREATE VIEW left_condition AS SELECT t.k, x.b FROM t LEFT JOIN LATERAL (SELECT u.b FROM u WHERE u.a = t.a) x ON x.b = t.b;

-- padded, with a computed column that is never null by itself
CREATE VIEW left_computed AS SELECT t.k, x.y FROM t LEFT JOIN LATERAL (SELECT t.k + 1 AS y WHERE t.a > 0) x ON true;

-- the first row, or none
CREATE VIEW left_first AS SELECT t.k, x.x FROM t LEFT JOIN LATERAL (SELECT p.x FROM p WHERE p.q = t.a ORDER BY p.x, p.y LIMIT 1) x ON true;

-- padded, and joined further
CREATE VIEW left_then AS SELECT t.k, x.b, n.s FROM t LEFT JOIN LATERAL (SELECT MAX(u.b) AS b FROM u WHERE u.a = t.a GROUP BY u.a) x ON true LEFT JOIN n ON n.a = x.b;

-- over a bag
CREATE VIEW of_bag AS SELECT u.a, x.k FROM u, LATERAL (SELECT t.k FROM t WHERE t.a = u.b) x;

-- distinct inside
CREATE VIEW distinct_inside AS SELECT t.k, x.b FROM t, LATERAL (SELECT DISTINCT u.b FROM u WHERE u.a <= t.a) x;

-- a window inside
CREATE VIEW window_inside AS SELECT t.k, x.r FROM t, LATERAL (SELECT rank() OVER (ORDER BY u.b) AS r FROM u WHERE u.a = t.a) x;

-- grouped outside
CREATE VIEW grouped_outside AS SELECT t.a, SUM(x.c) AS s FROM t, LATERAL (SELECT COUNT(*) AS c FROM u WHERE u.a = t.b) x GROUP BY t.a;

-- inside a subquery that refers outside
-- not spark: Spark names only the next query around
CREATE VIEW in_exists AS SELECT t.k FROM t WHERE EXISTS (SELECT 1 FROM u, LATERAL (SELECT p.x FROM p WHERE p.q = u.b AND p.x = t.a) x);

-- after a join
CREATE VIEW after_join AS SELECT t.k, u.b, x.s FROM t JOIN u ON t.a = u.a, LATERAL (SELECT SUM(p.q) AS s FROM p WHERE p.x = t.k AND p.y <= u.b) x;

-- a generator that is never empty, in a query without FROM
-- duckdb: SELECT t.k, v.x FROM t LEFT JOIN (SELECT k, unnest(range(1, k % 3 + 1)) AS x FROM t) v ON v.k = t.k
CREATE VIEW outer_inside AS SELECT t.k, v.x FROM t, LATERAL (SELECT explode_outer(CASE k % 3 WHEN 0 THEN array() WHEN 1 THEN array(1) ELSE array(1, 2) END)) v (x);

-- the same in FROM, with a condition on its rows
-- duckdb: SELECT t.k, v.x FROM t, (SELECT k, unnest(range(1, k % 3 + 1)) AS x FROM t) v WHERE v.k = t.k AND x > 1
CREATE VIEW outer_filtered AS SELECT t.k, v.x FROM t JOIN LATERAL explode_outer(CASE k % 3 WHEN 0 THEN array() WHEN 1 THEN array(1) ELSE array(1, 2) END) v (x) ON v.x > 1;
