-- Three-valued logic: comparisons with null, AND, OR, NOT, IS, IN with lists, BETWEEN, LIKE.

-- null compared is not true
CREATE VIEW less AS SELECT k FROM t WHERE a < b;

-- nor is its negation
CREATE VIEW not_less AS SELECT k FROM t WHERE NOT a < b;

-- not equal drops nulls
CREATE VIEW unequal AS SELECT k FROM t WHERE a <> b;

-- a test of a bag's row keeps its copies
CREATE VIEW unequal_bag AS SELECT a, b FROM u WHERE a <> b;

-- a column with itself: the test for null
CREATE VIEW self_equal AS SELECT k FROM t WHERE a = a;

-- null and false is false, so its negation is true
CREATE VIEW not_and AS SELECT k FROM t WHERE NOT (a > 1 AND b > 1);

-- null or true is true
CREATE VIEW either AS SELECT k FROM t WHERE a > 1 OR b > 1;

-- of a bag: an alternative does not make a copy
CREATE VIEW either_bag AS SELECT a, b FROM u WHERE a > 0 OR b > 0 OR a = b;

-- negated OR
CREATE VIEW neither AS SELECT k FROM t WHERE NOT (a > 1 OR b > 1);

-- nested
CREATE VIEW nested AS SELECT k FROM t WHERE (a > 0 OR b IS NULL) AND NOT (a = b AND s IS NOT NULL);

-- double negation
CREATE VIEW double_negation AS SELECT k FROM t WHERE NOT (NOT (a = b));

-- null tests
CREATE VIEW is_null AS SELECT k FROM t WHERE a IS NULL;

-- and their negation
CREATE VIEW is_not_null AS SELECT k FROM t WHERE a IS NOT NULL AND s IS NOT NULL;

-- null test of an expression
CREATE VIEW null_sum AS SELECT k FROM t WHERE (a + b) IS NULL;

-- null test of a condition
CREATE VIEW null_condition AS SELECT k FROM t WHERE (a < b) IS NULL;

-- null-safe equality
CREATE VIEW same AS SELECT k FROM t WHERE a <=> b;

-- and its negation, which is never null
CREATE VIEW not_same AS SELECT a, b FROM u WHERE NOT (a <=> b);

-- null-safe with a constant null
CREATE VIEW same_as_null AS SELECT k FROM t WHERE a <=> NULL;

-- the same in standard words
CREATE VIEW distinct_from AS SELECT k FROM t WHERE a IS DISTINCT FROM b;

-- IS TRUE, IS FALSE of conditions
CREATE VIEW is_true AS SELECT k FROM t WHERE (a > b) IS TRUE;

-- not true: false or null
CREATE VIEW is_not_true AS SELECT k FROM t WHERE (a > b) IS NOT TRUE;

-- false, not null
CREATE VIEW is_false AS SELECT k FROM t WHERE (a > b OR a IS NULL) IS FALSE;

-- bool columns as conditions
CREATE VIEW bool_column AS SELECT k FROM f WHERE v;

-- negated
CREATE VIEW not_bool AS SELECT k FROM f WHERE NOT v;

-- both tables of truth
CREATE VIEW truth_tables AS SELECT k, v AND w AS both, v OR w AS either, NOT v AS no, v = w AS equal FROM f;

-- comparisons of bools
CREATE VIEW bool_order AS SELECT k, v < w AS less FROM f WHERE v <> w OR v IS NULL;

-- a condition as a value has three values
CREATE VIEW condition_value AS SELECT k, a < b AS less, a = 1 AS one, s IS NULL AS no_text FROM t;

-- IS of bools
CREATE VIEW bool_is AS SELECT k, v IS TRUE AS y, v IS FALSE AS n, v IS NOT TRUE AS ny, v IS NULL AS u FROM f;

-- a list
CREATE VIEW in_list AS SELECT k FROM t WHERE a IN (0, 2, 5);

-- a list with null: never false
CREATE VIEW not_in_null AS SELECT k FROM t WHERE a NOT IN (0, NULL);

-- a list with null: true where equal
CREATE VIEW in_null AS SELECT k, a IN (0, NULL) AS found FROM t;

-- not in a list
CREATE VIEW not_in_list AS SELECT k FROM t WHERE a NOT IN (0, 2);

-- a list of columns
CREATE VIEW in_columns AS SELECT k FROM t WHERE 1 IN (a, b);

-- between includes both ends
CREATE VIEW between_ends AS SELECT k FROM t WHERE a BETWEEN 0 AND b;

-- and its negation, true if one comparison is false although the other is null
CREATE VIEW not_between AS SELECT k FROM t WHERE a NOT BETWEEN 1 AND b;

-- arithmetic in conditions
CREATE VIEW arithmetic AS SELECT k, a * 2 - b AS x, -a AS y, a % 2 AS z FROM t WHERE a * a + b * b > 2;

-- a condition that is always true, and one that is never
CREATE VIEW constants AS SELECT k FROM t WHERE TRUE AND 1 = 1 AND NOT FALSE;

-- null as a condition
CREATE VIEW null_where AS SELECT k FROM t WHERE CAST(NULL AS BOOLEAN);

-- a question that null decides
CREATE VIEW null_or AS SELECT k FROM t WHERE NULL OR a = 1;

-- rows compared
CREATE VIEW row_equal AS SELECT k FROM t WHERE (a, b) = (1, 2);

-- rows in a list
CREATE VIEW row_in_list AS SELECT k FROM t WHERE (a, b) IN ((1, 2), (0, 0), (2, 2));

-- what all alternatives have in common is a join of its own
CREATE VIEW shared_conjunct AS SELECT t.k, p.q FROM t, p WHERE t.a = p.x AND t.b > 0 AND p.q = 1 OR t.a = p.x AND p.q = 2 AND t.b IS NULL
OR t.a = p.x AND p.y = t.k;

-- one alternative is part of the others
CREATE VIEW absorbed AS SELECT u.a, n.s FROM u, n WHERE u.a = n.a OR u.a = n.a AND u.b > 0 OR n.s = 'a' AND u.a = n.a;
