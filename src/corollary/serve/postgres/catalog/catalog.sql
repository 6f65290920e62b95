-- The catalog that clients of PostgreSQL see, in the schemas `pg` and `information` of a DuckDB.
-- It is made of six tables in the schema `given`: the relations that a user sees, their columns,
-- their foreign keys, the types, the settings, and who asks. What is not said of a row is null.
-- DuckDB's own `pg_catalog` has other numbers of types and columns, and no indexes of keys; the
-- tables of it that are empty in every case are used as they are.

CREATE TABLE pg.pg_namespace (oid uint32, nspname text, nspowner uint32, nspacl text[]);
CREATE TABLE pg.pg_class (
    oid uint32, relname text, relnamespace uint32, reltype uint32, reloftype uint32, relowner uint32, relam uint32,
    relfilenode uint32, reltablespace uint32, relpages int4, reltuples float4, relallvisible int4, reltoastrelid
    uint32, relhasindex bool, relisshared bool, relpersistence text, relkind text, relnatts int2, relchecks int2,
    relhasrules bool, relhastriggers bool, relhassubclass bool, relrowsecurity bool, relforcerowsecurity bool,
    relispopulated bool, relreplident text, relispartition bool, relrewrite uint32, relfrozenxid uint32, relminmxid
    uint32, relacl text[], reloptions text[], relpartbound text);
CREATE TABLE pg.pg_attribute (
    attrelid uint32, attname text, atttypid uint32, attstattarget int4, attlen int2, attnum int2, attndims int4,
    attcacheoff int4, atttypmod int4, attbyval bool, attalign text, attstorage text, attcompression text, attnotnull
    bool, atthasdef bool, atthasmissing bool, attidentity text, attgenerated text, attisdropped bool, attislocal bool,
    attinhcount int4, attcollation uint32, attacl text[], attoptions text[], attfdwoptions text[], attmissingval text);
CREATE TABLE pg.pg_type (
    oid uint32, typname text, typnamespace uint32, typowner uint32, typlen int2, typbyval bool, typtype text,
    typcategory text, typispreferred bool, typisdefined bool, typdelim text, typrelid uint32, typsubscript text,
    typelem uint32, typarray uint32, typinput text, typoutput text, typreceive text, typsend text, typmodin text,
    typmodout text, typanalyze text, typalign text, typstorage text, typnotnull bool, typbasetype uint32, typtypmod
    int4, typndims int4, typcollation uint32, typdefaultbin text, typdefault text, typacl text[], sqlname text);
CREATE TABLE pg.pg_index (
    indexrelid uint32, indrelid uint32, indnatts int2, indnkeyatts int2, indisunique bool, indnullsnotdistinct bool,
    indisprimary bool, indisexclusion bool, indimmediate bool, indisclustered bool, indisvalid bool, indcheckxmin
    bool, indisready bool, indislive bool, indisreplident bool, indkey int2[], indcollation uint32[], indclass
    uint32[], indoption int2[], indexprs text, indpred text);
CREATE TABLE pg.pg_constraint (
    oid uint32, conname text, connamespace uint32, contype text, condeferrable bool, condeferred bool, convalidated
    bool, conrelid uint32, contypid uint32, conindid uint32, conparentid uint32, confrelid uint32, confupdtype text,
    confdeltype text, confmatchtype text, conislocal bool, coninhcount int4, connoinherit bool, conkey int2[], confkey
    int2[], conpfeqop uint32[], conppeqop uint32[], conffeqop uint32[], confdelsetcols int2[], conexclop uint32[],
    conbin text);
CREATE TABLE pg.pg_database (
    oid uint32, datname text, datdba uint32, encoding int4, datlocprovider text, datistemplate bool, datallowconn
    bool, datconnlimit int4, datfrozenxid uint32, datminmxid uint32, dattablespace uint32, datcollate text, datctype
    text, daticulocale text, datcollversion text, datacl text[]);
