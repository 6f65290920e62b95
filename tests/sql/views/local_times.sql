-- Timestamps without a zone: beside those with one they are in UTC.
-- not sqlite: it has no timestamps

-- comparisons with all that is a time
-- duckdb: SELECT k, n = m AS x, n < DATE '2026-01-31' AS y, n >= TIMESTAMP '2026-01-31 00:59:30' AS z, n > TIMESTAMP '2026-01-31' AS w FROM seen
CREATE VIEW compared_times AS SELECT k, n = m AS x, n < DATE '2026-01-31' AS y, n >= TIMESTAMP_NTZ '2026-01-31 00:59:30' AS z, n > '2026-01-31' AS w FROM seen;

-- groups and extremes
CREATE VIEW grouped_times AS SELECT n, COUNT(*) AS c, MIN(m) AS x, MAX(n) AS y FROM seen GROUP BY n;

-- joins
CREATE VIEW joined_times AS SELECT s.k, u.k AS l, s.n FROM seen s JOIN seen u ON s.n = u.n AND s.k < u.k;

-- conversions
-- duckdb: SELECT k, strftime(n, '%Y-%m-%d %H:%M:%S') AS x, CAST(n AS DATE) AS y, n AS z, m AS w FROM seen
CREATE VIEW converted_times AS SELECT k, CAST(n AS STRING) AS x, CAST(n AS DATE) AS y, CAST(n AS TIMESTAMP) AS z, CAST(m AS TIMESTAMP_NTZ) AS w FROM seen;

-- texts, whose zone does not matter
-- duckdb: SELECT k, TIMESTAMP '2026-01-01 01:00:00' AS x, coalesce(n, TIMESTAMP '2026-01-01') AS y FROM seen
CREATE VIEW read_times AS SELECT k, CAST('2026-01-01 01:00:00+02:00' AS TIMESTAMP_NTZ) AS x, COALESCE(n, TIMESTAMP_NTZ '2026-01-01') AS y FROM seen;

-- parts and arithmetic
-- duckdb: SELECT k, hour(n) AS x, n + INTERVAL 1 MONTH AS y, n - INTERVAL 90 MINUTE AS z, date_trunc('day', n) AS w, date_diff('day', DATE '2026-01-01', CAST(n AS DATE)) AS v FROM seen
CREATE VIEW moved_times AS SELECT k, HOUR(n) AS x, n + INTERVAL 1 MONTH AS y, n - INTERVAL 90 MINUTES AS z, DATE_TRUNC('DAY', n) AS w, DATEDIFF(n, DATE '2026-01-01') AS v FROM seen;

-- in order
CREATE VIEW ranked_times AS SELECT k, n, ROW_NUMBER() OVER (ORDER BY n DESC, k) AS r FROM seen;
