-- Bags against sets: where copies come from, where they go, and where keys make them impossible.

-- a projection makes copies
CREATE VIEW projection AS SELECT a FROM t;

-- a projection that keeps the key does not
CREATE VIEW keeps_key AS SELECT k, a FROM t;

-- DISTINCT takes them away
CREATE VIEW distinct_rows AS SELECT DISTINCT a FROM t;

-- DISTINCT over several columns with nulls
CREATE VIEW distinct_pairs AS SELECT DISTINCT a, b FROM u;

-- a key computed: k + 1 is as good as k
CREATE VIEW shifted_key AS SELECT k + 1 AS j, a FROM t;

-- a key lost: k % 2 is not
CREATE VIEW lost_key AS SELECT k % 2 AS j, s FROM t;

-- a table as it is
CREATE VIEW table_itself AS SELECT * FROM u;

-- constants: as many copies as rows
CREATE VIEW constant AS SELECT 1 AS one FROM u;

-- the product of copies
CREATE VIEW product AS SELECT u.a, n.s FROM u JOIN n ON u.a = n.a;

-- the product of three
CREATE VIEW product_three AS SELECT u.b FROM u JOIN n ON u.a = n.a JOIN u v ON v.a = n.a;

-- counting counted copies
CREATE VIEW counted AS SELECT COUNT(*) AS c FROM u JOIN n ON u.a = n.a;

-- DISTINCT below a group
CREATE VIEW distinct_first AS SELECT a, COUNT(*) AS c FROM (SELECT DISTINCT a, b FROM u) x GROUP BY a;

-- UNIQUE by equality with a constant
CREATE VIEW by_constant AS SELECT q FROM p WHERE x = 1 AND y = 2;

-- determined through equality
CREATE VIEW through_equality AS SELECT p.x, p.q FROM p JOIN t ON p.y = t.k AND t.k = p.x;

-- half of the key is fixed through a join
CREATE VIEW half_fixed AS SELECT n.s, p.y FROM n JOIN p ON n.a = p.x AND p.x = 1;

-- the padded row is one, the matched ones are copies
CREATE VIEW padded_copies AS SELECT t.a FROM t LEFT JOIN u ON t.a = u.a;

-- padding of a bag on both sides
CREATE VIEW padded_both AS SELECT u.b, n.s FROM u FULL JOIN n ON u.a = n.a AND n.s IS NOT NULL;

-- all columns null
CREATE VIEW null_rows AS SELECT b FROM u WHERE b IS NULL;

-- copies through a condition with OR over two tables
CREATE VIEW or_of_tables AS SELECT u.a FROM u JOIN n ON u.a = n.a OR u.b = n.a;

-- a set read as a bag
CREATE VIEW set_of_bag AS SELECT x.a FROM (SELECT a FROM u UNION SELECT a FROM n) x JOIN u ON u.a = x.a;