CREATE TABLE pg.pg_roles (
    rolname text, rolsuper bool, rolinherit bool, rolcreaterole bool, rolcreatedb bool, rolcanlogin bool,
    rolreplication bool, rolconnlimit int4, rolpassword text, rolvaliduntil timestamptz, rolbypassrls bool, rolconfig
    text[], oid uint32);
CREATE TABLE pg.pg_user (usename text, usesysid uint32, usecreatedb bool, usesuper bool, userepl bool);
CREATE TABLE pg.pg_settings (
    name text, setting text, unit text, category text, short_desc text, extra_desc text, context text, vartype text,
    source text, min_val text, max_val text, enumvals text[], boot_val text, reset_val text, sourcefile text,
    sourceline int4, pending_restart bool);
CREATE TABLE pg.pg_tables (
    schemaname text, tablename text, tableowner text, tablespace text, hasindexes bool, hasrules bool, hastriggers
    bool, rowsecurity bool);
CREATE TABLE pg.pg_views (schemaname text, viewname text, viewowner text, definition text);
CREATE TABLE pg.pg_matviews (
    schemaname text, matviewname text, matviewowner text, tablespace text, hasindexes bool, ispopulated bool,
    definition text);
CREATE TABLE pg.pg_indexes (schemaname text, tablename text, indexname text, tablespace text, indexdef text);
CREATE TABLE pg.pg_description (objoid uint32, classoid uint32, objsubid int4, description text);
CREATE TABLE pg.pg_shdescription (objoid uint32, classoid uint32, description text);
CREATE TABLE pg.pg_am (oid uint32, amname text, amhandler text, amtype text);
CREATE TABLE pg.pg_auth_members (roleid uint32, member uint32, grantor uint32, admin_option bool);
CREATE TABLE pg.pg_collation (
    oid uint32, collname text, collnamespace uint32, collowner uint32, collprovider text, collisdeterministic bool,
    collencoding int4, collcollate text, collctype text, colliculocale text, collversion text);
CREATE TABLE pg.pg_tablespace (oid uint32, spcname text, spcowner uint32, spcacl text[], spcoptions text[]);
CREATE TABLE pg.pg_proc (
    oid uint32, proname text, pronamespace uint32, proowner uint32, prolang uint32, procost float4, prorows float4,
    provariadic uint32, prosupport text, prokind text, prosecdef bool, proleakproof bool, proisstrict bool, proretset
    bool, provolatile text, proparallel text, pronargs int2, pronargdefaults int2, prorettype uint32, proargtypes
    uint32[], proallargtypes uint32[], proargmodes text[], proargnames text[], proargdefaults text, protrftypes
    uint32[], prosrc text, probin text, prosqlbody text, proconfig text[], proacl text[]);
CREATE TABLE pg.pg_aggregate (aggfnoid uint32, aggkind text);
CREATE TABLE pg.pg_language (oid uint32, lanname text, lanowner uint32, lanispl bool, lanpltrusted bool);
CREATE TABLE pg.pg_operator (
    oid uint32, oprname text, oprnamespace uint32, oprowner uint32, oprkind text, oprleft uint32, oprright uint32,
    oprresult uint32, oprcom uint32, oprcode text);
CREATE TABLE pg.pg_opclass (
    oid uint32, opcmethod uint32, opcname text, opcnamespace uint32, opcowner uint32, opcfamily uint32, opcintype
    uint32, opcdefault bool, opckeytype uint32);
CREATE TABLE pg.pg_opfamily (oid uint32, opfmethod uint32, opfname text, opfnamespace uint32, opfowner uint32);
CREATE TABLE pg.pg_range (
    rngtypid uint32, rngsubtype uint32, rngmultitypid uint32, rngcollation uint32, rngsubopc uint32, rngcanonical
    text, rngsubdiff text);
