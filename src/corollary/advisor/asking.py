"""The queries that advice is asked for: as named, as logged, or what nobody else reads."""

from collections.abc import Iterable, Mapping, Sequence

from corollary.advisor.scheme import Query
from corollary.core.program import NormalProgram
from corollary.database.names import readable
from corollary.errors import InputError


def queries_named(
    texts: Iterable[str], program: NormalProgram, frequencies: Mapping[str, float]
) -> list[Query]:
    """Return the queries that texts such as `view` or `view^bf` name.

    Args:
        texts: the queries; `^` and a letter for each column say which are given values (b).
        program: whose relations they are.
        frequencies: how often queries are asked in an hour, by relation.

    Raises:
        InputError: there is no such relation, it has no rules, or the letters do not fit it.
    """
    found: dict[str, Query] = {}
    for text in texts:
        name, mark, pattern = text.partition("^")
        relation = readable(program, name)
        if not relation.is_derived:
            raise InputError.of(
                "C1100",
                f"`{name}` is a base relation: it has no rules that could be rewritten.",
                None,
                "ask for advice on a relation that rules define",
            )
        if mark and (len(pattern) != relation.arity or set(pattern) - {"b", "f"}):
            raise InputError.of(
                "C1101",
                f"`{text}` does not say for each column of `{name}` whether it is given.",
                None,
                f"write b or f for each of its {relation.arity} columns, such as "
                f"{name}^{'b' * min(1, relation.arity)}{'f' * max(0, relation.arity - 1)}",
            )
        bound = frozenset(at for at, sign in enumerate(pattern) if sign == "b")
        found[name] = Query(name, bound, frequencies.get(name, 1.0))
    return list(found.values())


def queries_by_default(
    program: NormalProgram, logged: Sequence[Query], frequencies: Mapping[str, float]
) -> list[Query]:
    """Return the queries that were logged; if there are none, what no other relation reads."""
    if logged:
        return merged(logged, frequencies)
    read = {
        literal.relation
        for rule in program.rules
        for literal in rule.literals
        if literal.relation != rule.head.relation
    }
    read |= {each.body for each in program.aggregations}
    return [
        Query(name, frequency=frequencies.get(name, 1.0))
        for name, relation in program.relations.items()
        if relation.is_derived and relation.is_declared and name not in read
    ]


def merged(logged: Iterable[Query], frequencies: Mapping[str, float]) -> list[Query]:
    """Return one query for each relation: its most frequent form, asked as often as all of them."""
    found: dict[str, Query] = {}
    totals: dict[str, float] = {}
    for each in sorted(logged, key=lambda query: -query.frequency):
        found.setdefault(each.relation, each)
        totals[each.relation] = totals.get(each.relation, 0.0) + each.frequency
    return [
        Query(name, each.bound, frequencies.get(name, totals[name])) for name, each in found.items()
    ]
