-- C1367: columns of alerts
CREATE TABLE t (a INT);
CREATE ALERT x MESSAGE '{b} of {a}' AS SELECT a FROM t;
