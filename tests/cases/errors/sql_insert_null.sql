-- C1374: a column without a value
CREATE TABLE t (a INT NOT NULL, b STRING);
INSERT INTO t (b) VALUES ('y');
