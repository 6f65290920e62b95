-- CASE, COALESCE, IF, NULLIF, GREATEST and LEAST.

-- the first arm that holds
CREATE VIEW searched AS SELECT k, CASE WHEN a > 1 THEN 'big' WHEN a > 0 THEN 'small' ELSE 'none' END AS size FROM t;

-- without ELSE: null
CREATE VIEW no_else AS SELECT k, CASE WHEN a = b THEN a END AS x FROM t;

-- simple CASE: null equals nothing
CREATE VIEW simple AS SELECT k, CASE a WHEN 0 THEN 'zero' WHEN NULL THEN 'never' WHEN b THEN 'b' ELSE 'else' END AS x FROM t;

-- CASE in a condition
CREATE VIEW case_where AS SELECT k FROM t WHERE CASE WHEN a IS NULL THEN b > 0 ELSE a > 0 END;

-- CASE in CASE
CREATE VIEW case_nested AS SELECT k, CASE WHEN a > 0 THEN CASE WHEN b > 0 THEN 'pp' ELSE 'pn' END WHEN b > 0 THEN 'np' END AS x FROM t;

-- the arm that is not taken may fail
-- sqlite: SELECT a, b, CASE WHEN b <> 0 THEN CAST(a AS REAL) / b ELSE -1 END AS r FROM u
CREATE VIEW guarded AS SELECT a, b, CASE WHEN b <> 0 THEN a / b ELSE -1 END AS r FROM u;

-- arms of a bag coincide: copies
CREATE VIEW case_bag AS SELECT CASE WHEN a > b THEN 1 WHEN a < b THEN -1 ELSE 0 END AS sign FROM u;

-- arms of different types: numbers
CREATE VIEW case_types AS SELECT id, CASE WHEN qty > 1 THEN qty ELSE rate END AS x FROM item;

-- the first that is not null
CREATE VIEW coalesced AS SELECT k, COALESCE(a, b, -9) AS x, COALESCE(s, 'none') AS y FROM t;

-- in a condition
CREATE VIEW coalesce_where AS SELECT a, b FROM u WHERE COALESCE(a, b) = 1;

-- coalesce in a join
CREATE VIEW coalesce_join AS SELECT t.k, u.b FROM t JOIN u ON COALESCE(t.a, 0) = COALESCE(u.a, 0);

-- other words for it
-- duckdb: SELECT k, coalesce(a, 0) AS x, coalesce(b, 1) AS y, CASE WHEN a IS NOT NULL THEN b ELSE 7 END AS z FROM t
-- sqlite: SELECT k, coalesce(a, 0) AS x, coalesce(b, 1) AS y, CASE WHEN a IS NOT NULL THEN b ELSE 7 END AS z FROM t
CREATE VIEW null_words AS SELECT k, NVL(a, 0) AS x, IFNULL(b, 1) AS y, NVL2(a, b, 7) AS z FROM t;

-- null where equal
CREATE VIEW null_if AS SELECT k, NULLIF(a, b) AS x, NULLIF(a, 0) AS y FROM t;

-- IF: null counts as false
-- sqlite: SELECT k, CASE WHEN a > b THEN 'more' ELSE 'not more' END AS x FROM t
CREATE VIEW if_else AS SELECT k, IF(a > b, 'more', 'not more') AS x FROM t;

-- nulls are skipped
-- sqlite: SELECT k, CASE WHEN a IS NULL THEN b WHEN b IS NULL THEN a ELSE max(a, b) END AS hi, CASE WHEN a IS NULL THEN min(coalesce(b, 1), 1) WHEN b IS NULL THEN min(a, 1) ELSE min(a, b, 1) END AS lo FROM t
CREATE VIEW ends_of_row AS SELECT k, GREATEST(a, b) AS hi, LEAST(a, b, 1) AS lo FROM t;

-- CASE as key of groups
CREATE VIEW case_key AS SELECT CASE WHEN a > 0 THEN 'above' WHEN a IS NULL THEN 'unknown' ELSE 'below' END AS place, COUNT(*) AS c
FROM u GROUP BY CASE WHEN a > 0 THEN 'above' WHEN a IS NULL THEN 'unknown' ELSE 'below' END;

-- condition values in arms
CREATE VIEW case_bools AS SELECT k, CASE WHEN v THEN w ELSE v END AS x, COALESCE(v, w) AS y FROM f;
