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

-- a DOUBLE is compared with the largest BIGINT as a DOUBLE, which is one more
SELECT CAST(9223372036854775807D AS BIGINT) AS x, try_cast(-9223372036854775808D AS BIGINT) AS y, try_cast(2147483648D AS INT) AS z FROM t WHERE k = 1
-- = 9223372036854775807 | -9223372036854775808 | NULL

SELECT CAST(9.3e18 AS BIGINT) AS x
-- error C0810

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

-- texts beside other values are read as such: as BIGINT, DOUBLE, DATE, BOOLEAN
SELECT k, s + 1 AS a, s * 1.5 AS b, -s AS c, s DIV 2 AS d, s / 2 AS e FROM (SELECT k, CAST(k AS STRING) AS s FROM t WHERE k < 3) q WHERE s <= 2
-- = 1 | 2 | 1.5 | -1.0 | 0 | 0.5
-- = 2 | 3 | 3.0 | -2.0 | 1 | 1.0

-- a text that is no number is an error where it counts
SELECT k FROM t WHERE s = 1
-- error C0810

SELECT k FROM t WHERE k = 1 AND '1.5' = 1
-- error C1309

-- text and text are no sum
SELECT s + s AS x FROM t
-- error C1307

SELECT '1' = 1 AS a, ' 2 ' = 2 AS b, '1.50' = 1.5 AS c, DATE '2025-01-01' = '2025-1-1' AS d, true = 'yes' AS e, '1' <=> 1 AS f, 2.5D > 'NaN' AS g
-- = True | True | True | True | True | True | False

SELECT coalesce(s, 1) AS a, coalesce(s, 1, 2.5) AS b, coalesce(2.5, 1, s) AS c, nullif(s, 1) AS d, if(s > 1, s, 0) AS e FROM (SELECT '7' AS s) q
-- = 7 | 7.0 | 2.5 | 7 | 7

SELECT CASE WHEN k = 1 THEN '2025-01-01' ELSE DATE '2025-02-01' END AS x FROM t WHERE k < 3
-- = 2025-01-01
-- = 2025-02-01

SELECT k FROM t WHERE CAST(k AS STRING) IN (SELECT b - 4 FROM u) OR k IN ('3', '4')
-- = 1
-- = 2
-- = 3

SELECT '1' AS x UNION SELECT k FROM t WHERE k < 3
-- = 1
-- = 2

SELECT s FROM (SELECT '2' AS s) q INTERSECT SELECT k FROM t
-- = 2

SELECT 1.5 AS x UNION ALL SELECT '2'
-- = 1.5
-- = 2.0

SELECT true AS x UNION ALL SELECT 1
-- error C1307

SELECT t.k FROM t JOIN (SELECT '1' AS k UNION ALL SELECT '2') x USING (k)
-- = 1
-- = 2

SELECT k FROM t FULL JOIN (SELECT '7' AS k) x USING (k)
-- = 1
-- = 2
-- = 3
-- = 7

-- and functions read texts, and write them
SELECT sum(s) AS a, avg(s) AS b, max(s) AS c FROM (SELECT CAST(k AS STRING) AS s FROM t) q
-- = 6.0 | 2.0 | 3

SELECT 1 || 2 AS a, concat(k, 'a', DATE '2025-01-01') AS b, upper(true) AS c, substr(12345, '2', 3) AS d, lpad(5, 3, 0) AS e, 12 LIKE '1%' AS f, year('2025-03-04 10:00:00') AS g, abs('-3') AS h FROM t WHERE k = 1
-- = 12 | 1a2025-01-01 | TRUE | 234 | 005 | True | 2025 | 3.0

SELECT NOT 'true' AS a, s OR false AS b FROM (SELECT 'yes' AS s) q
-- = False | True

SELECT k FROM t WHERE s
-- error C1307

-- a time without a date would be today
SELECT CAST('08:00:00' AS TIMESTAMP) AS x
-- error C0810

SELECT try_cast(x AS TIMESTAMP) AS y FROM VALUES ('T08:00'), ('2025-01-01 08:00') v(x)
-- = NULL
-- = 2025-01-01 08:00:00+00:00

-- pipes, as real Spark answers them
FROM t |> SELECT k, a |> SET k = k + 1, a = k |> ORDER BY k DESC |> LIMIT 2
-- = 4 | 4
-- = 3 | 3

FROM t |> AGGREGATE count(*) AS c, max(k) AS m GROUP BY b AS g |> WHERE c > 1
-- = 5 | 2 | 3

