"""The functions of PostgreSQL that catalog queries call, as macros of DuckDB."""

MACROS: dict[str, tuple[str, ...]] = {
    "format_type": (
        (
            "(type_oid, modifier) AS (SELECT CASE WHEN type_oid = 1700 AND modifier >= 4 "
            "THEN 'numeric(' || ((modifier - 4) >> 16) || ',' || ((modifier - 4) & 65535) || ')' "
            "ELSE sqlname END FROM pg_type WHERE oid = type_oid)"
        ),
    ),
    "pg_get_userbyid": ("(role) AS (SELECT rolname FROM pg_roles WHERE oid = role)",),
    "pg_get_expr": ("(e, r) AS CAST(NULL AS VARCHAR)", "(e, r, p) AS CAST(NULL AS VARCHAR)"),
    "pg_get_indexdef": (
        (
            "(i) AS (SELECT x.indexdef FROM pg_indexes x JOIN pg_class c ON c.relname = "
            "x.indexname WHERE c.oid = i)"
        ),
        (
            "(i, n, p) AS (SELECT CASE WHEN n = 0 THEN x.indexdef ELSE (SELECT a.attname FROM "
            "pg_attribute a JOIN pg_index k ON k.indrelid = a.attrelid AND k.indexrelid = i "
            "WHERE a.attnum = k.indkey[n]) END FROM pg_indexes x JOIN pg_class c "
            "ON c.relname = x.indexname WHERE c.oid = i)"
        ),
    ),
    "pg_get_constraintdef": (
        "(c) AS (SELECT conbin FROM pg_constraint WHERE oid = c)",
        "(c, p) AS (SELECT conbin FROM pg_constraint WHERE oid = c)",
    ),
    "pg_get_viewdef": (
        (
            "(v) AS (SELECT definition FROM pg_views w JOIN pg_class c ON c.relname = "
            "w.viewname WHERE c.oid = v)"
        ),
        (
            "(v, p) AS (SELECT definition FROM pg_views w JOIN pg_class c ON c.relname = "
            "w.viewname WHERE c.oid = v)"
        ),
    ),
    "pg_get_partkeydef": ("(r) AS CAST(NULL AS VARCHAR)",),
    "pg_get_ruledef": ("(r) AS CAST(NULL AS VARCHAR)", "(r, p) AS CAST(NULL AS VARCHAR)"),
    "pg_get_triggerdef": ("(r) AS CAST(NULL AS VARCHAR)", "(r, p) AS CAST(NULL AS VARCHAR)"),
    "pg_get_serial_sequence": ("(t, c) AS CAST(NULL AS VARCHAR)",),
    "pg_get_function_result": ("(f) AS CAST(NULL AS VARCHAR)",),
    "pg_get_function_arguments": ("(f) AS CAST(NULL AS VARCHAR)",),
    "pg_get_function_identity_arguments": ("(f) AS CAST(NULL AS VARCHAR)",),
    "pg_get_functiondef": ("(f) AS CAST(NULL AS VARCHAR)",),
    "pg_get_statisticsobjdef_columns": ("(s) AS CAST(NULL AS VARCHAR)",),
    "obj_description": ("(o) AS CAST(NULL AS VARCHAR)", "(o, c) AS CAST(NULL AS VARCHAR)"),
    "col_description": ("(o, c) AS CAST(NULL AS VARCHAR)",),
    "shobj_description": ("(o, c) AS CAST(NULL AS VARCHAR)",),
    "pg_relation_size": ("(r) AS CAST(0 AS BIGINT)", "(r, f) AS CAST(0 AS BIGINT)"),
    "pg_total_relation_size": ("(r) AS CAST(0 AS BIGINT)",),
    "pg_table_size": ("(r) AS CAST(0 AS BIGINT)",),
    "pg_indexes_size": ("(r) AS CAST(0 AS BIGINT)",),
    "pg_database_size": ("(d) AS CAST(0 AS BIGINT)",),
    "pg_size_pretty": ("(n) AS (n || ' bytes')",),
    "pg_tablespace_location": ("(t) AS ''",),
    "pg_encoding_to_char": ("(e) AS 'UTF8'",),
    "pg_char_to_encoding": ("(e) AS 6",),
    "pg_stat_get_numscans": ("(r) AS CAST(0 AS BIGINT)",),
    "pg_relation_is_publishable": ("(r) AS false",),
    "pg_is_in_recovery": ("() AS false",),
    "pg_my_temp_schema": ("() AS CAST(0 AS UINTEGER)",),
    "pg_is_other_temp_schema": ("(s) AS false",),
    "pg_postmaster_start_time": ("() AS now()",),
    "txid_current": ("() AS CAST(1 AS BIGINT)",),
    "pg_try_advisory_lock": ("(k) AS true",),
    "pg_advisory_unlock": ("(k) AS true",),
    "pg_advisory_unlock_all": ("() AS NULL",),
    "regclass_text": ("(o) AS (SELECT relname FROM pg_class WHERE oid = TRY_CAST(o AS UINTEGER))",),
    "regclass_oid": (
        (
            "(n) AS COALESCE(TRY_CAST(n AS UINTEGER), (SELECT oid FROM pg_class WHERE relname = "
            "regexp_replace(replace(n, '\"', ''), '^(public|pg_catalog)\\.', '') LIMIT 1))"
        ),
    ),
    "regnamespace_text": (
        "(o) AS (SELECT nspname FROM pg_namespace WHERE oid = TRY_CAST(o AS UINTEGER))",
    ),
    "regnamespace_oid": (
        (
            "(n) AS COALESCE(TRY_CAST(n AS UINTEGER), (SELECT oid FROM pg_namespace "
            "WHERE nspname = replace(n, '\"', '')))"
        ),
    ),
    "regtype_oid": (
        (
            "(n) AS COALESCE(TRY_CAST(n AS UINTEGER), (SELECT oid FROM pg_type "
            "WHERE typname = n OR sqlname = n LIMIT 1))"
        ),
    ),
    "to_regclass": ("(n) AS regclass_text(regclass_oid(n))",),
    "to_regtype": ("(n) AS format_type(regtype_oid(n), NULL)",),
    "quote_ident": (
        (
            "(n) AS CASE WHEN regexp_full_match(n, '[a-z_][a-z0-9_]*') THEN n "
            "ELSE '\"' || replace(n, '\"', '\"\"') || '\"' END"
        ),
    ),
    "quote_literal": ("(n) AS '''' || replace(n, '''', '''''') || ''''",),
    "pg_get_keywords": (
        (
            "() AS TABLE SELECT keyword_name AS word, 'R' AS catcode, keyword_category AS catdesc "
            "FROM duckdb_keywords()"
        ),
    ),
    "pg_expandarray": ("(l) AS unnest(list_transform(l, lambda e, i: {'x': e, 'n': i}))",),
    "array_remove": ("(l, x) AS list_filter(l, lambda e: e IS DISTINCT FROM x)",),
    "array_upper": ("(l, d) AS CASE WHEN len(l) = 0 THEN NULL ELSE len(l) END",),
    "array_lower": ("(l, d) AS CASE WHEN len(l) = 0 THEN NULL ELSE 1 END",),
    "generate_subscripts": ("(l, d) AS unnest(range(1, len(l) + 1))",),
    **dict.fromkeys(
        (
            "pg_table_is_visible",
            "pg_type_is_visible",
            "pg_function_is_visible",
            "pg_operator_is_visible",
            "pg_opclass_is_visible",
            "pg_collation_is_visible",
            "pg_statistics_obj_is_visible",
        ),
        ("(o) AS true",),
    ),
    **{
        f"has_{what}_privilege": ("(o, p) AS true", "(u, o, p) AS true")
        for what in ("schema", "table", "database", "sequence", "function", "type", "language")
    },
    "has_column_privilege": ("(t, c, p) AS true", "(u, t, c, p) AS true"),
    "has_any_column_privilege": ("(t, p) AS true", "(u, t, p) AS true"),
    "pg_has_role": ("(r, p) AS true", "(u, r, p) AS true"),
}
"""The functions that are not values of the session: a macro for each number of arguments."""

PLAIN_FUNCTIONS = frozenset(
    {
        *("array_to_string", "array_agg", "string_agg", "array_length", "cardinality", "unnest"),
        *("generate_series", "regexp_replace", "regexp_matches", "starts_with", "btrim", "now"),
        *("array_position", "array_append", "array_cat", "to_char", "left"),
        *("bool_and", "bool_or", "every", "md5", "concat_ws", "format", "translate", "strpos"),
        *("regclass_text", "regclass_oid", "regexp_full_match", "list_contains", "ascii", "chr"),
        *("date_part", "age"),
    }
)
"""Functions that DuckDB has itself and that read nothing but their arguments."""
