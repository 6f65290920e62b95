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

-- rows that the order leaves equal are ordered by all columns of FROM, nulls first: written out for the oracles
-- duckdb: SELECT k, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b NULLS FIRST, k) AS r FROM t
-- spark: SELECT k, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b NULLS FIRST, k) AS r FROM t
-- sqlite: SELECT k, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b NULLS FIRST, k) AS r FROM t
CREATE VIEW tied_numbers AS SELECT k, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS r FROM t;

-- also those that the query does not use
-- duckdb: SELECT x, ROW_NUMBER() OVER (ORDER BY q DESC NULLS LAST, x, y) AS r FROM p
-- spark: SELECT x, ROW_NUMBER() OVER (ORDER BY q DESC NULLS LAST, x, y) AS r FROM p
-- sqlite: SELECT x, ROW_NUMBER() OVER (ORDER BY q DESC NULLS LAST, x, y) AS r FROM p
CREATE VIEW tied_unused AS SELECT x, ROW_NUMBER() OVER (ORDER BY q DESC) AS r FROM p;

-- copies have numbers next to each other
-- duckdb: SELECT a, ROW_NUMBER() OVER (ORDER BY a NULLS FIRST, b NULLS FIRST) AS r FROM u
-- spark: SELECT a, ROW_NUMBER() OVER (ORDER BY a NULLS FIRST, b NULLS FIRST) AS r FROM u
-- sqlite: SELECT a, ROW_NUMBER() OVER (ORDER BY a NULLS FIRST, b NULLS FIRST) AS r FROM u
CREATE VIEW tied_copies AS SELECT a, ROW_NUMBER() OVER (ORDER BY a) AS r FROM u;

-- neighbours of a bag
-- duckdb: SELECT a, LAG(b, 1, -9) OVER (PARTITION BY a ORDER BY b NULLS FIRST) AS x, LEAD(b, 2) OVER (PARTITION BY a ORDER BY b NULLS FIRST) AS y FROM u
-- spark: SELECT a, LAG(b, 1, -9) OVER (PARTITION BY a ORDER BY b NULLS FIRST) AS x, LEAD(b, 2) OVER (PARTITION BY a ORDER BY b NULLS FIRST) AS y FROM u
-- sqlite: SELECT a, LAG(b, 1, -9) OVER (PARTITION BY a ORDER BY b NULLS FIRST) AS x, LEAD(b, 2) OVER (PARTITION BY a ORDER BY b NULLS FIRST) AS y FROM u
CREATE VIEW tied_neighbours AS SELECT a, LAG(b, 1, -9) OVER (PARTITION BY a ORDER BY a) AS x, LEAD(b, 2) OVER (PARTITION BY a ORDER BY a) AS y FROM u;

