-- Common table expressions: read once, several times, over each other.

-- read once
CREATE VIEW once AS WITH x AS (SELECT a, b FROM u WHERE a > 0) SELECT a, COUNT(*) AS c FROM x GROUP BY a;

-- read twice
CREATE VIEW twice AS WITH x AS (SELECT a, COUNT(*) AS c FROM u GROUP BY a) SELECT one.a, two.a AS a2 FROM x one JOIN x two ON one.c < two.c;

-- over each other
CREATE VIEW stacked AS WITH x AS (SELECT a, b FROM u WHERE b IS NOT NULL), y AS (SELECT a, SUM(b) AS s FROM x GROUP BY a),
z AS (SELECT * FROM y WHERE s > 1) SELECT t.k, z.s FROM t JOIN z ON t.a = z.a;

-- names of columns
CREATE VIEW named AS WITH x(one, two) AS (SELECT a, b FROM u) SELECT two, one FROM x WHERE one <> two;

-- a name that hides a table
CREATE VIEW hiding AS WITH u AS (SELECT k AS a, a AS b FROM t) SELECT a, b FROM u WHERE b > 0;

-- in a subquery
CREATE VIEW inside AS SELECT k FROM t WHERE a IN (WITH x AS (SELECT a FROM n) SELECT a FROM x WHERE a > 0);

-- in a condition
CREATE VIEW asked AS WITH x AS (SELECT a FROM u WHERE b > 0) SELECT k FROM t WHERE a IN (SELECT a FROM x) AND b NOT IN (SELECT a FROM x WHERE a IS NOT NULL);

-- a bag read twice by UNION ALL
CREATE VIEW doubled AS WITH x AS (SELECT a FROM u) SELECT a FROM x UNION ALL SELECT a FROM x;

-- a bag minus itself
-- not sqlite: it has no EXCEPT ALL
CREATE VIEW cancelled AS WITH x AS (SELECT a FROM u) SELECT a FROM x EXCEPT ALL SELECT a FROM x WHERE a > 0;

-- not read at all
CREATE VIEW unread AS WITH x AS (SELECT a FROM u) SELECT k FROM t WHERE b = 1;

-- shares of a total
-- sqlite: WITH total AS (SELECT SUM(b) AS s FROM u WHERE b > 0) SELECT u.a, CAST(u.b AS REAL) / total.s AS share FROM u CROSS JOIN total WHERE u.b > 0
CREATE VIEW share_of_total AS WITH total AS (SELECT SUM(b) AS s FROM u WHERE b > 0) SELECT u.a, u.b / total.s AS share FROM u CROSS JOIN total WHERE u.b > 0;

-- VALUES as a table
CREATE VIEW constants_join AS WITH x(i, word) AS (VALUES (0, 'zero'), (1, 'one'), (1, 'uno')) SELECT t.k, x.word FROM t JOIN x ON t.a = x.i;

-- no FROM
CREATE VIEW no_from AS SELECT 1 AS one, 'x' AS x;
