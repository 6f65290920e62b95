"""How large relations are thought to be that are stored nowhere.

When a goal is asked, a relation that is looked up has its size. One that is computed along the way
is thought to be as large as the largest relation that it is computed from: what is small comes
before it in a join and passes its values on, and its own rules are probed as they are written.

When a change is propagated, bindings come from both ends of a rule. A virtual relation then counts
like what its rules read that do not read it itself: a closure fans out as its edges do.
"""

from collections.abc import Callable
from dataclasses import replace

from corollary.analysis.strata import Stratum, strata
from corollary.core.program import NormalProgram
from corollary.core.rules import Rule
from corollary.core.statistics import GUESS, Statistics


def sizes_to_ask(program: NormalProgram, size: Callable[[str], int]) -> dict[str, int]:
    """Return the sizes of all relations, those of virtual ones by what is below them.

    Args:
        program: the program.
        size: the number of tuples of a relation that is looked up.
    """
    users: dict[str, set[str]] = {}
    for rule in program.rules:
        for literal in rule.literals:
            users.setdefault(literal.relation, set()).add(rule.head.relation)
    for each in program.aggregations:
        users.setdefault(each.body, set()).add(each.relation)
    sizes = {
        name: size(name)
        for name, relation in program.relations.items()
        if not (relation.is_derived and relation.is_virtual)
    }
    for name in sorted(sizes, key=lambda each: -sizes[each]):
        open_ = [name]
        while open_:
            for user in users.get(open_.pop(), set()) - sizes.keys():
                sizes[user] = sizes[name]
                open_.append(user)
    return sizes


def with_virtual(program: NormalProgram, measured: Statistics) -> Statistics:
    """Return statistics in which virtual relations are like what they are made of."""
    rows, distinct = dict(measured.rows), dict(measured.distinct)
    for stratum in strata(program):
        for name in stratum.relations:
            relation = program.relations[name]
            if relation.is_virtual and relation.is_derived:
                found = [_like(rule, rows, distinct) for rule in _exits(name, stratum)]
                found += [
                    (rows.get(each.body, GUESS), (rows.get(each.body, GUESS),) * relation.arity)
                    for each in stratum.aggregations
                    if each.relation == name
                ]
                rows[name] = max((size for size, _ in found), default=GUESS)
                columns = zip(*(each for _, each in found), strict=True)
                distinct[name] = tuple(map(max, columns)) or (1,) * relation.arity
    return replace(measured, rows=rows, distinct=distinct)


def _exits(name: str, stratum: Stratum) -> list[Rule]:
    """Return the rules of a relation that need none of its stratum; all if there is none."""
    rules = [rule for rule in stratum.rules if rule.head.relation == name]
    return [
        rule
        for rule in rules
        if all(each.relation not in stratum.relations for each in rule.literals)
    ] or rules


def _like(
    rule: Rule, rows: dict[str, int], distinct: dict[str, tuple[int, ...]]
) -> tuple[int, tuple[int, ...]]:
    """Return a size for what a rule derives, and how many values each column has.

    The largest literal stands for the rule, and each variable of the head for a column of it, or
    of another literal.
    """
    literals = [each for each in rule.literals if not each.negated]
    size = max((rows.get(each.relation, GUESS) for each in literals), default=1)
    found = []
    for slot in rule.head.slots:
        values = [
            known[each.slots.index(slot)]
            for each in literals
            if slot in each.slots
            if (known := distinct.get(each.relation))
        ]
        found.append(min(values, default=max(1, int(size**0.5))))
    return size, tuple(found)
