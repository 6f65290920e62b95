"""Relevance: which relations may change, and whose changes are needed.

A relation is a *candidate* if a path in the dependency graph leads to it from something that
changes; it is *relevant* if a path leads from it to something that is needed. Both carry signs:
what may be added or removed, and what is needed as additions or removals. A sign passes a positive
literal as it is, flips at a negation, and becomes both at an aggregate (Rules 1–3 of the paper on
active rules).
"""

from collections.abc import Iterable, Mapping

from corollary.analysis.strata import Polarity
from corollary.core.program import NormalProgram
from corollary.core.states import State

Signs = Mapping[str, frozenset[State]]
"""For each relation some of `ADDED` and `REMOVED`; a relation that is missing has none."""

Arc = tuple[str, str, Polarity]
"""A head, a relation it reads, and how."""

BOTH_SIGNS = frozenset({State.ADDED, State.REMOVED})
NO_SIGNS: frozenset[State] = frozenset()


def flip_signs(signs: Iterable[State]) -> frozenset[State]:
    """Return the signs after a negation: what is added to a relation is removed by its negation."""
    return frozenset(State.REMOVED if sign is State.ADDED else State.ADDED for sign in signs)


def candidate_relations(program: NormalProgram, changed: Signs) -> dict[str, frozenset[State]]:
    """Return every relation that may change, with the signs of its changes.

    Args:
        program: its rules say what depends on what. Where there are choice domains or subsumption,
            what is added may replace another tuple, and what is removed may have replaced one.
        changed: the relations that change by themselves.
    """
    choices = {name for name, each in program.relations.items() if each.domains or each.dominated}
    choices |= program.subsumption.keys()
    arcs = [
        (head, below, Polarity.AGGREGATE if head in choices else polarity)
        for head, below, polarity in _arcs(program)
    ]
    found = {
        name: BOTH_SIGNS if name in choices else signs for name, signs in changed.items() if signs
    }
    return _propagate(found, [(below, head, polarity) for head, below, polarity in arcs])


def relevant_relations(program: NormalProgram, needed: Signs) -> dict[str, frozenset[State]]:
    """Return every relation whose changes are needed for some changes, with the signs needed."""
    arcs = _arcs(program)
    return _propagate({name: signs for name, signs in needed.items() if signs}, arcs)


def _arcs(program: NormalProgram) -> list[Arc]:
    arcs = {
        (
            rule.head.relation,
            literal.relation,
            Polarity.NEGATIVE if literal.negated else Polarity.POSITIVE,
        )
        for rule in program.rules
        for literal in rule.literals
    }
    arcs |= {(each.relation, each.body, Polarity.AGGREGATE) for each in program.aggregations}
    arcs |= {
        (name, each.dominated, Polarity.AGGREGATE)
        for name, each in program.relations.items()
        if each.dominated is not None
    }
    return sorted(arcs)


def dependencies(program: NormalProgram) -> set[tuple[str, str]]:
    """Return the pairs of a relation and one that it is derived from."""
    return {(head, below) for head, below, _ in _arcs(program)}


def _propagate(found: dict[str, frozenset[State]], arcs: list[Arc]) -> dict[str, frozenset[State]]:
    """Propagate signs along the arcs until nothing is new."""
    outgoing: dict[str, list[tuple[str, Polarity]]] = {}
    for source, target, polarity in arcs:
        outgoing.setdefault(source, []).append((target, polarity))
    work = list(found)
    while work:
        name = work.pop()
        for target, polarity in outgoing.get(name, ()):
            signs = found[name]
            if polarity is Polarity.NEGATIVE:
                signs = flip_signs(signs)
            elif polarity is Polarity.AGGREGATE:
                signs = BOTH_SIGNS
            known = found.get(target, NO_SIGNS)
            if not signs <= known:
                found[target] = known | signs
                work.append(target)
    return found
