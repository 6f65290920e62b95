-- Reachability on graphs with cycles: linear, non-linear, mutual; exclusions, hops, ways.

-- the step at the right end
CREATE VIEW right_linear AS WITH RECURSIVE r(x, y) AS (SELECT x, y FROM edge UNION SELECT r.x, e.y FROM r JOIN edge e ON r.y = e.x) SELECT x, y FROM r;

-- the step at the left end
CREATE VIEW left_linear AS WITH RECURSIVE r(x, y) AS (SELECT x, y FROM edge UNION SELECT e.x, r.y FROM edge e JOIN r ON e.y = r.x) SELECT x, y FROM r;

-- both halves recursive: the fixpoint, which engines that look at the last round only miss
-- duckdb: WITH RECURSIVE r(x, y) AS (SELECT x, y FROM edge UNION SELECT r.x, e.y FROM r JOIN edge e ON r.y = e.x) SELECT x, y FROM r
-- sqlite: WITH RECURSIVE r(x, y) AS (SELECT x, y FROM edge UNION SELECT r.x, e.y FROM r JOIN edge e ON r.y = e.x) SELECT x, y FROM r
CREATE VIEW non_linear AS WITH RECURSIVE r(x, y) AS (SELECT x, y FROM edge UNION SELECT a.x, b.y FROM r a JOIN r b ON a.y = b.x) SELECT x, y FROM r;

-- from one node
CREATE VIEW from_one AS WITH RECURSIVE r(x) AS (SELECT 1 UNION SELECT e.y FROM r JOIN edge e ON e.x = r.x) SELECT x FROM r;

-- not through closed nodes
CREATE VIEW open_ways AS WITH RECURSIVE r(x, y) AS (SELECT x, y FROM edge WHERE y NOT IN (SELECT x FROM closed)
UNION SELECT r.x, e.y FROM r JOIN edge e ON r.y = e.x WHERE NOT EXISTS (SELECT * FROM closed c WHERE c.x = e.y)) SELECT x, y FROM r;

-- what cannot be reached
CREATE VIEW unreachable AS WITH RECURSIVE r(x, y) AS (SELECT x, y FROM edge UNION SELECT r.x, e.y FROM r JOIN edge e ON r.y = e.x),
node(x) AS (SELECT x FROM edge UNION SELECT y FROM edge)
SELECT a.x, b.x AS y FROM node a CROSS JOIN node b WHERE NOT EXISTS (SELECT * FROM r WHERE r.x = a.x AND r.y = b.x);

-- nodes on cycles
CREATE VIEW on_cycles AS WITH RECURSIVE r(x, y) AS (SELECT x, y FROM edge UNION SELECT r.x, e.y FROM r JOIN edge e ON r.y = e.x) SELECT x FROM r WHERE x = y;

-- edges in either direction
CREATE VIEW connected AS WITH RECURSIVE both_ways(x, y) AS (SELECT x, y FROM edge UNION SELECT y, x FROM edge),
r(x, y) AS (SELECT x, y FROM both_ways UNION SELECT r.x, b.y FROM r JOIN both_ways b ON r.y = b.x) SELECT x, MIN(y) AS least FROM r GROUP BY x;

-- hops, bounded on cycles, and the fewest
CREATE VIEW fewest_hops AS WITH RECURSIVE r(x, y, hops) AS (SELECT x, y, 1 FROM edge
UNION SELECT r.x, e.y, r.hops + 1 FROM r JOIN edge e ON r.y = e.x WHERE r.hops < 5) SELECT x, y, MIN(hops) AS hops FROM r GROUP BY x, y;

-- exactly so many hops
CREATE VIEW three_hops AS WITH RECURSIVE r(x, y, hops) AS (SELECT x, y, 1 FROM edge
UNION ALL SELECT r.x, e.y, r.hops + 1 FROM r JOIN edge e ON r.y = e.x WHERE r.hops < 3) SELECT x, y, COUNT(*) AS ways FROM r WHERE hops = 3 GROUP BY x, y;

-- the ways through a bag: copies of links are ways of their own
CREATE VIEW link_ways AS WITH RECURSIVE r(x, y) AS (SELECT x, y FROM link UNION ALL SELECT r.x, l.y FROM r JOIN link l ON r.y = l.x) SELECT x, y FROM r;

