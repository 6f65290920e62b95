-- Bills of materials, with quantities that multiply along every way.

-- how many of each part are in each other, way by way
CREATE VIEW explosion AS WITH RECURSIVE r(part, sub, qty) AS (SELECT part, sub, qty FROM bom
UNION ALL SELECT r.part, b.sub, r.qty * b.qty FROM r JOIN bom b ON r.sub = b.part) SELECT part, sub, qty FROM r;

-- added up over the ways
CREATE VIEW needed AS WITH RECURSIVE r(part, sub, qty) AS (SELECT part, sub, qty FROM bom
UNION ALL SELECT r.part, b.sub, r.qty * b.qty FROM r JOIN bom b ON r.sub = b.part) SELECT part, sub, SUM(qty) AS qty FROM r GROUP BY part, sub;

-- what everything costs that is bought
CREATE VIEW costs AS WITH RECURSIVE r(part, sub, qty) AS (SELECT part, sub, qty FROM bom
UNION ALL SELECT r.part, b.sub, r.qty * b.qty FROM r JOIN bom b ON r.sub = b.part)
SELECT r.part, SUM(r.qty * p.cents) AS cents FROM r JOIN price p ON p.part = r.sub
WHERE r.sub NOT IN (SELECT part FROM bom) GROUP BY r.part;

-- where a part is used, a set
CREATE VIEW used_in AS WITH RECURSIVE r(sub, part) AS (SELECT sub, part FROM bom UNION SELECT r.sub, b.part FROM r JOIN bom b ON b.sub = r.part)
SELECT sub, part FROM r;

-- the number of ways
CREATE VIEW way_counts AS WITH RECURSIVE r(part, sub) AS (SELECT part, sub FROM bom
UNION ALL SELECT r.part, b.sub FROM r JOIN bom b ON r.sub = b.part) SELECT part, sub, COUNT(*) AS ways FROM r GROUP BY part, sub;

-- levels of one product
CREATE VIEW structure AS WITH RECURSIVE r(level, part, sub, qty) AS (SELECT 1, part, sub, qty FROM bom WHERE part = 0
UNION ALL SELECT r.level + 1, b.part, b.sub, r.qty * b.qty FROM r JOIN bom b ON r.sub = b.part) SELECT level, part, sub, qty FROM r;

-- the deepest level of everything
CREATE VIEW depth AS WITH RECURSIVE r(part, sub, level) AS (SELECT part, sub, 1 FROM bom
UNION SELECT r.part, b.sub, r.level + 1 FROM r JOIN bom b ON r.sub = b.part) SELECT part, MAX(level) AS depth FROM r GROUP BY part;

-- parts that two others need, at any depth
CREATE VIEW shared AS WITH RECURSIVE r(part, sub) AS (SELECT part, sub FROM bom UNION SELECT r.part, b.sub FROM r JOIN bom b ON r.sub = b.part)
SELECT sub, COUNT(*) AS users FROM r GROUP BY sub HAVING COUNT(*) > 1;