CREATE TABLE pg.pg_inherits (inhrelid uint32, inhparent uint32, inhseqno int4, inhdetachpending bool);
CREATE TABLE pg.pg_partitioned_table (
    partrelid uint32, partstrat text, partnatts int2, partdefid uint32, partattrs int2[]);
CREATE TABLE pg.pg_trigger (
    oid uint32, tgrelid uint32, tgparentid uint32, tgname text, tgfoid uint32, tgtype int2, tgenabled text,
    tgisinternal bool, tgconstrrelid uint32, tgconstrindid uint32, tgconstraint uint32, tgdeferrable bool,
    tginitdeferred bool, tgnargs int2, tgattr int2[], tgargs text, tgqual text, tgoldtable text, tgnewtable text);
CREATE TABLE pg.pg_rewrite (
    oid uint32, rulename text, ev_class uint32, ev_type text, ev_enabled text, is_instead bool, ev_qual text,
    ev_action text);
CREATE TABLE pg.pg_policy (
    oid uint32, polname text, polrelid uint32, polcmd text, polpermissive bool, polroles uint32[], polqual text,
    polwithcheck text);
CREATE TABLE pg.pg_policies (schemaname text, tablename text, policyname text);
CREATE TABLE pg.pg_statistic_ext (
    oid uint32, stxrelid uint32, stxname text, stxnamespace uint32, stxowner uint32, stxstattarget int4, stxkeys
    int2[], stxkind text[]);
CREATE TABLE pg.pg_publication (
    oid uint32, pubname text, pubowner uint32, puballtables bool, pubinsert bool, pubupdate bool, pubdelete bool,
    pubtruncate bool, pubviaroot bool);
CREATE TABLE pg.pg_publication_rel (oid uint32, prpubid uint32, prrelid uint32, prqual text, prattrs int2[]);
CREATE TABLE pg.pg_publication_namespace (oid uint32, pnpubid uint32, pnnspid uint32);
CREATE TABLE pg.pg_foreign_table (ftrelid uint32, ftserver uint32, ftoptions text[]);
CREATE TABLE pg.pg_foreign_server (
    oid uint32, srvname text, srvowner uint32, srvfdw uint32, srvtype text, srvversion text);
CREATE TABLE pg.pg_foreign_data_wrapper (oid uint32, fdwname text, fdwowner uint32);
CREATE TABLE pg.pg_extension (
    oid uint32, extname text, extowner uint32, extnamespace uint32, extrelocatable bool, extversion text);
CREATE TABLE pg.pg_event_trigger (oid uint32, evtname text, evtevent text, evtowner uint32);
CREATE TABLE pg.pg_cast (
    oid uint32, castsource uint32, casttarget uint32, castfunc uint32, castcontext text, castmethod text);
CREATE TABLE pg.pg_locks (locktype text, database uint32, relation uint32, pid int4, mode text, granted bool);
CREATE TABLE pg.pg_stat_activity (
    datid uint32, datname text, pid int4, usename text, application_name text, state text, query text);
CREATE TABLE pg.pg_stat_user_tables (relid uint32, schemaname text, relname text, n_live_tup int8, n_dead_tup int8);
CREATE TABLE pg.pg_timezone_names (name text, abbrev text, utc_offset text, is_dst bool);
CREATE TABLE pg.pg_db_role_setting (setdatabase uint32, setrole uint32, setconfig text[]);

CREATE TABLE information.schemata (
    catalog_name text, schema_name text, schema_owner text, default_character_set_catalog text,
    default_character_set_schema text, default_character_set_name text, sql_path text);
CREATE TABLE information.tables (
    table_catalog text, table_schema text, table_name text, table_type text, self_referencing_column_name text,
    reference_generation text, user_defined_type_catalog text, user_defined_type_schema text, user_defined_type_name
    text, is_insertable_into text, is_typed text, commit_action text);
