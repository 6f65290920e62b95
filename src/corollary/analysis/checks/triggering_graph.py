"""The triggering graph, and the events that set off a trigger.

Reference: A. Aiken, J. M. Hellerstein, J. Widom, "Static analysis techniques for predicting the
behavior of active database rules", TODS 20(1), 1995.

A trigger's head changes a base relation. The change passes rules as in `relevance`: as it is at a
positive literal, flipped at a negation, both signs at an aggregate; it sets off a delta literal of
its sign, an event predicate with such a literal, and in the end the body of a trigger. On its way
it carries the constants that are known of its tuples, so that `+p("a")` does not set off a body
with `+p("b")`, nor one with `+p(x), x != "a"`.

A body without a positive event, such as `p@old(x), !q(x)`, may hold whatever has changed.

Triggering events are found the other way: from the delta literals of a body back to changes of base
relations.
"""

from collections.abc import Iterable, Iterator
from dataclasses import field, replace

from corollary.analysis.checks import patterns
from corollary.analysis.resolution import ResolvedProgram, is_active
from corollary.analysis.traverse import Item, atom_uses
from corollary.core.logic import Atom, Clause, Negation
from corollary.data_class import dataclass

_PATTERNS_MAX = 32
_FIRINGS_MAX = 500
"""Above these numbers constants are ignored, so that the analysis ends soon."""


@dataclass(frozen=True, slots=True)
class ChangePattern:
    """Tuples that are inserted into a relation or deleted, or (no sign) of an event predicate."""

    sign: str
    relation: str
    pattern: patterns.Pattern


@dataclass(frozen=True, slots=True)
class Firing:
    """A trigger, by the number of its clause, and what it changes with some constants known."""

    number: int
    changes: tuple[ChangePattern, ...]


TriggeringGraph = dict[Firing, list[Firing]]


def triggering_graph(resolved: ResolvedProgram) -> TriggeringGraph:
    """Return, for each firing of a trigger, the firings that it may set off."""
    triggers = [number for number, clause in enumerate(resolved.clauses) if signed_heads(clause)]
    if not triggers:
        return {}
    propagation = _ChangePropagation(resolved)
    work = [
        firing
        for number in triggers
        for conjunction in patterns.body_conjunctions(resolved.clauses[number])
        for firing in propagation.firing(number, patterns.bind_constants(conjunction, {}))
    ]
    graph: TriggeringGraph = {}
    while work:
        firing = work.pop()
        if firing in graph:
            continue
        if len(graph) >= _FIRINGS_MAX:
            propagation.ignores_constants = True
        graph[firing] = propagation.from_firing(firing)
        work += graph[firing]
    return graph


def opposite_sign(sign: str) -> str:
    """Return the sign of a change after a negation."""
    return "-" if sign == "+" else "+"


def has_event(resolved: ResolvedProgram, conjunction: patterns.BodyConjunction) -> bool:
    """Whether a positive literal of a conjunction reads a change or an event predicate."""
    return any(
        isinstance(item, Atom) and (item.sign or item.relation in resolved.events)
        for item in conjunction
    )


def signed_heads(clause: Clause) -> tuple[Atom, ...]:
    """Return the heads that change a relation."""
    return tuple(head for head in clause.heads if head.sign)


def are_opposed(one: ChangePattern, other: ChangePattern) -> bool:
    """Whether one change may insert what the other one deletes."""
    signs = (one.sign, other.sign)
    is_same = one.relation == other.relation
    return signs == ("+", "-") and is_same and patterns.may_overlap(one.pattern, other.pattern)


