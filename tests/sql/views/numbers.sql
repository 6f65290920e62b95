-- Arithmetic and functions of numbers.

-- division of integers gives doubles
-- sqlite: SELECT k, a / 2.0 AS x, (a + b) / 4.0 AS y FROM t
CREATE VIEW division AS SELECT k, a / 2 AS x, (a + b) / 4 AS y FROM t;

-- DIV cuts off
-- sqlite: SELECT k, a / 2 AS x, (-a) / 2 AS y FROM t
-- duckdb: SELECT k, CAST(trunc(a / 2) AS INT) AS x, CAST(trunc((-a) / 2) AS INT) AS y FROM t
CREATE VIEW whole_division AS SELECT k, a DIV 2 AS x, (-a) DIV 2 AS y FROM t;

-- the remainder has the sign of the dividend
CREATE VIEW remainder AS SELECT k, a % 2 AS x, (a - 3) % 2 AS y, MOD(b, 3) AS z FROM t;

-- absolute values and signs
CREATE VIEW signs AS SELECT k, ABS(a - 2) AS x, SIGN(a - 1) AS y FROM t;

-- rounding half away from zero
CREATE VIEW rounding AS SELECT id, ROUND(rate) AS x, ROUND(rate, 1) AS y FROM item;

-- rounding of integers to tens
-- sqlite: SELECT k, CAST(round(a * 5 / 10.0) * 10 AS INTEGER) AS x FROM t
CREATE VIEW tens AS SELECT k, ROUND(a * 5, -1) AS x FROM t;

-- floor and ceiling
-- not sqlite: it is built without mathematical functions here
CREATE VIEW floors AS SELECT id, FLOOR(rate) AS x, CEIL(rate) AS y, FLOOR(-rate) AS z FROM item;

-- roots and powers
-- not sqlite: it is built without mathematical functions here
CREATE VIEW powers AS SELECT k, SQRT(ABS(a)) AS x, POWER(a, 2) AS y FROM t;

-- doubles
CREATE VIEW double_arithmetic AS SELECT id, rate * 2 + qty AS x, rate - 0.5D AS y, -rate AS z FROM item;

-- comparisons of integers with doubles
CREATE VIEW mixed_comparison AS SELECT id FROM item WHERE qty > rate OR rate = 1;

-- large integers
-- not sqlite: the literal is a decimal in DuckDB alone
CREATE VIEW large AS SELECT k, CAST(a AS BIGINT) * 3000000000 AS x FROM t;
