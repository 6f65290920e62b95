-- Views over views: sets over bags, bags over sets, groups over joins.

-- a bag of its own
CREATE VIEW layer_bag AS SELECT t.a, u.b FROM t JOIN u ON t.a = u.a;

-- copies are read as copies
CREATE VIEW layer_count AS SELECT a, COUNT(*) AS c, SUM(b) AS s FROM layer_bag GROUP BY a;

-- DISTINCT over a view with copies
CREATE VIEW layer_distinct AS SELECT DISTINCT b FROM layer_bag;

-- joined with itself
CREATE VIEW layer_self AS SELECT one.b, two.a FROM layer_bag one JOIN layer_bag two ON one.a = two.b;

-- NOT IN a view
CREATE VIEW layer_not_in AS SELECT k FROM t WHERE b NOT IN (SELECT b FROM layer_bag WHERE b IS NOT NULL);

-- a view over two views
CREATE VIEW layer_join AS SELECT d.b, c.c FROM layer_distinct d JOIN layer_count c ON c.a = d.b;

-- UNION ALL of views
CREATE VIEW layer_union AS SELECT b FROM layer_distinct UNION ALL SELECT a FROM layer_count UNION ALL SELECT b FROM layer_bag;

-- an aggregate over aggregates
CREATE VIEW layer_total AS SELECT SUM(c) AS all_rows, MAX(s) AS most, COUNT(*) AS groups FROM layer_count;

-- a left join of views
CREATE VIEW layer_left AS SELECT t.k, c.c FROM t LEFT JOIN layer_count c ON c.a = t.a;

-- columns renamed in the head of the view
CREATE VIEW layer_renamed (one, two) AS SELECT a, c FROM layer_count;

-- and read by their new names
CREATE VIEW layer_read AS SELECT two, COUNT(*) AS groups FROM layer_renamed WHERE one > 0 GROUP BY two;

-- exists over a view over a view
CREATE VIEW layer_exists AS SELECT a, b FROM u WHERE EXISTS (SELECT * FROM layer_join j WHERE j.b = u.a);
