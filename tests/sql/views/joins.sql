-- Joins of all kinds, on tables with keys and on bags, with nulls in the columns compared.

-- one body; null equals nothing; copies of u multiply
CREATE VIEW inner_bag AS SELECT t.a, u.b FROM t JOIN u ON t.a = u.a;

-- the key of t and all of u's columns: still a bag, as u is one
CREATE VIEW inner_key_of_one AS SELECT t.k, u.a, u.b FROM t JOIN u ON t.a = u.a;

-- both keys are in the output: a set
CREATE VIEW inner_set AS SELECT t.k, p.x, p.y, p.q FROM t JOIN p ON t.a = p.x;

-- only a part of p's key is in the output: a bag
CREATE VIEW inner_part_of_key AS SELECT t.k, p.x FROM t JOIN p ON t.a = p.x;

-- the part of the key that is missing is fixed by a constant: a set
CREATE VIEW inner_fixed_key AS SELECT t.k, p.x, p.q FROM t JOIN p ON t.a = p.x WHERE p.y = 1;

-- the key of p is determined by columns of t
CREATE VIEW inner_determined AS SELECT t.k, p.q FROM t JOIN p ON t.a = p.x AND t.b = p.y;

-- the comma and WHERE
CREATE VIEW comma AS SELECT t.k, n.s FROM t, n WHERE t.b = n.a;

-- no condition at all
CREATE VIEW cross_join AS SELECT n.a, p.q FROM n CROSS JOIN p;

-- a table with itself
CREATE VIEW self_join AS SELECT one.k AS one, two.k AS two FROM t one JOIN t two ON one.a = two.b;

-- a bag with itself: copies are squared
CREATE VIEW self_join_bag AS SELECT one.a, two.b FROM u one JOIN u two ON one.b = two.a;

-- an inequality
CREATE VIEW theta AS SELECT t.k, u.a FROM t JOIN u ON t.a < u.a;

-- null-safe equality joins null with null
CREATE VIEW null_safe_join AS SELECT t.k, u.b FROM t JOIN u ON t.a <=> u.a;

-- equality of expressions
CREATE VIEW computed_join AS SELECT t.k, p.q FROM t JOIN p ON t.a + 1 = p.x - p.y;

-- an OR in the condition: one match, however many alternatives hold
CREATE VIEW or_join AS SELECT t.k, u.a, u.b FROM t JOIN u ON t.a = u.a OR t.b = u.b;

-- rows without a match are padded
CREATE VIEW left_join AS SELECT t.k, u.a, u.b FROM t LEFT JOIN u ON t.a = u.a;

-- the condition of the left side decides about the match, not about the row
CREATE VIEW left_on_left AS SELECT t.k, u.b FROM t LEFT JOIN u ON t.a = u.a AND t.b > 0;

-- a WHERE behind the padding keeps only padded rows
CREATE VIEW left_where_null AS SELECT t.k, t.s FROM t LEFT JOIN u ON t.a = u.a WHERE u.a IS NULL;

-- a WHERE that drops padded rows
CREATE VIEW left_where_value AS SELECT t.k, u.b FROM t LEFT JOIN u ON t.a = u.a WHERE u.b >= 0;

-- the right side is determined by the left: a set
CREATE VIEW left_lookup AS SELECT u.a, p.q FROM u LEFT JOIN p ON u.a = p.x AND u.b = p.y;

-- mirrored
CREATE VIEW right_join AS SELECT u.a, t.k FROM u RIGHT JOIN t ON u.b = t.b;

-- both sides are padded
CREATE VIEW full_join AS SELECT t.k, p.x, p.y FROM t FULL JOIN p ON t.a = p.x;

-- two bags: an unmatched row of nulls on either side stays a row of its own
CREATE VIEW full_bags AS SELECT one.a, one.b, two.a AS a2, two.b AS b2
FROM u one FULL JOIN u two ON one.a = two.b;

-- columns that may all be null, and neither key in the output
CREATE VIEW full_narrow AS SELECT t.a, u.a AS a2 FROM t FULL JOIN u ON t.a = u.a;