WITH c AS (SELECT k FROM t) FROM c |> WHERE k IN (FROM t |> WHERE a = 2 |> SELECT k)
-- = 2

FROM t |> SELECT k |> UNION ALL (SELECT 100) |> WHERE k > 2 |> EXTEND 'a |> b' AS x
-- = 100 | a |> b
-- = 3 | a |> b

FROM t |> WHERE k < 3 |> SELECT k, a |> PIVOT (sum(k) FOR a IN (1, 2))
-- = 1 | 2

FROM t |> SAMPLE 10
-- error C1300

-- a named window gets an order and a frame where it is used
SELECT k, rank() OVER (w ORDER BY k DESC) AS r, count(*) OVER (w ORDER BY k RANGE 1 PRECEDING) AS c FROM t WINDOW w AS (PARTITION BY b)
-- = 1 | 2 | 1
-- = 2 | 1 | 1
-- = 3 | 1 | 1

-- numbers in texts as Java reads them
SELECT CAST('1.5f' AS DOUBLE) AS x, CAST('0x1p3' AS DOUBLE) AS y, TRY_CAST('1.5ff' AS DOUBLE) AS z, CAST('2D' AS FLOAT) AS w
-- = 1.5 | 8.0 | NULL | 2.0

-- windows of times that are texts or dates, and texts that are none
SELECT cast(window.start AS STRING) AS s, COUNT(*) AS c FROM (SELECT concat('2021-01-01 00:0', k, ':30') AS at FROM t) GROUP BY window(at, '2 minutes')
-- = 2021-01-01 00:00:00 | 1
-- = 2021-01-01 00:02:00 | 2

SELECT cast(session_window.end AS STRING) AS e, COUNT(*) AS c FROM (SELECT date_add(DATE '2021-01-01', 2 * k) AS at FROM t) GROUP BY session_window(at, '2 days')
-- = 2021-01-09 00:00:00 | 3

SELECT COUNT(*) AS c FROM t GROUP BY window(concat('x', k), '2 minutes')
-- error C0810

-- what cannot be null can still fail
SELECT COUNT(1 / (k - k)) AS c FROM t
-- error C0810

SELECT a, COUNT(CAST(concat('x', k) AS INT)) AS c FROM t GROUP BY a
-- error C0810

SELECT k FROM t WHERE 1 / (k - k) IS NOT NULL
-- error C0810

SELECT COUNT(CAST(concat('1', k) AS INT)) AS c, AVG(CAST(concat('1', k) AS INT)) AS m FROM t WHERE CAST(concat('1', k) AS INT) IS NOT NULL
-- = 3 | 12.0

-- zones in texts, by name, offset and the short names of Java; only behind seconds
SELECT cast(TIMESTAMP '2020-03-29 02:30:00 Europe/Paris' AS STRING) AS x, cast(TIMESTAMP '2020-10-25 02:30:00.5 Europe/Paris' AS STRING) AS y, cast(TIMESTAMP '2020-01-01 00:00:00GMT-3:30' AS STRING) AS z, cast(TIMESTAMP '1850-01-01 00:00:00 Europe/Paris' AS STRING) AS w
-- = 2020-03-29 01:30:00 | 2020-10-25 00:30:00.5 | 2020-01-01 03:30:00 | 1849-12-31 23:50:39

SELECT cast(TRY_CAST(concat('2020-07-01 00:00:00 ', z) AS TIMESTAMP) AS STRING) AS x, cast(from_utc_timestamp(TIMESTAMP '2050-07-01 00:00:00', z) AS STRING) AS y FROM (VALUES ('PST'), ('+0530'), ('America/New_York'), ('-2:5')) AS zones(z)
-- = 2020-06-30 18:30:00 | 2050-07-01 05:30:00
-- = 2020-07-01 02:05:00 | 2050-06-30 21:55:00
-- = 2020-07-01 04:00:00 | 2050-06-30 20:00:00
-- = 2020-07-01 07:00:00 | 2050-06-30 17:00:00

SELECT TRY_CAST(concat('2020-07-01 00:00', z) AS TIMESTAMP) AS x, TRY_CAST(concat('2020-07-01 00:00:00', z) AS TIMESTAMP) IS NULL AS y FROM (VALUES ('+02:00'), ('Nowhere')) AS zones(z)
-- = NULL | False
-- = NULL | True

