-- file
-- C1340: a view has no order
CREATE TABLE t (k INT PRIMARY KEY, a INT);
CREATE VIEW v AS SELECT k FROM t ORDER BY a;
