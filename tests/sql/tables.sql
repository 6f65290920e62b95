-- The tables of all views in this folder: with a key of one column, of two, and without one (bags).
CREATE TABLE t (k INT PRIMARY KEY, a INT, b INT, s STRING);
CREATE TABLE u (a INT, b INT);
CREATE TABLE p (x INT, y INT, q INT, PRIMARY KEY (x, y));
CREATE TABLE n (a INT NOT NULL, s STRING);
CREATE TABLE f (k INT PRIMARY KEY, v BOOLEAN, w BOOLEAN);
CREATE TABLE item (
    id INT PRIMARY KEY, price DECIMAL(8, 2), rate DOUBLE, day DATE, at TIMESTAMP, name STRING, qty INT);
CREATE TABLE sale (item INT, day DATE, amount DECIMAL(8, 2), qty INT);
CREATE TABLE doc (k INT PRIMARY KEY, b BINARY, c BINARY, s STRING);
CREATE TABLE gauge (k INT PRIMARY KEY, f FLOAT, g FLOAT, x DOUBLE);
CREATE TABLE shift (k INT PRIMARY KEY, c TIME, d TIME, n TIMESTAMP_NTZ);
CREATE TABLE seen (k INT PRIMARY KEY, n TIMESTAMP_NTZ, m TIMESTAMP);
