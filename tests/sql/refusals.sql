-- What is refused, each with its reason; « stands where the position of the message has to be. Tables: tables.sql.

-- time and chance: a view must be a function of its tables
CREATE VIEW v AS SELECT k, «rand() AS x FROM t;

CREATE VIEW v AS SELECT k, «uuid() AS x FROM t;

CREATE VIEW v AS SELECT k FROM item JOIN t ON id = k WHERE at < «now();

CREATE VIEW v AS SELECT k, «current_timestamp() AS x FROM t;

CREATE VIEW v AS SELECT k, «monotonically_increasing_id() AS x FROM t;

-- what depends on an order that is not there
CREATE VIEW v AS SELECT k, «SUM(b) OVER (PARTITION BY a ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS r FROM t;

CREATE VIEW v AS SELECT k, «COUNT(*) OVER w AS r FROM t WINDOW w AS (RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW);

CREATE VIEW v AS «SELECT k FROM t LIMIT 3;

CREATE VIEW v AS SELECT k, «nth_value(b, 2) OVER (PARTITION BY a) AS x FROM t;

CREATE VIEW v AS SELECT k, «SUM(b) IGNORE NULLS OVER (PARTITION BY a) AS x FROM t;

CREATE VIEW v AS SELECT a, «SUM(b) IGNORE NULLS AS x FROM u GROUP BY a;

CREATE VIEW v AS SELECT k, COUNT(*) OVER (ORDER BY a, b RANGE BETWEEN «1 PRECEDING AND CURRENT ROW) AS x FROM t;

CREATE VIEW v AS SELECT k, COUNT(*) OVER (ORDER BY s RANGE BETWEEN «1 PRECEDING AND CURRENT ROW) AS x FROM t;

CREATE VIEW v AS SELECT k, COUNT(*) OVER (ORDER BY b RANGE BETWEEN «k PRECEDING AND CURRENT ROW) AS x FROM t;

CREATE VIEW v AS SELECT k, COUNT(*) OVER (ORDER BY b RANGE BETWEEN «INTERVAL 1 DAY PRECEDING AND CURRENT ROW) AS x FROM t;

CREATE VIEW v AS SELECT id, COUNT(*) OVER (ORDER BY price RANGE BETWEEN «0.125 PRECEDING AND CURRENT ROW) AS x FROM item;

CREATE VIEW v AS SELECT k, «counter_diff(b) OVER (ORDER BY k) AS x FROM t;

-- windows of time
CREATE VIEW v AS SELECT window.start AS s FROM item GROUP BY «window(at, '1 month');

CREATE VIEW v AS SELECT window.start AS s FROM item GROUP BY window(«qty, '1 hour');

CREATE VIEW v AS SELECT window.start AS s FROM item GROUP BY «window(at, '1 hour', '2 hours');

CREATE VIEW v AS SELECT window.start AS s FROM item GROUP BY window(at, '1 hour'), «window(at, '1 day');

CREATE VIEW v AS SELECT COUNT(*) AS c FROM item GROUP BY «session_window(at, '1 month');

CREATE VIEW v AS SELECT COUNT(*) AS c FROM item GROUP BY «session_window(at, concat(qty, ' days'));

CREATE VIEW v AS SELECT id, «session_window(at, '1 hour').start AS x FROM item;

CREATE VIEW v AS SELECT qty, COUNT(*) AS c FROM item GROUP BY ROLLUP(qty, «session_window(at, '1 hour'));

CREATE VIEW v AS SELECT COUNT(*) AS c FROM item GROUP BY session_window(at, '1 hour'), «window(at, '1 day');

-- what is approximate, where there is something exact
CREATE VIEW v AS SELECT a, «approx_percentile(b, 0.5) AS x FROM u GROUP BY a;

CREATE VIEW v AS SELECT a, «hll_sketch_agg(b) AS x FROM u GROUP BY a;

-- aggregates of all values: constants must be known; some take no order, as in Spark
CREATE VIEW v AS SELECT a, «percentile(b, a) AS x FROM u GROUP BY a;

CREATE VIEW v AS SELECT a, «percentile_cont(0.5) AS x FROM u GROUP BY a;

CREATE VIEW v AS SELECT a, «median(b) OVER (PARTITION BY a ORDER BY b) AS x FROM u;

CREATE VIEW v AS SELECT a, «SUM(DISTINCT b) OVER (PARTITION BY a) AS x FROM u;

CREATE VIEW v AS SELECT a, «corr(b) AS x FROM u GROUP BY a;

CREATE VIEW v AS SELECT a, «sum(b) WITHIN GROUP (ORDER BY b) AS x FROM u GROUP BY a;

-- what the language does not have
CREATE VIEW v AS SELECT t.k, x.b FROM t FULL JOIN «LATERAL (SELECT b FROM u WHERE u.a = t.a) x ON true;

CREATE VIEW v AS SELECT t.k, x.b FROM LATERAL (SELECT b FROM u WHERE u.a = «t.a) x, t;

CREATE VIEW v AS SELECT k, «array(a, DATE '2026-11-16') AS x FROM t;

CREATE VIEW v AS SELECT k, «explode(a) AS x FROM t;

CREATE VIEW v AS SELECT k, «my_function(a) AS x FROM t;

CREATE VIEW v AS SELECT k FROM t TABLESAMPLE («10 PERCENT);

CREATE VIEW v AS SELECT k, «java_method('java.lang.System', 'exit', 1) AS x FROM t;

CREATE VIEW v AS SELECT k, «reflect('java.lang.System', 'getenv') AS x FROM t;

CREATE VIEW v AS SELECT k, «input_file_name() AS x FROM t;

CREATE VIEW v AS SELECT * FROM «read_csv('/etc/passwd');

CREATE VIEW v AS SELECT * FROM «csv.`/etc/passwd`;

CREATE VIEW v AS SELECT * FROM «range(0, 10, 0);

CREATE VIEW v AS SELECT k FROM t, range(«k);

CREATE VIEW v AS SELECT k FROM t QUALIFY «k = 1;

CREATE VIEW v AS SELECT * FROM t PIVOT (SUM(b) FOR a IN («k));

CREATE VIEW v AS SELECT * FROM t PIVOT (SUM(b) FOR «x IN (1));

CREATE VIEW v AS SELECT * FROM t UNPIVOT ((v, w) FOR name IN («a, b));

CREATE VIEW v AS SELECT * REPLACE («1 AS x) FROM t;

-- names
CREATE VIEW v AS SELECT «x FROM t;

CREATE VIEW v AS SELECT k FROM «missing;

CREATE VIEW v AS SELECT «t.z FROM t;

CREATE VIEW v AS SELECT «z.k FROM t;

CREATE VIEW v AS SELECT «a FROM t JOIN u ON t.b = u.b;

CREATE VIEW v AS SELECT k FROM t WHERE EXISTS (SELECT * FROM u WHERE «zzz = 1);

CREATE VIEW v AS SELECT k, a AS «k FROM t;

CREATE VIEW v AS SELECT «k FROM t JOIN t ON TRUE;

-- types
CREATE VIEW v AS SELECT k FROM t JOIN item ON k = id WHERE «day = 1;

CREATE VIEW v AS SELECT k FROM t WHERE «a = 'x';

CREATE VIEW v AS SELECT «s + s AS x FROM t;

CREATE VIEW v AS SELECT k FROM t WHERE «a;

CREATE VIEW v AS SELECT k FROM t JOIN f USING (k) WHERE «v = 1;

CREATE VIEW v AS «SELECT a, b FROM u UNION SELECT a FROM n;

CREATE VIEW v AS SELECT «substring(s) AS x FROM t;

-- groups
CREATE VIEW v AS SELECT a, «b FROM u GROUP BY a;

CREATE VIEW v AS SELECT a, COUNT(*) AS c FROM u GROUP BY a HAVING «b > 1;

CREATE VIEW v AS SELECT a FROM u WHERE «COUNT(*) > 1 GROUP BY a;

CREATE VIEW v AS SELECT SUM(«COUNT(*)) AS x FROM u;

CREATE VIEW v AS SELECT «a, COUNT(*) AS c FROM u;

CREATE VIEW v AS SELECT a FROM u GROUP BY «3;

CREATE VIEW v AS SELECT k FROM t WHERE «RANK() OVER (ORDER BY a) = 1;

-- subqueries
CREATE VIEW v AS SELECT k, «(SELECT a, b FROM u) AS x FROM t;

CREATE VIEW v AS SELECT k FROM t WHERE «a IN (SELECT a, b FROM u);

-- recursion
CREATE VIEW v AS WITH RECURSIVE r(x, y) AS (SELECT a, b FROM u UNION ALL SELECT one.x, two.y FROM r one JOIN «r two ON one.y = two.x) SELECT * FROM r;

CREATE VIEW v AS WITH RECURSIVE r(x) AS (SELECT a FROM u UNION SELECT k FROM t WHERE k NOT IN (SELECT x FROM «r)) SELECT * FROM r;

CREATE VIEW v AS WITH RECURSIVE r(x) AS (SELECT a FROM u UNION SELECT t.k FROM t WHERE NOT EXISTS (SELECT * FROM «r WHERE r.x = t.a)) SELECT * FROM r;

CREATE VIEW v AS WITH RECURSIVE r(x) AS (SELECT a FROM u UNION (SELECT k FROM t EXCEPT SELECT x FROM «r)) SELECT * FROM r;

CREATE VIEW v AS WITH RECURSIVE r(x) AS (SELECT a FROM u UNION SELECT MAX(x) + 1 FROM «r) SELECT * FROM r;

CREATE VIEW v AS WITH RECURSIVE r(x) AS (SELECT a FROM u UNION SELECT t.a FROM t LEFT JOIN «r ON r.x = t.k) SELECT * FROM r;

CREATE VIEW v AS WITH RECURSIVE r(x) AS (SELECT a FROM u UNION SELECT x + 1 FROM (SELECT x FROM «r ORDER BY x LIMIT 1) s) SELECT * FROM r;

CREATE VIEW v AS WITH RECURSIVE «r(x) AS (SELECT x FROM r) SELECT * FROM r;

-- statements
CREATE TRIGGER g AFTER INSERT ON t «FOR EACH ROW INSERT INTO u SELECT 1, 2;

CREATE TRIGGER g «BEFORE INSERT ON t REFERENCING NEW TABLE AS n FOR EACH STATEMENT INSERT INTO u SELECT k, a FROM n;

CREATE «PROCEDURE p() BEGIN END;

CREATE FUNCTION «p(x INT) RETURNS INT RETURN x + 1;

CREATE TABLE «t (k INT PRIMARY KEY);

CREATE VIEW «t AS SELECT a FROM u;

CREATE TABLE x (k INT, «k STRING);

CREATE TABLE x (k INT, PRIMARY KEY («z));

CREATE TABLE x (k «VARIANT);

-- what is no SQL
CREATE VIEW v AS SELECT k FROM t WHERE«;

CREATE VIEW v AS SELECT FROM «FROM t;

«SELEC k FROM t;

-- lambdas: exact types, orders, and nothing but expressions inside
CREATE VIEW v AS SELECT a, «aggregate(array(b), 0L, (acc, x) -> 1) AS x FROM u;

CREATE VIEW v AS SELECT k, «array_sort(array(a, b), (x, y) -> x < y) AS x FROM t;

CREATE VIEW v AS SELECT k, transform(array(a), («x, i, j) -> x) AS x FROM t;

CREATE VIEW v AS SELECT k, transform(array(a), («x, X) -> x) AS x FROM t;

CREATE VIEW v AS SELECT k, transform(array(a), x -> x IN («SELECT a FROM u)) AS x FROM t;

CREATE VIEW v AS SELECT k, transform(array(a), x -> sum(«x)) AS x FROM t GROUP BY k, a;

CREATE VIEW v AS SELECT k, «filter(array(a), x -> x + 1) AS x FROM t;

CREATE VIEW v AS SELECT k, «exists(a, x -> x > 1) AS x FROM t;

CREATE VIEW v AS SELECT k, upper(«x -> x) AS x FROM t;

-- patterns are those of RE2
CREATE VIEW v AS SELECT k, «split(s, '[') AS x FROM t;

CREATE VIEW v AS SELECT k, «split(s, s) AS x FROM t;

CREATE VIEW v AS SELECT k, «str_to_map(s, ',', '(') AS x FROM t;
