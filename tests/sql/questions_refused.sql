-- Questions that are refused: more than one statement, writes where only reading is asked for, and everything that
-- would reach files, settings or the network.

SELECT k FROM t; DROP TABLE t;

SELECT k FROM t; DELETE FROM t;

SELECT k FROM t -- x
; INSERT INTO u VALUES (1, 2);

SELECT * FROM read_csv('/etc/passwd');

SELECT * FROM read_csv_auto('/etc/passwd');

SELECT * FROM read_parquet('x.parquet');

SELECT * FROM read_text('/etc/passwd');

SELECT * FROM read_blob('/etc/passwd');

SELECT * FROM read_json('x.json');

SELECT * FROM '/etc/passwd';

SELECT * FROM `/etc/passwd`;

SELECT * FROM glob('/etc/*');

SELECT * FROM csv.`/etc/passwd`;

SELECT * FROM parquet.`x`;

SELECT * FROM text.`/etc/passwd`;

SELECT * FROM delta.`/x`;

SELECT * FROM duckdb_settings();

SELECT * FROM duckdb_secrets();

SELECT * FROM duckdb_tables();

SELECT * FROM information_schema.tables;

SELECT * FROM sqlite_master;

SELECT * FROM pg_catalog.pg_tables;

SELECT getenv('HOME') AS x;

SELECT current_setting('threads') AS x;

SELECT java_method('java.lang.Runtime', 'exit', 1) AS x;

SELECT reflect('java.lang.System', 'getenv', 'HOME') AS x;

SELECT load_extension('x') AS x;

SELECT writefile('x', 'y') AS x;

SELECT * FROM query('SELECT 1');

SELECT * FROM query_table('t');

SELECT * FROM sqlite_scan('x', 'y');

SELECT * FROM postgres_scan('x', 'y', 'z');

SELECT * FROM http_get('http://example.org');

ATTACH 'x.db' AS x;

COPY t TO '/tmp/x.csv';

COPY (SELECT * FROM t) TO '/tmp/x.csv';

INSTALL httpfs;

LOAD httpfs;

SET threads = 1;

PRAGMA database_list;

CALL pragma_version();

EXPORT DATABASE '/tmp/x';

ADD JAR 'x.jar';

CREATE TEMPORARY FUNCTION x AS 'y';

SELECT * FROM t WHERE k = (DELETE FROM t);

WITH x AS (DELETE FROM t) SELECT * FROM x;

WITH x AS (INSERT INTO u VALUES (1, 2) RETURNING a) SELECT * FROM x;

SELECT k INTO x FROM t;
