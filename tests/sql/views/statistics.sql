-- Aggregates of the bag of a group's values.
-- not sqlite: it has none of them

-- of a table with a key, and with nulls
CREATE VIEW spread AS SELECT a, var_pop(b) AS v, var_samp(b) AS w, stddev(b) AS s, stddev_pop(b) AS p, COUNT(*) AS c, SUM(b) AS t, MIN(b) AS m FROM t GROUP BY a;

-- of copies, which count, and of distinct values
CREATE VIEW spread_of_copies AS SELECT a, var_pop(b) AS v, var_pop(DISTINCT b) AS d, stddev(b) FILTER (WHERE b > 0) AS f FROM u GROUP BY a;

-- without groups, perhaps without rows
CREATE VIEW spread_of_all AS SELECT variance(rate) AS v, median(rate) AS m, bit_or(qty) AS b FROM item;

-- bits
CREATE VIEW bits AS SELECT a, bit_and(b) AS x, bit_or(b) AS y, bit_xor(b) AS z FROM u GROUP BY a;

-- the order of values
-- duckdb: SELECT a, quantile_cont(b::DOUBLE, 0.5) AS m, quantile_cont(b::DOUBLE, 0.3) AS p, quantile_cont(b::DOUBLE, 1 - 0.25) AS q, quantile_disc(b, 0.4)::DOUBLE AS d FROM u GROUP BY a
CREATE VIEW quantiles AS SELECT a, median(b) AS m, percentile(b, 0.3) AS p, percentile_cont(0.25) WITHIN GROUP (ORDER BY b DESC) AS q, percentile_disc(0.4) WITHIN GROUP (ORDER BY b) AS d FROM u GROUP BY a;

-- the most frequent value, the least of several
-- duckdb: SELECT a, (SELECT s FROM n o WHERE o.a = n.a AND s IS NOT NULL GROUP BY s ORDER BY COUNT(*) DESC, s LIMIT 1) AS m, (SELECT s FROM n o WHERE o.a = n.a AND s IS NOT NULL GROUP BY s ORDER BY COUNT(*) DESC, s DESC LIMIT 1) AS d FROM n GROUP BY a
CREATE VIEW modes AS SELECT a, mode(s, true) AS m, mode() WITHIN GROUP (ORDER BY s DESC) AS d FROM n GROUP BY a;

-- a value beside the greatest or the least one; of equal ones the greatest or the least
-- duckdb: SELECT a, MAX(k) FILTER (WHERE b = most) AS x, MIN(k) FILTER (WHERE b = least) AS y FROM (SELECT *, MAX(b) OVER (PARTITION BY a) AS most, MIN(b) OVER (PARTITION BY a) AS least FROM t) q GROUP BY a
-- spark: SELECT a, max_by(k, struct(b, k)) FILTER (WHERE b IS NOT NULL) AS x, min_by(k, struct(b, k)) FILTER (WHERE b IS NOT NULL) AS y FROM t GROUP BY a
CREATE VIEW beside AS SELECT a, max_by(k, b) AS x, min_by(k, b) AS y FROM t GROUP BY a;

-- pairs; others do not compute exactly
-- duckdb: SELECT a, round(covar_pop(k, b), 9) AS c, round(covar_samp(k, b), 9) AS s, CASE WHEN regr_sxx(k, b) > 0 AND regr_syy(k, b) > 0 THEN round(corr(k, b), 9) END AS r, CASE WHEN regr_sxx(k, b) > 0 THEN round(regr_slope(k, b), 9) END AS l, CASE WHEN regr_sxx(k, b) > 0 THEN round(regr_intercept(k, b), 9) END AS i, round(regr_sxx(k, b), 9) AS x, round(regr_sxy(k, b), 9) AS y, CASE WHEN regr_sxx(k, b) > 0 THEN CASE WHEN regr_syy(k, b) > 0 THEN round(regr_r2(k, b), 9) ELSE 1 END END AS q, regr_count(k, b) AS n, regr_avgx(k, b) AS e, regr_avgy(k, b) AS f FROM t GROUP BY a
CREATE VIEW pairs AS SELECT a, round(covar_pop(k, b), 9) AS c, round(covar_samp(k, b), 9) AS s, round(corr(k, b), 9) AS r, round(regr_slope(k, b), 9) AS l, round(regr_intercept(k, b), 9) AS i, round(regr_sxx(k, b), 9) AS x, round(regr_sxy(k, b), 9) AS y, round(regr_r2(k, b), 9) AS q, regr_count(k, b) AS n, regr_avgx(k, b) AS e, regr_avgy(k, b) AS f FROM t GROUP BY a;

