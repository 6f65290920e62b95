-- C1366: options of tables
CREATE TABLE t (a INT) USING cvs;
CREATE TABLE u (a INT) USING csv OPTIONS (heder 'true');
CREATE TABLE v (a INT) OPTIONS (path 'x');
