-- Times of the day.
-- not sqlite: it has no times

-- groups, extremes, order
CREATE VIEW grouped_clocks AS SELECT c, COUNT(*) AS n, MIN(d) AS x, MAX(d) AS y, COUNT(DISTINCT d) AS z FROM shift GROUP BY c;

-- comparisons, also with texts
-- duckdb: SELECT k, c < d AS x, c = TIME '08:05:00' AS y, c BETWEEN TIME '08:00:00' AND TIME '12:00:00' AS z FROM shift
CREATE VIEW compared_clocks AS SELECT k, c < d AS x, c = TIME '8:5' AS y, c BETWEEN '8:0' AND TIME '12:00:00 pm' AS z FROM shift;

-- parts
-- duckdb: SELECT k, hour(c) AS x, minute(c) AS y, second(c) AS z, CAST((epoch_us(c) % 60000000) / 1000000 AS DECIMAL(8, 6)) AS w FROM shift
CREATE VIEW parts_of_clocks AS SELECT k, HOUR(c) AS x, MINUTE(c) AS y, SECOND(c) AS z, EXTRACT(SECOND FROM c) AS w FROM shift;

-- moved and apart
-- duckdb: SELECT k, CASE WHEN c < TIME '12:00:00' THEN c + INTERVAL 90 MINUTE END AS x, epoch_us(c) // 1000000 - epoch_us(d) // 1000000 AS y, CAST(trunc((epoch_us(d) - epoch_us(c)) / 3600000000) AS BIGINT) AS z, CASE WHEN c >= TIME '08:00:00' THEN CAST(epoch_us(c) // 1000000 - 28800 AS BIGINT) END AS w FROM shift
CREATE VIEW moved_clocks AS SELECT k, CASE WHEN c < TIME '12:00:00' THEN c + INTERVAL 90 MINUTES END AS x, time_to_millis(c) DIV 1000 - time_to_millis(d) DIV 1000 AS y, time_diff('HOUR', c, d) AS z, CASE WHEN c >= TIME '08:00:00' THEN CAST(c - INTERVAL 8 HOURS AS BIGINT) END AS w FROM shift;

-- conversions
-- duckdb: SELECT k, CAST(n AS TIME) AS x, CAST(epoch_us(c) // 1000000 AS INT) AS y, DATE '2026-01-31' + c AS z FROM shift
CREATE VIEW converted_clocks AS SELECT k, CAST(n AS TIME) AS x, CAST(c AS INT) AS y, make_timestamp_ntz(DATE '2026-01-31', c) AS z FROM shift;

-- made
-- duckdb: SELECT k, make_time(k, 5, 2 * k) AS x, TIME '00:00:00' + INTERVAL (k) HOUR AS y, date_trunc('minute', DATE '2026-01-01' + c)::TIME AS z FROM shift
CREATE VIEW made_clocks AS SELECT k, make_time(k, 5, 2 * k) AS x, time_from_seconds(k * 3600) AS y, time_trunc('MINUTE', c) AS z FROM shift;

-- joins
CREATE VIEW joined_clocks AS SELECT s.k, u.k AS l, s.c FROM shift s JOIN shift u ON s.c = u.d;

-- in order
CREATE VIEW ranked_clocks AS SELECT k, c, ROW_NUMBER() OVER (ORDER BY c DESC, k) AS r FROM shift;
