"""The tables of functors and of SQL's functions in docs/, made of their specifications."""

from collections.abc import Iterable

from corollary.core.functors.catalog import FUNCTORS
from corollary.core.functors.conversions import CHECKED_SUM, PARTITION_OF
from corollary.core.functors.spec import ORDERED, Kinds
from corollary.core.plans import WORKING_SEPARATOR
from corollary.core.types import NUMERIC, PRIMITIVES, Kind
from corollary.frontends.sql.binder.aggregates import AGGREGATES as SQL_AGGREGATES
from corollary.frontends.sql.binder.functions import table
from corollary.frontends.sql.binder.lambdas import MAP_LAMBDAS
from corollary.frontends.sql.binder.special_calls import SPECIAL_CALLS
from corollary.frontends.sql.binder.windows import WINDOW_FUNCTIONS
from corollary.sqlgen.dialect import SqlDialect
from corollary.sqlgen.duckdb_dialect import DUCKDB
from corollary.sqlgen.spark_dialect import SPARK
from support.sql.expressions import REWRITTEN, REWRITTEN_FORMS, applicable

INTERNAL = (CHECKED_SUM, PARTITION_OF)

AGGREGATES = ("sum", "mean", "min", "max")


def language_table(section: str) -> list[str]:
    """Return the lines of a table of docs/language.md: the functors of a section."""
    specs = [spec for spec in FUNCTORS.values() if spec.section == section]
    has_kinds = len({spec.kinds(0) for spec in specs}) > 1
    rows = [("functor", "of", "gives")]
    for spec in specs:
        more = ", …" if spec.is_variadic else ""
        call = f"`{spec.name}({', '.join(spec.arguments)}{more})`"
        rows.append((call, _kinds_text(spec.kinds(0)), spec.doc))
    lines = [f"| {' | '.join(row if has_kinds else row[::2])} |" for row in rows]
    return [lines[0], "|---" * (3 if has_kinds else 2) + "|", *lines[1:]]


def _kinds_text(kinds: Kinds) -> str:
    if kinds >= ORDERED:
        return "everything"
    words = ["numeric types"] if kinds >= NUMERIC else []
    rest = kinds - NUMERIC if words else kinds
    kinds = (*PRIMITIVES, Kind.ARRAY, Kind.STRUCT, Kind.MAP)
    return ", ".join([*words, *(str(kind) for kind in kinds if kind in rest)])


def bulk_table() -> list[str]:
    """Return the lines of the table: each functor, predicate and aggregate in both dialects."""
    lines = ["| | DuckDB | Spark SQL |", "|---|---|---|"]
    for name, signature in FUNCTORS.items():
        if name not in (*INTERNAL, *REWRITTEN) and not name.startswith(WORKING_SEPARATOR):
            left = {kind for kind in signature.kinds(0) if (name, kind) not in REWRITTEN_FORMS}
            kinds = [kind for kind in PRIMITIVES if kind in left]
            cells = (_cell(name, kinds, each) for each in (DUCKDB, SPARK))
            lines.append(f"| `{name}` | {' | '.join(cells)} |")
    for name in ("match", "contains"):
        cells = ("yes" if name in each.predicates else "–" for each in (DUCKDB, SPARK))
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    lines.append("| aggregate `count` | yes | yes |")
    for name in AGGREGATES:
        kinds = [kind for kind in PRIMITIVES if name in ("min", "max") or kind in SUMMED]
        cells = (
            _kinds([kind for kind in kinds if (name, kind) in each.aggregates], kinds)
            for each in (DUCKDB, SPARK)
        )
        lines.append(f"| aggregate `{name}` | {' | '.join(cells)} |")
    return lines


SUMMED = (Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT, Kind.DECIMAL)


def _cell(name: str, kinds: list[Kind], dialect: SqlDialect) -> str:
    here = applicable(dialect)
    return _kinds([kind for kind in kinds if (name, kind) in here], kinds)


def _kinds(found: list[Kind], kinds: list[Kind]) -> str:
    if not found:
        return "–"
    return "yes" if found == kinds else ", ".join(found)


