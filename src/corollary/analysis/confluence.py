"""Warnings about triggers that may not come to an end, and about those whose order matters.

The triggers of a cycle in the triggering graph set off one another. They come to an end all the
same if each tuple is only ever inserted, or only ever deleted, by them, and no new values are made:
then there are only so many tuples. So a cycle is doubtful in two ways: one of its triggers inserts
what another deletes (they may play ping-pong), or one computes the values that it inserts.

Within a round deletes come before inserts: a tuple that one trigger deletes and another inserts in
the same round is there afterwards, whatever the order of the rules. That is told where the change
of one tuple may set off both; two changes that happen to meet in one transaction are no news.
"""

from collections.abc import Iterator

from corollary.analysis.causes import causes, have_one_cause
from corollary.analysis.patterns import may_meet
from corollary.analysis.survey import Survey
from corollary.analysis.traverse import parts
from corollary.analysis.triggering import (
    Change,
    Firing,
    Graph,
    are_opposed,
    signed_heads,
    triggering,
)
from corollary.analysis.wording import places, text_of
from corollary.core.functors import FUNCTORS
from corollary.core.graph import components, shortest_path
from corollary.core.rules import Atom, Clause, Comparison, walk
from corollary.core.terms import Aggregate, Functor, Term, Variable
from corollary.errors import Diagnostic, Severity
from corollary.source import Span

Opposed = tuple[int, Atom, int, Atom]
"""A clause that inserts and its head, a clause that deletes and its head."""

Pair = tuple[Firing, Change, Firing, Change]
"""What inserts, what deletes the same, and how each is set off."""

_COMPARISONS = ("<", "<=", ">", ">=")
_LIMIT = (
    "only the limit on rounds of triggers ends that (`--limit-rounds`, 100 if it is not given): "
    "the transaction fails, and nothing is changed"
)


def confluence(survey: Survey) -> Iterator[Diagnostic]:
    """Yield warnings about triggers that set off one another, and about those that disagree."""
    opposed = list(_opposed(survey))
    graph = triggering(survey)
    told: set[int] = set()
    for component in sorted(components(graph), key=_constants):
        if len(component) == 1 and component[0] not in graph[component[0]]:
            continue
        clauses = {firing.number for firing in component}
        if clauses <= told:
            continue
        pair = _pair(component, {(each[0], each[2]) for each in opposed})
        maker = next((each for each in component if _makes_values(survey, each.number)), None)
        if pair is not None:
            yield _ping_pong(survey, graph, pair)
        if maker is not None:
            yield _new_values(survey, graph, maker)
        if pair or maker:
            told |= clauses
    for each in opposed:
        one, other = each[0], each[2]
        is_news = one != other and not {one, other} <= told
        if is_news and have_one_cause(causes(survey, one), causes(survey, other)):
            yield _order(each)


def _constants(component: tuple[Firing, ...]) -> int:
    """Return how much is known of the tuples of a cycle; the least special one is told of."""
    patterns = [change.pattern for firing in component for change in firing.changes]
    return sum(each is not None for pattern in patterns for each in pattern)


def _opposed(survey: Survey) -> Iterator[Opposed]:
    """Yield the triggers that may insert and delete the same tuple."""
    deleting: dict[str, list[tuple[int, Atom]]] = {}
    heads = [(n, head) for n, clause in enumerate(survey.clauses) for head in signed_heads(clause)]
    for number, head in heads:
        if head.sign == "-":
            deleting.setdefault(head.relation, []).append((number, head))
    for one, inserted in heads:
        if inserted.sign == "+":
            for other, deleted in deleting.get(inserted.relation, ()):
                clauses = survey.clauses[one], survey.clauses[other]
                if may_meet((inserted, clauses[0]), (deleted, clauses[1])):
                    yield one, inserted, other, deleted


def _pair(component: tuple[Firing, ...], opposed: set[tuple[int, int]]) -> Pair | None:
    """Return a trigger of a cycle that inserts what another one deletes."""
    changes = [(firing, change) for firing in component for change in firing.changes]
    for one, inserted in changes:
        for other, deleted in changes:
            if (one.number, other.number) in opposed and are_opposed(inserted, deleted):
                return one, inserted, other, deleted
    return None


