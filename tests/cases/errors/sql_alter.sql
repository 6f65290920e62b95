-- C1381: what does not fit the table that it alters
CREATE TABLE t (a INT, b INT);
CREATE VIEW v AS SELECT a FROM t;
ALTER TABLE t DROP COLUMN a;
