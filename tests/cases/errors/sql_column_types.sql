-- C1362: types that columns do not have
CREATE TABLE t (a TEXT, b STRING);
CREATE TABLE u (a VARCHAR(0));
