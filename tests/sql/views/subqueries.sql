-- Subqueries in conditions and values, correlated and not, over tables and bags.

-- EXISTS is asked as a set
CREATE VIEW exists_plain AS SELECT k FROM t WHERE EXISTS (SELECT * FROM u WHERE u.a = t.a);

-- NOT EXISTS
CREATE VIEW not_exists AS SELECT k FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.b > 0);

-- copies of the outer bag stay
CREATE VIEW exists_bag AS SELECT a, b FROM u WHERE EXISTS (SELECT * FROM t WHERE t.a = u.a);

-- uncorrelated
CREATE VIEW exists_any AS SELECT k FROM t WHERE EXISTS (SELECT * FROM u WHERE a > 2);

-- uncorrelated and negated
CREATE VIEW exists_none AS SELECT k, s FROM t WHERE NOT EXISTS (SELECT * FROM n WHERE s = 'a');

-- correlated by an inequality
CREATE VIEW exists_less AS SELECT k FROM t WHERE EXISTS (SELECT * FROM p WHERE p.q < t.a);

-- correlated below two levels
-- not spark: it sees the columns of the next query around only
CREATE VIEW exists_deep AS SELECT k FROM t WHERE EXISTS (
    SELECT * FROM p WHERE p.x = t.a AND NOT EXISTS (SELECT * FROM u WHERE u.a = p.y AND u.b = t.b));

-- the outer variable only in the inner subquery
-- not spark: it sees the columns of the next query around only
CREATE VIEW exists_skip AS SELECT k FROM t WHERE EXISTS (
    SELECT * FROM p WHERE EXISTS (SELECT * FROM u WHERE u.a = p.x AND u.b = t.a));

-- division: those that have all
-- not spark: it sees the columns of the next query around only
CREATE VIEW for_all AS SELECT DISTINCT x FROM p one WHERE NOT EXISTS (
    SELECT * FROM n WHERE NOT EXISTS (SELECT * FROM p two WHERE two.x = one.x AND two.y = n.a));

-- EXISTS in an OR
CREATE VIEW exists_or AS SELECT k FROM t WHERE a = 1 OR EXISTS (SELECT * FROM u WHERE u.b = t.b);

-- two EXISTS in an OR over a bag: one copy each
CREATE VIEW exists_or_bag AS SELECT a, b FROM u WHERE EXISTS (SELECT * FROM t WHERE t.a = u.a)
OR EXISTS (SELECT * FROM t WHERE t.b = u.b);

-- EXISTS as a value
CREATE VIEW exists_value AS SELECT k, EXISTS (SELECT * FROM u WHERE u.a = t.a) AS known FROM t;

-- IN of nullable columns
CREATE VIEW in_query AS SELECT k FROM t WHERE a IN (SELECT a FROM u);

-- NOT IN: a null on either side drops the row, unless there is nothing to compare with
CREATE VIEW not_in_query AS SELECT k FROM t WHERE a NOT IN (SELECT a FROM u);

-- correlated NOT IN: most sets are empty
CREATE VIEW not_in_correlated AS SELECT k FROM t WHERE a NOT IN (SELECT b FROM u WHERE u.a = t.k);

-- IN of a bag's rows keeps copies
CREATE VIEW in_bag AS SELECT a, b FROM u WHERE a IN (SELECT x FROM p WHERE q > 0);

-- two columns
CREATE VIEW in_rows AS SELECT k FROM t WHERE (a, b) IN (SELECT a, b FROM u);

-- two columns, negated: true if one column differs although the other is null
CREATE VIEW not_in_rows AS SELECT k FROM t WHERE (a, b) NOT IN (SELECT x, q FROM p WHERE y > 0);

-- IN as a value: true, false and null
-- not spark: it says false where one of the values is null
CREATE VIEW in_value AS SELECT k, a IN (SELECT b FROM u) AS found FROM t;

-- IN under NOT and OR
CREATE VIEW in_nested AS SELECT k FROM t WHERE NOT (a IN (SELECT a FROM u) OR b IS NULL);

-- IN with an expression on both sides
CREATE VIEW in_computed AS SELECT k FROM t WHERE a + 1 IN (SELECT b * 2 FROM u);

-- IN with a grouped query
CREATE VIEW in_grouped AS SELECT k FROM t WHERE a IN (SELECT a FROM u GROUP BY a HAVING COUNT(*) > 1);

-- greater than one of them
-- not sqlite: it has no quantified comparisons
-- not spark: it has no quantified comparisons with queries
CREATE VIEW greater_than_any AS SELECT k FROM t WHERE a > ANY (SELECT x FROM p);

-- greater than all of them, which is true if there are none
-- not sqlite: it has no quantified comparisons
-- not spark: it has no quantified comparisons with queries
CREATE VIEW greater_than_all AS SELECT k FROM t WHERE a > ALL (SELECT b FROM u WHERE u.a = t.b);

-- the three values of ALL
-- not sqlite: it has no quantified comparisons
-- not spark: it has no quantified comparisons with queries
CREATE VIEW all_value AS SELECT k, a <= ALL (SELECT q FROM p WHERE y = 1) AS least FROM t;

