-- C1374: a text is no number
CREATE TABLE t (a INT NOT NULL, b STRING);
INSERT INTO t VALUES ('x', 'y');
