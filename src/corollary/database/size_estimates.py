"""Estimates the sizes of virtual relations, which are not stored.

In a query, a stored relation has its own size. A virtual one is assumed to be as large as the
largest relation that it is computed from, so that smaller relations come before it in a join and
pass their values on.

When a change is propagated, bindings come from both ends of a rule. A virtual relation is then
estimated by what its non-recursive rules read: a closure fans out as its edges do.
"""

from collections.abc import Callable
from dataclasses import replace

from corollary.analysis.strata import Stratum, strata
from corollary.core.graph import reversed_arcs
from corollary.core.logic import Rule
from corollary.core.program import NormalProgram, relations_read
from corollary.core.statistics import UNMEASURED_ROWS, Statistics, unmeasured_values


def query_sizes(program: NormalProgram, size: Callable[[str], int]) -> dict[str, int]:
    """Return the sizes of all relations; a virtual one is as large as the largest below it."""
    users = reversed_arcs(relations_read(program.rules, program.aggregations))
    sizes = {
        name: size(name)
        for name, relation in program.relations.items()
        if not (relation.is_derived and relation.is_virtual)
    }
    # Largest first: whoever reaches a virtual relation first determines its size.
    for name in sorted(sizes, key=lambda each: -sizes[each]):
        open_ = [name]
        while open_:
            for user in users.get(open_.pop(), {}).keys() - sizes.keys():
                sizes[user] = sizes[name]
                open_.append(user)
    return sizes


def with_virtual_sizes(program: NormalProgram, measured: Statistics) -> Statistics:
    """Return statistics that also estimate virtual relations, by what they are computed from."""
    rows, distinct = dict(measured.rows), dict(measured.distinct)
    for stratum in strata(program):
        for name in stratum.relations:
            relation = program.relations[name]
            if relation.is_virtual and relation.is_derived:
                found = [_estimate(rule, rows, distinct) for rule in _exit_rules(name, stratum)]
                found += [
                    (
                        rows.get(each.body, UNMEASURED_ROWS),
                        (rows.get(each.body, UNMEASURED_ROWS),) * relation.arity,
                    )
                    for each in stratum.aggregations
                    if each.relation == name
                ]
                rows[name] = max((size for size, _ in found), default=UNMEASURED_ROWS)
                columns = zip(*(each for _, each in found), strict=True)
                distinct[name] = tuple(map(max, columns)) or (1,) * relation.arity
    return replace(measured, rows=rows, distinct=distinct)


def _exit_rules(name: str, stratum: Stratum) -> list[Rule]:
    """Return the rules of a relation that do not read its stratum; all rules if there are none."""
    rules = [rule for rule in stratum.rules if rule.head.relation == name]
    return [
        rule
        for rule in rules
        if all(each.relation not in stratum.relations for each in rule.literals)
    ] or rules


def _estimate(
    rule: Rule, rows: dict[str, int], distinct: dict[str, tuple[int, ...]]
) -> tuple[int, tuple[int, ...]]:
    """Return a size for what a rule derives, and the number of distinct values by column.

    The size is that of the largest literal; a column of the head has as many values as the
    columns of the body with the same variable.
    """
    literals = [each for each in rule.literals if not each.negated]
    size = max((rows.get(each.relation, UNMEASURED_ROWS) for each in literals), default=1)
    found = []
    for slot in rule.head.slots:
        values = [
            known[each.slots.index(slot)]
            for each in literals
            if slot in each.slots
            if (known := distinct.get(each.relation))
        ]
        found.append(min(values, default=int(unmeasured_values(size))))
    return size, tuple(found)
