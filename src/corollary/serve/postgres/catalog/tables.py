"""The columns of the tables of `pg_catalog` and `information_schema`."""

SYSTEM, INFORMATION = "pg", "information"
"""The schemas of DuckDB that stand for `pg_catalog` and `information_schema`."""

SYSTEM_TABLES = {
    "pg_namespace": "oid oid, nspname text, nspowner oid, nspacl text[]",
    "pg_class": (
        "oid oid, relname text, relnamespace oid, reltype oid, reloftype oid, relowner oid, "
        "relam oid, relfilenode oid, reltablespace oid, relpages int4, reltuples float4, "
        "relallvisible int4, reltoastrelid oid, relhasindex bool, relisshared bool, "
        "relpersistence text, relkind text, relnatts int2, relchecks int2, relhasrules bool, "
        "relhastriggers bool, relhassubclass bool, relrowsecurity bool, "
        "relforcerowsecurity bool, relispopulated bool, relreplident text, relispartition bool, "
        "relrewrite oid, relfrozenxid oid, relminmxid oid, relacl text[], reloptions text[], "
        "relpartbound text"
    ),
    "pg_attribute": (
        "attrelid oid, attname text, atttypid oid, attstattarget int4, attlen int2, attnum int2, "
        "attndims int4, attcacheoff int4, atttypmod int4, attbyval bool, attalign text, "
        "attstorage text, attcompression text, attnotnull bool, atthasdef bool, "
        "atthasmissing bool, attidentity text, attgenerated text, attisdropped bool, "
        "attislocal bool, attinhcount int4, attcollation oid, attacl text[], attoptions text[], "
        "attfdwoptions text[], attmissingval text"
    ),
    "pg_type": (
        "oid oid, typname text, typnamespace oid, typowner oid, typlen int2, typbyval bool, "
        "typtype text, typcategory text, typispreferred bool, typisdefined bool, typdelim text, "
        "typrelid oid, typsubscript text, typelem oid, typarray oid, typinput text, "
        "typoutput text, typreceive text, typsend text, typmodin text, typmodout text, "
        "typanalyze text, typalign text, typstorage text, typnotnull bool, typbasetype oid, "
        "typtypmod int4, typndims int4, typcollation oid, typdefaultbin text, typdefault text, "
        "typacl text[], sqlname text"
    ),
    "pg_index": (
        "indexrelid oid, indrelid oid, indnatts int2, indnkeyatts int2, indisunique bool, "
        "indnullsnotdistinct bool, indisprimary bool, indisexclusion bool, indimmediate bool, "
        "indisclustered bool, indisvalid bool, indcheckxmin bool, indisready bool, "
        "indislive bool, indisreplident bool, indkey int2[], indcollation oid[], "
        "indclass oid[], indoption int2[], indexprs text, indpred text"
    ),
    "pg_constraint": (
        "oid oid, conname text, connamespace oid, contype text, condeferrable bool, "
        "condeferred bool, convalidated bool, conrelid oid, contypid oid, conindid oid, "
        "conparentid oid, confrelid oid, confupdtype text, confdeltype text, confmatchtype text, "
        "conislocal bool, coninhcount int4, connoinherit bool, conkey int2[], confkey int2[], "
        "conpfeqop oid[], conppeqop oid[], conffeqop oid[], confdelsetcols int2[], "
        "conexclop oid[], conbin text"
    ),
    "pg_database": (
        "oid oid, datname text, datdba oid, encoding int4, datlocprovider text, "
        "datistemplate bool, datallowconn bool, datconnlimit int4, datfrozenxid oid, "
        "datminmxid oid, dattablespace oid, datcollate text, datctype text, daticulocale text, "
        "datcollversion text, datacl text[]"
    ),
    "pg_roles": (
        "rolname text, rolsuper bool, rolinherit bool, rolcreaterole bool, rolcreatedb bool, "
        "rolcanlogin bool, rolreplication bool, rolconnlimit int4, rolpassword text, "
        "rolvaliduntil timestamptz, rolbypassrls bool, rolconfig text[], oid oid"
    ),
    "pg_user": "usename text, usesysid oid, usecreatedb bool, usesuper bool, userepl bool",
    "pg_settings": (
        "name text, setting text, unit text, category text, short_desc text, extra_desc text, "
        "context text, vartype text, source text, min_val text, max_val text, enumvals text[], "
        "boot_val text, reset_val text, sourcefile text, sourceline int4, pending_restart bool"
    ),
    "pg_tables": (
        "schemaname text, tablename text, tableowner text, tablespace text, hasindexes bool, "
        "hasrules bool, hastriggers bool, rowsecurity bool"
    ),
    "pg_views": "schemaname text, viewname text, viewowner text, definition text",
    "pg_matviews": (
        "schemaname text, matviewname text, matviewowner text, tablespace text, "
        "hasindexes bool, ispopulated bool, definition text"
    ),
    "pg_indexes": (
        "schemaname text, tablename text, indexname text, tablespace text, indexdef text"
    ),
    "pg_description": "objoid oid, classoid oid, objsubid int4, description text",
    "pg_shdescription": "objoid oid, classoid oid, description text",
    "pg_attrdef": "oid oid, adrelid oid, adnum int2, adbin text",
    "pg_am": "oid oid, amname text, amhandler text, amtype text",
    "pg_auth_members": "roleid oid, member oid, grantor oid, admin_option bool",
    "pg_collation": (
        "oid oid, collname text, collnamespace oid, collowner oid, collprovider text, "
        "collisdeterministic bool, collencoding int4, collcollate text, collctype text, "
        "colliculocale text, collversion text"
    ),
    "pg_tablespace": "oid oid, spcname text, spcowner oid, spcacl text[], spcoptions text[]",
    "pg_proc": (
        "oid oid, proname text, pronamespace oid, proowner oid, prolang oid, procost float4, "
        "prorows float4, provariadic oid, prosupport text, prokind text, prosecdef bool, "
        "proleakproof bool, proisstrict bool, proretset bool, provolatile text, "
        "proparallel text, pronargs int2, pronargdefaults int2, prorettype oid, "
        "proargtypes oid[], proallargtypes oid[], proargmodes text[], proargnames text[], "
        "proargdefaults text, protrftypes oid[], prosrc text, probin text, prosqlbody text, "
        "proconfig text[], proacl text[]"
    ),
    "pg_aggregate": "aggfnoid oid, aggkind text",
    "pg_language": "oid oid, lanname text, lanowner oid, lanispl bool, lanpltrusted bool",
    "pg_operator": (
        "oid oid, oprname text, oprnamespace oid, oprowner oid, oprkind text, oprleft oid, "
        "oprright oid, oprresult oid, oprcom oid, oprcode text"
    ),
    "pg_opclass": (
        "oid oid, opcmethod oid, opcname text, opcnamespace oid, opcowner oid, opcfamily oid, "
        "opcintype oid, opcdefault bool, opckeytype oid"
    ),
    "pg_opfamily": "oid oid, opfmethod oid, opfname text, opfnamespace oid, opfowner oid",
    "pg_enum": "oid oid, enumtypid oid, enumsortorder float4, enumlabel text",
    "pg_range": (
        "rngtypid oid, rngsubtype oid, rngmultitypid oid, rngcollation oid, rngsubopc oid, "
        "rngcanonical text, rngsubdiff text"
    ),
    "pg_inherits": ("inhrelid oid, inhparent oid, inhseqno int4, inhdetachpending bool"),
    "pg_partitioned_table": (
        "partrelid oid, partstrat text, partnatts int2, partdefid oid, partattrs int2[]"
    ),
    "pg_trigger": (
        "oid oid, tgrelid oid, tgparentid oid, tgname text, tgfoid oid, tgtype int2, "
        "tgenabled text, tgisinternal bool, tgconstrrelid oid, tgconstrindid oid, "
        "tgconstraint oid, tgdeferrable bool, tginitdeferred bool, tgnargs int2, "
        "tgattr int2[], tgargs text, tgqual text, tgoldtable text, tgnewtable text"
    ),
    "pg_rewrite": (
        "oid oid, rulename text, ev_class oid, ev_type text, ev_enabled text, is_instead bool, "
        "ev_qual text, ev_action text"
    ),
    "pg_policy": (
        "oid oid, polname text, polrelid oid, polcmd text, polpermissive bool, polroles oid[], "
        "polqual text, polwithcheck text"
    ),
    "pg_policies": "schemaname text, tablename text, policyname text",
    "pg_depend": (
        "classid oid, objid oid, objsubid int4, refclassid oid, refobjid oid, refobjsubid int4, "
        "deptype text"
    ),
    "pg_sequence": (
        "seqrelid oid, seqtypid oid, seqstart int8, seqincrement int8, seqmax int8, "
        "seqmin int8, seqcache int8, seqcycle bool"
    ),
    "pg_sequences": "schemaname text, sequencename text, sequenceowner text, data_type text",
    "pg_statistic_ext": (
        "oid oid, stxrelid oid, stxname text, stxnamespace oid, stxowner oid, "
        "stxstattarget int4, stxkeys int2[], stxkind text[]"
    ),
    "pg_publication": (
        "oid oid, pubname text, pubowner oid, puballtables bool, pubinsert bool, pubupdate bool, "
        "pubdelete bool, pubtruncate bool, pubviaroot bool"
    ),
    "pg_publication_rel": ("oid oid, prpubid oid, prrelid oid, prqual text, prattrs int2[]"),
    "pg_publication_namespace": "oid oid, pnpubid oid, pnnspid oid",
    "pg_foreign_table": "ftrelid oid, ftserver oid, ftoptions text[]",
    "pg_foreign_server": (
        "oid oid, srvname text, srvowner oid, srvfdw oid, srvtype text, srvversion text"
    ),
    "pg_foreign_data_wrapper": "oid oid, fdwname text, fdwowner oid",
    "pg_extension": (
        "oid oid, extname text, extowner oid, extnamespace oid, extrelocatable bool, "
        "extversion text"
    ),
    "pg_event_trigger": "oid oid, evtname text, evtevent text, evtowner oid",
    "pg_cast": (
        "oid oid, castsource oid, casttarget oid, castfunc oid, castcontext text, castmethod text"
    ),
    "pg_locks": "locktype text, database oid, relation oid, pid int4, mode text, granted bool",
    "pg_stat_activity": (
        "datid oid, datname text, pid int4, usename text, application_name text, state text, "
        "query text"
    ),
    "pg_stat_user_tables": (
        "relid oid, schemaname text, relname text, n_live_tup int8, n_dead_tup int8"
    ),
    "pg_timezone_names": "name text, abbrev text, utc_offset text, is_dst bool",
    "pg_db_role_setting": "setdatabase oid, setrole oid, setconfig text[]",
}

