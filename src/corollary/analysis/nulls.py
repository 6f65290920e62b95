"""Where null can get to: the variables of a clause that may be null when it holds.

A variable is null only if it comes from a nullable column and nothing tests it. It is tested by a
second body position (an atom, a negated atom, an aggregate's body) and by any comparison, since
those do not hold for null. Each position is a point of evidence, a test or a not-null column is
two, an alternative counts for what its weakest branch gives; with two points it is not null.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import assert_never

from corollary.analysis.survey import Survey
from corollary.analysis.traverse import aggregates_in, variables
from corollary.core.rules import Atom, BodyItem, Clause, Comparison, Disjunction, Negation, Truth
from corollary.core.terms import Aggregate, Constant, Functor, Term, Variable, Wildcard

Nullability = Mapping[str, tuple[bool, ...]]
"""For each relation, which of its columns may be null."""

_ENOUGH = 2


def nullable_columns(survey: Survey) -> Nullability:
    """Return which columns may be null, those of undeclared event predicates included."""
    found = {
        name: tuple(type_ is not None and type_.nullable for type_ in shape.types)
        for name, shape in survey.shapes.items()
    }
    undeclared = {name for name, shape in survey.shapes.items() if shape.declaration is None}
    pending = deque(sorted({n for name in undeclared for n in survey.definitions[name]}))
    readers: defaultdict[str, list[int]] = defaultdict(list)
    for number in pending:
        for reading in survey.readings[number]:
            readers[reading.atom.relation].append(number)
    while pending:
        clause = survey.clauses[pending.popleft()]
        loose = nullable_variables(clause, found)
        for head in clause.heads:
            old = found.get(head.relation, ())
            if head.relation not in undeclared or len(old) != len(head.arguments):
                continue
            new = tuple(
                was or is_nullable(term, loose)
                for was, term in zip(old, head.arguments, strict=True)
            )
            if new != old:
                found[head.relation] = new
                pending += readers[head.relation]
    return found


def is_nullable(term: Term, loose: frozenset[str]) -> bool:
    """Whether a term may be null, where some variables may."""
    match term:
        case Variable(name=name):
            return name in loose
        case Constant(value=value):
            return value is None
        case Functor(arguments=arguments):
            return any(is_nullable(argument, loose) for argument in arguments)
        case Wildcard() | Aggregate():
            return False
        case _:
            assert_never(term)


def nullable_variables(clause: Clause, columns: Nullability) -> frozenset[str]:
    """Return the variables that may be null when the clause holds, those of aggregates too."""
    points = _evidence(clause.body, columns)
    for head in clause.heads:
        for term in head.arguments:
            for aggregate in aggregates_in(term):
                points.update(_evidence(aggregate.body, columns))
    return frozenset(name for name, found in points.items() if found < _ENOUGH)


def _evidence(items: Iterable[BodyItem], columns: Nullability) -> Counter[str]:
    points: Counter[str] = Counter()
    partial: dict[str, int] = {}
    for item in items:
        match item:
            case Atom():
                points.update(_in_atom(item, columns, 2))
            case Negation(atom=atom):
                points.update(_in_atom(atom, columns, 1))
            case Comparison(left=left, right=right):
                for term in (left, right):
                    points.update(_in_term(term, columns))
            case Disjunction(alternatives=alternatives):
                branches = [_evidence(branch, columns) for branch in alternatives]
                for name in {name for branch in branches for name in branch}:
                    points[name] += min(branch[name] for branch in branches)
                    partial[name] = min(branch[name] for branch in branches if name in branch)
            case Truth():
                pass
            case _:
                assert_never(item)
    # What stands in some branches and nowhere else is a variable of those branches alone.
    return points + Counter({name: most for name, most in partial.items() if not points[name]})


def _in_atom(atom: Atom, columns: Nullability, not_null: int) -> Counter[str]:
    points: Counter[str] = Counter()
    nullable = columns.get(atom.relation, ())
    for position, term in enumerate(atom.arguments):
        if isinstance(term, Variable):
            loose = position < len(nullable) and nullable[position]
            points[term.name] += 1 if loose else not_null
        else:
            points.update(_in_term(term, columns))
    return points


def _in_term(term: Term, columns: Nullability) -> Counter[str]:
    """Return the evidence of a term that is compared: all its variables have a value."""
    points: Counter[str] = Counter()
    inner = list(aggregates_in(term))
    for aggregate in inner:
        points.update(_evidence(aggregate.body, columns))
    if not isinstance(term, Aggregate):
        inside = {v.name for aggregate in inner for v in variables(aggregate)}
        points.update({v.name: _ENOUGH for v in variables(term) if v.name not in inside})
    return points
