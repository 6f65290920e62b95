-- C1372: what cannot be dropped
CREATE TABLE t (a INT);
CREATE VIEW v AS SELECT a FROM t;
DROP TABLE t;
