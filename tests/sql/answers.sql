-- Questions with their answers, which are those of Spark 4 in ANSI mode. A line `-- = …` is a row, `-- error …` the code of
-- the error that both the question and the view have. Tables: tables.sql, with the rows of test_answers.py.

-- decimal literals are decimals, also among themselves
SELECT 0.1 + 0.2 = 0.3 AS x, 0.1 + 0.2 AS y, -0.1 - 0.2 AS z, 1.0000000000000000000001 = 1 AS w
-- = True | 0.3 | -0.3 | False

-- where nothing else has a type
SELECT COUNT(*) AS c FROM t WHERE CASE WHEN k > 0 THEN 0.1 ELSE 0.5 END + 0.2 = 0.3
-- = 3

-- and as text, and with fewer digits
SELECT CAST(0.10 AS STRING) AS x, CAST(12345678901234567890.12 AS DECIMAL(30, 1)) AS y, -12345678901234567890123456789012345678 AS z
-- = 0.10 | 12345678901234567890.1 | -12345678901234567890123456789012345678

-- an outer join that pads a literal
SELECT t.k, q.d + 0.2 = 0.3 AS x FROM t LEFT JOIN (SELECT a, 0.1 AS d FROM u) q ON t.a = q.a
-- = 1 | True
-- = 1 | True
-- = 2 | NULL
-- = 3 | NULL

-- an integer that is cast has the digits of its type, a literal its own
SELECT price / CAST(3 AS BIGINT) AS x, price / CAST(3 AS SMALLINT) AS y, price / CAST(qty AS INT) AS z, price / 3 AS w FROM item
-- = 3.33333333333333333333333 | 3.33333333 | 3.3333333333333 | 3.333333

-- sums too
SELECT SUM(amount) / CAST(3 AS BIGINT) AS x FROM sale
-- = 3.3333333333333333333333

-- rounding keeps all digits that there are
SELECT round(CAST('1234567890123456789012345678.1234567891' AS DECIMAL(38, 10)), 10) AS x, round(CAST('1234567890123456789012345678.1234567891' AS DECIMAL(38, 10)), 9) AS y
-- = 1234567890123456789012345678.1234567891 | 1234567890123456789012345678.123456789

-- literals with exponents
SELECT 5e36BD AS x, 5e36BD + 1 AS y, -5e37BD AS z
-- = 5000000000000000000000000000000000000 | 5000000000000000000000000000000000001 | -50000000000000000000000000000000000000

-- the error of an argument is not tried
SELECT try_add(1, 1 / 0) AS x
-- error C0810

SELECT k, try_subtract(k, 10 DIV (k - 1)) AS x FROM t
-- error C0810

SELECT try_cast(1 DIV 0 AS INT) AS x
-- error C0810

-- its own error is null, and so is a null argument
SELECT try_divide(k, 0) AS x, try_add(k, try_divide(k, 0)) AS y, try_cast('x' || s AS INT) AS z, try_add(9223372036854775807, k + 0L) AS w FROM t WHERE k = 1
-- = NULL | NULL | NULL | NULL

-- powers as Java has them
SELECT power(1, double('NaN')) AS a, power(double('NaN'), 0) AS b, power(-1, double('Infinity')) AS c, power(k, 2) AS d FROM t WHERE k = 2
-- = nan | 1.0 | nan | 4.0

-- functions of literals
SELECT sign(-0.1) AS a, sign(3) AS b, round(0.15, 1) AS c, abs(-0.10) AS d, pmod(-0.3, 0.2) AS e, greatest(0.1, 0.30) = 0.3 AS f
-- = -1.0 | 1.0 | 0.2 | 0.10 | 0.1 | True

-- nothing is in a query, and not outside of it either, that is null
SELECT CAST(NULL AS INT) IN (SELECT k FROM t) AS a, NULL IN (SELECT k FROM t WHERE k > 5) AS b
-- = NULL | False

-- a column that is called as a quantifier
SELECT all, 2 AS two FROM (SELECT k AS all FROM t) q WHERE all < 3
-- = 1 | 2
-- = 2 | 2

SELECT ALL distinct FROM (SELECT 7 AS distinct) q
-- = 7