@dataclass(slots=True)
class _ChangePropagation:
    """Follows changes through the clauses of a program.

    Attributes:
        readers: for each relation, the clauses that read it.
        always: active bodies without a positive event, which any change may set off.
        equivalences: where the change of one tuple may be one of any other.
        ignores_constants: whether there are too many firings to tell them apart.
    """

    resolved: ResolvedProgram
    readers: dict[str, list[int]] = field(default_factory=dict)
    always: list[tuple[int, patterns.BodyConjunction]] = field(default_factory=list)
    equivalences: set[str] = field(default_factory=set)
    ignores_constants: bool = False

    def __post_init__(self) -> None:
        declared = self.resolved.program.declarations
        self.equivalences |= {each.name for each in declared if each.is_equivalence}
        for number, clause in enumerate(self.resolved.clauses):
            uses = self.resolved.uses[number]
            for name in {use.atom.relation for use in uses}:
                self.readers.setdefault(name, []).append(number)
            if is_active(uses, self.resolved.events):
                self.always += [
                    (number, conjunction)
                    for conjunction in patterns.body_conjunctions(clause)
                    if not has_event(self.resolved, conjunction)
                ]

    def firing(self, number: int, binding: patterns.Binding | None) -> Iterator[Firing]:
        """Yield the firing of a trigger whose body holds with a binding, if there is one."""
        if binding is not None:
            known = {} if self.ignores_constants else binding
            heads = signed_heads(self.resolved.clauses[number])
            changes = [
                ChangePattern(h.sign, h.relation, patterns.pattern_of(h, known)) for h in heads
            ]
            yield Firing(number, tuple(changes))

    def from_firing(self, firing: Firing) -> list[Firing]:
        """Return what the changes of a trigger may set off, through rules and events."""
        found: dict[Firing, None] = {}
        work: list[ChangePattern] = []
        seen: dict[tuple[str, str], list[patterns.Pattern]] = {}

        def add(changes: Iterable[ChangePattern]) -> None:
            for change in changes:
                known = seen.setdefault((change.sign, change.relation), [])
                is_general = change.relation in self.equivalences or len(known) >= _PATTERNS_MAX
                pattern = (None,) * len(change.pattern) if is_general else change.pattern
                if not any(patterns.subsumes(each, pattern) for each in known):
                    known.append(pattern)
                    work.append(replace(change, pattern=pattern))

        def fire(number: int, signs: tuple[str, ...], binding: patterns.Binding) -> None:
            add(self._changes(number, signs, binding))
            if signed_heads(self.resolved.clauses[number]):
                found.update(dict.fromkeys(self.firing(number, binding)))

        add(firing.changes)
        for number, conjunction in self.always:
            known = patterns.bind_constants(conjunction, {})
            if known is not None:
                fire(number, ("",), known)
        while work:
            change = work.pop()
            for number in self.readers.get(change.relation, ()):
                for conjunction in patterns.body_conjunctions(self.resolved.clauses[number]):
                    for signs, binding in self._effects(change, number, conjunction):
                        fire(number, signs, binding)
        return list(found)

    def _effects(
        self, change: ChangePattern, number: int, conjunction: patterns.BodyConjunction
    ) -> Iterator[tuple[tuple[str, ...], patterns.Binding]]:
        """Yield the signs of the change that a conjunction makes of a change, and the binding."""
        active = is_active(self.resolved.uses[number], self.resolved.events)
        for item in conjunction:
            atom = item.atom if isinstance(item, Negation) else item
            binding: patterns.Binding | None = None
            signs: tuple[str, ...] = ("+", "-")
            if isinstance(atom, Atom) and atom.relation == change.relation:
                if not active or (isinstance(item, Atom) and _reads_change(item, change)):
                    binding = patterns.bind_constants(
                        conjunction, patterns.match_atom(atom, change.pattern)
                    )
                is_flipped = isinstance(item, Negation) and not active
                signs = (opposite_sign(change.sign) if is_flipped else change.sign,)
            elif not active and any(
                inner.relation == change.relation
                and patterns.match_atom(inner, change.pattern) is not None
                for inner in _atoms_in_aggregates(item)
            ):
                binding = patterns.bind_constants(conjunction, {})
            if binding is not None:
                yield (("",) if active else signs), binding

    def _changes(
        self, number: int, signs: Iterable[str], binding: patterns.Binding
    ) -> Iterator[ChangePattern]:
        """Yield the changes of what a clause defines."""
        for head in self.resolved.clauses[number].heads:
            if not head.sign:
                pattern = patterns.pattern_of(head, binding)
                yield from (ChangePattern(sign, head.relation, pattern) for sign in signs)


