-- C1366: options of alerts
CREATE TABLE t (a INT);
CREATE ALERT y OPTIONS (IO 'file') AS SELECT a FROM t;
