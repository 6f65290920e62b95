-- C1370: columns of views
CREATE VIEW v (a) AS SELECT 1, 2;
CREATE VIEW w AS SELECT 1 AS a, 2 AS A;