-- a mean of integers whose sum is none
SELECT AVG(9223372036854775807 - k) AS x, TRY_AVG(9223372036854775807 - k) AS y, SUM(k) AS z FROM t
-- = 9.223372036854776e+18 | 9.223372036854776e+18 | 6

SELECT k, AVG(9223372036854775807 - k) OVER (ORDER BY k) AS x FROM t
-- = 1 | 9.223372036854776e+18
-- = 2 | 9.223372036854776e+18
-- = 3 | 9.223372036854776e+18

-- a rest moved into the range of a TINYINT
SELECT pmod(CAST(-127 AS TINYINT), CAST(-128 AS TINYINT)) AS x, pmod(-7, 3) AS y, pmod(-7, -3) AS z
-- = -127 | 2 | -1

-- a text beside an INT is a BIGINT
SELECT '2147483647' + 1 AS x, typeof('5' * 5) AS y, typeof(coalesce('5', 1)) AS z
-- = 2147483648 | bigint | bigint

-- hashes of bytes that are no text
SELECT md5(x) AS m, sha1(x) AS s, sha2(x, 224) AS t, sha2(x, 7) AS u, crc32(x) AS c FROM (SELECT to_binary(concat('ff0', k)) AS x FROM t WHERE k = 1)
-- = fb73c139137bccfee5d95bddb087480a | 007dd9b9b6f1fe30c650ee7988643e98436c23da | ad1d1a57267ac6bf05c09839c0cb299c33da304db15cf21345532804 | NULL | 2784681755

-- intervals by intervals
SELECT INTERVAL '-5' DAY DIV INTERVAL '2' HOUR AS x, INTERVAL 5 MONTHS DIV INTERVAL 1 YEAR AS y
-- = -60 | 0

-- words for days that change
SELECT TRY_CAST('today' AS DATE) AS x FROM t
-- error C1309

-- hashes beside texts that are no bytes
SELECT x, hash(unhex(x)) AS h FROM VALUES ('a'), ('é'), ('b'), ('È'), ('c') AS v(x)
-- = a | 1593114636
-- = b | 1390602278
-- = c | 1428454657
-- = È | 42
-- = é | 42

-- the place of the least TINYINT in a bitmap
SELECT bitmap_bit_position(CAST(-128 AS TINYINT)) AS x, bitmap_bucket_number(CAST(-128 AS TINYINT)) AS y
-- = 128 | 0

-- columns left out of a struct
SELECT struct(* EXCEPT (a, s)) AS x, struct(q.* EXCEPT (b)) AS y FROM (SELECT k, a, s FROM t WHERE k = 2) JOIN (SELECT 7 AS b, 8 AS c) q
-- = (2, 7, 8) | (8,)

-- the first moment of 1970, as a word
SELECT try_to_timestamp('epoch') AS x, to_date(' Epoch') AS y, year('epoch') AS z, DATE '1970-01-01' = 'epoch' AS w
-- = 1970-01-01 00:00:00+00:00 | 1970-01-01 | 1970 | True

-- what `try_` tries: all of it where an operand is no number, else the sum alone
SELECT try_subtract(k, conv(s, k, k)) AS x, try_add(DATE '2026-01-01', CAST(s AS INT)) AS y FROM t WHERE k = 1
-- = NULL | NULL

-- here an operand without a value stays an error
SELECT try_add(k, CAST(s AS INT)) AS x FROM t WHERE k = 1
-- error C0810

-- but not one behind a null
SELECT try_add(CAST(a AS INT), CAST(s AS INT)) AS x, try_multiply(1 / (k - 3), CAST(k AS INT)) AS y FROM (SELECT k, NULLIF(a, 1) AS a, s FROM t WHERE k = 1)
-- = NULL | -0.5

-- the divisor is looked at first, and `try_to_binary` tries its argument, too
SELECT try_divide(CAST(s AS INT), NULLIF(k, 1)) AS x, try_to_binary(CAST(CAST(s AS INT) AS STRING)) AS y, try_to_time(CAST(CAST(s AS INT) AS STRING)) AS z FROM t WHERE k = 1
-- = NULL | NULL | NULL

-- days of the least TINYINT and SMALLINT
SELECT DATE '2026-01-01' - CAST(-127 - k AS TINYINT) AS x, date_sub(DATE '2026-01-01', CAST(-32767 - k AS SMALLINT)) AS y FROM t WHERE k = 1
-- = 2026-05-09 | 2115-09-20