-- the same where y may be constant
-- duckdb: SELECT x, CASE WHEN regr_sxx(q, y) > 0 AND regr_syy(q, y) > 0 THEN round(corr(q, y), 9) END AS r, CASE WHEN regr_sxx(q, y) > 0 THEN CASE WHEN regr_syy(q, y) > 0 THEN round(regr_r2(q, y), 9) ELSE 1 END END AS s FROM p GROUP BY x
CREATE VIEW flat_pairs AS SELECT x, round(corr(q, y), 9) AS r, round(regr_r2(q, y), 9) AS s FROM p GROUP BY x;

-- higher moments
-- duckdb: SELECT a, CASE WHEN v > 0 THEN round((t / n - 3 * m * q / n + 2 * m * m * m) / power(v, 1.5), 8) END AS s, CASE WHEN v > 0 THEN round(k, 8) END AS k FROM (SELECT a, SUM(b * b * b) AS t, SUM(b * b) AS q, AVG(b) AS m, COUNT(b) AS n, var_pop(b) AS v, kurtosis_pop(b) AS k FROM u GROUP BY a) g
CREATE VIEW shapes AS SELECT a, round(skewness(b), 8) AS s, round(kurtosis(b), 8) AS k FROM u GROUP BY a;

-- texts in an order
-- duckdb: SELECT a, string_agg(s, ', ' ORDER BY s DESC) AS x FROM n GROUP BY a
CREATE VIEW texts AS SELECT a, listagg(s, ', ') WITHIN GROUP (ORDER BY s DESC) AS x FROM n GROUP BY a;

-- in HAVING, and over a join
CREATE VIEW wide AS SELECT t.a, COUNT(*) AS c FROM t JOIN u ON t.a = u.a GROUP BY t.a HAVING var_pop(u.b) > 0.5;

-- a sum that is too large is null
-- duckdb: SELECT a, TRY_CAST(SUM(CAST(9223372036854775807 - b * b AS HUGEINT)) AS BIGINT) AS x, AVG(b) AS y FROM u GROUP BY a
CREATE VIEW tried AS SELECT a, try_sum(9223372036854775807 - b * b) AS x, try_avg(b) AS y FROM u GROUP BY a;

-- texts without an order are in their own
-- duckdb: SELECT a, string_agg(s, '-' ORDER BY s) AS x FROM n GROUP BY a
-- spark: SELECT a, listagg(s, '-') WITHIN GROUP (ORDER BY s) AS x FROM n GROUP BY a
CREATE VIEW unordered_texts AS SELECT a, string_agg(s, '-') AS x FROM n GROUP BY a;

-- the first and the last row of a group, in the order of all columns of FROM, nulls first
-- duckdb: SELECT a, first(s ORDER BY k) AS f, first(s ORDER BY k) AS v, last(b ORDER BY k) AS l, first(b ORDER BY k) FILTER (WHERE b IS NOT NULL) AS n, last(s ORDER BY k) FILTER (WHERE k > 3) AS c FROM t GROUP BY a
-- spark: SELECT a, min_by(s, k) AS f, min_by(s, k) AS v, max_by(b, k) AS l, min_by(b, k) FILTER (WHERE b IS NOT NULL) AS n, max_by(s, k) FILTER (WHERE k > 3) AS c FROM t GROUP BY a
CREATE VIEW ends AS SELECT a, first(s) AS f, any_value(s) AS v, last(b) AS l, first_value(b) IGNORE NULLS AS n, last(s) FILTER (WHERE k > 3) AS c FROM t GROUP BY a;

-- of a join, of copies, and of all rows
-- duckdb: SELECT first(u.b ORDER BY t.k, u.a, u.b NULLS FIRST) AS f, last(u.b ORDER BY t.k, u.a, u.b NULLS FIRST) AS l, last(u.b ORDER BY t.k, u.a, u.b) FILTER (WHERE u.b IS NOT NULL) AS n FROM u JOIN (SELECT k, a FROM t) t ON t.a = u.a
-- spark: SELECT min_by(b, struct(k, a, b)) AS f, max_by(b, struct(k, a, b)) AS l, max_by(b, struct(k, a, b)) FILTER (WHERE b IS NOT NULL) AS n FROM (SELECT t.k, u.a, u.b FROM u JOIN t ON t.a = u.a)
CREATE VIEW ends_of_join AS SELECT first(u.b) AS f, last(u.b) AS l, last(u.b, true) AS n FROM (SELECT k, a FROM t) t JOIN u ON t.a = u.a;
