"""Which relations may change, and whose changes are asked for.

A relation is a *candidate* if a path in the dependency graph leads to it from something that
changes; it is *relevant* if a path leads from it to something that is asked for. Both carry signs:
what may be added or removed, and what is needed as additions or removals. A sign passes a positive
literal as it is, flips at a negation, and becomes both at an aggregate (Rules 1–3 of the paper on
active rules).
"""

from collections.abc import Iterable, Mapping

from corollary.core.program import NormalProgram
from corollary.core.rules import Aggregation, Rule
from corollary.core.states import State

Signs = Mapping[str, frozenset[State]]
"""For each relation some of `ADDED` and `REMOVED`; a relation that is not there has none."""

BOTH = frozenset({State.ADDED, State.REMOVED})
NONE: frozenset[State] = frozenset()


def flipped(signs: Iterable[State]) -> frozenset[State]:
    """Return the signs as they are behind a negation."""
    return frozenset(State.REMOVED if sign is State.ADDED else State.ADDED for sign in signs)


def candidates(
    rules: Iterable[Rule], aggregations: Iterable[Aggregation], changed: Signs
) -> dict[str, frozenset[State]]:
    """Return every relation that may change, with the signs of its changes."""
    arcs = _arcs(rules, aggregations)
    found = {name: signs for name, signs in changed.items() if signs}
    return _spread(found, [(below, head, kind) for head, below, kind in arcs])


def relevant(program: NormalProgram, wanted: Signs) -> dict[str, frozenset[State]]:
    """Return every relation whose changes are needed for what is wanted, with the signs needed."""
    arcs = _arcs(program.rules, program.aggregations)
    return _spread({name: signs for name, signs in wanted.items() if signs}, arcs)


def _arcs(rules: Iterable[Rule], aggregations: Iterable[Aggregation]) -> list[tuple[str, str, str]]:
    """Return (head, relation it reads, how) for every dependency."""
    arcs = {
        (rule.head.relation, literal.relation, "negated" if literal.negated else "positive")
        for rule in rules
        for literal in rule.literals
    }
    arcs |= {(each.relation, each.body, "aggregated") for each in aggregations}
    return sorted(arcs)


def _spread(
    found: dict[str, frozenset[State]], arcs: list[tuple[str, str, str]]
) -> dict[str, frozenset[State]]:
    """Carry signs along the arcs until nothing is new."""
    onward: dict[str, list[tuple[str, str]]] = {}
    for source, target, kind in arcs:
        onward.setdefault(source, []).append((target, kind))
    work = list(found)
    while work:
        name = work.pop()
        for target, kind in onward.get(name, ()):
            signs = found[name]
            if kind == "negated":
                signs = flipped(signs)
            elif kind == "aggregated":
                signs = BOTH
            known = found.get(target, NONE)
            if not signs <= known:
                found[target] = known | signs
                work.append(target)
    return found
