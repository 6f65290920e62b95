-- Dates and timestamps: parts, arithmetic, differences, truncation, comparison.
-- not sqlite: it has no dates

-- parts
CREATE VIEW parts AS SELECT id, YEAR(day) AS y, MONTH(day) AS m, DAY(day) AS d FROM item;

-- quarter, week, day of the week from Sunday = 1, of the year
-- duckdb: SELECT id, quarter(day) AS q, week(day) AS w, dayofweek(day) + 1 AS dw, dayofyear(day) AS dy FROM item
CREATE VIEW more_parts AS SELECT id, QUARTER(day) AS q, WEEKOFYEAR(day) AS w, DAYOFWEEK(day) AS dw, DAYOFYEAR(day) AS dy FROM item;

-- EXTRACT
CREATE VIEW extracted AS SELECT id, EXTRACT(YEAR FROM day) AS y, EXTRACT(MONTH FROM at) AS m, EXTRACT(HOUR FROM at) AS h FROM item;

-- parts of timestamps
CREATE VIEW moments AS SELECT id, HOUR(at) AS h, MINUTE(at) AS m, CAST(SECOND(at) AS INT) AS s FROM item;

-- days added and taken away
-- duckdb: SELECT id, CAST(day + INTERVAL 30 DAY AS DATE) AS x, CAST(day - INTERVAL 1 DAY AS DATE) AS y FROM item
CREATE VIEW day_arithmetic AS SELECT id, DATE_ADD(day, 30) AS x, DATE_SUB(day, 1) AS y FROM item;

-- months, clamped to the end of the month
-- duckdb: SELECT id, CAST(day + INTERVAL 1 MONTH AS DATE) AS x, CAST(day - INTERVAL 12 MONTH AS DATE) AS y FROM item
CREATE VIEW month_arithmetic AS SELECT id, ADD_MONTHS(day, 1) AS x, ADD_MONTHS(day, -12) AS y FROM item;

-- intervals
-- duckdb: SELECT id, CAST(day + INTERVAL 3 MONTH AS DATE) AS x, CAST(day - INTERVAL 7 DAY AS DATE) AS y, CAST(day + INTERVAL 1 YEAR AS DATE) AS z FROM item
CREATE VIEW intervals AS SELECT id, day + INTERVAL 3 MONTH AS x, day - INTERVAL 7 DAY AS y, day + INTERVAL 1 YEAR AS z FROM item;

-- constant_intervals: computed once, when the view is made
-- duckdb: SELECT id, CAST(DATE '2024-01-31' + INTERVAL 1 MONTH AS DATE) AS x, CAST(DATE '2024-02-29' - INTERVAL 1 YEAR AS DATE) AS y, TIMESTAMPTZ '2024-01-31 12:30:00+00:00' - INTERVAL 2 MONTH + INTERVAL 90 SECOND AS z, CAST(DATE '2023-12-31' + INTERVAL 1 DAY AS DATE) AS w FROM item
CREATE VIEW constant_intervals AS SELECT id, DATE '2024-01-31' + INTERVAL 1 MONTH AS x, DATE '2024-02-29' - INTERVAL 1 YEAR AS y, TIMESTAMP '2024-01-31 12:30:00' - INTERVAL 2 MONTH + INTERVAL 90 SECOND AS z, DATE '2023-12-31' + INTERVAL 1 DAY AS w FROM item;

-- days between
-- duckdb: SELECT id, day - DATE '2026-01-31' AS x, DATE '2026-02-28' - day AS y FROM item
CREATE VIEW difference AS SELECT id, DATEDIFF(day, DATE '2026-01-31') AS x, DATEDIFF(DATE '2026-02-28', day) AS y FROM item;

-- the beginning of the month, the year, the quarter, the week
-- duckdb: SELECT id, CAST(date_trunc('month', day) AS DATE) AS m, CAST(date_trunc('year', day) AS DATE) AS y, CAST(date_trunc('quarter', day) AS DATE) AS q FROM item
CREATE VIEW beginnings AS SELECT id, TRUNC(day, 'MM') AS m, TRUNC(day, 'YEAR') AS y, TRUNC(day, 'QUARTER') AS q FROM item;

-- truncated timestamps
-- duckdb: SELECT id, date_trunc('hour', item.at) AS h, date_trunc('day', item.at) AS d, date_trunc('month', item.at) AS m FROM item
CREATE VIEW truncated AS SELECT id, DATE_TRUNC('HOUR', at) AS h, DATE_TRUNC('DAY', at) AS d, DATE_TRUNC('MONTH', at) AS m FROM item;

-- the last day of the month
CREATE VIEW last_days AS SELECT id, LAST_DAY(day) AS x FROM item;

-- comparison with literals
CREATE VIEW before AS SELECT id FROM item WHERE day < DATE '2026-02-01' OR day IS NULL;

-- between dates
CREATE VIEW within AS SELECT id FROM item WHERE day BETWEEN DATE '2026-01-31' AND DATE '2026-02-28';

-- timestamps compared
CREATE VIEW after AS SELECT id FROM item WHERE at >= TIMESTAMP '2026-01-31 12:00:00';

-- dates joined
CREATE VIEW same_day AS SELECT item.id, sale.qty FROM item JOIN sale ON item.day = sale.day;

-- groups by month
CREATE VIEW by_month AS SELECT YEAR(day) AS y, MONTH(day) AS m, COUNT(*) AS c, MIN(day) AS first, MAX(day) AS last FROM sale GROUP BY YEAR(day), MONTH(day);

-- the latest by a scalar subquery
CREATE VIEW latest AS SELECT id FROM item WHERE day = (SELECT MAX(day) FROM sale);

-- literals of text beside dates and timestamps are read as those
-- sqlite: SELECT id, day > '2026-01-05' AS a, at <= '2026-01-05 00:00:00' AS b FROM item WHERE day BETWEEN '2026-01-01' AND '2026-12-01' OR day IN ('2026-01-05', '2025-12-31')
CREATE VIEW literal_days AS SELECT id, day > '2026-01-05' AS a, at <= '2026-01-05' AS b FROM item
WHERE day BETWEEN '2026-01-01' AND '2026-12-01' OR day IN ('2026-01-05', '2025-12-31');

-- buckets of time
-- duckdb: SELECT id, time_bucket(INTERVAL 7 HOURS, "at", TIMESTAMP '1970-01-01') AS x, time_bucket(INTERVAL 5 MONTHS, "at", TIMESTAMP '1970-01-01') AS y FROM item
CREATE VIEW buckets AS SELECT id, time_bucket(INTERVAL 7 HOURS, at) AS x, time_bucket(INTERVAL 5 MONTHS, at) AS y FROM item;

-- whole months and years
-- duckdb: SELECT id, datesub('month', "at", TIMESTAMP '2026-03-31 10:00:00') AS x FROM item WHERE day("at") < 28
CREATE VIEW whole_months AS SELECT id, timestampdiff(MONTH, at, TIMESTAMP '2026-03-31 10:00:00') AS x FROM item WHERE day(at) < 28;

-- parts of times as texts
-- duckdb: SELECT id, strftime("at", '%-d/%-m/%y %-I:%M %p') AS x FROM item
CREATE VIEW short_times AS SELECT id, date_format(at, 'd/M/yy h:mm a') AS x FROM item;
