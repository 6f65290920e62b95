-- Aggregates of all values over windows, IGNORE NULLS, and frames of RANGE with a distance.
-- not sqlite: it has none of them

-- of the partition
-- duckdb: SELECT k, var_samp(b) OVER w AS v, stddev_pop(b) OVER w AS s, median(b::DOUBLE) OVER w AS m, quantile_cont(b::DOUBLE, 0.25) OVER w AS q, bit_xor(b) OVER w AS x FROM t WINDOW w AS (PARTITION BY a)
CREATE VIEW spread_of_partition AS SELECT k, var_samp(b) OVER w AS v, stddev_pop(b) OVER w AS s, median(b) OVER w AS m, percentile(b, 0.25) OVER w AS q, bit_xor(b) OVER w AS x FROM t WINDOW w AS (PARTITION BY a);

-- of copies, which count
CREATE VIEW spread_of_copies_before AS SELECT a, b, var_pop(b) OVER (PARTITION BY a ORDER BY b) AS v, bit_or(b) OVER (ORDER BY a, b) AS o FROM u;

-- up to the row, and around it
CREATE VIEW running_spread AS SELECT k, stddev(b) OVER (PARTITION BY a ORDER BY k) AS s, bit_and(b) OVER (ORDER BY k ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS x FROM t WHERE b <> 0;

-- in the order of the window
-- duckdb: SELECT k, array_to_string(coalesce(list(b::VARCHAR) FILTER (b IS NOT NULL) OVER (PARTITION BY a ORDER BY k DESC), []), '-') AS x, array_to_string(coalesce(list(b::VARCHAR) FILTER (b IS NOT NULL) OVER (ORDER BY k ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING), []), '-') AS y FROM t
CREATE VIEW listed AS SELECT k, array_join(collect_list(string(b)) OVER (PARTITION BY a ORDER BY k DESC), '-') AS x, array_join(collect_list(string(b)) OVER (ORDER BY k ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING), '-') AS y FROM t;

-- the last of equal ones
-- duckdb: SELECT k, (SELECT o.k FROM t o WHERE o.a IS NOT DISTINCT FROM t.a AND o.k <= t.k AND o.b IS NOT NULL ORDER BY o.b DESC, o.k DESC LIMIT 1) AS x, (SELECT o.k FROM t o WHERE o.a IS NOT DISTINCT FROM t.a AND o.k >= t.k AND o.b IS NOT NULL ORDER BY o.b, o.k LIMIT 1) AS y FROM t
CREATE VIEW beside_before AS SELECT k, max_by(k, b) OVER (PARTITION BY a ORDER BY k) AS x, min_by(k, b) OVER (PARTITION BY a ORDER BY k DESC) AS y FROM t;

-- texts of the partition, with a condition
-- duckdb: SELECT k, string_agg(s, '), (' ORDER BY s) FILTER (WHERE k > 2) OVER (PARTITION BY a) AS x FROM t
CREATE VIEW texts_of_partition AS SELECT k, listagg(s, '), (') WITHIN GROUP (ORDER BY s) FILTER (WHERE k > 2) OVER (PARTITION BY a) AS x FROM t;

-- nulls are passed over
-- duckdb: SELECT k, LAG(b IGNORE NULLS) OVER w AS x, LEAD(b, 2, -9 IGNORE NULLS) OVER w AS y, FIRST_VALUE(b IGNORE NULLS) OVER w AS f, LAST_VALUE(b IGNORE NULLS) OVER w AS l, NTH_VALUE(b, 2 IGNORE NULLS) OVER (ORDER BY k ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING) AS n FROM t WINDOW w AS (PARTITION BY a ORDER BY k)
CREATE VIEW without_nulls AS SELECT k, LAG(b) IGNORE NULLS OVER w AS x, LEAD(b, 2, -9) IGNORE NULLS OVER w AS y, FIRST_VALUE(b, true) OVER w AS f, LAST_VALUE(b) IGNORE NULLS OVER w AS l, NTH_VALUE(b, 2) IGNORE NULLS OVER (ORDER BY k ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING) AS n FROM t WINDOW w AS (PARTITION BY a ORDER BY k);

-- first and last are those of the frame
-- duckdb: SELECT k, FIRST_VALUE(b) OVER w AS f, LAST_VALUE(b) OVER w AS l, FIRST_VALUE(s) OVER (PARTITION BY a ORDER BY k) AS v FROM t WINDOW w AS (ORDER BY k ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)
CREATE VIEW ends_of_frames AS SELECT k, first(b) OVER w AS f, last(b) OVER w AS l, any_value(s) OVER (PARTITION BY a ORDER BY k) AS v FROM t WINDOW w AS (ORDER BY k ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING);

-- a distance between numbers, nulls apart
CREATE VIEW near_numbers AS SELECT k, SUM(k) OVER (PARTITION BY a ORDER BY b RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS x, COUNT(*) OVER (ORDER BY b RANGE BETWEEN 2 PRECEDING AND 1 PRECEDING) AS y, MAX(k) OVER (ORDER BY b RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS z FROM t;

-- descending, nulls last
CREATE VIEW near_descending AS SELECT a, b, COUNT(*) OVER (PARTITION BY a ORDER BY b DESC RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS c FROM u;

-- between decimals, doubles, days and times
-- duckdb: SELECT id, COUNT(*) OVER (ORDER BY price RANGE BETWEEN 1.25 PRECEDING AND 0.01 FOLLOWING) AS p, SUM(qty) OVER (ORDER BY rate RANGE BETWEEN 1.0::DOUBLE PRECEDING AND CURRENT ROW) AS r, COUNT(*) OVER (ORDER BY day RANGE BETWEEN INTERVAL 30 DAY PRECEDING AND CURRENT ROW) AS d, COUNT(*) OVER (ORDER BY "at" RANGE BETWEEN INTERVAL 12 HOUR PRECEDING AND INTERVAL 31 DAY FOLLOWING) AS t FROM item
-- spark: SELECT id, COUNT(*) OVER (ORDER BY price RANGE BETWEEN 1.25 PRECEDING AND 0.01 FOLLOWING) AS p, SUM(qty) OVER (ORDER BY rate RANGE BETWEEN 1.0D PRECEDING AND CURRENT ROW) AS r, COUNT(*) OVER (ORDER BY day RANGE BETWEEN 30 PRECEDING AND CURRENT ROW) AS d, COUNT(*) OVER (ORDER BY at RANGE BETWEEN INTERVAL '0 12' DAY TO HOUR PRECEDING AND INTERVAL '31 00' DAY TO HOUR FOLLOWING) AS t FROM item
CREATE VIEW near_items AS SELECT id, COUNT(*) OVER (ORDER BY price RANGE BETWEEN 1.25 PRECEDING AND 0.01 FOLLOWING) AS p, SUM(qty) OVER (ORDER BY rate RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS r, COUNT(*) OVER (ORDER BY day RANGE BETWEEN 30 PRECEDING AND CURRENT ROW) AS d, COUNT(*) OVER (ORDER BY at RANGE BETWEEN INTERVAL 12 HOURS PRECEDING AND INTERVAL 31 DAYS FOLLOWING) AS t FROM item;

-- months have their own lengths; over groups
-- duckdb: SELECT day, SUM(q) OVER (ORDER BY day RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND CURRENT ROW) AS s FROM (SELECT day, SUM(qty) AS q FROM sale GROUP BY day)
CREATE VIEW near_months AS SELECT day, SUM(SUM(qty)) OVER (ORDER BY day RANGE BETWEEN INTERVAL '1' MONTH PRECEDING AND CURRENT ROW) AS s FROM sale GROUP BY day;

-- groups by time; in backquotes for the parser of the tests
-- duckdb: SELECT time_bucket(INTERVAL '36 hours', "at", TIMESTAMP '1970-01-01 06:00:00') AS s, time_bucket(INTERVAL '36 hours', "at", TIMESTAMP '1970-01-01 06:00:00') + INTERVAL '36 hours' AS e, COUNT(*) AS c, SUM(qty) AS q FROM item WHERE "at" IS NOT NULL GROUP BY ALL
CREATE VIEW hours AS SELECT window.start AS s, window.end AS e, COUNT(*) AS c, SUM(qty) AS q FROM item GROUP BY `window`(at, '36 hours', '36 hours', '6 hours');

-- windows of time that overlap, beside other keys
-- duckdb: SELECT name, time_bucket(INTERVAL '12 hours', "at", TIMESTAMP '1970-01-01') - i * INTERVAL '12 hours' AS start, MAX(id) AS m FROM item, (VALUES (0), (1), (2)) v (i) WHERE "at" < time_bucket(INTERVAL '12 hours', "at", TIMESTAMP '1970-01-01') - i * INTERVAL '12 hours' + INTERVAL '30 hours' GROUP BY ALL HAVING start < TIMESTAMP '2026-02-01'
CREATE VIEW overlapping_hours AS SELECT name, window.start, MAX(id) AS m FROM item GROUP BY name, `window`(at, '30 hours', '12 hours') HAVING window.start < TIMESTAMP '2026-02-01';