-- counted
CREATE VIEW link_way_counts AS WITH RECURSIVE r(x, y) AS (SELECT x, y FROM link UNION ALL SELECT r.x, l.y FROM r JOIN link l ON r.y = l.x)
SELECT x, COUNT(*) AS ways, COUNT(DISTINCT y) AS ends FROM r GROUP BY x;

-- a bag asked as a set
CREATE VIEW link_set AS WITH RECURSIVE r(x, y) AS (SELECT x, y FROM link UNION ALL SELECT r.x, l.y FROM r JOIN link l ON r.y = l.x) SELECT DISTINCT x, y FROM r;

-- costs of all ways
CREATE VIEW way_costs AS WITH RECURSIVE r(x, y, cost) AS (SELECT x, y, cost FROM road UNION ALL SELECT r.x, d.y, r.cost + d.cost FROM r JOIN road d ON r.y = d.x)
SELECT x, y, MIN(cost) AS least, MAX(cost) AS most, COUNT(*) AS ways FROM r GROUP BY x, y;

-- the cheapest way and how far it is from the mean
CREATE VIEW cheap AS WITH RECURSIVE r(x, y, cost) AS (SELECT x, y, cost FROM road UNION SELECT r.x, d.y, r.cost + d.cost FROM r JOIN road d ON r.y = d.x)
SELECT x, y, cost FROM r one WHERE cost <= (SELECT MIN(cost) FROM r two WHERE two.x = one.x AND two.y = one.y);

-- same generation
CREATE VIEW same_generation AS WITH RECURSIVE r(x, y) AS (SELECT a.y, b.y FROM edge a JOIN edge b ON a.x = b.x
UNION SELECT a.y, b.y FROM edge a JOIN r ON a.x = r.x JOIN edge b ON b.x = r.y) SELECT x, y FROM r WHERE x < y;

-- ways of even and odd length, mutually; `even` is no union, and has its copies
-- duckdb: WITH RECURSIVE r(x, y, odd) AS (SELECT x, y, 1 FROM edge UNION SELECT r.x, e.y, 1 - r.odd FROM r JOIN edge e ON r.y = e.x) SELECT r.x, e.y FROM r JOIN edge e ON r.y = e.x WHERE odd = 1
-- sqlite: WITH RECURSIVE r(x, y, odd) AS (SELECT x, y, 1 FROM edge UNION SELECT r.x, e.y, 1 - r.odd FROM r JOIN edge e ON r.y = e.x) SELECT r.x, e.y FROM r JOIN edge e ON r.y = e.x WHERE odd = 1
-- not spark: it has no mutual recursion
CREATE VIEW even_ways AS WITH RECURSIVE odd(x, y) AS (SELECT x, y FROM edge UNION SELECT v.x, e.y FROM even v JOIN edge e ON v.y = e.x),
even(x, y) AS (SELECT o.x, e.y FROM odd o JOIN edge e ON o.y = e.x) SELECT x, y FROM even;

-- two kinds of edges in turn, mutually
-- duckdb: WITH RECURSIVE s(x, y, by_road) AS (SELECT x, y, FALSE FROM edge UNION ALL SELECT x, y, TRUE FROM road), r(x, y, by_road) AS (SELECT x, y, TRUE FROM road UNION SELECT r.x, s.y, s.by_road FROM r JOIN s ON r.y = s.x AND r.by_road <> s.by_road) SELECT x, y FROM r WHERE by_road
-- sqlite: WITH RECURSIVE r(x, y, by_road) AS (SELECT x, y, 1 FROM road UNION SELECT r.x, e.y, 0 FROM r JOIN edge e ON r.y = e.x WHERE r.by_road UNION SELECT r.x, d.y, 1 FROM r JOIN road d ON r.y = d.x WHERE NOT r.by_road) SELECT x, y FROM r WHERE by_road
-- not spark: it has no mutual recursion
CREATE VIEW in_turn AS WITH RECURSIVE by_road(x, y) AS (SELECT x, y FROM road UNION SELECT b.x, d.y FROM by_edge b JOIN road d ON b.y = d.x),
by_edge(x, y) AS (SELECT b.x, e.y FROM by_road b JOIN edge e ON b.y = e.x) SELECT x, y FROM by_road;

