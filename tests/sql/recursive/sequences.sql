-- Sequences: recursion over numbers, in the manner of documentation.

-- numbers
CREATE VIEW numbers AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 10) SELECT n FROM r;

-- Fibonacci
CREATE VIEW fibonacci AS WITH RECURSIVE r(n, a, b) AS (SELECT 0, 0, 1 UNION ALL SELECT n + 1, b, a + b FROM r WHERE n < 20) SELECT n, a FROM r;

-- a calendar of numbers, outer joined with data
CREATE VIEW histogram AS WITH RECURSIVE r(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM r WHERE n < 5)
SELECT r.n, COUNT(e.id) AS c FROM r LEFT JOIN emp e ON e.pay = r.n GROUP BY r.n;

-- counted from a table
CREATE VIEW counted_up AS WITH RECURSIVE r(id, n) AS (SELECT id, 0 FROM emp WHERE pay > 0 UNION ALL SELECT r.id, r.n + 1 FROM r JOIN emp e ON e.id = r.id WHERE r.n < e.pay)
SELECT id, n FROM r;

-- two that do not know each other
CREATE VIEW two_sequences AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3),
s(m) AS (SELECT 10 UNION ALL SELECT m + 2 FROM s WHERE m < 14) SELECT n, m FROM r, s;

-- one begins with the rows of the other, which has copies
CREATE VIEW sequence_of_sequence AS WITH RECURSIVE r(id, n) AS (SELECT boss, 0 FROM emp UNION ALL SELECT id, n + 1 FROM r WHERE n < 2),
s(m) AS (SELECT n FROM r UNION ALL SELECT m + 1 FROM s WHERE m < 3) SELECT m, COUNT(*) AS c FROM s GROUP BY m;
