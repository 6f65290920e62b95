-- Window functions that are rules: aggregates of partitions, ranks, running totals, neighbours.

-- the aggregate of the partition
CREATE VIEW partition_sum AS SELECT k, a, SUM(b) OVER (PARTITION BY a) AS s FROM t;

-- of a bag: copies count, copies stay
CREATE VIEW partition_bag AS SELECT a, b, COUNT(*) OVER (PARTITION BY a) AS c, MAX(b) OVER (PARTITION BY a) AS m FROM u;

-- of everything
CREATE VIEW whole AS SELECT k, COUNT(*) OVER () AS c, SUM(a) OVER () AS s FROM t;

-- ranks with gaps, nulls first
CREATE VIEW ranks AS SELECT k, RANK() OVER (PARTITION BY a ORDER BY b) AS r FROM t;

-- ranks of a bag: copies are peers
CREATE VIEW ranks_bag AS SELECT a, b, RANK() OVER (PARTITION BY a ORDER BY b) AS r FROM u;

-- descending: nulls last
CREATE VIEW ranks_descending AS SELECT k, RANK() OVER (ORDER BY a DESC) AS r FROM t;

-- without gaps
CREATE VIEW dense AS SELECT k, DENSE_RANK() OVER (PARTITION BY a ORDER BY b) AS r FROM t;

-- without gaps, of a bag
CREATE VIEW dense_bag AS SELECT a, b, DENSE_RANK() OVER (ORDER BY a, b DESC) AS r FROM u;

-- numbers where order tells all rows apart
CREATE VIEW numbers AS SELECT k, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b, k) AS r FROM t;

-- the first of each partition
CREATE VIEW first_of_each AS SELECT k, a FROM (SELECT k, a, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC, k) AS r FROM t) x WHERE r = 1;

-- running totals, peers included
CREATE VIEW running AS SELECT k, SUM(b) OVER (PARTITION BY a ORDER BY k) AS s, COUNT(*) OVER (PARTITION BY a ORDER BY k) AS c FROM t;

-- running totals of a bag, peers included
CREATE VIEW running_bag AS SELECT a, b, SUM(b) OVER (ORDER BY a, b) AS s FROM u;

-- running least and greatest
CREATE VIEW running_ends AS SELECT k, MIN(b) OVER (ORDER BY k) AS lo, MAX(b) OVER (ORDER BY k) AS hi FROM t;

-- running mean
CREATE VIEW running_mean AS SELECT k, AVG(b) OVER (ORDER BY k) AS m FROM t;

-- the row before
CREATE VIEW before_it AS SELECT k, LAG(b) OVER (ORDER BY k) AS x FROM t;

-- the row behind, in a partition
CREATE VIEW behind_it AS SELECT k, LEAD(b) OVER (PARTITION BY a ORDER BY k) AS x FROM t;

-- two rows before, or else -1
CREATE VIEW before_two AS SELECT k, LAG(a, 2, -1) OVER (ORDER BY k) AS x FROM t;

-- a frame of rows
CREATE VIEW frame AS SELECT k, SUM(b) OVER (ORDER BY k ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s FROM t;

-- rows up to this one
CREATE VIEW frame_before AS SELECT k, COUNT(b) OVER (ORDER BY k ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS c FROM t;

-- a window over groups
CREATE VIEW over_groups AS SELECT a, COUNT(*) AS c, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM u GROUP BY a;

-- a share of the partition
-- sqlite: SELECT k, CAST(a AS REAL) / SUM(a) OVER (PARTITION BY s) AS share FROM t WHERE a > 0
CREATE VIEW share_of_partition AS SELECT k, a / SUM(a) OVER (PARTITION BY s) AS share FROM t WHERE a > 0;

-- two windows, and a condition on one
CREATE VIEW two_windows AS SELECT x, y, r, s FROM (SELECT x, y, RANK() OVER (PARTITION BY x ORDER BY q) AS r, SUM(q) OVER (PARTITION BY y) AS s FROM p) w WHERE r <= 2;

-- a window that is named
CREATE VIEW named_window AS SELECT k, RANK() OVER w AS r, DENSE_RANK() OVER w AS d FROM t WINDOW w AS (PARTITION BY a ORDER BY b);

-- a difference to the mean of the partition
CREATE VIEW deviation AS SELECT x, y, q - AVG(q) OVER (PARTITION BY x) AS d FROM p;

-- windows over grouping sets see the rows of all sets
-- not sqlite: it has no grouping sets
CREATE VIEW over_sets AS SELECT a, SUM(b) AS s, RANK() OVER (ORDER BY SUM(b)) AS r, COUNT(*) OVER () AS n FROM u GROUP BY ROLLUP (a);

-- in partitions of the sets, with an expression around
-- not sqlite: it has no grouping sets
CREATE VIEW over_two_sets AS SELECT x, y, 2 * RANK() OVER (PARTITION BY GROUPING(x) ORDER BY COUNT(*) DESC) AS r FROM p GROUP BY GROUPING SETS (x, y);

-- all rows of a partition, written as a frame
CREATE VIEW whole_frame AS SELECT a, b, SUM(b) OVER (PARTITION BY a ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS s FROM u;
