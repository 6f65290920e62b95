-- C1372: another kind
CREATE TABLE t (a INT);
DROP VIEW t;
