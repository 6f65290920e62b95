-- Floats of 32 bits: beside all other numbers they are doubles.
-- not sqlite: it has no such numbers

-- arithmetic is rounded to 32 bits, quotients are doubles
-- duckdb: SELECT k, f + g AS x, f - g AS y, f * g AS z, f + x AS w, CAST(f AS DOUBLE) / 3 AS v, -f AS u FROM gauge
CREATE VIEW single_arithmetic AS SELECT k, f + g AS x, f - g AS y, f * g AS z, f + x AS w, f / 3 AS v, -f AS u FROM gauge;

-- groups and extremes
CREATE VIEW single_groups AS SELECT f, COUNT(*) AS c, MIN(g) AS x, MAX(g) AS y FROM gauge GROUP BY f;

-- sums and means are doubles
-- duckdb: SELECT count(f) AS c, sum(CAST(f AS DOUBLE)) AS x, avg(CAST(f AS DOUBLE)) AS y, count(DISTINCT g) AS z FROM gauge
CREATE VIEW single_sums AS SELECT COUNT(f) AS c, SUM(f) AS x, AVG(f) AS y, COUNT(DISTINCT g) AS z FROM gauge;

-- comparisons
-- duckdb: SELECT k, f = g AS x, CAST(f AS DOUBLE) < x AS y, CAST(f AS DOUBLE) = CAST(0.1 AS DOUBLE) AS z, f = CAST(0.1 AS FLOAT) AS w FROM gauge
CREATE VIEW compared_singles AS SELECT k, f = g AS x, f < x AS y, f = 0.1 AS z, f = 0.1F AS w FROM gauge;

-- joins
CREATE VIEW joined_singles AS SELECT s.k, u.k AS l, s.f FROM gauge s JOIN gauge u ON s.f = u.g;

-- joins with doubles
-- duckdb: SELECT s.k, u.k AS l FROM gauge s JOIN gauge u ON CAST(s.f AS DOUBLE) = u.x
CREATE VIEW joined_with_doubles AS SELECT s.k, u.k AS l FROM gauge s JOIN gauge u ON s.f = u.x;

-- conversions; the text has the fewest digits that mean the number
-- duckdb: SELECT k, CAST(f AS VARCHAR) AS x, CAST(x AS FLOAT) AS y, CAST(k AS FLOAT) AS z, CAST(trunc(f) AS INT) AS w, f <> 0 AS v FROM gauge
CREATE VIEW converted_singles AS SELECT k, CAST(f AS STRING) AS x, CAST(x AS FLOAT) AS y, CAST(k AS FLOAT) AS z, CAST(f AS INT) AS w, CAST(f AS BOOLEAN) AS v FROM gauge;

-- choices and functions
-- duckdb: SELECT k, coalesce(f, g) AS x, coalesce(CAST(f AS DOUBLE), x) AS y, abs(f) AS z, greatest(f, g) AS w, sqrt(abs(CAST(f AS DOUBLE))) AS v FROM gauge
CREATE VIEW chosen_singles AS SELECT k, COALESCE(f, g) AS x, COALESCE(f, x) AS y, ABS(f) AS z, CASE WHEN f IS NULL THEN g WHEN g IS NULL THEN f ELSE GREATEST(f, g) END AS w, SQRT(ABS(f)) AS v FROM gauge;

-- in order
CREATE VIEW ranked_singles AS SELECT k, f, ROW_NUMBER() OVER (ORDER BY f DESC, k) AS r, SUM(f) OVER (PARTITION BY g) AS s FROM gauge;

-- together
-- duckdb: SELECT f FROM gauge UNION SELECT g FROM gauge
CREATE VIEW united_singles AS SELECT f FROM gauge UNION SELECT g FROM gauge;
