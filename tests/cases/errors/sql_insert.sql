-- C1374: values that do not fit
CREATE TABLE t (a INT NOT NULL, b STRING);
INSERT INTO t VALUES (1);
