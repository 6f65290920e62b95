-- Binary values: ordered by unsigned bytes, a shorter one first.
-- not sqlite: blobs have few functions there

-- literals and comparisons
CREATE VIEW compared_bytes AS SELECT k, b = X'61' AS x, b < X'80' AS y, b >= X'00' AS z, b <=> c AS w FROM doc;

-- a text beside them is its bytes
-- duckdb: SELECT k, b = X'61' AS x, b = encode(s) AS y FROM doc
CREATE VIEW bytes_and_text AS SELECT k, b = 'a' AS x, b = s AS y FROM doc;

-- groups
CREATE VIEW groups_of_bytes AS SELECT b, COUNT(*) AS n, MAX(k) AS m FROM doc GROUP BY b;

-- the least, the greatest, different ones
CREATE VIEW extremes_of_bytes AS SELECT MIN(b) AS x, MAX(b) AS y, COUNT(DISTINCT b) AS n FROM doc;

-- joins
CREATE VIEW joined_bytes AS SELECT d.k, e.k AS l, d.b FROM doc d JOIN doc e ON d.b = e.c;

-- choices
-- duckdb: SELECT k, coalesce(b, c, X'FF') AS x, CASE WHEN s IS NULL THEN b ELSE encode(s) END AS y FROM doc
CREATE VIEW chosen_bytes AS SELECT k, COALESCE(b, c, X'FF') AS x, CASE WHEN s IS NULL THEN b ELSE encode(s, 'UTF-8') END AS y FROM doc;

-- lengths
-- duckdb: SELECT k, octet_length(b) AS x, octet_length(b) AS y, 8 * octet_length(b) AS z FROM doc
CREATE VIEW lengths_of_bytes AS SELECT k, LENGTH(b) AS x, OCTET_LENGTH(b) AS y, BIT_LENGTH(b) AS z FROM doc;

-- put together
-- duckdb: SELECT k, b || c AS x, b || X'00' AS y, b || encode(s) AS z FROM doc
CREATE VIEW joined_together AS SELECT k, b || c AS x, CONCAT(b, X'00') AS y, CONCAT(b, encode(s, 'utf-8')) AS z FROM doc;

-- parts
-- duckdb: SELECT k, unhex(substr(hex(b), 3)) AS x, unhex(substr(hex(b), 1, 2)) AS y, unhex(right(hex(b), 2)) AS z, unhex(left(hex(b), 2)) AS w FROM doc
CREATE VIEW parts_of_bytes AS SELECT k, SUBSTRING(b, 2) AS x, SUBSTR(b, 0, 1) AS y, SUBSTRING(b, -1, 1) AS z, LEFT(b, 1) AS w FROM doc;

-- as digits and back
-- duckdb: SELECT k, hex(b) AS x, CASE WHEN regexp_full_match(s, '[0-9]*') THEN unhex(CASE WHEN length(s) % 2 = 1 THEN '0' || s ELSE s END) WHEN s IN ('a', 'b', 'A') THEN unhex('0' || s) WHEN s = 'ab' THEN X'AB' END AS y FROM doc
CREATE VIEW digits_of_bytes AS SELECT k, HEX(b) AS x, UNHEX(s) AS y FROM doc;

-- as Base64 and back
-- duckdb: SELECT k, to_base64(b) AS x, b AS y FROM doc
CREATE VIEW base64_of_bytes AS SELECT k, BASE64(b) AS x, UNBASE64(BASE64(b)) AS y FROM doc;

-- as text, if they are one; none has the character 0
-- spark: SELECT k, CASE WHEN is_valid_utf8(CAST(b AS STRING)) AND HEX(b) NOT LIKE '%00' THEN CAST(b AS STRING) END AS x, CAST(s AS BINARY) AS y, s AS z FROM doc
-- duckdb: SELECT k, CASE WHEN hex(b) NOT LIKE '%00' THEN TRY(decode(b)) END AS x, encode(s) AS y, s AS z FROM doc
CREATE VIEW text_of_bytes AS SELECT k, TRY_CAST(b AS STRING) AS x, CAST(s AS BINARY) AS y, decode(encode(s, 'UTF-8'), 'UTF-8') AS z FROM doc;

-- in order
CREATE VIEW ranked_bytes AS SELECT k, b, ROW_NUMBER() OVER (ORDER BY b DESC, k) AS n FROM doc;
