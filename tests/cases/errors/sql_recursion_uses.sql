-- C1351: where a recursive table cannot be used
CREATE TABLE edge (x INT NOT NULL, y INT NOT NULL, PRIMARY KEY (x, y));
CREATE VIEW v AS WITH RECURSIVE r(x) AS (SELECT x FROM edge UNION SELECT count(*) FROM r) SELECT x FROM r;
