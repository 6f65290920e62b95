"""Pivots: a column per relation of a recursive stratum by which it can be partitioned."""

from corollary.analysis.strata import Stratum
from corollary.core.logic import Literal, Variable


def pivots(stratum: Stratum) -> dict[str, int] | None:
    """Return one position per relation of the stratum, or None if there is no pivot.

    In every recursive rule, every literal of the stratum has at its position the variable that the
    head has at its own: so tuples with different values there never meet, and each partition by it
    can be computed separately. A value that subsumption compares is not a pivot: tuples of one key
    meet.
    """
    if not stratum.is_recursive or stratum.aggregations or stratum.has_choice or stratum.dominated:
        return None
    members = set(stratum.relations)
    links = [
        (rule.head, literal)
        for rule in stratum.rules
        for literal in rule.literals
        if literal.relation in members
    ]
    arity = {literal.relation: len(literal.slots) for link in links for literal in link}
    first = stratum.relations[0]
    values = {
        name: {each.position for each in order.values}
        for name, order in stratum.subsumption.items()
    }
    for position in range(arity[first]):
        chosen = _extend({first: position}, links)
        is_value = chosen is not None and any(
            chosen[name] in columns for name, columns in values.items()
        )
        if chosen is not None and not is_value:
            return {name: chosen[name] for name in stratum.relations}
    return None


def _extend(chosen: dict[str, int], links: list[tuple[Literal, Literal]]) -> dict[str, int] | None:
    """Return the positions that follow from one, or None if they contradict each other.

    A variable that occurs twice in a literal counts at its first position.
    """
    has_changed = True
    while has_changed:
        has_changed = False
        for link in links:
            for known, other in (link, link[::-1]):
                if known.relation not in chosen:
                    continue
                pivot = known.slots[chosen[known.relation]]
                if not isinstance(pivot, Variable) or pivot not in other.slots:
                    return None
                if other.relation not in chosen:
                    chosen[other.relation] = other.slots.index(pivot)
                    has_changed = True
                if other.slots[chosen[other.relation]] != pivot:
                    return None
    return chosen
