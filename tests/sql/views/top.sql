-- ORDER BY … LIMIT in views: ties are broken by all columns of the output, ascending, nulls first.

-- by key
CREATE VIEW first_three AS SELECT k, a FROM t ORDER BY k LIMIT 3;

-- ties broken by the output: written out for the oracles
-- duckdb: SELECT k, a FROM t ORDER BY a NULLS FIRST, k LIMIT 3
-- spark: SELECT k, a FROM t ORDER BY a NULLS FIRST, k LIMIT 3
-- sqlite: SELECT k, a FROM t ORDER BY a, k LIMIT 3
CREATE VIEW ties AS SELECT k, a FROM t ORDER BY a LIMIT 3;

-- descending: nulls last
-- duckdb: SELECT a, k FROM t ORDER BY a DESC NULLS LAST, k LIMIT 4
-- spark: SELECT a, k FROM t ORDER BY a DESC NULLS LAST, k LIMIT 4
-- sqlite: SELECT a, k FROM t ORDER BY a DESC, k LIMIT 4
CREATE VIEW greatest_four AS SELECT a, k FROM t ORDER BY a DESC LIMIT 4;

-- copies are rows
-- duckdb: SELECT a, b FROM u ORDER BY a NULLS FIRST, b NULLS FIRST LIMIT 3
-- spark: SELECT a, b FROM u ORDER BY a NULLS FIRST, b NULLS FIRST LIMIT 3
-- sqlite: SELECT a, b FROM u ORDER BY a, b LIMIT 3
CREATE VIEW top_bag AS SELECT a, b FROM u ORDER BY a LIMIT 3;

-- a part of a row's copies
CREATE VIEW top_copies AS SELECT a FROM u ORDER BY a LIMIT 2;

-- with an offset
CREATE VIEW with_offset AS SELECT k FROM t ORDER BY k LIMIT 2 OFFSET 2;

-- by a column that is not shown
-- duckdb: SELECT s FROM t ORDER BY k LIMIT 3
CREATE VIEW by_hidden AS SELECT s FROM t ORDER BY k LIMIT 3;

-- nulls where they are told to be
-- duckdb: SELECT k, b FROM t ORDER BY b NULLS LAST, k LIMIT 3
-- spark: SELECT k, b FROM t ORDER BY b NULLS LAST, k LIMIT 3
-- sqlite: SELECT k, b FROM t ORDER BY b NULLS LAST, k LIMIT 3
CREATE VIEW nulls_last AS SELECT k, b FROM t ORDER BY b NULLS LAST LIMIT 3;

-- the largest groups
-- duckdb: SELECT a, COUNT(*) AS c FROM u GROUP BY a ORDER BY c DESC, a NULLS FIRST LIMIT 2
-- spark: SELECT a, COUNT(*) AS c FROM u GROUP BY a ORDER BY c DESC, a NULLS FIRST LIMIT 2
-- sqlite: SELECT a, COUNT(*) AS c FROM u GROUP BY a ORDER BY c DESC, a LIMIT 2
CREATE VIEW largest_groups AS SELECT a, COUNT(*) AS c FROM u GROUP BY a ORDER BY c DESC LIMIT 2;

-- a top within a join
CREATE VIEW join_top AS SELECT t.k, x.q FROM t JOIN (SELECT x, y, q FROM p ORDER BY x, y LIMIT 4) x ON x.x = t.a;

-- LIMIT 0
CREATE VIEW none_at_all AS SELECT k FROM t ORDER BY k LIMIT 0;

-- one row
CREATE VIEW only_one AS SELECT k, b FROM t ORDER BY k DESC LIMIT 1;

-- by an expression
-- duckdb: SELECT k FROM t ORDER BY a + b NULLS FIRST, k LIMIT 3
-- spark: SELECT k FROM t ORDER BY a + b NULLS FIRST, k LIMIT 3
-- sqlite: SELECT k FROM t ORDER BY a + b, k LIMIT 3
CREATE VIEW by_expression AS SELECT k FROM t ORDER BY a + b LIMIT 3;
