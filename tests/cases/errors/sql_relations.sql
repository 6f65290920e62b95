-- C1368: relations that are not there
CREATE TABLE t (a INT REFERENCES orders (b));
