-- Sessions: groups of rows whose times are near each other.
-- not sqlite: it has no timestamps

-- of everything; sessions that touch are one
-- duckdb: SELECT MIN(m) AS x, MAX(m) + INTERVAL 1 DAY AS y, COUNT(*) AS c FROM (SELECT *, SUM(b) OVER (ORDER BY m) AS s FROM (SELECT *, CASE WHEN lag(m) OVER (ORDER BY m) + INTERVAL 1 DAY >= m THEN 0 ELSE 1 END AS b FROM seen WHERE m IS NOT NULL)) GROUP BY s
CREATE VIEW sessions AS SELECT session_window.start AS x, session_window.end AS y, COUNT(*) AS c FROM seen GROUP BY session_window(m, '1 day');

-- of keys, of which null is one, with all that a group has
-- duckdb: SELECT qty, MIN("at") AS x, MAX("at") + INTERVAL 700 HOUR AS y, SUM(price) AS z, COUNT(DISTINCT day) AS d FROM (SELECT *, SUM(b) OVER (PARTITION BY qty ORDER BY "at") AS s FROM (SELECT *, CASE WHEN lag("at") OVER (PARTITION BY qty ORDER BY "at") + INTERVAL 700 HOUR >= "at" THEN 0 ELSE 1 END AS b FROM item WHERE "at" IS NOT NULL AND id > 1)) GROUP BY qty, s HAVING MAX("at") > TIMESTAMP '2025-12-31'
CREATE VIEW sessions_of_keys AS SELECT qty, w.start AS x, w.end AS y, z, d FROM (SELECT qty, session_window(at, '700 hours') AS w, SUM(price) AS z, COUNT(DISTINCT day) AS d FROM item WHERE id > 1 GROUP BY 1, w HAVING MAX(at) > TIMESTAMP '2025-12-31');

-- of times without a zone, joined, in order
-- duckdb: SELECT x, y, RANK() OVER (ORDER BY y DESC) AS r FROM (SELECT MIN(n) AS x, MAX(n) + INTERVAL 43170 SECOND AS y FROM (SELECT *, SUM(b) OVER (PARTITION BY k % 2 ORDER BY n) AS s FROM (SELECT s.k, s.n, CASE WHEN lag(s.n) OVER (PARTITION BY s.k % 2 ORDER BY s.n) + INTERVAL 43170 SECOND >= s.n THEN 0 ELSE 1 END AS b FROM seen s JOIN shift u ON s.k = u.k WHERE s.n IS NOT NULL)) GROUP BY k % 2, s)
CREATE VIEW sessions_of_join AS SELECT session_window.start AS x, session_window.end AS y, RANK() OVER (ORDER BY session_window.end DESC) AS r FROM seen s JOIN shift u ON s.k = u.k GROUP BY s.k % 2, session_window(s.n, '43170 seconds');
