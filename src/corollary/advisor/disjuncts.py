"""The disjunct phase: clauses of one predicate that share a part become one clause.

    q(X,Y) :- common, rest1.                 q(X,Y) :- common, n(…).
    q(X,Y) :- common, rest2.       becomes   n(…) :- rest1.   n(…) :- rest2.

It is sound since ∃ distributes over ∨. The common part is found greedily: among pairs of literals
that fit, the one with the fewest positions whose variables are not matched yet. Any common part
will do; a smaller one only misses something. A union loses functional dependencies, so the advisor
compares the outcome with and without this phase.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from corollary.advisor.candidates import Body, Candidate, Node, in_order, variables_of
from corollary.advisor.canonical import with_variables
from corollary.advisor.clauses import ClauseForm, term_variables
from corollary.core.rules import Literal, names_in
from corollary.core.terms import Constant, Term, Variable


@dataclass(slots=True)
class Common:
    """The common part of two clauses.

    Attributes:
        pairs: positions of literals that are matched, in the first and in the second clause.
        forth: the variables of the second clause, by those of the first.
        back: the other way round.
    """

    pairs: list[tuple[int, int]] = field(default_factory=list)
    forth: dict[str, str] = field(default_factory=dict)
    back: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Merged:
    """A clause on its way: its form, and its nodes, among which a union may be."""

    clause: ClauseForm
    nodes: Body


def merge(clauses: Sequence[ClauseForm]) -> list[Merged]:
    """Return the clauses of a predicate after the disjunct phase, the largest parts first."""
    work = [Merged(each, (*each.literals, *each.tests)) for each in clauses]
    while True:
        best: tuple[int, int, int, Common] | None = None
        for (at, one), (to, other) in combinations(enumerate(work), 2):
            common = _common(one, other)
            if common is not None and (best is None or len(common.pairs) > best[0]):
                best = (len(common.pairs), at, to, common)
        if best is None:
            return work
        _, at, to, common = best
        made = _merged(work[at], work[to], common)
        if made is None:
            return work
        work = [made if number == at else each for number, each in enumerate(work) if number != to]


# --- the common part -----------------------------------------------------------------------------


def _common(one: Merged, other: Merged) -> Common | None:
    """Return the common part of two clauses, if there is one."""
    common = _heads(one.clause, other.clause)
    if common is None:
        return None
    while True:
        best: tuple[tuple[int, int], int, int] | None = None
        for at, left in enumerate(one.nodes):
            for to, right in enumerate(other.nodes):
                if any(at == known or to == seen for known, seen in common.pairs):
                    continue
                open_ = _open_positions(left, right, common)
                if open_ is not None and (best is None or open_ < best[0]):
                    best = (open_, at, to)
        if best is None:
            return common if common.pairs else None
        _, at, to = best
        left, right = one.nodes[at], other.nodes[to]
        assert isinstance(left, Literal)
        assert isinstance(right, Literal)
        common.pairs.append((at, to))
        for mine, theirs in zip(left.slots, right.slots, strict=True):
            if isinstance(mine, Variable) and isinstance(theirs, Variable):
                common.forth[mine.name], common.back[theirs.name] = theirs.name, mine.name


def _heads(one: ClauseForm, other: ClauseForm) -> Common | None:
    """Return how the variables of two heads correspond; None if their patterns differ."""
    if any(each.pinned or each.tests or each.obstacle for each in (one, other)):
        return None
    common = Common()
    for mine, theirs in zip(one.head.arguments, other.head.arguments, strict=True):
        if not _fits(mine, theirs, common.forth, common.back):
            return None
        if isinstance(mine, Variable) and isinstance(theirs, Variable):
            common.forth[mine.name], common.back[theirs.name] = theirs.name, mine.name
    return common


def _fits(mine: Term, theirs: Term, forth: Mapping[str, str], back: Mapping[str, str]) -> bool:
    if isinstance(mine, Constant) and isinstance(theirs, Constant):
        return mine == theirs
    if isinstance(mine, Variable) and isinstance(theirs, Variable):
        known, seen = forth.get(mine.name, theirs.name), back.get(theirs.name, mine.name)
        return known == theirs.name and seen == mine.name
    return False


def _open_positions(left: Node, right: Node, common: Common) -> tuple[int, int] | None:
    """Return how many positions are not matched yet, and (less) how many are; None if they clash.

    Two literals fit if their variables can be matched one to one, along with what is matched.
    """
    if not isinstance(left, Literal) or not isinstance(right, Literal):
        return None
    if left.relation != right.relation:
        return None
    forth, back = dict(common.forth), dict(common.back)
    anchored = 0
    for mine, theirs in zip(left.slots, right.slots, strict=True):
        if not _fits(mine, theirs, forth, back):
            return None
        is_known = isinstance(mine, Constant) or (
            isinstance(mine, Variable) and mine.name in common.forth
        )
        anchored += is_known
        if isinstance(mine, Variable) and isinstance(theirs, Variable):
            forth[mine.name], back[theirs.name] = theirs.name, mine.name
    return len(left.slots) - anchored, -anchored


# --- the merged clause ---------------------------------------------------------------------------


def _merged(one: Merged, other: Merged, common: Common) -> Merged | None:
    """Return the one clause that two become; None if that would need a join on null."""
    kept = [one.nodes[at] for at, _ in common.pairs]
    mine = [node for at, node in enumerate(one.nodes) if at not in {a for a, _ in common.pairs}]
    theirs = [node for at, node in enumerate(other.nodes) if at not in {b for _, b in common.pairs}]
    positions = {node: at for at, node in enumerate(one.nodes)}
    kept.sort(key=lambda node: positions[node])
    if not mine or not theirs:  # one clause says all that the other says
        return Merged(replace(one.clause, literals=_literals(kept)), tuple(kept))
    taken = {name for node in one.nodes for name in _all_names(node)}
    taken |= {each.name for each in term_variables(one.clause.head)}
    renamed = dict(common.back)
    for node in theirs:
        for name in _all_names(node):
            if name not in renamed:
                renamed[name] = _unused(name, {*taken, *renamed.values()})
    rests = [mine, [_renamed(node, renamed) for node in theirs]]
    outside = one.clause.head_variables.union(*(variables_of(node) for node in kept))
    wanted = frozenset(
        name for rest in rests for node in rest for name in variables_of(node) if name in outside
    )
    bodies = []
    for rest in rests:
        body = list(rest)
        for name in in_order((*kept, *rests[0], *rests[1]), wanted):
            if not any(name in variables_of(node) for node in body):
                helper = next((node for node in kept if name in variables_of(node)), None)
                if helper is None or _is_nullable(helper):
                    return None
                body.append(helper)
        bodies.append(tuple(body))
    union = Candidate(in_order((*rests[0], *rests[1]), wanted), tuple(bodies), "disjunct")
    nodes = (*kept, union)
    return Merged(replace(one.clause, literals=_literals(kept)), nodes)


def _literals(nodes: Sequence[Node]) -> tuple[Literal, ...]:
    return tuple(node for node in nodes if isinstance(node, Literal))


def _is_nullable(node: Node) -> bool:
    """Whether a second occurrence of the literal could test a null that was not tested before."""
    return isinstance(node, Literal) and any(
        isinstance(slot, Variable) and slot.type is not None and slot.type.nullable
        for slot in node.slots
    )


def _all_names(node: Node) -> set[str]:
    if isinstance(node, Literal):
        return names_in(node)
    if isinstance(node, Candidate):
        inner = (name for body in node.bodies for each in body for name in _all_names(each))
        return {*node.variables, *inner}
    return set(node.variables)


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
    if isinstance(node, Candidate):
        bodies = tuple(tuple(_renamed(each, names) for each in body) for body in node.bodies)
        return Candidate(tuple(names.get(n, n) for n in node.variables), bodies, node.step)
    by = {old: Variable(new) for old, new in names.items()}
    if isinstance(node, Literal):
        slots = tuple(
            replace(slot, name=names.get(slot.name, slot.name))
            if isinstance(slot, Variable)
            else slot
            for slot in node.slots
        )
        return replace(node, slots=slots)
    made = with_variables(node.item, by)
    return replace(node, item=made, variables=frozenset(names.get(n, n) for n in node.variables))


def _unused(name: str, taken: set[str]) -> str:
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}{number}"
    return found
