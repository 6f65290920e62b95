"""The disjunct phase: clauses of one predicate that share a part become one clause.

    q(X,Y) :- common, rest1.                 q(X,Y) :- common, n(…).
    q(X,Y) :- common, rest2.       becomes   n(…) :- rest1.   n(…) :- rest2.

It is sound since ∃ distributes over ∨. The common part is found greedily: among pairs of literals
that match, take the one with the fewest unanchored positions (whose variables are not matched yet).
Any common part is sound; one that is not maximal only misses an opportunity. A union loses
functional dependencies, so the advisor compares the outcome with and without this phase.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import combinations

from corollary.advisor.model import candidates
from corollary.advisor.search_limit import is_search_over
from corollary.core.logic import Constant, Literal, Term, Variable, variable_names
from corollary.data_class import dataclass
from corollary.rewrite.translation_unit import unused_name


@dataclass(slots=True)
class CommonPart:
    """The common part of two clauses, and the bijection φ between their variables.

    Attributes:
        pairs: positions of matched literals, in the first and in the second clause.
        forth: φ, from variables of the first clause to those of the second.
        back: the inverse of φ.
    """

    pairs: list[tuple[int, int]] = field(default_factory=list)
    forth: dict[str, str] = field(default_factory=dict)
    back: dict[str, str] = field(default_factory=dict)


def merge_disjuncts(clauses: Sequence[candidates.SchemeClause]) -> list[candidates.FoldedClause]:
    """Return the clauses of a predicate after the disjunct phase; large common parts go first."""
    unmerged = [candidates.FoldedClause.unfolded(each) for each in clauses]
    return [unmerged, *merge_steps(clauses)][-1]


def merge_steps(
    clauses: Sequence[candidates.SchemeClause],
) -> Iterator[list[candidates.FoldedClause]]:
    """Yield the clauses of a predicate after each merge of two of them."""
    work = [candidates.FoldedClause.unfolded(each) for each in clauses]
    # A merge changes one clause only: the common parts of all other pairs stay.
    known: dict[tuple[int, int], CommonPart | None] = {}
    replaced: list[candidates.FoldedClause] = []  # they stay alive, so that no id comes back
    while not is_search_over():
        best: tuple[int, int, int, CommonPart] | None = None
        for (at, one), (to, other) in combinations(enumerate(work), 2):
            key = id(one), id(other)
            if key not in known:
                if is_search_over():
                    return
                known[key] = _common_part(one, other)
            common = known[key]
            if common is not None and (best is None or len(common.pairs) > best[0]):
                best = (len(common.pairs), at, to, common)
        if best is None:
            break
        _, at, to, common = best
        merged = _merge_pair(work[at], work[to], common)
        if merged is None:
            break
        replaced += [work[at], work[to]]
        work = [
            merged if number == at else each for number, each in enumerate(work) if number != to
        ]
        yield work


# --- the common part -----------------------------------------------------------------------------


def _common_part(one: candidates.FoldedClause, other: candidates.FoldedClause) -> CommonPart | None:
    """Return the common part of two clauses, if there is one."""
    common = _match_heads(one.clause, other.clause)
    if common is None:
        return None
    open_pairs = [
        (at, to)
        for at, left in enumerate(one.nodes)
        for to, right in enumerate(other.nodes)
        if isinstance(left, Literal)
        and isinstance(right, Literal)
        and left.relation == right.relation
    ]
    while True:
        best: tuple[tuple[int, int], int, int] | None = None
        for at, to in open_pairs:
            rank = _unanchored(one.nodes[at], other.nodes[to], common)
            if rank is not None and (best is None or rank < best[0]):
                best = (rank, at, to)
        if best is None:
            return common if common.pairs else None
        _, at, to = best
        open_pairs = [each for each in open_pairs if each[0] != at and each[1] != to]
        left, right = one.nodes[at], other.nodes[to]
        assert isinstance(left, Literal)
        assert isinstance(right, Literal)
        common.pairs.append((at, to))
        for mine, theirs in zip(left.slots, right.slots, strict=True):
            _match(mine, theirs, common.forth, common.back)


def _match_heads(one: candidates.SchemeClause, other: candidates.SchemeClause) -> CommonPart | None:
    """Return how the variables of two heads correspond; None if their patterns differ."""
    if any(each.pinned or each.comparisons or each.has_aggregate for each in (one, other)):
        return None
    common = CommonPart()
    for mine, theirs in zip(one.head.arguments, other.head.arguments, strict=True):
        if not _match(mine, theirs, common.forth, common.back):
            return None
    return common


def _match(mine: Term, theirs: Term, forth: dict[str, str], back: dict[str, str]) -> bool:
    """Extend φ by a pair of terms; return whether it is still a bijection."""
    if isinstance(mine, Variable) and isinstance(theirs, Variable):
        image = forth.setdefault(mine.name, theirs.name)
        return image == theirs.name and back.setdefault(theirs.name, mine.name) == mine.name
    return isinstance(mine, Constant) and mine == theirs


def _unanchored(
    left: candidates.Node, right: candidates.Node, common: CommonPart
) -> tuple[int, int] | None:
    """Return the number of unanchored positions, and minus that of anchored ones, as a rank.

    None if the literals do not match: if φ cannot be extended to them as a bijection.
    """
    if not isinstance(left, Literal) or not isinstance(right, Literal):
        return None
    if left.relation != right.relation:
        return None
    forth, back = dict(common.forth), dict(common.back)
    anchored = 0
    for mine, theirs in zip(left.slots, right.slots, strict=True):
        if not _match(mine, theirs, forth, back):
            return None
        anchored += not isinstance(mine, Variable) or mine.name in common.forth
    return len(left.slots) - anchored, -anchored


# --- the merged clause ---------------------------------------------------------------------------


def _merge_pair(
    one: candidates.FoldedClause, other: candidates.FoldedClause, common: CommonPart
) -> candidates.FoldedClause | None:
    """Return the one clause that two become; None if that would need a join on null."""
    # `mine` and `theirs` are the remainders; the variables of `theirs` get the names of `one`.
    kept = [one.nodes[at] for at, _ in common.pairs]
    mine = [node for at, node in enumerate(one.nodes) if at not in {a for a, _ in common.pairs}]
    theirs = [node for at, node in enumerate(other.nodes) if at not in {b for _, b in common.pairs}]
    positions = {node: at for at, node in enumerate(one.nodes)}
    kept.sort(key=lambda node: positions[node])
    if not mine or not theirs:  # the clause with the empty remainder subsumes the other
        return candidates.FoldedClause(replace(one.clause, literals=_literals(kept)), tuple(kept))
    taken = {name for node in one.nodes for name in _all_names(node)}
    taken |= {each.name for each in candidates.term_variables(one.clause.head)}
    new_names = dict(common.back)
    for node in theirs:
        for name in _all_names(node):
            if name not in new_names:
                new_names[name] = unused_name(name, taken, {*new_names.values()})
    rests = [mine, [_rename(node, new_names) for node in theirs]]
    outside = one.clause.head_variables | candidates.output_variables(kept)
    columns = candidates.output_variables((*rests[0], *rests[1])) & outside
    bodies = []
    for rest in rests:
        body = list(rest)
        for name in candidates.in_order((*kept, *rests[0], *rests[1]), columns):
            if name not in candidates.output_variables(body):
                # A rule without this column would be unsafe: a common literal binds it.
                binder = next(
                    (node for node in kept if name in candidates.variables_of(node)), None
                )
                if binder is None or _is_nullable(binder):
                    return None
                body.append(binder)
        bodies.append(tuple(body))
    union = candidates.Candidate(
        candidates.in_order((*rests[0], *rests[1]), columns), tuple(bodies)
    )
    return candidates.FoldedClause(replace(one.clause, literals=_literals(kept)), (*kept, union))


def _literals(nodes: Sequence[candidates.Node]) -> tuple[Literal, ...]:
    return tuple(node for node in nodes if isinstance(node, Literal))


def _is_nullable(node: candidates.Node) -> bool:
    """Whether a second occurrence of the literal could test a null that was not tested before."""
    return isinstance(node, Literal) and any(
        isinstance(slot, Variable) and slot.type is not None and slot.type.nullable
        for slot in node.slots
    )


def _all_names(node: candidates.Node) -> set[str]:
    if isinstance(node, Literal):
        return variable_names(node)
    if isinstance(node, candidates.Candidate):
        inner = (name for body in node.bodies for each in body for name in _all_names(each))
        return {*node.variables, *inner}
    return set(node.variables)


def _rename(node: candidates.Node, names: Mapping[str, str]) -> candidates.Node:
    if isinstance(node, candidates.Candidate):
        bodies = tuple(tuple(_rename(each, names) for each in body) for body in node.bodies)
        return candidates.Candidate(tuple(names.get(n, n) for n in node.variables), bodies)
    if isinstance(node, Literal):
        slots = tuple(
            replace(slot, name=names.get(slot.name, slot.name))
            if isinstance(slot, Variable)
            else slot
            for slot in node.slots
        )
        return replace(node, slots=slots)
    item = candidates.substitute(node.item, {old: Variable(new) for old, new in names.items()})
    return replace(node, item=item, variables=frozenset(names.get(n, n) for n in node.variables))
