"""The triggering graph: which trigger may set off which.

A trigger's head changes a base relation. The change passes rules as in `relevance`: as it is at a
positive literal, flipped at a negation, both ways at an aggregate; it sets off a delta literal of
its sign, an event predicate with such a literal, and in the end the body of a trigger. On its way
it carries the constants that are known of its tuples, so that `+p("a")` does not set off a body
with `+p("b")`, nor one with `+p(x), x != "a"`.

A body without a positive event, such as `p@old(x), !q(x)`, may hold whatever has changed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from corollary.analysis.patterns import (
    Binding,
    Pattern,
    Way,
    bound,
    covers,
    matched,
    may_agree,
    pattern_of,
    ways,
)
from corollary.analysis.survey import Survey, is_active
from corollary.analysis.traverse import Item, aggregates_in
from corollary.core.rules import Atom, Clause, Negation, terms_of, walk

_MOST_PATTERNS = 32
_MOST_FIRINGS = 500
"""More than these are not told apart by their constants."""


@dataclass(frozen=True, slots=True)
class Change:
    """Tuples that come to a relation or go from it, or an event predicate that happens."""

    sign: str
    relation: str
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Firing:
    """A trigger, by the number of its clause, and what it changes when it is set off so."""

    number: int
    changes: tuple[Change, ...]


Graph = dict[Firing, list[Firing]]


def triggering(survey: Survey) -> Graph:
    """Return for each way in which triggers may be set off, what that may set off."""
    triggers = [number for number, clause in enumerate(survey.clauses) if signed_heads(clause)]
    if not triggers:
        return {}
    reach = _Reach(survey)
    work = [
        firing
        for number in triggers
        for way in ways(survey.clauses[number])
        for firing in reach.firing(number, bound(way, {}))
    ]
    graph: Graph = {}
    while work:
        firing = work.pop()
        if firing in graph:
            continue
        if len(graph) >= _MOST_FIRINGS:
            reach.is_blind = True
        graph[firing] = reach.from_firing(firing)
        work += graph[firing]
    return graph


def flipped(sign: str) -> str:
    """Return the sign of a change behind a negation."""
    return "-" if sign == "+" else "+"


def has_event(survey: Survey, way: Way) -> bool:
    """Whether a positive literal reads a change or an event predicate."""
    return any(
        isinstance(item, Atom) and (item.sign or item.relation in survey.events) for item in way
    )


def signed_heads(clause: Clause) -> tuple[Atom, ...]:
    """Return the heads that change a relation."""
    return tuple(head for head in clause.heads if head.sign)


def are_opposed(one: Change, other: Change) -> bool:
    """Whether one change may insert what the other one deletes."""
    signs = (one.sign, other.sign)
    is_same = one.relation == other.relation
    return signs == ("+", "-") and is_same and may_agree(one.pattern, other.pattern)


@dataclass(slots=True)
class _Reach:
    """Follows changes through the clauses of a program."""

    survey: Survey
    readers: dict[str, list[int]] = field(default_factory=dict)
    always: list[tuple[int, Way]] = field(default_factory=list)
    """Active bodies without a positive event."""
    equivalences: set[str] = field(default_factory=set)
    """Of these a change of one tuple may be one of any other."""
    is_blind: bool = False
    """Whether constants do not count any more."""

    def __post_init__(self) -> None:
        declared = self.survey.program.declarations
        self.equivalences |= {each.name for each in declared if each.is_equivalence}
        for number, clause in enumerate(self.survey.clauses):
            read = self.survey.readings[number]
            for name in {reading.atom.relation for reading in read}:
                self.readers.setdefault(name, []).append(number)
            if is_active(read, self.survey.events):
                self.always += [
                    (number, way) for way in ways(clause) if not has_event(self.survey, way)
                ]

    def firing(self, number: int, binding: Binding | None) -> Iterator[Firing]:
        """Yield what a trigger does when its body holds with these constants; it may not hold."""
        if binding is not None:
            known = {} if self.is_blind else binding
            heads = signed_heads(self.survey.clauses[number])
            changes = [Change(h.sign, h.relation, pattern_of(h, known)) for h in heads]
            yield Firing(number, tuple(changes))

    def from_firing(self, firing: Firing) -> list[Firing]:
        """Return what the changes of a trigger may set off, through rules and events."""
        found: dict[Firing, None] = {}
        work: list[Change] = []
        seen: dict[tuple[str, str], list[Pattern]] = {}

        def note(changes: Iterable[Change]) -> None:
            for change in changes:
                known = seen.setdefault((change.sign, change.relation), [])
                is_wide = change.relation in self.equivalences or len(known) >= _MOST_PATTERNS
                pattern = (None,) * len(change.pattern) if is_wide else change.pattern
                if not any(covers(each, pattern) for each in known):
                    known.append(pattern)
                    work.append(replace(change, pattern=pattern))

        def happen(number: int, signs: tuple[str, ...], binding: Binding) -> None:
            note(self._changes(number, signs, binding))
            if signed_heads(self.survey.clauses[number]):
                found.update(dict.fromkeys(self.firing(number, binding)))

        note(firing.changes)
        for number, way in self.always:
            known = bound(way, {})
            if known is not None:
                happen(number, ("",), known)
        while work:
            change = work.pop()
            for number in self.readers.get(change.relation, ()):
                for way in ways(self.survey.clauses[number]):
                    for signs, binding in self._caused(change, number, way):
                        happen(number, signs, binding)
        return list(found)

    def _caused(
        self, change: Change, number: int, way: Way
    ) -> Iterator[tuple[tuple[str, ...], Binding]]:
        """Yield the signs that a change gets by a way of a clause, and what is known then."""
        active = is_active(self.survey.readings[number], self.survey.events)
        for item in way:
            atom = item.atom if isinstance(item, Negation) else item
            binding: Binding | None = None
            signs: tuple[str, ...] = ("+", "-")
            if isinstance(atom, Atom) and atom.relation == change.relation:
                is_set_off = not active or (isinstance(item, Atom) and _is_of(item, change))
                binding = bound(way, matched(atom, change.pattern)) if is_set_off else None
                is_flipped = isinstance(item, Negation) and not active
                signs = (flipped(change.sign) if is_flipped else change.sign,)
            elif not active and any(_aggregates(item, change)):
                binding = bound(way, {})
            if binding is not None:
                yield (("",) if active else signs), binding

    def _changes(self, number: int, signs: Iterable[str], binding: Binding) -> Iterator[Change]:
        """Yield the changes of what a clause defines; events happen, and have no sign."""
        for head in self.survey.clauses[number].heads:
            if not head.sign:
                pattern = pattern_of(head, binding)
                yield from (Change(sign, head.relation, pattern) for sign in signs)


def _is_of(atom: Atom, change: Change) -> bool:
    """Whether an atom reads just such a change; only an event predicate happens without a sign."""
    return (atom.relation, atom.sign) == (change.relation, change.sign) and atom.state is None


def _aggregates(item: Item, change: Change) -> Iterator[bool]:
    """Yield for each atom inside aggregates of an item that reads a relation: does it match."""
    for term in terms_of(item):
        for aggregate in aggregates_in(term):
            for inner in walk(aggregate.body):
                atom = inner.atom if isinstance(inner, Negation) else inner
                if isinstance(atom, Atom) and atom.relation == change.relation:
                    yield matched(atom, change.pattern) is not None
                else:
                    yield from _aggregates(inner, change)
