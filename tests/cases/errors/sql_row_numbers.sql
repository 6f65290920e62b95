-- C1343: rows that their order does not tell apart
CREATE TABLE t (k INT PRIMARY KEY, a INT);
CREATE TABLE u (a INT, b INT);
CREATE VIEW v AS SELECT k, row_number() OVER (ORDER BY a) AS n FROM t;
