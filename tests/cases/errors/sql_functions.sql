-- C1306: calls of functions that do not fit them
CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1;
CREATE VIEW v AS SELECT f() AS a;