CREATE TABLE information.views (
    table_catalog text, table_schema text, table_name text, view_definition text, check_option text, is_updatable
    text, is_insertable_into text, is_trigger_updatable text, is_trigger_deletable text, is_trigger_insertable_into
    text);
CREATE TABLE information.columns (
    table_catalog text, table_schema text, table_name text, column_name text, ordinal_position int4, column_default
    text, is_nullable text, data_type text, character_maximum_length int4, character_octet_length int4,
    numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, interval_type
    text, interval_precision int4, collation_catalog text, collation_schema text, collation_name text, domain_catalog
    text, domain_schema text, domain_name text, udt_catalog text, udt_schema text, udt_name text, is_self_referencing
    text, is_identity text, identity_generation text, identity_start text, identity_increment text, identity_maximum
    text, identity_minimum text, identity_cycle text, is_generated text, generation_expression text, is_updatable text);
CREATE TABLE information.table_constraints (
    constraint_catalog text, constraint_schema text, constraint_name text, table_catalog text, table_schema text,
    table_name text, constraint_type text, is_deferrable text, initially_deferred text, enforced text);
CREATE TABLE information.key_column_usage (
    constraint_catalog text, constraint_schema text, constraint_name text, table_catalog text, table_schema text,
    table_name text, column_name text, ordinal_position int4, position_in_unique_constraint int4);
CREATE TABLE information.constraint_column_usage (
    table_catalog text, table_schema text, table_name text, column_name text, constraint_catalog text,
    constraint_schema text, constraint_name text);
CREATE TABLE information.referential_constraints (
    constraint_catalog text, constraint_schema text, constraint_name text, unique_constraint_catalog text,
    unique_constraint_schema text, unique_constraint_name text, match_option text, update_rule text, delete_rule text);
CREATE TABLE information.role_table_grants (
    grantor text, grantee text, table_catalog text, table_schema text, table_name text, privilege_type text,
    is_grantable text, with_hierarchy text);
CREATE TABLE information.table_privileges (
    grantor text, grantee text, table_catalog text, table_schema text, table_name text, privilege_type text,
    is_grantable text, with_hierarchy text);
CREATE TABLE information.routines (routine_catalog text, routine_schema text, routine_name text, routine_type text);
CREATE TABLE information.sequences (sequence_catalog text, sequence_schema text, sequence_name text);
CREATE TABLE information.triggers (trigger_catalog text, trigger_schema text, trigger_name text);

-- The session and the types.

INSERT INTO pg.pg_namespace BY NAME
SELECT oid, nspname, 10 AS nspowner
FROM (VALUES (11, 'pg_catalog'), (2200, 'public'), (13000, 'information_schema')) AS schemas(oid, nspname);
INSERT INTO pg.pg_database BY NAME
SELECT 16384 AS oid, database AS datname, 10 AS datdba, 6 AS encoding, 'c' AS datlocprovider,
    false AS datistemplate, true AS datallowconn, -1 AS datconnlimit, 1663 AS dattablespace,
    'C' AS datcollate, 'C' AS datctype
FROM given.session;
INSERT INTO pg.pg_roles BY NAME
SELECT 10 AS oid, "user" AS rolname, true AS rolinherit, true AS rolcanlogin, -1 AS rolconnlimit,
    false AS rolsuper, false AS rolcreaterole, false AS rolcreatedb, false AS rolreplication,
    false AS rolbypassrls
