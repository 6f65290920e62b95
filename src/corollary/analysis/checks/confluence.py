"""Warnings about triggers that may not terminate, and about those whose order matters.

The triggers of a cycle in the triggering graph set off one another. They terminate all the same if
they only insert a tuple, or only delete it, and no new values are made: then the number of tuples
is finite. So a cycle is doubtful in two cases: one of its triggers inserts what another deletes
(ping-pong), or one computes the values that it inserts.

Within a round deletes come before inserts: a tuple that one trigger deletes and another inserts in
the same round is there afterwards, whatever the order of the rules. A warning says so where the
change of one tuple may set off both, but not for two changes that meet in one transaction.
"""

from collections.abc import Iterator

from corollary.analysis.checks.patterns import may_unify
from corollary.analysis.checks.triggering_graph import (
    ChangePattern,
    Firing,
    TriggeringGraph,
    are_opposed,
    have_common_event,
    signed_heads,
    triggering_graph,
)
from corollary.analysis.phrases import related_spans, term_text
from corollary.analysis.resolution import ResolvedProgram
from corollary.analysis.traverse import equations
from corollary.core import logic
from corollary.core.functors.catalog import is_expanding
from corollary.core.graph import reachable, shortest_path, strongly_connected_components
from corollary.errors import Diagnostic, Severity
from corollary.source import Span

OpposedHeads = tuple[int, logic.Atom, int, logic.Atom]
"""A clause that inserts and its head, a clause that deletes and its head."""

OpposedFirings = tuple[Firing, ChangePattern, Firing, ChangePattern]
"""A firing and what it inserts, a firing and what it deletes of the same."""

_ORDER_COMPARISONS = ("<", "<=", ">", ">=")
_LIMIT_NOTE = (
    "only the limit on rounds of triggers ends that (`--limit-rounds`, 100 if it is not given): "
    "the transaction fails, and nothing is changed"
)


def confluence(resolved: ResolvedProgram) -> Iterator[Diagnostic]:
    """Yield warnings about triggers that set off one another, and about those that disagree."""
    opposed = list(_opposed_heads(resolved))
    graph = triggering_graph(resolved)
    reported: set[int] = set()
    for component in sorted(strongly_connected_components(graph), key=_count_constants):
        if len(component) == 1 and component[0] not in graph[component[0]]:
            continue
        clauses = {firing.number for firing in component}
        if clauses <= reported:
            continue
        pair = _find_opposed(component, {(each[0], each[2]) for each in opposed})
        inventor = next(
            (each for each in component if _invents_values(resolved, each.number)), None
        )
        if pair is not None:
            yield _ping_pong(resolved, graph, pair)
        if inventor is not None:
            yield _new_values(resolved, graph, inventor)
        if pair or inventor:
            reported |= clauses
    for each in opposed:
        one, other = each[0], each[2]
        is_new = one != other and not {one, other} <= reported
        if is_new and have_common_event(resolved, one, other):
            yield _order_matters(each)


def _count_constants(component: tuple[Firing, ...]) -> int:
    """Return how many constants the changes of a cycle have; the most general is reported first."""
    patterns = [change.pattern for firing in component for change in firing.changes]
    return sum(each is not None for pattern in patterns for each in pattern)


def _opposed_heads(resolved: ResolvedProgram) -> Iterator[OpposedHeads]:
    """Yield the triggers that may insert and delete the same tuple."""
    deleting: dict[str, list[tuple[int, logic.Atom]]] = {}
    heads = [
        (n, head) for n, clause in enumerate(resolved.clauses) for head in signed_heads(clause)
    ]
    for number, head in heads:
        if head.sign == "-":
            deleting.setdefault(head.relation, []).append((number, head))
    for one, inserted in heads:
        if inserted.sign == "+":
            for other, deleted in deleting.get(inserted.relation, ()):
                clauses = resolved.clauses[one], resolved.clauses[other]
                if may_unify((inserted, clauses[0]), (deleted, clauses[1])):
                    yield one, inserted, other, deleted


def _find_opposed(
    component: tuple[Firing, ...], opposed: set[tuple[int, int]]
) -> OpposedFirings | None:
    """Return a trigger of a cycle that inserts what another one deletes."""
    changes = [(firing, change) for firing in component for change in firing.changes]
    for one, inserted in changes:
        for other, deleted in changes:
            if (one.number, other.number) in opposed and are_opposed(inserted, deleted):
                return one, inserted, other, deleted
    return None


