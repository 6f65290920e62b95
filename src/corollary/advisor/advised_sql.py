"""Advice as SQL: the new views, and the rewritten queries, for Spark and for DuckDB.

A view that is to be stored is a materialised view in Spark. DuckDB has none: there it is a table
that is made from its query, and has to be made again when data change.
"""

from collections.abc import Iterator, Mapping

from corollary.advisor.advice import Advice
from corollary.core.program import NormalProgram, Program
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
    from corollary.sqlgen.dialect import DialectName
    from corollary.sqlgen.script import print_sql, script_of

    changed = [name for name, each in advice.predicates.items() if each.is_applicable]
    parts = {name: view.relations for name, view in advice.views.items()}
    if not [*parts, *changed]:
        return {}
    normal = load_program(after).normal
    done: set[str] = set()
    for name in changed:
        below = [each for each in _parts_of(name, normal) if each not in {*done, *changed}]
        done.update(below)
        parts[name] = (*below, name)
    names = [each for every in parts.values() for each in every]
    statements = print_sql(normal, DialectName(dialect), {}, names, materialises_tables=True)
    by_name = {each.relation: script_of([each]).rstrip() for each in statements}
    found = {
        name: "\n".join(by_name[each] for each in every if each in by_name)
        for name, every in parts.items()
    }
    return {name: text for name, text in found.items() if text}


def _parts_of(query: str, program: NormalProgram) -> Iterator[str]:
    """Yield the relations that are parts of a query in SQL, such as `sql_1.each`, bottom up."""
    read: dict[str, set[str]] = {}
    for rule in program.rules:
        below = (each.relation for each in rule.literals)
        read.setdefault(rule.head.relation, set()).update(below)
    for each in program.aggregations:
        read.setdefault(each.relation, set()).add(each.body)
    found, stack, seen = list[str](), [query], {query}
    while stack:
        for name in sorted(read.get(stack.pop(), set()) - seen):
            seen.add(name)
            stack.append(name)
            is_part = "." in name and name.partition(".")[0] == query.partition(".")[0]
            if is_part and program.relations[name].is_declared:
                found.append(name)
    yield from reversed(found)
