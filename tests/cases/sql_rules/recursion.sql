WITH RECURSIVE r(x, y) AS (SELECT src, dst FROM e UNION SELECT r.x, e.dst FROM r JOIN e ON r.y = e.src) SELECT * FROM r

WITH RECURSIVE r(x, y) AS (SELECT src, dst FROM e UNION ALL SELECT r.x, e.dst FROM r JOIN e ON r.y = e.src) SELECT * FROM r

WITH RECURSIVE r(id, up, lvl) AS (SELECT id, up, 0 FROM emp WHERE up IS NULL UNION ALL SELECT x.id, x.up, r.lvl + 1 FROM emp x JOIN r ON x.up = r.id) SELECT id, lvl FROM r

WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 10) SELECT n FROM r

WITH RECURSIVE r(x, y) AS (SELECT src, dst FROM e UNION ALL SELECT r.x, e.dst FROM r JOIN e ON r.y = e.src) SELECT x, y, COUNT(*) FROM r GROUP BY x, y

WITH RECURSIVE r(x) AS (SELECT a FROM u UNION ALL SELECT e.dst FROM r JOIN e ON r.x = e.src) SELECT x FROM r