FROM given.session;
INSERT INTO pg.pg_user BY NAME
SELECT "user" AS usename, 10 AS usesysid, false AS usesuper FROM given.session;
INSERT INTO pg.pg_am BY NAME
SELECT * FROM (VALUES (2, 'heap', 't'), (403, 'btree', 'i')) AS methods(oid, amname, amtype);
INSERT INTO pg.pg_tablespace BY NAME SELECT 1663 AS oid, 'pg_default' AS spcname, 10 AS spcowner;
INSERT INTO pg.pg_collation BY NAME SELECT 100 AS oid, 'default' AS collname, 11 AS collnamespace;
INSERT INTO pg.pg_settings BY NAME
SELECT name, setting, 'Session' AS category, 'string' AS vartype FROM given.settings;
INSERT INTO pg.pg_timezone_names BY NAME
SELECT 'UTC' AS name, 'UTC' AS abbrev, '00:00:00' AS utc_offset, false AS is_dst;
INSERT INTO pg.pg_type BY NAME
SELECT oid, name AS typname, 11 AS typnamespace, 10 AS typowner, size AS typlen,
    size BETWEEN 1 AND 8 AS typbyval, if(name = 'unknown', 'p', 'b') AS typtype, category AS typcategory,
    name IN ('text', 'float8', 'bool', 'timestamptz', 'oid') AS typispreferred, true AS typisdefined,
    ',' AS typdelim, 0 AS typrelid, element AS typelem, "array" AS typarray,
    if(element > 0, 'array_', name) || 'in' AS typinput, if(element > 0, 'array_', name) || 'out' AS typoutput,
    if(element > 0, 'array_', name) || 'recv' AS typreceive, if(element > 0, 'array_', name) || 'send' AS typsend,
    false AS typnotnull, 0 AS typbasetype, -1 AS typtypmod, 0 AS typndims,
    if(category = 'S', 100, 0) AS typcollation, sql_name AS sqlname
FROM given.types;

-- Relations, the indexes of their keys, and columns.

INSERT INTO pg.pg_class BY NAME
SELECT oid, name AS relname, 2200 AS relnamespace, 10 AS relowner, coalesce(tuples, -1) AS reltuples,
    CASE kind WHEN 'i' THEN 403 WHEN 'r' THEN 2 ELSE 0 END AS relam,
    len(key) > 0 AND kind <> 'i' AS relhasindex, 'p' AS relpersistence, kind AS relkind,
    columns AS relnatts, kind = 'v' AS relhasrules, true AS relispopulated,
    if(kind = 'r', 'd', 'n') AS relreplident, false AS relisshared, false AS relhastriggers,
    false AS relhassubclass, false AS relrowsecurity, false AS relforcerowsecurity,
    false AS relispartition, 0 AS relpages, 0 AS relallvisible, 0 AS relchecks, 0 AS reltype,
    0 AS reloftype, 0 AS relfilenode, 0 AS reltablespace, 0 AS reltoastrelid, 0 AS relrewrite
FROM given.relations;
INSERT INTO pg.pg_attribute BY NAME
SELECT relation AS attrelid, c.name AS attname, type AS atttypid, -1 AS attstattarget, size AS attlen,
    number AS attnum, 0 AS attndims, -1 AS attcacheoff, modifier AS atttypmod,
    size BETWEEN 1 AND 8 AS attbyval, 'i' AS attalign, if(size < 0, 'x', 'p') AS attstorage,
    '' AS attcompression, NOT is_nullable AS attnotnull, '' AS attidentity, '' AS attgenerated,
    true AS attislocal, 0 AS attinhcount, if(category = 'S', 100, 0) AS attcollation,
    false AS atthasdef, false AS atthasmissing, false AS attisdropped
FROM given.columns c JOIN given.types t ON t.oid = type;
INSERT INTO pg.pg_index BY NAME
SELECT oid AS indexrelid, of AS indrelid, columns AS indnatts, columns AS indnkeyatts, key AS indkey,
    list_transform(key, lambda _: 0) AS indclass, list_transform(key, lambda _: 0) AS indcollation,
    list_transform(key, lambda _: 0) AS indoption, true AS indisunique, true AS indisprimary,
    true AS indimmediate, true AS indisvalid, true AS indisready, true AS indislive,
    false AS indisexclusion, false AS indisclustered, false AS indcheckxmin, false AS indisreplident,
    false AS indnullsnotdistinct
