-- GROUP BY, HAVING, aggregates with DISTINCT and FILTER, over tables and bags.

-- null is a group
CREATE VIEW count_rows AS SELECT a, COUNT(*) AS c FROM u GROUP BY a;

-- nulls are not counted
CREATE VIEW count_values AS SELECT a, COUNT(b) AS c FROM u GROUP BY a;

-- null if there is no value
CREATE VIEW sums AS SELECT a, SUM(b) AS s FROM u GROUP BY a;

-- least and greatest of a bag
CREATE VIEW ends AS SELECT a, MIN(b) AS lo, MAX(b) AS hi FROM u GROUP BY a;

-- means, weighted by copies
CREATE VIEW means AS SELECT a, AVG(b) AS m FROM u GROUP BY a;

-- all of them in one
CREATE VIEW many AS SELECT a, COUNT(*) AS c, COUNT(b) AS d, SUM(b) AS s, MIN(b) AS lo, MAX(b) AS hi, AVG(b) AS m FROM u GROUP BY a;

-- one group, also of an empty table
CREATE VIEW all_rows AS SELECT COUNT(*) AS c, COUNT(b) AS d, SUM(b) AS s, MIN(a) AS lo, MAX(a) AS hi FROM u;

-- one group of nothing
CREATE VIEW no_rows AS SELECT COUNT(*) AS c, SUM(b) AS s, MAX(b) AS hi FROM u WHERE a > 100;

-- groups of nothing: no row
CREATE VIEW no_groups AS SELECT a, COUNT(*) AS c FROM u WHERE a > 100 GROUP BY a;

-- HAVING
CREATE VIEW having_count AS SELECT a, SUM(b) AS s FROM u GROUP BY a HAVING COUNT(*) > 1;

-- HAVING without a group
CREATE VIEW having_alone AS SELECT COUNT(*) AS c FROM u HAVING COUNT(*) > 3;

-- HAVING with three-valued logic
CREATE VIEW having_null AS SELECT a FROM u GROUP BY a HAVING SUM(b) > 1 OR SUM(b) IS NULL;

-- a key that is not in the output: copies of results
CREATE VIEW hidden_key AS SELECT COUNT(*) AS c FROM u GROUP BY a;

-- two keys
CREATE VIEW two_keys AS SELECT x, q, COUNT(*) AS c FROM p GROUP BY x, q;

-- a key that is computed
CREATE VIEW computed_key AS SELECT a % 2 AS parity, COUNT(*) AS c, SUM(b) AS s FROM u GROUP BY a % 2;

-- a key by its number
CREATE VIEW key_by_number AS SELECT a + 1 AS x, COUNT(*) AS c FROM u GROUP BY 1;

-- a key by its alias
CREATE VIEW key_by_alias AS SELECT b * 2 AS twice, COUNT(*) AS c FROM u GROUP BY twice;

-- a column of FROM wins over an alias
-- not sqlite: SQLite takes the alias
CREATE VIEW column_before_alias AS SELECT a AS b, COUNT(*) AS c FROM u GROUP BY b, a;

-- an expression over keys and aggregates
CREATE VIEW expressions AS SELECT a + COUNT(*) AS x, SUM(b) * 2 + MAX(b) AS y FROM u GROUP BY a;

-- an aggregate of an expression
CREATE VIEW of_expression AS SELECT a, SUM(b * b + 1) AS s, MAX(a - b) AS m FROM u GROUP BY a;

-- DISTINCT in aggregates
CREATE VIEW count_distinct AS SELECT a, COUNT(DISTINCT b) AS c FROM u GROUP BY a;

-- beside ones that are not
CREATE VIEW mixed_distinct AS SELECT a, COUNT(b) AS c, COUNT(DISTINCT b) AS d, SUM(DISTINCT b) AS s, SUM(b) AS t FROM u GROUP BY a;

-- distinct values of a column that is never null
CREATE VIEW distinct_filled AS SELECT s, COUNT(DISTINCT a) AS c, SUM(DISTINCT a) AS d, COUNT(*) AS r FROM n GROUP BY s;

-- distinct without groups
CREATE VIEW distinct_alone AS SELECT COUNT(DISTINCT a) AS c, SUM(DISTINCT b) AS s, AVG(DISTINCT b) AS m FROM u;

-- distinct expressions
CREATE VIEW distinct_expression AS SELECT COUNT(DISTINCT a % 2) AS c, COUNT(DISTINCT s) AS t FROM t;

-- distinct pairs: a null in either is not counted
-- sqlite: SELECT a, COUNT(DISTINCT CASE WHEN b IS NOT NULL THEN s || '|' || b END) AS c FROM t GROUP BY a
-- duckdb: SELECT a, COUNT(DISTINCT (b, s)) FILTER (WHERE b IS NOT NULL AND s IS NOT NULL) AS c FROM t GROUP BY a
CREATE VIEW distinct_pair AS SELECT a, COUNT(DISTINCT b, s) AS c FROM t GROUP BY a;

-- FILTER
CREATE VIEW filtered AS SELECT a, COUNT(*) FILTER (WHERE b > 0) AS c, SUM(b) FILTER (WHERE b > 0) AS s FROM u GROUP BY a;

-- FILTER that is null or leaves nothing
CREATE VIEW filter_none AS SELECT a, MAX(b) FILTER (WHERE b > 50) AS m, COUNT(b) FILTER (WHERE b < a) AS c FROM u GROUP BY a;

-- FILTER with DISTINCT
CREATE VIEW filter_distinct AS SELECT a, COUNT(DISTINCT b) FILTER (WHERE b <> 1) AS c FROM u GROUP BY a;