-- frames of rows that are equal in the order
-- duckdb: SELECT k, SUM(k) OVER (ORDER BY a DESC NULLS LAST, k ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS s, MIN(b) OVER (ORDER BY a DESC NULLS LAST, k ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS m, COUNT(b) OVER (ORDER BY a DESC NULLS LAST, k ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS c FROM t
-- spark: SELECT k, SUM(k) OVER (ORDER BY a DESC NULLS LAST, k ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS s, MIN(b) OVER (ORDER BY a DESC NULLS LAST, k ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS m, COUNT(b) OVER (ORDER BY a DESC NULLS LAST, k ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS c FROM t
-- sqlite: SELECT k, SUM(k) OVER (ORDER BY a DESC NULLS LAST, k ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS s, MIN(b) OVER (ORDER BY a DESC NULLS LAST, k ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS m, COUNT(b) OVER (ORDER BY a DESC NULLS LAST, k ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS c FROM t
CREATE VIEW tied_frames AS SELECT k, SUM(k) OVER w1 AS s, MIN(b) OVER w2 AS m, COUNT(b) OVER w3 AS c FROM t WINDOW w1 AS (ORDER BY a DESC ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING), w2 AS (ORDER BY a DESC ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING), w3 AS (ORDER BY a DESC ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING);

-- from the peers on, and peers alone
CREATE VIEW frame_of_peers AS SELECT k, SUM(b) OVER (ORDER BY a RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS s, COUNT(*) OVER (ORDER BY a RANGE BETWEEN CURRENT ROW AND CURRENT ROW) AS c FROM t;

-- the first, the last and the second of a frame
CREATE VIEW chosen AS SELECT k, FIRST_VALUE(b) OVER (PARTITION BY a ORDER BY k DESC) AS f, LAST_VALUE(b) OVER (PARTITION BY a ORDER BY k ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) AS l, NTH_VALUE(b, 2) OVER (ORDER BY k ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS n FROM t;

-- in the order of texts
-- duckdb: SELECT k, ROW_NUMBER() OVER (ORDER BY s DESC NULLS LAST, k) AS r, LAG(s) OVER (PARTITION BY a ORDER BY s NULLS FIRST, k) AS x FROM t
-- spark: SELECT k, ROW_NUMBER() OVER (ORDER BY s DESC NULLS LAST, k) AS r, LAG(s) OVER (PARTITION BY a ORDER BY s NULLS FIRST, k) AS x FROM t
-- sqlite: SELECT k, ROW_NUMBER() OVER (ORDER BY s DESC NULLS LAST, k) AS r, LAG(s) OVER (PARTITION BY a ORDER BY s NULLS FIRST, k) AS x FROM t
CREATE VIEW by_texts AS SELECT k, ROW_NUMBER() OVER (ORDER BY s DESC) AS r, LAG(s) OVER (PARTITION BY a ORDER BY s) AS x FROM t;

-- ties that only texts tell apart
-- duckdb: SELECT s, ROW_NUMBER() OVER (PARTITION BY a ORDER BY s NULLS FIRST) AS r FROM n
-- spark: SELECT s, ROW_NUMBER() OVER (PARTITION BY a ORDER BY s NULLS FIRST) AS r FROM n
-- sqlite: SELECT s, ROW_NUMBER() OVER (PARTITION BY a ORDER BY s NULLS FIRST) AS r FROM n
CREATE VIEW tied_texts AS SELECT s, ROW_NUMBER() OVER (PARTITION BY a ORDER BY a) AS r FROM n;

-- of decimals, floats and days
-- not sqlite: it has no decimals
CREATE VIEW of_items AS SELECT id, SUM(price) OVER (ORDER BY id) AS total, SUM(rate) OVER (PARTITION BY qty ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS rates, MAX(day) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) AS latest, RANK() OVER (ORDER BY rate DESC NULLS LAST) AS r FROM item;

-- over a join: in the order of FROM
-- duckdb: SELECT t.k, u.b, ROW_NUMBER() OVER (PARTITION BY t.a ORDER BY t.b NULLS FIRST, t.k, u.b NULLS FIRST) AS r FROM t JOIN u ON t.a = u.a
-- spark: SELECT t.k, u.b, ROW_NUMBER() OVER (PARTITION BY t.a ORDER BY t.b NULLS FIRST, t.k, u.b NULLS FIRST) AS r FROM t JOIN u ON t.a = u.a
-- sqlite: SELECT t.k, u.b, ROW_NUMBER() OVER (PARTITION BY t.a ORDER BY t.b NULLS FIRST, t.k, u.b NULLS FIRST) AS r FROM t JOIN u ON t.a = u.a
CREATE VIEW over_join AS SELECT t.k, u.b, ROW_NUMBER() OVER (PARTITION BY t.a ORDER BY t.b) AS r FROM t JOIN u ON t.a = u.a;

-- values of a window, once each
CREATE VIEW different_ranks AS SELECT DISTINCT a, RANK() OVER (PARTITION BY a ORDER BY b) AS r FROM (SELECT a, b FROM t) x;

-- a window over another one
CREATE VIEW over_window AS SELECT k, SUM(r) OVER (ORDER BY k) AS s FROM (SELECT k, RANK() OVER (PARTITION BY a ORDER BY b) AS r FROM t) x;

-- in a subquery for each row
-- not sqlite: windows see columns around them in another way
CREATE VIEW window_in_subquery AS SELECT k, (SELECT MAX(c) FROM (SELECT COUNT(*) OVER (PARTITION BY u.b) AS c FROM u WHERE u.a = t.a) x) AS m FROM t;

-- quarters
CREATE VIEW quarters AS SELECT k, NTILE(3) OVER (ORDER BY k) AS q, PERCENT_RANK() OVER (ORDER BY a) AS p, CUME_DIST() OVER (ORDER BY a) AS c FROM t;