FROM given.relations WHERE kind = 'i';
INSERT INTO pg.pg_constraint BY NAME
SELECT oid, name AS conname, 2200 AS connamespace, 'p' AS contype, true AS convalidated, of AS conrelid,
    oid AS conindid, true AS conislocal, key AS conkey, 'PRIMARY KEY (' || listed || ')' AS conbin,
    0 AS coninhcount, false AS condeferrable, false AS condeferred, false AS connoinherit,
    0 AS contypid, 0 AS conparentid, 0 AS confrelid
FROM given.relations WHERE kind = 'i';
INSERT INTO pg.pg_constraint BY NAME
SELECT f.oid, f.name AS conname, 2200 AS connamespace, 'f' AS contype, true AS convalidated, f.of AS conrelid,
    i.oid AS conindid, true AS conislocal, f.columns AS conkey, f.targets AS confkey, f.definition AS conbin,
    0 AS coninhcount, false AS condeferrable, false AS condeferred, true AS connoinherit, 0 AS contypid,
    0 AS conparentid, f."to" AS confrelid, 'a' AS confupdtype, f.action AS confdeltype, 's' AS confmatchtype
FROM given."references" f LEFT JOIN given.relations i ON i.of = f."to";
INSERT INTO pg.pg_indexes BY NAME
SELECT 'public' AS schemaname, r.name AS tablename, i.name AS indexname,
    'CREATE UNIQUE INDEX ' || i.quoted || ' ON public.' || r.quoted || ' USING btree (' || i.listed || ')'
        AS indexdef
FROM given.relations i JOIN given.relations r ON r.oid = i.of;
INSERT INTO pg.pg_tables BY NAME
SELECT 'public' AS schemaname, name AS tablename, "user" AS tableowner, len(key) > 0 AS hasindexes,
    false AS hasrules, false AS hastriggers, false AS rowsecurity
FROM given.relations, given.session WHERE kind = 'r';
INSERT INTO pg.pg_views BY NAME
SELECT 'public' AS schemaname, name AS viewname, "user" AS viewowner, definition
FROM given.relations, given.session WHERE kind = 'v';
INSERT INTO pg.pg_matviews BY NAME
SELECT 'public' AS schemaname, name AS matviewname, "user" AS matviewowner, false AS hasindexes,
    true AS ispopulated, definition
FROM given.relations, given.session WHERE kind = 'm';
INSERT INTO pg.pg_stat_user_tables BY NAME
SELECT oid AS relid, 'public' AS schemaname, name AS relname, coalesce(tuples, 0) AS n_live_tup
FROM given.relations WHERE kind <> 'i';

-- The same for `information_schema`.

INSERT INTO information.schemata BY NAME
SELECT database AS catalog_name, nspname AS schema_name, "user" AS schema_owner
FROM pg.pg_namespace, given.session;
INSERT INTO information.tables BY NAME
SELECT database AS table_catalog, 'public' AS table_schema, name AS table_name,
    if(kind = 'r', 'BASE TABLE', 'VIEW') AS table_type, if(kind = 'r', 'YES', 'NO') AS is_insertable_into,
    'NO' AS is_typed
FROM given.relations, given.session WHERE kind <> 'i';
INSERT INTO information.views BY NAME
SELECT database AS table_catalog, 'public' AS table_schema, name AS table_name,
    definition AS view_definition, 'NONE' AS check_option, 'NO' AS is_updatable, 'NO' AS is_insertable_into