-- counting by CASE
CREATE VIEW pivot AS SELECT a, SUM(CASE WHEN b = 0 THEN 1 ELSE 0 END) AS zero, SUM(CASE WHEN b > 0 THEN b END) AS above FROM u GROUP BY a;

-- count_if, any, every
-- sqlite: SELECT a, SUM(CASE WHEN b > 0 THEN 1 ELSE 0 END) AS c, MAX(b > 0) AS some, MIN(b > 0) AS every FROM u GROUP BY a
-- duckdb: SELECT a, COUNT(*) FILTER (WHERE b > 0) AS c, BOOL_OR(b > 0) AS some, BOOL_AND(b > 0) AS every FROM u GROUP BY a
CREATE VIEW bool_aggregates AS SELECT a, COUNT_IF(b > 0) AS c, BOOL_OR(b > 0) AS some, BOOL_AND(b > 0) AS every FROM u GROUP BY a;

-- least and greatest text
CREATE VIEW text_ends AS SELECT a, MIN(s) AS lo, MAX(s) AS hi, COUNT(s) AS c FROM t GROUP BY a;

-- bools as keys
CREATE VIEW bool_key AS SELECT v, COUNT(*) AS c, COUNT(w) AS d FROM f GROUP BY v;

-- groups of a join
CREATE VIEW group_join AS SELECT t.a, COUNT(*) AS c, SUM(u.b) AS s FROM t JOIN u ON t.a = u.a GROUP BY t.a;

-- groups of an outer join: padded rows count as rows
CREATE VIEW group_left_join AS SELECT t.k, COUNT(*) AS c, COUNT(u.a) AS d, SUM(u.b) AS s FROM t LEFT JOIN u ON t.a = u.a GROUP BY t.k;

-- keys only: DISTINCT by another name
CREATE VIEW keys_only AS SELECT a, b FROM u GROUP BY a, b;

-- no aggregate in the output
CREATE VIEW keys_having AS SELECT a FROM u GROUP BY a HAVING MAX(b) > 1;

-- groups of groups
CREATE VIEW histogram AS SELECT c, COUNT(*) AS groups FROM (SELECT a, COUNT(*) AS c FROM u GROUP BY a) x GROUP BY c;

-- DISTINCT over groups
CREATE VIEW distinct_counts AS SELECT DISTINCT COUNT(*) AS c FROM u GROUP BY a;

-- ROLLUP: subtotals and the total, grouping() tells a null from a total
-- not sqlite: SQLite has no grouping sets
CREATE VIEW roll_up AS SELECT a, b, COUNT(*) AS c, GROUPING(a) AS ga, GROUPING(b) AS gb FROM u GROUP BY ROLLUP (a, b);

-- CUBE
-- not sqlite: SQLite has no grouping sets
CREATE VIEW cubed AS SELECT x, y, SUM(q) AS s FROM p GROUP BY CUBE (x, y);

-- GROUPING SETS with the empty set
-- not sqlite: SQLite has no grouping sets
CREATE VIEW sets AS SELECT a, b, SUM(b) AS s FROM u GROUP BY GROUPING SETS ((a), (b), ());

-- HAVING over grouping sets
-- not sqlite: SQLite has no grouping sets
CREATE VIEW sets_having AS SELECT a, b, COUNT(*) AS c FROM u GROUP BY ROLLUP (a, b) HAVING COUNT(*) > 1;

-- sums that may be of any size
CREATE VIEW doubles AS SELECT qty, SUM(rate) AS s, AVG(rate) AS m, MIN(rate) AS lo FROM item GROUP BY qty;

-- a constant as key
CREATE VIEW constant_column AS SELECT 'all' AS name, COUNT(*) AS c FROM u GROUP BY a % 2;

-- a sum of decimals that only literals give, over copies
CREATE VIEW literal_sum AS SELECT a, SUM(CASE WHEN b > 0 THEN 1.5 ELSE 0 END) AS x, SUM(0.25) AS y FROM u GROUP BY a;

-- aggregates of a NULL that has a type
CREATE VIEW null_aggregates AS SELECT a, SUM(CAST(NULL AS INT)) AS s, COUNT(CAST(NULL AS INT)) AS c, MIN(CAST(NULL AS DATE)) AS l,
    AVG(CAST(NULL AS DOUBLE)) AS m, COUNT(DISTINCT CAST(NULL AS STRING)) AS d FROM u GROUP BY a;

-- a subquery sees the null of a key that a set leaves out
-- not sqlite: it has no grouping sets
-- not spark: Spark wants such a subquery in GROUP BY, and cannot group by it
CREATE VIEW sets_subquery AS SELECT a, (SELECT MAX(k) FROM t WHERE t.a = u.a) AS m, EXISTS (SELECT k FROM t WHERE t.a = u.a) AS e FROM u GROUP BY ROLLUP (a);

-- also on the left of IN
-- not sqlite: it has no grouping sets
-- not spark: it says false where the value is null
CREATE VIEW sets_in AS SELECT a, a IN (SELECT k FROM t) AS i FROM u GROUP BY GROUPING SETS (a, ());

-- the sets alone; what is before them only names keys
-- not sqlite: SQLite has no grouping sets
-- duckdb: SELECT a, b, SUM(k) AS s FROM t GROUP BY GROUPING SETS ((a, b), (a), ())
CREATE VIEW named_sets AS SELECT a, b, SUM(k) AS s FROM t GROUP BY a, b GROUPING SETS ((a, b), (a), ());

-- a key in another key
-- not sqlite: SQLite has no CUBE
-- duckdb: SELECT a + b AS x, b, SUM(k) AS s FROM t GROUP BY CUBE (a + b, b)
CREATE VIEW keys_in_keys AS SELECT a + b AS x, b, SUM(k) AS s FROM t GROUP BY a + b, b WITH CUBE;