-- nothing is equal: everything is padded
CREATE VIEW full_never AS SELECT t.k, n.a FROM t FULL JOIN n ON t.k = -5 AND n.a = t.k;

-- rows with a match, once each
CREATE VIEW semi_join AS SELECT t.k, t.a FROM t LEFT SEMI JOIN u ON t.a = u.a;

-- of a bag: copies stay, matches do not multiply
CREATE VIEW semi_bag AS SELECT * FROM u LEFT SEMI JOIN t ON u.a = t.a OR u.b = t.b;

-- rows without a match
CREATE VIEW anti_join AS SELECT t.k, t.s FROM t LEFT ANTI JOIN n ON t.a = n.a;

-- a condition that is null is no match
CREATE VIEW anti_bag AS SELECT * FROM u LEFT ANTI JOIN p ON u.a = p.x AND p.q > 0;

-- the column of USING is one column, the left one
CREATE VIEW using_inner AS SELECT * FROM u JOIN n USING (a);

-- under FULL it is whichever is there
CREATE VIEW using_full AS SELECT * FROM u FULL JOIN n USING (a);

-- under RIGHT it is the right one
CREATE VIEW using_right AS SELECT a, t.k, u.b FROM t RIGHT JOIN u USING (a);

-- all columns of one name, which come first
-- duckdb: SELECT t.a, t.b, t.k, t.s FROM t NATURAL JOIN u
-- sqlite: SELECT t.a, t.b, t.k, t.s FROM t NATURAL JOIN u
CREATE VIEW natural_join AS SELECT * FROM t NATURAL JOIN u;

-- three tables, the padded one joined on
CREATE VIEW left_chain AS SELECT t.k, p.q, n.s FROM t LEFT JOIN p ON t.a = p.x AND p.y = 0
LEFT JOIN n ON n.a = p.q;

-- an inner join below the padded side
CREATE VIEW left_of_inner AS SELECT t.k, j.q FROM t
LEFT JOIN (SELECT p.x, p.q FROM p JOIN n ON p.y = n.a) j ON t.a = j.x;

-- an outer join below an inner one
CREATE VIEW inner_of_left AS SELECT n.s, j.k, j.b FROM n
JOIN (SELECT t.k, t.a, u.b FROM t LEFT JOIN u ON t.b = u.a) j ON j.a = n.a;

-- four tables in one body
CREATE VIEW four_tables AS SELECT t.k, p.q, n.s, u.b FROM t JOIN p ON t.a = p.x JOIN n ON n.a = p.y
JOIN u ON u.a = n.a;

-- rows without a match
CREATE VIEW unmatched AS SELECT COUNT(*) AS c FROM t LEFT JOIN p ON t.a = p.x WHERE p.x IS NULL;

-- a chain of outer joins, each on the one before
CREATE VIEW chain AS SELECT t.k, u.b, p.q, f.v FROM t LEFT JOIN u ON t.a = u.a LEFT JOIN p ON u.b = p.x LEFT JOIN f ON p.q = f.k;

-- a condition that no padded row meets
CREATE VIEW chain_matched AS SELECT t.k, u.b, p.q FROM t LEFT JOIN u ON t.a = u.a LEFT JOIN p ON u.b = p.x WHERE u.b = t.k OR p.q > 0;

-- a condition that no row meets
CREATE VIEW left_nothing AS SELECT n.s, u.b FROM n LEFT JOIN u ON n.a < u.a WHERE n.a IS NULL;

-- the columns of USING come first, of a semi-join, too
-- duckdb: SELECT b, k, a, s FROM t SEMI JOIN u USING (b)
-- sqlite: SELECT b, k, a, s FROM t WHERE b IN (SELECT b FROM u)
CREATE VIEW semi_using AS SELECT * FROM t SEMI JOIN u USING (b);

-- of an anti-join
-- duckdb: SELECT a, k, b, s FROM t ANTI JOIN n USING (a)
-- sqlite: SELECT a, k, b, s FROM t WHERE NOT EXISTS (SELECT * FROM n WHERE n.a = t.a)
CREATE VIEW anti_using AS SELECT * FROM t ANTI JOIN n USING (a);