FROM given.relations, given.session WHERE kind IN ('v', 'm');
INSERT INTO information.columns BY NAME
SELECT database AS table_catalog, 'public' AS table_schema, r.name AS table_name, c.name AS column_name,
    number AS ordinal_position, if(is_nullable, 'YES', 'NO') AS is_nullable, sql_name AS data_type,
    database AS udt_catalog, 'pg_catalog' AS udt_schema, t.name AS udt_name, 'NO' AS is_self_referencing,
    'NO' AS is_identity, 'NEVER' AS is_generated, 'YES' AS is_updatable,
    CASE WHEN t.name = 'numeric' THEN (modifier - 4) >> 16 WHEN t.name = 'int8' THEN 64
        WHEN category = 'N' THEN 53 END AS numeric_precision,
    CASE WHEN t.name = 'numeric' THEN 10 WHEN category = 'N' THEN 2 END AS numeric_precision_radix,
    CASE WHEN t.name = 'numeric' THEN (modifier - 4) & 65535 WHEN t.name = 'int8' THEN 0 END AS numeric_scale,
    CASE WHEN t.name = 'timestamptz' THEN 6 WHEN category = 'D' THEN 0 END AS datetime_precision
FROM given.columns c JOIN given.types t ON t.oid = type JOIN given.relations r ON r.oid = relation,
    given.session
WHERE r.kind <> 'i';
INSERT INTO information.table_constraints BY NAME
SELECT database AS constraint_catalog, 'public' AS constraint_schema, i.name AS constraint_name,
    database AS table_catalog, 'public' AS table_schema, r.name AS table_name,
    'PRIMARY KEY' AS constraint_type, 'NO' AS is_deferrable, 'NO' AS initially_deferred, 'YES' AS enforced
FROM given.relations i JOIN given.relations r ON r.oid = i.of, given.session;
INSERT INTO information.table_constraints BY NAME
SELECT database AS constraint_catalog, 'public' AS constraint_schema, f.name AS constraint_name,
    database AS table_catalog, 'public' AS table_schema, r.name AS table_name,
    'FOREIGN KEY' AS constraint_type, 'NO' AS is_deferrable, 'NO' AS initially_deferred, 'YES' AS enforced
FROM given."references" f JOIN given.relations r ON r.oid = f.of, given.session;
INSERT INTO information.referential_constraints BY NAME
SELECT k.constraint_catalog, k.constraint_schema, k.constraint_name, k.constraint_catalog AS
    unique_constraint_catalog, 'public' AS unique_constraint_schema, i.name AS unique_constraint_name,
    'NONE' AS match_option, 'NO ACTION' AS update_rule,
    CASE action WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' ELSE 'NO ACTION' END AS delete_rule
FROM information.table_constraints k JOIN given."references" f ON f.name = constraint_name
    LEFT JOIN given.relations i ON i.of = f."to";
INSERT INTO information.key_column_usage BY NAME
SELECT k.* EXCLUDE (constraint_type, is_deferrable, initially_deferred, enforced), c.name AS column_name,
    place AS ordinal_position, list_position(target.key, targets[place]) AS position_in_unique_constraint
FROM information.table_constraints k JOIN
    (SELECT *, unnest(range(1, len(columns) + 1)) AS place FROM given."references") f ON f.name = constraint_name
    JOIN given.columns c ON c.relation = f.of AND c.number = f.columns[place]
    JOIN given.relations target ON target.oid = f."to";
INSERT INTO information.key_column_usage BY NAME
SELECT k.* EXCLUDE (constraint_type, is_deferrable, initially_deferred, enforced), c.name AS column_name,
    number AS ordinal_position
FROM information.table_constraints k JOIN given.relations i ON i.name = constraint_name
    JOIN given.columns c ON c.relation = i.oid;
INSERT INTO information.constraint_column_usage BY NAME
SELECT * EXCLUDE (ordinal_position, position_in_unique_constraint) FROM information.key_column_usage;
INSERT INTO information.role_table_grants BY NAME
SELECT "user" AS grantor, "user" AS grantee, database AS table_catalog, 'public' AS table_schema,
    name AS table_name,
    unnest(if(kind = 'r', ['SELECT', 'INSERT', 'DELETE', 'UPDATE'], ['SELECT'])) AS privilege_type,
    'NO' AS is_grantable
FROM given.relations, given.session WHERE kind <> 'i';
INSERT INTO information.table_privileges FROM information.role_table_grants;
