-- Org charts: who is below whom, how deep, what a branch earns.

-- everybody below somebody, a set since a tree has one way
CREATE VIEW below AS WITH RECURSIVE r(boss, id) AS (SELECT boss, id FROM emp WHERE boss IS NOT NULL
UNION SELECT r.boss, e.id FROM r JOIN emp e ON e.boss = r.id) SELECT boss, id FROM r;

-- levels: base and step never give one row, the table's conjuncts contradict
CREATE VIEW levels AS WITH RECURSIVE r(id, name, level) AS (SELECT id, name, 0 FROM emp WHERE boss IS NULL
UNION ALL SELECT e.id, e.name, r.level + 1 FROM emp e JOIN r ON e.boss = r.id) SELECT id, name, level FROM r;

-- how many stand on each level
CREATE VIEW level_sizes AS WITH RECURSIVE r(id, level) AS (SELECT id, 0 FROM emp WHERE boss IS NULL
UNION ALL SELECT e.id, r.level + 1 FROM emp e JOIN r ON e.boss = r.id) SELECT level, COUNT(*) AS c, AVG(level) AS m FROM r GROUP BY level;

-- the way from the top as text
CREATE VIEW ways AS WITH RECURSIVE r(id, way) AS (SELECT id, CAST(id AS STRING) FROM emp WHERE boss IS NULL
UNION ALL SELECT e.id, r.way || '/' || CAST(e.id AS STRING) FROM emp e JOIN r ON e.boss = r.id) SELECT id, way FROM r;

-- the one at the top of everybody
CREATE VIEW top_of AS WITH RECURSIVE r(id, top) AS (SELECT id, id FROM emp WHERE boss IS NULL
UNION SELECT e.id, r.top FROM emp e JOIN r ON e.boss = r.id) SELECT id, top FROM r;

-- what everybody's branch earns, themselves included
CREATE VIEW branch_pay AS WITH RECURSIVE r(top, id, pay) AS (SELECT id, id, pay FROM emp
UNION ALL SELECT r.top, e.id, e.pay FROM r JOIN emp e ON e.boss = r.id) SELECT top, COUNT(*) AS heads, SUM(pay) AS pay FROM r GROUP BY top;

-- those who have nobody below them and what stands above them
CREATE VIEW leaves AS WITH RECURSIVE r(id, above) AS (SELECT id, boss FROM emp e WHERE NOT EXISTS (SELECT * FROM emp f WHERE f.boss = e.id)
UNION SELECT r.id, e.boss FROM r JOIN emp e ON e.id = r.above) SELECT id, above FROM r WHERE above IS NOT NULL;

-- bosses that are paid less than somebody below them
CREATE VIEW envy AS WITH RECURSIVE r(boss, id) AS (SELECT boss, id FROM emp UNION SELECT r.boss, e.id FROM r JOIN emp e ON e.boss = r.id)
SELECT DISTINCT b.id, b.name FROM r JOIN emp b ON b.id = r.boss JOIN emp e ON e.id = r.id WHERE b.pay < e.pay;

-- below one person, with an exclusion on the way
CREATE VIEW below_one AS WITH RECURSIVE r(id) AS (SELECT id FROM emp WHERE boss = 2
UNION SELECT e.id FROM r JOIN emp e ON e.boss = r.id WHERE e.name <> 'b') SELECT id FROM r;