def _ping_pong(
    resolved: ResolvedProgram, graph: TriggeringGraph, pair: OpposedFirings
) -> Diagnostic:
    one, inserted, other, deleted = pair
    there = [one] if one == other else shortest_path(graph, one, other)
    chain = [*there, *shortest_path(graph, other, one)[1:]]
    shown = [
        inserted if each == one else deleted if each == other else each.changes[0] for each in chain
    ]
    return Diagnostic(
        "C1030",
        f"Possible ping-pong: these triggers may undo one another: {_chain_text(shown)}.",
        resolved.clauses[one.number].span,
        _LIMIT_NOTE,
        _links(resolved, chain, shown)[:-1],
        Severity.WARNING,
    )


def _new_values(resolved: ResolvedProgram, graph: TriggeringGraph, firing: Firing) -> Diagnostic:
    chain = shortest_path(graph, firing, firing)
    shown = [each.changes[0] for each in chain]
    return Diagnostic(
        "C1031",
        f"This trigger inserts computed values, which set it off again: {_chain_text(shown)}.",
        resolved.clauses[firing.number].span,
        f"bound the values, as in `x < 1000`; otherwise {_LIMIT_NOTE}",
        _links(resolved, chain, shown)[:-1],
        Severity.WARNING,
    )


def _order_matters(pair: OpposedHeads) -> Diagnostic:
    one, inserted, other, deleted = pair
    first, second = sorted(((one, inserted), (other, deleted)), key=lambda each: each[0])
    return Diagnostic(
        "C1032",
        f"One change may set off triggers that insert and delete the same tuple of "
        f"`{inserted.relation}`.",
        first[1].span,
        "deletes come before inserts, so that it is there afterwards; if that is not what you "
        "mean, let the bodies exclude each other; if they do, accept this with "
        "`// corollary: allow C1032`",
        related_spans(
            (second[1].span, f"`{second[1].sign}{second[1].relation}` in the same round")
        ),
        Severity.WARNING,
    )


def _chain_text(shown: list[ChangePattern]) -> str:
    return " → ".join(f"`{_change_text(change)}`" for change in shown)


def _links(
    resolved: ResolvedProgram, chain: list[Firing], shown: list[ChangePattern]
) -> tuple[tuple[Span, str], ...]:
    return related_spans(
        *(
            (resolved.clauses[firing.number].span, f"set off by `{_change_text(before)}`")
            for before, firing in zip(shown, chain[1:], strict=False)
        )
    )


def _change_text(change: ChangePattern) -> str:
    """Return a change as text, with its constants."""
    name = f"{change.sign}{change.relation}"
    if not any(change.pattern):
        return name
    return (
        f"{name}({', '.join('_' if each is None else term_text(each) for each in change.pattern)})"
    )


def _invents_values(resolved: ResolvedProgram, number: int) -> bool:
    """Whether a trigger, or an event predicate that it reads, computes what is inserted."""

    def read_by(clause: int) -> Iterator[int]:
        for use in resolved.uses[clause]:
            if use.atom.relation in resolved.events:
                yield from resolved.definitions.get(use.atom.relation, ())

    return any(_computes(resolved.clauses[each]) for each in reachable([number], read_by))


def _computes(clause: logic.Clause) -> bool:
    """Whether a head has values that the body computes, and no comparison bounds any."""
    items = list(logic.literals_of(clause.body))
    if any(
        isinstance(item, logic.Comparison) and item.operator in _ORDER_COMPARISONS for item in items
    ):
        return False
    computed = {
        one.name
        for one, other in equations(items)
        if isinstance(one, logic.Variable) and _is_computed(other)
    }
    return any(
        _is_computed(term) or (isinstance(term, logic.Variable) and term.name in computed)
        for head in clause.heads
        if head.sign != "-"
        for term in head.arguments
    )


def _is_computed(term: logic.Term) -> bool:
    return any(
        isinstance(part, logic.AggregateTerm)
        or (isinstance(part, logic.Functor) and is_expanding(part))
        for part in logic.subterms(term)
    )
