-- Text: by code point, LIKE and RLIKE, functions.

-- length in code points
CREATE VIEW lengths AS SELECT k, LENGTH(s) AS x FROM t;

-- upper and lower case
-- not sqlite: it changes letters of ASCII only
CREATE VIEW cases AS SELECT k, UPPER(s) AS x, LOWER(s) AS y FROM t;

-- concatenation: null makes null
CREATE VIEW concatenated AS SELECT k, s || '-' || s AS x, CONCAT(s, '!') AS y, CONCAT(s, 'x', s) AS z FROM t;

-- blanks
CREATE VIEW trimmed AS SELECT k, TRIM(s) AS x, LTRIM(s) AS y, RTRIM(s) AS z FROM t;

-- substrings from 1
CREATE VIEW substrings AS SELECT k, SUBSTRING(s, 1, 1) AS x, SUBSTR(s, 2) AS y, SUBSTRING(s, -1, 1) AS z FROM t;

-- 0 is like 1
-- duckdb: SELECT k, substr(s, 1, 2) AS x FROM t
-- sqlite: SELECT k, substr(s, 1, 2) AS x FROM t
CREATE VIEW substring_zero AS SELECT k, SUBSTRING(s, 0, 2) AS x FROM t;

-- ends
-- sqlite: SELECT k, substr(s, 1, 2) AS x, CASE WHEN length(s) < 2 THEN s ELSE substr(s, -2) END AS y FROM t
CREATE VIEW left_right AS SELECT k, LEFT(s, 2) AS x, RIGHT(s, 2) AS y FROM t;

-- LIKE with both wildcards
CREATE VIEW likes AS SELECT k, s LIKE 'a%' AS x, s LIKE '_' AS y, s LIKE '%b%' AS z FROM t;

-- LIKE is true to case
CREATE VIEW like_case AS SELECT k FROM t WHERE s LIKE 'A%';

-- NOT LIKE drops nulls
CREATE VIEW not_like AS SELECT k FROM t WHERE s NOT LIKE '%a%';

-- an escaped wildcard
-- duckdb: SELECT k FROM t WHERE s LIKE '%\%%' ESCAPE '\'
-- sqlite: SELECT k FROM t WHERE s LIKE '%\%%' ESCAPE '\'
CREATE VIEW like_escape AS SELECT k FROM t WHERE s LIKE '%\\%%';

-- a pattern from a column
CREATE VIEW like_column AS SELECT t.k, n.s FROM t JOIN n ON t.s LIKE n.s;

-- regular expressions find
-- sqlite: SELECT k FROM t WHERE s LIKE '%a%' OR s LIKE '%b%'
CREATE VIEW rlikes AS SELECT k FROM t WHERE s RLIKE '[ab]';

-- anchored
-- sqlite: SELECT k FROM t WHERE s = 'a' OR s = 'ab'
CREATE VIEW rlike_anchored AS SELECT k FROM t WHERE s RLIKE '^ab?$';

-- beginnings, ends, parts
-- sqlite: SELECT k, s LIKE 'a%' AS x, s LIKE '%b' AS y, instr(s, 'b') > 0 AS z FROM t
CREATE VIEW pieces AS SELECT k, STARTSWITH(s, 'a') AS x, ENDSWITH(s, 'b') AS y, CONTAINS(s, 'b') AS z FROM t;

-- positions
CREATE VIEW positions AS SELECT k, INSTR(s, 'b') AS x, POSITION('b' IN s) AS y FROM t;

-- replacement
CREATE VIEW replaced AS SELECT k, REPLACE(s, 'a', 'xy') AS x FROM t;

-- padding and repetition
-- not sqlite: it has none of them
CREATE VIEW padded AS SELECT k, LPAD(s, 3, '*') AS x, RPAD(s, 3, '-') AS y, REPEAT(s, 2) AS z FROM t;

-- reversal
-- not sqlite: it has no such function
CREATE VIEW reversed AS SELECT k, REVERSE(s) AS x FROM t;

-- regular expressions replace and extract
-- not sqlite: it has no regular expressions
-- duckdb: SELECT k, regexp_replace(s, '[ab]', '.', 'g') AS x, regexp_extract(s, '(a)(b?)', 2) AS y FROM t
CREATE VIEW regular AS SELECT k, REGEXP_REPLACE(s, '[ab]', '.') AS x, REGEXP_EXTRACT(s, '(a)(b?)', 2) AS y FROM t;

-- parts between separators
-- not sqlite: it has no such function
CREATE VIEW split AS SELECT k, SPLIT_PART(s, 'a', 1) AS x, SPLIT_PART(s, 'a', 2) AS y FROM t;

-- order of text is by code point
CREATE VIEW ordered AS SELECT k FROM t WHERE s >= 'a' AND s < 'b';

-- joined on text
CREATE VIEW text_join AS SELECT t.k, n.a FROM t JOIN n ON t.s = n.s;

-- grouped by text
CREATE VIEW text_group AS SELECT s, COUNT(*) AS c FROM n GROUP BY s;

-- code points
-- duckdb: SELECT k, chr(97 + k) AS x, CASE WHEN s = '' THEN 0 ELSE ascii(s) END AS y FROM t
-- sqlite: SELECT k, char(97 + k) AS x, CASE WHEN s = '' THEN 0 ELSE unicode(s) END AS y FROM t
CREATE VIEW codes AS SELECT k, CHR(97 + k) AS x, ASCII(s) AS y FROM t;

-- quotes and signs in literals
CREATE VIEW quoted AS SELECT k, 'it\'s "so"; -- no comment' AS x FROM t WHERE s <> 'a\'b';

-- all matches
-- not sqlite: it has none of them
-- duckdb: SELECT k, len(regexp_extract_all(s, '[ab]', 0)) AS x FROM t WHERE s IS NOT NULL AND s <> 'äb'
CREATE VIEW all_matches AS SELECT k, size(regexp_extract_all(s, '[ab]', 0)) AS x FROM t WHERE s <> 'äb';