-- two steps in one recursion
-- duckdb: WITH RECURSIVE s(x, y) AS (SELECT x, y FROM edge UNION SELECT x, y FROM road), r(x, y) AS (SELECT x, y FROM edge UNION SELECT r.x, s.y FROM r JOIN s ON r.y = s.x) SELECT x, y FROM r
CREATE VIEW either_edge AS WITH RECURSIVE r(x, y) AS (SELECT x, y FROM edge UNION SELECT r.x, e.y FROM r JOIN edge e ON r.y = e.x
UNION SELECT r.x, d.y FROM r JOIN road d ON r.y = d.x) SELECT x, y FROM r;

-- joined with itself behind the recursion
CREATE VIEW both_directions AS WITH RECURSIVE r(x, y) AS (SELECT x, y FROM edge UNION SELECT r.x, e.y FROM r JOIN edge e ON r.y = e.x)
SELECT a.x, COUNT(*) AS c FROM r a JOIN r b ON a.y = b.x AND b.y = a.x GROUP BY a.x;

-- null is a node that nothing joins
CREATE VIEW null_nodes AS WITH RECURSIVE r(x, y) AS (SELECT x, y FROM link UNION SELECT r.x, l.y FROM r JOIN link l ON r.y = l.x) SELECT x, y FROM r;

-- null joins null where it is asked to
CREATE VIEW null_safe_nodes AS WITH RECURSIVE r(x, y) AS (SELECT x, y FROM link UNION SELECT r.x, l.y FROM r JOIN link l ON r.y <=> l.x) SELECT x, y FROM r;

-- an order inside and one around by columns that are not selected
-- not sqlite: it has no order in a branch
-- duckdb: WITH RECURSIVE r(x, y) AS (SELECT x, y FROM edge UNION SELECT r.x, e.y FROM r JOIN edge e ON r.y = e.x) SELECT x FROM r
CREATE VIEW ordered_starts AS WITH RECURSIVE r(x, y) AS ((SELECT x, y FROM edge ORDER BY x + y) UNION SELECT r.x, e.y FROM r JOIN edge e ON r.y = e.x) SELECT x FROM r ORDER BY y;

-- a table that is no union, read inside and outside, in one recursion with copies
-- duckdb: WITH RECURSIVE s(x, y, n) AS (SELECT x, y, 1 FROM link UNION ALL SELECT s.x, l.y, s.n + 1 FROM s JOIN link l ON s.y = l.x WHERE s.n < 3) SELECT x, y FROM s
-- sqlite: WITH RECURSIVE s(x, y, n) AS (SELECT x, y, 1 FROM link UNION ALL SELECT s.x, l.y, s.n + 1 FROM s JOIN link l ON s.y = l.x WHERE s.n < 3) SELECT x, y FROM s
-- not spark: it has no mutual recursion
CREATE VIEW through_query AS WITH RECURSIVE s(x, y, n) AS (SELECT x, y, 1 FROM link UNION ALL SELECT w.x, l.y, w.n FROM w JOIN link l ON w.y = l.x),
w AS (SELECT x, y, n + 1 AS n FROM s WHERE n < 3) SELECT x, y FROM s;

-- copies of a table that is no union, counted
-- duckdb: WITH RECURSIVE r(x, y) AS (SELECT x, y FROM edge UNION SELECT r.x, e.y FROM r JOIN edge e ON r.y = e.x) SELECT r.x, COUNT(*) AS c FROM r JOIN edge e ON r.y = e.x GROUP BY r.x
-- sqlite: WITH RECURSIVE r(x, y) AS (SELECT x, y FROM edge UNION SELECT r.x, e.y FROM r JOIN edge e ON r.y = e.x) SELECT r.x, COUNT(*) AS c FROM r JOIN edge e ON r.y = e.x GROUP BY r.x
-- not spark: it has no mutual recursion
CREATE VIEW counted_query AS WITH RECURSIVE r(x, y) AS (SELECT x, y FROM edge UNION SELECT x, y FROM further),
further AS (SELECT r.x, e.y FROM r JOIN edge e ON r.y = e.x) SELECT x, COUNT(*) AS c FROM further GROUP BY x;
