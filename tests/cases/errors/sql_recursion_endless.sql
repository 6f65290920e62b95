-- file C1353: new values, and ways through a graph
CREATE TABLE edge (x INT, y INT);
CREATE VIEW n AS WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n + 1 FROM r) SELECT n FROM r;
CREATE VIEW w AS WITH RECURSIVE r(x, y) AS (SELECT x, y FROM edge UNION ALL SELECT r.x, e.y FROM r JOIN edge e ON r.y = e.x) SELECT x, y FROM r;
