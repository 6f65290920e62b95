"""Pivots: a column per relation of a recursive stratum by which its work falls into parts."""

from itertools import product

from corollary.analysis.strata import Stratum
from corollary.core.rules import Literal
from corollary.core.terms import Variable


def pivots(stratum: Stratum) -> dict[str, int] | None:
    """Return one position per relation of the stratum, or None if there is no pivot.

    In every recursive rule, every literal of the stratum has at its position the variable that the
    head has at its own: so tuples with different values there never meet, and a partition by it
    can be computed on its own.
    """
    if not stratum.is_recursive:
        return None
    members = stratum.relations
    arity = {rule.head.relation: len(rule.head.slots) for rule in stratum.rules}
    if set(arity) != set(members) or stratum.aggregations:
        return None
    recursive = [
        (rule.head, [each for each in rule.literals if each.relation in arity])
        for rule in stratum.rules
        if any(each.relation in arity for each in rule.literals)
    ]
    for positions in product(*(range(arity[name]) for name in members)):
        chosen = dict(zip(members, positions, strict=True))
        if all(_agree(head, literals, chosen) for head, literals in recursive):
            return chosen
    return None


def _agree(head: Literal, literals: list[Literal], chosen: dict[str, int]) -> bool:
    wanted = head.slots[chosen[head.relation]]
    return isinstance(wanted, Variable) and all(
        each.slots[chosen[each.relation]] == wanted for each in literals
    )
