-- UNION, INTERSECT and EXCEPT, with ALL and without, nulls equal to each other.

-- a set, although both sides are bags
CREATE VIEW union_set AS SELECT a FROM u UNION SELECT a FROM n;

-- copies add up
CREATE VIEW union_all AS SELECT a FROM u UNION ALL SELECT a FROM t;

-- the same table twice
CREATE VIEW union_all_self AS SELECT a, b FROM u UNION ALL SELECT b, a FROM u;

-- branches with different constants
CREATE VIEW union_all_tagged AS SELECT 1 AS branch, k FROM t UNION ALL SELECT 2 AS branch, k FROM f;

-- three branches, the last one takes copies away
CREATE VIEW union_mixed AS SELECT a FROM u UNION ALL SELECT b FROM u UNION SELECT a FROM n;

-- and the other way round
CREATE VIEW union_then_all AS (SELECT a FROM u UNION SELECT b FROM u) UNION ALL SELECT a FROM n;

-- null is in both
CREATE VIEW intersect_set AS SELECT a FROM u INTERSECT SELECT a FROM t;

-- null is taken away by null
CREATE VIEW except_set AS SELECT a FROM u EXCEPT SELECT a FROM t;

-- the lesser count
-- not sqlite: SQLite has no INTERSECT ALL
CREATE VIEW intersect_all AS SELECT a FROM u INTERSECT ALL SELECT a FROM t;

-- the difference of counts
-- not sqlite: SQLite has no EXCEPT ALL
CREATE VIEW except_all AS SELECT a FROM u EXCEPT ALL SELECT a FROM t;

-- the left side is a set
-- not sqlite: SQLite has no EXCEPT ALL
CREATE VIEW except_all_of_set AS SELECT k FROM t EXCEPT ALL SELECT a FROM u;

-- several columns with nulls
-- not sqlite: SQLite has no EXCEPT ALL
CREATE VIEW except_all_wide AS SELECT a, b FROM u EXCEPT ALL SELECT a, b FROM t;

-- several columns with nulls
CREATE VIEW except_wide AS SELECT a, b FROM u EXCEPT SELECT a, b FROM t;

-- INTERSECT binds more tightly
-- not sqlite: SQLite reads all of them from left to right
CREATE VIEW precedence AS SELECT a FROM n UNION SELECT a FROM u INTERSECT SELECT x FROM p;

-- parentheses
-- sqlite: SELECT * FROM (SELECT a FROM n UNION SELECT a FROM u) INTERSECT SELECT x FROM p
CREATE VIEW parentheses AS (SELECT a FROM n UNION SELECT a FROM u) INTERSECT SELECT x FROM p;

-- EXCEPT is not associative
CREATE VIEW except_chain AS SELECT a FROM u EXCEPT SELECT a FROM n EXCEPT SELECT x FROM p;

-- grouped over a union
CREATE VIEW group_of_union AS SELECT a, COUNT(*) AS c FROM (SELECT a FROM u UNION ALL SELECT a FROM n) x GROUP BY a;

-- a union over grouped queries
CREATE VIEW union_of_groups AS SELECT a, COUNT(*) AS c FROM u GROUP BY a UNION ALL SELECT x, COUNT(*) FROM p GROUP BY x;

-- joined with a union
CREATE VIEW join_of_union AS SELECT t.k, x.a FROM t JOIN (SELECT a FROM u UNION SELECT b FROM u) x ON x.a = t.a;

-- DISTINCT over UNION ALL
CREATE VIEW distinct_of_union AS SELECT DISTINCT a FROM (SELECT a FROM u UNION ALL SELECT b FROM u) x WHERE a > 0;

-- EXCEPT with a join on one side
CREATE VIEW except_join AS SELECT k, a FROM t EXCEPT SELECT t.k, u.a FROM t JOIN u ON t.a = u.a;

-- MINUS is EXCEPT
CREATE VIEW minus AS SELECT b FROM u MINUS SELECT q FROM p;

-- types are made equal: integers and doubles
CREATE VIEW union_types AS SELECT a FROM n UNION ALL SELECT rate FROM item WHERE rate > 0;

-- VALUES as a branch
CREATE VIEW union_values AS SELECT a FROM u UNION ALL VALUES (1), (1), (NULL);

-- intersect of both, symmetric difference
CREATE VIEW symmetric AS (SELECT a FROM u EXCEPT SELECT a FROM n) UNION (SELECT a FROM n EXCEPT SELECT a FROM u);

-- branches ordered by a column that they do not select
-- sqlite: SELECT a FROM t UNION ALL SELECT * FROM (SELECT b FROM u ORDER BY a) EXCEPT SELECT * FROM (SELECT x FROM p ORDER BY q)
CREATE VIEW ordered_branches AS SELECT a FROM t UNION ALL (SELECT b FROM u ORDER BY a) EXCEPT (SELECT x FROM p ORDER BY q);
