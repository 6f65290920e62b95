-- Intervals of days and times, and of years and months.
-- not sqlite: it has no intervals

-- differences of times
-- duckdb: SELECT id, (epoch_us(item.at) - epoch_us(CAST(day AS TIMESTAMP))) // 1000000 AS x, CAST(day - DATE '2026-01-01' AS INT) AS y, ((epoch_us(item.at) - epoch_us(CAST(day AS TIMESTAMP))) // 3600000000) % 24 AS z FROM item
CREATE VIEW spans AS SELECT id, CAST(at - day AS BIGINT) AS x, CAST(day - DATE '2026-01-01' AS INT) AS y, EXTRACT(HOUR FROM at - day) AS z FROM item;

-- sums, means, extremes, groups; half a month is rounded up
-- duckdb: SELECT qty, CAST(sum(epoch_us(item.at) - epoch_us(CAST(day AS TIMESTAMP))) // 1000000 AS BIGINT) AS x, CAST(round(avg(id)) AS BIGINT) AS y, min(epoch_us(item.at) - epoch_us(CAST(day AS TIMESTAMP))) // 1000000 AS z, count(DISTINCT day) AS w FROM item GROUP BY qty
CREATE VIEW span_totals AS SELECT qty, CAST(SUM(at - day) AS BIGINT) AS x, CAST(AVG(make_ym_interval(0, id)) AS BIGINT) AS y, CAST(MIN(at - day) AS BIGINT) AS z, COUNT(DISTINCT day - DATE '2026-01-01') AS w FROM item GROUP BY qty;

-- times moved by intervals that are computed
-- duckdb: SELECT id, CAST(day + to_months(12 * id) AS DATE) AS x, item.at + (item.at - day) AS y, item.at - INTERVAL 93784 SECOND AS z, day + CAST(day - DATE '2026-01-01' AS INT) AS w FROM item
CREATE VIEW moved_spans AS SELECT id, day + make_ym_interval(id) AS x, at + (at - day) AS y, at - INTERVAL '1 02:03:04' DAY TO SECOND AS z, day + (day - DATE '2026-01-01') AS w FROM item;

-- products and quotients
-- duckdb: SELECT id, 3 * id AS x, CAST(round(1.5 * id) AS BIGINT) AS y, CAST(round(id / 4) AS BIGINT) AS z FROM item
CREATE VIEW scaled_spans AS SELECT id, CAST(make_dt_interval(0, 0, 0, id) * 3 AS BIGINT) AS x, CAST(make_ym_interval(0, id) * 1.5 AS BIGINT) AS y, CAST(make_ym_interval(0, id) / 4 AS BIGINT) AS z FROM item;

-- joins and order
-- duckdb: SELECT a.id, b.id AS other, row_number() OVER (ORDER BY epoch_us(a.at) - epoch_us(CAST(a.day AS TIMESTAMP)), a.id, b.id) AS r FROM item a JOIN item b ON epoch_us(a.at) - epoch_us(CAST(a.day AS TIMESTAMP)) = epoch_us(b.at) - epoch_us(CAST(b.day AS TIMESTAMP)) WHERE a.id < b.id
CREATE VIEW joined_spans AS SELECT a.id, b.id AS other, ROW_NUMBER() OVER (ORDER BY a.at - a.day, a.id, b.id) AS r FROM item a JOIN item b ON a.at - a.day = b.at - b.day WHERE a.id < b.id;

-- sums over windows
-- duckdb: SELECT id, CAST(sum(epoch_us(item.at) - epoch_us(CAST(day AS TIMESTAMP))) OVER (PARTITION BY qty) // 1000000 AS BIGINT) AS x FROM item
CREATE VIEW window_spans AS SELECT id, CAST(SUM(at - day) OVER (PARTITION BY qty) AS BIGINT) AS x FROM item;
