-- C1352: a recursion that cannot be counted
CREATE TABLE edge (x INT NOT NULL, y INT NOT NULL, PRIMARY KEY (x, y));
CREATE VIEW v AS WITH RECURSIVE r(x, y) AS (SELECT x, y FROM edge UNION ALL SELECT a.x, b.y FROM r a JOIN r b ON a.y = b.x) SELECT x, y FROM r;