def _reads_change(atom: Atom, change: ChangePattern) -> bool:
    """Whether an atom reads such a change; only event predicates are read without a sign."""
    return (atom.relation, atom.sign) == (change.relation, change.sign) and atom.state is None


def triggering_events(resolved: ResolvedProgram, number: int) -> tuple[ChangePattern, ...] | None:
    """Return the changes of base relations that may set off the trigger of a clause.

    None means any change: a body has no positive event.
    """
    work: list[ChangePattern] = []
    for conjunction in patterns.body_conjunctions(resolved.clauses[number]):
        binding = patterns.bind_constants(conjunction, {})
        if binding is None:
            continue
        if not has_event(resolved, conjunction):
            return None
        work += [
            ChangePattern(item.sign, item.relation, patterns.pattern_of(item, binding))
            for item in conjunction
            if isinstance(item, Atom) and (item.sign or item.relation in resolved.events)
        ]
    found: list[ChangePattern] = []
    while work:
        change = work.pop()
        known = [e for e in found if (e.sign, e.relation) == (change.sign, change.relation)]
        if any(patterns.subsumes(each.pattern, change.pattern) for each in known):
            continue
        found.append(change)
        earlier = list(_one_step_back(resolved, change))
        if any(each is None for each in earlier):
            return None
        work += [each for each in earlier if each is not None]
    return tuple(each for each in found if each.relation not in resolved.derived)


def have_common_event(resolved: ResolvedProgram, one: int, other: int) -> bool:
    """Whether the change of one tuple may set off the triggers of two clauses."""
    lefts, rights = triggering_events(resolved, one), triggering_events(resolved, other)
    if lefts is None or rights is None:
        return True
    return any(
        (left.sign, left.relation) == (right.sign, right.relation)
        and patterns.may_overlap(left.pattern, right.pattern)
        for left in lefts
        for right in rights
    )


def _one_step_back(
    resolved: ResolvedProgram, change: ChangePattern
) -> Iterator[ChangePattern | None]:
    """Yield the changes that may cause a change by one rule; None for any change."""
    for number in resolved.definitions.get(change.relation, ()):
        clause = resolved.clauses[number]
        heads = [head for head in clause.heads if head.relation == change.relation]
        for head in heads:
            for conjunction in patterns.body_conjunctions(clause):
                binding = patterns.bind_constants(
                    conjunction, patterns.match_atom(head, change.pattern)
                )
                if binding is None:
                    continue
                if not change.sign and not has_event(resolved, conjunction):
                    yield None
                for item in conjunction:
                    atom = item.atom if isinstance(item, Negation) else item
                    if isinstance(atom, Atom):
                        sign = _sign(resolved, change, item)
                        if sign is not None:
                            yield ChangePattern(
                                sign, atom.relation, patterns.pattern_of(atom, binding)
                            )
                    for inner in _atoms_in_aggregates(item) if change.sign else ():
                        pattern = patterns.pattern_of(inner, {})
                        yield from (ChangePattern(s, inner.relation, pattern) for s in "+-")


def _sign(resolved: ResolvedProgram, change: ChangePattern, item: Item) -> str | None:
    """Return the sign of the change of a literal that causes a change; None if it does not."""
    if change.sign:
        return opposite_sign(change.sign) if isinstance(item, Negation) else change.sign
    if isinstance(item, Atom) and (item.sign or item.relation in resolved.events):
        return item.sign
    return None


def _atoms_in_aggregates(item: Item) -> Iterator[Atom]:
    """Return the atoms inside the aggregates of an item, at any depth."""
    return (use.atom for use in atom_uses(Clause((), (item,))) if use.is_aggregated)
