-- C1376: one point in history
CREATE TABLE t (a INT);
SELECT * FROM t VERSION AS OF 1, t AS u;