def _ping_pong(survey: Survey, graph: Graph, pair: Pair) -> Diagnostic:
    one, inserted, other, deleted = pair
    there = [one] if one == other else shortest_path(graph, one, other)
    chain = [*there, *shortest_path(graph, other, one)[1:]]
    shown = [
        inserted if each == one else deleted if each == other else each.changes[0] for each in chain
    ]
    return Diagnostic(
        "C1030",
        f"Possible ping-pong: these triggers may undo one another: {_chain(shown)}.",
        survey.clauses[one.number].span,
        _LIMIT,
        _links(survey, chain, shown)[:-1],
        Severity.WARNING,
    )


def _new_values(survey: Survey, graph: Graph, firing: Firing) -> Diagnostic:
    chain = shortest_path(graph, firing, firing)
    shown = [each.changes[0] for each in chain]
    return Diagnostic(
        "C1031",
        f"This trigger inserts computed values, which set it off again: {_chain(shown)}.",
        survey.clauses[firing.number].span,
        f"bound the values, as in `x < 1000`; otherwise {_LIMIT}",
        _links(survey, chain, shown)[:-1],
        Severity.WARNING,
    )


def _order(pair: Opposed) -> Diagnostic:
    one, inserted, other, deleted = pair
    first, second = sorted(((one, inserted), (other, deleted)), key=lambda each: each[0])
    return Diagnostic(
        "C1032",
        f"One change may set off triggers that insert and delete the same tuple of "
        f"`{inserted.relation}`.",
        first[1].span,
        "deletes come before inserts, so that it is there afterwards; if that is not what you "
        "mean, let the bodies exclude each other",
        places((second[1].span, f"`{second[1].sign}{second[1].relation}` in the same round")),
        Severity.WARNING,
    )


def _chain(shown: list[Change]) -> str:
    return " → ".join(f"`{_named(change)}`" for change in shown)


def _links(
    survey: Survey, chain: list[Firing], shown: list[Change]
) -> tuple[tuple[Span, str], ...]:
    return places(
        *(
            (survey.clauses[firing.number].span, f"set off by `{_named(before)}`")
            for before, firing in zip(shown, chain[1:], strict=False)
        )
    )


def _named(change: Change) -> str:
    """Return a change as text, with its constants."""
    name = f"{change.sign}{change.relation}"
    if not any(change.pattern):
        return name
    return f"{name}({', '.join('_' if each is None else text_of(each) for each in change.pattern)})"


def _makes_values(survey: Survey, number: int) -> bool:
    """Whether a trigger, or an event predicate that it reads, computes what is inserted."""
    work, seen = [number], {number}
    while work:
        at = work.pop()
        if _computes(survey.clauses[at]):
            return True
        for reading in survey.readings[at]:
            if reading.atom.relation in survey.events:
                new = set(survey.definitions.get(reading.atom.relation, ())) - seen
                work += new
                seen |= new
    return False


def _computes(clause: Clause) -> bool:
    """Whether a head has values that the body computes, and no comparison bounds any."""
    items = list(walk(clause.body))
    if any(isinstance(item, Comparison) and item.operator in _COMPARISONS for item in items):
        return False
    computed = {
        one.name
        for item in items
        if isinstance(item, Comparison) and item.operator == "="
        for one, other in ((item.left, item.right), (item.right, item.left))
        if isinstance(one, Variable) and _is_computed(other)
    }
    return any(
        _is_computed(term) or (isinstance(term, Variable) and term.name in computed)
        for head in clause.heads
        if head.sign != "-"
        for term in head.arguments
    )


def _is_computed(term: Term) -> bool:
    return any(
        isinstance(part, Aggregate)
        or (
            isinstance(part, Functor) and part.name in FUNCTORS and FUNCTORS[part.name].is_expanding
        )
        for part in parts(term)
    )