# ---------------------------------------------------------------------------------------------- SQL

WRITTEN = {
    "numbers, choices": "`+ - * / % DIV & | ^ ~` `CASE` `IF`",
    "text, patterns": "`||` `LIKE` `ILIKE` `RLIKE`",
    "JSON": "`LATERAL VIEW`",
    "binary values": "`X'617A'` `||`",
    "arrays": "`a[0]`; `x -> …`",
    "structs": "`(x, y)` `s.a` `s.*` `inline`",
    "maps": "`m[k]` `m.k` `explode`",
    "dates": "`extract(… FROM …)`; `+` and `-` with literals such as `INTERVAL 3 DAYS`",
    "times of the day": "`TIME'08:05:00'`; `extract`, `+`, `-`",
    "casts": "`CAST` `TRY_CAST` `x::type`",
    "aggregates": "`DISTINCT`, `FILTER (WHERE …)`",
    "windows": "the aggregates, `OVER (…)`",
}
"""What is written otherwise than as a call."""


OF_STRUCTS = {"struct", "named_struct", "arrays_zip"}


def sql_functions_table() -> list[str]:
    """Return the functions of SQL, by group."""
    special = {each for each in SPECIAL_CALLS if not each.startswith("•")}
    casts = {each for each in special if SPECIAL_CALLS[each] is SPECIAL_CALLS["bigint"]}
    times = {each for each in special if each.endswith(("add", "diff"))}
    of_json = {"json_tuple", *table.JSON_FUNCTIONS, *_sql_names("JSON")}
    coded = {*table.BINARY_FUNCTIONS, *table.CODING_FUNCTIONS, *_sql_names("binary")}
    groups: dict[str, Iterable[str]] = {
        "numbers, choices": {*table.NUMBER_FUNCTIONS, *_sql_names("numbers")},
        "text, patterns": {*table.TEXT_FUNCTIONS, *_sql_names("text", "base text", "logic")},
        "JSON": of_json,
        "binary values": coded,
        "arrays": {*table.LIST_FUNCTIONS, *table.ARRAY_FUNCTIONS, *_sql_names("lambdas")}
        - _sql_names("JSON")
        - {"json_tuple"},
        "structs": OF_STRUCTS,
        "maps": {*table.MAP_FUNCTIONS, *table.FUNCTIONS_OF_MAPS, *MAP_LAMBDAS},
        "dates": {*table.TIME_FUNCTIONS, *_sql_names("times"), *times},
        "times of the day": {*table.CLOCK_FUNCTIONS, *table.TIME_OF_DAY_FUNCTIONS},
        "casts": casts,
        "aggregates": {
            *SQL_AGGREGATES,
            *special - casts - times - OF_STRUCTS - {*MAP_LAMBDAS},
        },
        "windows": WINDOW_FUNCTIONS,
    }
    shown = {name for group in groups.values() for name in group}
    assert {*table.function_names()} - table.INTERNAL <= shown, "a function has no group"
    lines = ["| | functions | and |", "|---|---|---|"]
    for name, found in groups.items():
        names = " ".join(f"`{each}`" for each in sorted(found) if each not in table.INTERNAL)
        lines.append(f"| {name} | {names} | {WRITTEN[name].replace('|', chr(92) + '|')} |")
    return lines


def _sql_names(*sections: str) -> set[str]:
    return {
        name for spec in FUNCTORS.values() if spec.section in sections for name in spec.sql_names
    }


def refused_functions_table() -> list[str]:
    """Return the functions of Spark that are refused, with the reason and a cure."""
    groups: dict[tuple[str, str], list[str]] = {}
    families = {f"{prefix}*": why for prefix, why in table.REFUSED_FAMILIES.items()}
    for name, why in (table.REFUSED | families).items():
        groups.setdefault(why, []).append(f"`{name}`")
    rows = (f"| {' '.join(names)} | {why} | {cure} |" for (why, cure), names in groups.items())
    return ["| refused | because it | instead |", "|---|---|---|", *rows]