-- unequal to all is NOT IN, unequal to any is true if two differ
-- not sqlite: it has no quantified comparisons
-- not spark: it has no quantified comparisons with queries
CREATE VIEW unequal_any AS SELECT k, a <> ALL (SELECT a FROM n) AS none, a <> ANY (SELECT a FROM n) AS some FROM t;

-- ANY negated over a bag
-- not sqlite: it has no quantified comparisons
-- not spark: it has no quantified comparisons with queries
CREATE VIEW not_any AS SELECT a, b FROM u WHERE NOT (a < ANY (SELECT q FROM p WHERE p.x = u.b));

-- the same by EXISTS, nulls counted by hand
CREATE VIEW for_all_greater AS SELECT k FROM t WHERE NOT EXISTS (
    SELECT * FROM p WHERE y = 1 AND NOT coalesce(t.a > p.q, FALSE));

-- a scalar subquery without group: always a row
CREATE VIEW scalar_max AS SELECT k, (SELECT MAX(b) FROM u WHERE u.a = t.a) AS m FROM t;

-- count of nothing is 0
CREATE VIEW scalar_count AS SELECT k, (SELECT COUNT(*) FROM u WHERE u.a = t.a) AS c FROM t;

-- a scalar subquery by key: null if there is no row
CREATE VIEW scalar_lookup AS SELECT a, (SELECT s FROM t WHERE t.k = u.a) AS s FROM u;

-- scalar subquery in a condition
CREATE VIEW scalar_where AS SELECT k FROM t WHERE a > (SELECT AVG(b) FROM u);

-- correlated scalar subquery in a condition
CREATE VIEW scalar_equal AS SELECT k, a FROM t one WHERE a = (SELECT MAX(a) FROM t two WHERE two.b = one.b);

-- two scalar subqueries in one expression
CREATE VIEW scalar_sum AS SELECT k, (SELECT COUNT(*) FROM u WHERE u.a = t.a) + (SELECT COUNT(*) FROM n WHERE n.a = t.a) AS c
FROM t;

-- a scalar subquery within a scalar subquery
-- not spark: it sees the columns of the next query around only
CREATE VIEW scalar_nested AS SELECT k, (SELECT SUM(q) FROM p WHERE p.x = (SELECT MIN(u.b) FROM u WHERE u.a = t.a)) AS s FROM t;

-- a scalar subquery in HAVING
CREATE VIEW scalar_having AS SELECT a, COUNT(*) AS c FROM u GROUP BY a HAVING COUNT(*) >= (SELECT COUNT(*) FROM n WHERE s = 'a');

-- a scalar subquery of one constant row
CREATE VIEW scalar_constant AS SELECT k, (SELECT 7) AS seven FROM t WHERE a = (SELECT 1);

-- a scalar subquery of a bag
CREATE VIEW scalar_bag AS SELECT a, (SELECT COUNT(*) FROM p WHERE p.x = u.a AND p.q > u.b) AS c FROM u;

-- a subquery in FROM
CREATE VIEW derived AS SELECT d.a, d.c FROM (SELECT a, COUNT(*) AS c FROM u GROUP BY a) d WHERE d.c > 1;

-- a subquery in FROM, joined twice
CREATE VIEW derived_join AS SELECT t.k, d.m FROM t JOIN (SELECT a, MIN(b) AS m FROM u GROUP BY a) d ON d.a = t.a OR d.m = t.b;

-- EXISTS over a join
CREATE VIEW exists_join AS SELECT k FROM t WHERE EXISTS (SELECT * FROM u JOIN p ON u.a = p.x WHERE p.y = t.a AND u.b = t.b);

-- EXISTS over a union
CREATE VIEW exists_union AS SELECT k FROM t WHERE EXISTS (SELECT a FROM u WHERE u.a = t.a UNION ALL SELECT a FROM n WHERE n.a = t.b);

-- EXISTS over a grouped query with HAVING
CREATE VIEW exists_having AS SELECT k FROM t WHERE EXISTS (SELECT b FROM u WHERE u.a = t.a GROUP BY b HAVING COUNT(*) > 1);

-- a subquery inside of CASE
CREATE VIEW subquery_case AS SELECT k, CASE WHEN EXISTS (SELECT * FROM u WHERE u.a = t.a) THEN 'u'
WHEN a IN (SELECT a FROM n) THEN 'n' ELSE s END AS place FROM t;

-- greater than one of a bag with nulls, over a bag with nulls
-- not sqlite: it has no quantified comparisons
-- not spark: it has no quantified comparisons with queries
CREATE VIEW any_of_bag AS SELECT a, b FROM u WHERE b > ANY (SELECT b FROM u);

-- an order by a column that is not selected has no effect in IN, ANY and EXISTS
CREATE VIEW ordered_in AS SELECT k FROM t WHERE a IN (SELECT b FROM u ORDER BY a) AND EXISTS (SELECT b FROM u ORDER BY a, b);

-- the same in ANY
-- not sqlite: it has no quantified comparisons
-- not spark: it has no quantified comparisons with queries
CREATE VIEW ordered_any AS SELECT k FROM t WHERE a = ANY (SELECT b FROM u ORDER BY a DESC);

-- with LIMIT it has one
CREATE VIEW ordered_first AS SELECT k FROM t WHERE a IN (SELECT q FROM p ORDER BY y, x LIMIT 2);
