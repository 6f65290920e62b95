-- C1377: which row
CREATE TABLE t (a INT);
UPDATE t SET a = 1;
