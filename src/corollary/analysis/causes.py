"""Causes: the changes of base relations that may set off a trigger.

The reverse of `triggering`: from the delta literals of a body back through event predicates and
rules, signs flipped at negations and both at aggregates, with the constants that are known.
"""

from collections.abc import Iterator

from corollary.analysis.patterns import bound, covers, matched, may_agree, pattern_of, ways
from corollary.analysis.survey import Survey
from corollary.analysis.traverse import Item, aggregates_in
from corollary.analysis.triggering import Change, flipped, has_event
from corollary.core.rules import Atom, Negation, terms_of, walk

Causes = tuple[Change, ...] | None
"""None if any change may be a cause: the body has no positive event."""


def causes(survey: Survey, number: int) -> Causes:
    """Return the changes of base relations that may set off the trigger of a clause."""
    work: list[Change] = []
    for way in ways(survey.clauses[number]):
        binding = bound(way, {})
        if binding is None:
            continue
        if not has_event(survey, way):
            return None
        work += [
            Change(item.sign, item.relation, pattern_of(item, binding))
            for item in way
            if isinstance(item, Atom) and (item.sign or item.relation in survey.events)
        ]
    found: list[Change] = []
    while work:
        change = work.pop()
        known = [e for e in found if (e.sign, e.relation) == (change.sign, change.relation)]
        if any(covers(each.pattern, change.pattern) for each in known):
            continue
        found.append(change)
        behind = list(_behind(survey, change))
        if any(each is None for each in behind):
            return None
        work += [each for each in behind if each is not None]
    return tuple(each for each in found if each.relation not in survey.derived)


def have_one_cause(one: Causes, other: Causes) -> bool:
    """Whether a change of one tuple may set off both."""
    if one is None or other is None:
        return True
    return any(
        (left.sign, left.relation) == (right.sign, right.relation)
        and may_agree(left.pattern, right.pattern)
        for left in one
        for right in other
    )


def _behind(survey: Survey, change: Change) -> Iterator[Change | None]:
    """Yield the changes that a change comes from, one rule back; None for any change."""
    for number in survey.definitions.get(change.relation, ()):
        clause = survey.clauses[number]
        for head in clause.heads:
            for way in ways(clause) if head.relation == change.relation else ():
                binding = bound(way, matched(head, change.pattern))
                if binding is None:
                    continue
                if not change.sign and not has_event(survey, way):
                    yield None
                for item in way:
                    atom = item.atom if isinstance(item, Negation) else item
                    if isinstance(atom, Atom):
                        sign = _sign(survey, change, item)
                        if sign is not None:
                            yield Change(sign, atom.relation, pattern_of(atom, binding))
                    if change.sign:
                        yield from _aggregated(item)


def _sign(survey: Survey, change: Change, item: Item) -> str | None:
    """Return the sign with which a literal of a rule brings about a change; None if it does not."""
    if change.sign:
        return flipped(change.sign) if isinstance(item, Negation) else change.sign
    if isinstance(item, Atom) and (item.sign or item.relation in survey.events):
        return item.sign
    return None


def _aggregated(item: Item) -> Iterator[Change]:
    """Yield the changes of what is aggregated: both signs, with the constants of the atoms."""
    for term in terms_of(item):
        for aggregate in aggregates_in(term):
            for inner in walk(aggregate.body):
                atom = inner.atom if isinstance(inner, Negation) else inner
                if isinstance(atom, Atom):
                    for sign in "+-":
                        yield Change(sign, atom.relation, pattern_of(atom, {}))
                yield from _aggregated(inner)
