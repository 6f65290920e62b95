-- Casts between numbers, text, bools, dates and decimals, and those that give null instead of an error.

-- integers to text and back
CREATE VIEW int_text AS SELECT k, CAST(a AS STRING) AS x, CAST(CAST(a AS STRING) AS INT) AS y FROM t;

-- text to integers where it is a number
-- sqlite: SELECT k, CASE s WHEN '1' THEN 1 WHEN ' 2 ' THEN 2 END AS x FROM t
CREATE VIEW try_int AS SELECT k, TRY_CAST(s AS INT) AS x FROM t;

-- doubles are cut off
CREATE VIEW double_int AS SELECT id, CAST(rate AS INT) AS x, CAST(rate AS BIGINT) AS y FROM item;

-- integers to doubles
CREATE VIEW int_double AS SELECT k, CAST(a AS DOUBLE) / 4 AS x FROM t;

-- bools to integers and back
CREATE VIEW bool_int AS SELECT k, CAST(v AS INT) AS x, CAST(CAST(k AS INT) AS BOOLEAN) AS y FROM f;

-- bools to text
-- sqlite: SELECT k, CASE v WHEN 1 THEN 'true' WHEN 0 THEN 'false' END AS x FROM f
CREATE VIEW bool_text AS SELECT k, CAST(v AS STRING) AS x FROM f;

-- dates to text
CREATE VIEW date_text AS SELECT id, CAST(day AS STRING) AS x FROM item;

-- text to dates
-- not sqlite: it has no dates
CREATE VIEW text_date AS SELECT id, CAST(CAST(day AS STRING) AS DATE) AS x, DATE '2026-01-31' AS y FROM item;

-- timestamps to dates
-- not sqlite: it has no timestamps
CREATE VIEW moment_date AS SELECT id, CAST(at AS DATE) AS x, CAST(day AS TIMESTAMP) AS y FROM item;

-- decimals to integers are cut off
-- not sqlite: it has no decimals
CREATE VIEW decimal_int AS SELECT id, CAST(price AS INT) AS x FROM item;

-- decimals with fewer digits are rounded half up
-- not sqlite: it has no decimals
CREATE VIEW decimal_rounded AS SELECT id, CAST(price AS DECIMAL(10, 1)) AS x, CAST(price AS DECIMAL(10, 4)) AS y FROM item;

-- decimals to doubles and text
-- not sqlite: it has no decimals
CREATE VIEW decimal_text AS SELECT id, CAST(price AS DOUBLE) AS x, CAST(price AS STRING) AS y FROM item;

-- integers to decimals
-- not sqlite: it has no decimals
CREATE VIEW int_decimal AS SELECT k, CAST(a AS DECIMAL(5, 2)) AS x FROM t;

-- text to decimals, if it can be
-- not sqlite: it has no decimals
-- duckdb: SELECT k, CASE s WHEN '1' THEN 1.00 WHEN ' 2 ' THEN 2.00 END::DECIMAL(5, 2) AS x FROM t
CREATE VIEW try_decimal AS SELECT k, TRY_CAST(s AS DECIMAL(5, 2)) AS x FROM t;

-- null in every type
-- not sqlite: it has no types
CREATE VIEW nulls AS SELECT k, CAST(NULL AS INT) AS a, CAST(NULL AS STRING) AS b, CAST(NULL AS DATE) AS c, CAST(NULL AS BOOLEAN) AS d FROM t;

-- try_divide, try_add
-- duckdb: SELECT a, b, CASE WHEN b <> 0 THEN a / b END AS x FROM u
-- sqlite: SELECT a, b, CASE WHEN b <> 0 THEN CAST(a AS REAL) / b END AS x FROM u
CREATE VIEW try_division AS SELECT a, b, TRY_DIVIDE(a, b) AS x FROM u;

-- the short form of a cast
CREATE VIEW short_form AS SELECT k, a::STRING AS x, (b + 1)::DOUBLE AS y FROM t;

-- casts in conditions and keys
CREATE VIEW cast_key AS SELECT CAST(rate AS INT) AS whole, COUNT(*) AS c FROM item GROUP BY CAST(rate AS INT);