INFORMATION_TABLES = {
    "schemata": (
        "catalog_name text, schema_name text, schema_owner text, "
        "default_character_set_catalog text, default_character_set_schema text, "
        "default_character_set_name text, sql_path text"
    ),
    "tables": (
        "table_catalog text, table_schema text, table_name text, table_type text, "
        "self_referencing_column_name text, reference_generation text, "
        "user_defined_type_catalog text, user_defined_type_schema text, "
        "user_defined_type_name text, is_insertable_into text, is_typed text, commit_action text"
    ),
    "views": (
        "table_catalog text, table_schema text, table_name text, view_definition text, "
        "check_option text, is_updatable text, is_insertable_into text, "
        "is_trigger_updatable text, is_trigger_deletable text, is_trigger_insertable_into text"
    ),
    "columns": (
        "table_catalog text, table_schema text, table_name text, column_name text, "
        "ordinal_position int4, column_default text, is_nullable text, data_type text, "
        "character_maximum_length int4, character_octet_length int4, numeric_precision int4, "
        "numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, "
        "interval_type text, interval_precision int4, collation_catalog text, "
        "collation_schema text, collation_name text, domain_catalog text, domain_schema text, "
        "domain_name text, udt_catalog text, udt_schema text, udt_name text, "
        "is_self_referencing text, is_identity text, identity_generation text, "
        "identity_start text, identity_increment text, identity_maximum text, "
        "identity_minimum text, identity_cycle text, is_generated text, "
        "generation_expression text, is_updatable text"
    ),
    "table_constraints": (
        "constraint_catalog text, constraint_schema text, constraint_name text, "
        "table_catalog text, table_schema text, table_name text, constraint_type text, "
        "is_deferrable text, initially_deferred text, enforced text"
    ),
    "key_column_usage": (
        "constraint_catalog text, constraint_schema text, constraint_name text, "
        "table_catalog text, table_schema text, table_name text, column_name text, "
        "ordinal_position int4, position_in_unique_constraint int4"
    ),
    "constraint_column_usage": (
        "table_catalog text, table_schema text, table_name text, column_name text, "
        "constraint_catalog text, constraint_schema text, constraint_name text"
    ),
    "referential_constraints": (
        "constraint_catalog text, constraint_schema text, constraint_name text, "
        "unique_constraint_catalog text, unique_constraint_schema text, "
        "unique_constraint_name text, match_option text, update_rule text, delete_rule text"
    ),
    "role_table_grants": (
        "grantor text, grantee text, table_catalog text, table_schema text, table_name text, "
        "privilege_type text, is_grantable text, with_hierarchy text"
    ),
    "table_privileges": (
        "grantor text, grantee text, table_catalog text, table_schema text, table_name text, "
        "privilege_type text, is_grantable text, with_hierarchy text"
    ),
    "routines": "routine_catalog text, routine_schema text, routine_name text, routine_type text",
    "sequences": "sequence_catalog text, sequence_schema text, sequence_name text",
    "triggers": "trigger_catalog text, trigger_schema text, trigger_name text",
    "character_sets": "character_set_name text, character_repertoire text, form_of_use text",
}

DUCKDB_TYPES = {
    "oid": "UINTEGER",
    "text": "VARCHAR",
    "bool": "BOOLEAN",
    "int2": "SMALLINT",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "float4": "FLOAT",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
}


def columns_of(description: str) -> dict[str, str]:
    """Return the columns of a table with their types of DuckDB.

    >>> columns_of("oid oid, conkey int2[]")
    {'oid': 'UINTEGER', 'conkey': 'SMALLINT[]'}
    """
    found = {}
    for each in description.split(", "):
        name, type_ = each.split(" ")
        element = type_.removesuffix("[]")
        found[name] = DUCKDB_TYPES[element] + ("[]" if element != type_ else "")
    return found
