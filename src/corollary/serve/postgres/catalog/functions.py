"""What catalog queries may name: tables of `catalog.sql`, and functions, as macros of DuckDB."""

import re
from functools import lru_cache
from importlib.resources import files

SYSTEM, INFORMATION = "pg", "information"
"""The schemas of DuckDB that stand for `pg_catalog` and `information_schema`."""
EMPTY_TABLES = {
    "pg_catalog": {"pg_attrdef", "pg_depend", "pg_enum", "pg_sequence", "pg_sequences"},
    "information_schema": {"character_sets"},
}
"""Those of DuckDB's own that have no rows here."""


@lru_cache(maxsize=1)
def catalog_script() -> str:
    """Return the statements that make the catalog."""
    return files(__package__).joinpath("catalog.sql").read_text("utf-8")


@lru_cache(maxsize=2)
def catalog_tables(schema: str) -> frozenset[str]:
    """Return the tables of a schema of the catalog.

    >>> "pg_class" in catalog_tables(SYSTEM), "pg_class" in catalog_tables(INFORMATION)
    (True, False)
    """
    return frozenset(re.findall(rf"^CREATE TABLE {schema}\.(\w+)", catalog_script(), re.MULTILINE))


def _lookup(table: str, found: str, test: str, parameters: str = "x") -> str:
    """Return the body of a macro that looks a value up, and the parameters before it.

    An argument may be any column of the query around the call, so the table's own columns get
    names that no query uses: else `oid = x` with the argument `oid` would hold for every row.
    """
    names = sorted(set(re.findall(r"\b_([a-z]+)", f"{found} {test}")))
    columns = ", ".join(f"{name} AS _{name}" for name in names)
    rows = f"(SELECT {columns} FROM {table})"  # noqa: S608 - our names
    return f"({parameters}) AS (SELECT ANY_VALUE({found}) FROM {rows} WHERE {test})"  # noqa: S608


_INDEXES = "(SELECT c.oid, i.indexdef FROM pg_indexes i JOIN pg_class c ON c.relname = i.indexname)"
_INDEX_COLUMNS = (
    "(SELECT k.indexrelid, k.indkey, a.attnum, a.attname FROM pg_attribute a "
    "JOIN pg_index k ON k.indrelid = a.attrelid)"
)
_VIEWS = (
    "(SELECT c.oid, w.definition FROM (SELECT viewname, definition FROM pg_views UNION ALL "
    "SELECT matviewname, definition FROM pg_matviews) w JOIN pg_class c ON c.relname = w.viewname)"
)

MACROS: dict[str, tuple[str, ...]] = {
    "index_text": (_lookup(_INDEXES, "_indexdef", "_oid = x"),),
    "index_column": (
        _lookup(_INDEX_COLUMNS, "_attname", "_indexrelid = x AND _attnum = _indkey[n]", "x, n"),
    ),
    "format_type": (
        _lookup(
            "pg_type",
            "CASE WHEN x = 1700 AND modifier >= 4 "
            "THEN 'numeric(' || ((modifier - 4) >> 16) || ',' || ((modifier - 4) & 65535) || ')' "
            "ELSE _sqlname END",
            "_oid = x",
            "x, modifier",
        ),
    ),
    "pg_get_userbyid": (_lookup("pg_roles", "_rolname", "_oid = x"),),
    "pg_get_expr": ("(e, r) AS CAST(NULL AS VARCHAR)", "(e, r, p) AS CAST(NULL AS VARCHAR)"),
    "pg_get_indexdef": (
        "(x) AS index_text(x)",
        "(x, n, p) AS CASE WHEN n = 0 THEN index_text(x) ELSE index_column(x, n) END",
    ),
    "pg_get_constraintdef": (
        _lookup("pg_constraint", "_conbin", "_oid = x"),
        _lookup("pg_constraint", "_conbin", "_oid = x", "x, p"),
    ),
    "pg_get_viewdef": (
        _lookup(_VIEWS, "_definition", "_oid = x"),
        _lookup(_VIEWS, "_definition", "_oid = x", "x, p"),
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
    "regclass_text": (_lookup("pg_class", "_relname", "_oid = TRY_CAST(x AS UINTEGER)"),),
    "regclass_oid": (
        _lookup(
            "pg_class",
            "_oid",
            "_oid = TRY_CAST(x AS UINTEGER) OR _relname = "
            "regexp_replace(replace(CAST(x AS VARCHAR), '\"', ''), '^(public|pg_catalog)\\.', '')",
        ),
    ),
    "regnamespace_text": (_lookup("pg_namespace", "_nspname", "_oid = TRY_CAST(x AS UINTEGER)"),),
    "regnamespace_oid": (
        _lookup(
            "pg_namespace",
            "_oid",
            "_oid = TRY_CAST(x AS UINTEGER) OR _nspname = replace(CAST(x AS VARCHAR), '\"', '')",
        ),
    ),
    "regtype_oid": (
        _lookup(
            "pg_type",
            "_oid",
            "_oid = TRY_CAST(x AS UINTEGER) OR _typname = CAST(x AS VARCHAR) "
            "OR _sqlname = CAST(x AS VARCHAR)",
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
