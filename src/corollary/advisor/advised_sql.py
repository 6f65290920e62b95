"""Advice as SQL: the new views, and the rewritten queries, for Spark and for DuckDB.

A view that is to be stored is a materialised view in Spark. DuckDB has none: there it is a table
that is made from its query, and has to be made again when data change.
"""

from collections.abc import Mapping

from corollary.advisor.advice import Advice
from corollary.core.program import Program
from corollary.database.program.loaded_program import load_program

DIALECTS = ("spark", "duckdb")


def advised_sql(advice: Advice, after: Program) -> dict[str, dict[str, str]]:
    """Return the statement of each new view and rewritten query, by relation and dialect.

    What cannot be said in a dialect is a comment that says why.

    Args:
        advice: the advice.
        after: the program that follows it.
    """
    found: dict[str, dict[str, str]] = {}
    for dialect in DIALECTS:
        for name, text in _statements(advice, after, dialect).items():
            found.setdefault(name, {})[dialect] = text
    return found


def _statements(advice: Advice, after: Program, dialect: str) -> Mapping[str, str]:
    from corollary.frontends.sql.as_sql import SqlDialectName, print_sql, script_of

    changed = [name for name, each in advice.predicates.items() if each.is_applicable]
    names = [*advice.views, *changed]
    if not names:
        return {}
    normal = load_program(after).normal
    statements = print_sql(normal, SqlDialectName(dialect), {}, names, materialises_tables=True)
    by_name = {each.relation: script_of([each]).rstrip() for each in statements}
    return {name: by_name[name] for name in names if name in by_name}
