-- C1342: window functions that are no rules
CREATE TABLE t (k INT PRIMARY KEY, a INT);
CREATE TABLE u (a INT, b INT);
CREATE VIEW v AS SELECT k, first_value(a) OVER (ORDER BY k) AS f FROM t;
