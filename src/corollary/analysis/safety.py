"""Safety: every variable gets its values from somewhere.

A variable is bound by a positive atom, or by `x = e` once all variables of `e` are bound. Heads,
negated atoms, comparisons and functors need bound variables. Each conjunction that a body
multiplies out to is judged by itself; an aggregate's body may use what is bound outside it, and
what it binds stays inside.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from corollary.analysis.scopes import plain
from corollary.analysis.survey import Survey
from corollary.analysis.traverse import (
    Item,
    Place,
    aggregates_in,
    conjunctions,
    count_conjunctions,
    parts,
    terms,
    variables,
)
from corollary.analysis.wording import places
from corollary.core.rules import Atom, BodyItem, Clause, Comparison, Negation, terms_of
from corollary.core.terms import Aggregate, Term, Variable, Wildcard, variables_of
from corollary.errors import Diagnostic

LIMIT = 4096
"""How many conjunctions a body may multiply out to."""

_FORBIDDEN = {
    Place.HEAD: "stand in a head",
    Place.EQUATED: "be compared",
    Place.COMPARED: "be compared",
    Place.TARGET: "be aggregated",
}


def safety(survey: Survey) -> Iterator[Diagnostic]:
    """Yield the variables without values, each once in a clause."""
    for clause in survey.clauses:
        yield from _wildcards(clause)
        if not clause.body:
            yield from _fact(clause)
            continue
        if count_conjunctions(clause.body) > LIMIT:
            yield Diagnostic(
                "C0407",
                f"The alternatives of this rule multiply out to more than {LIMIT} rules.",
                clause.span,
                "define a relation for each disjunction",
            )
            continue
        heads = tuple(term for head in clause.heads for term in head.arguments)
        yield from _Clause().check(clause.body, heads, frozenset(), Place.HEAD)


def _wildcards(clause: Clause) -> Iterator[Diagnostic]:
    for whole, place in terms(clause):
        if isinstance(whole, Variable) or (
            isinstance(whole, Wildcard) and place in (Place.ARGUMENT, Place.NEGATED)
        ):
            continue
        for part in parts(whole):
            if isinstance(part, Wildcard):
                where = _FORBIDDEN.get(place) if part is whole else None
                yield Diagnostic(
                    "C0405",
                    f"`_` has no value and cannot {where or 'be computed with'}.",
                    part.span,
                    "name it, and bind the name in the body",
                )


def _fact(clause: Clause) -> Iterator[Diagnostic]:
    for head in clause.heads:
        for term in head.arguments:
            for part in parts(term):
                if isinstance(part, Variable | Aggregate):
                    what = (
                        f"`{plain(part.name)}` is a variable"
                        if isinstance(part, Variable)
                        else "this is an aggregate"
                    )
                    yield Diagnostic(
                        "C0406",
                        f"A fact holds values only, but {what}.",
                        part.span,
                        "write a symbol in quotes, or give the clause a body",
                    )


@dataclass(slots=True)
class _Use:
    """A place that needs a variable bound."""

    code: str
    message: str
    note: str
    variable: Variable


@dataclass(slots=True)
class _Clause:
    """The check of one clause; a variable is complained of once."""

    seen: set[str] = field(default_factory=set)

    def check(
        self,
        body: tuple[BodyItem, ...],
        outside: tuple[Term, ...],
        given: frozenset[str],
        place: Place,
    ) -> Iterator[Diagnostic]:
        """Yield what is not bound in a body and the terms computed from it."""
        for items in conjunctions(body):
            own = [*outside, *(term for item in items for term in terms_of(item))]
            here = {v.name for term in own for v in variables_of(term)}
            bound = _bind(items, here, given)
            for use in _roots(_uses(items, outside, place), items, here, bound):
                if use.variable.name not in self.seen:
                    self.seen.add(use.variable.name)
                    yield _finding(use, own)
            for term in own:
                for aggregate in aggregates_in(term):
                    target = () if aggregate.target is None else (aggregate.target,)
                    inner = frozenset(given | here)
                    yield from self.check(aggregate.body, target, inner, Place.TARGET)


def _needs(term: Term, here: set[str]) -> set[str]:
    """Return the variables that must be bound before a term has a value."""
    keys = {v.name for a in aggregates_in(term) for v in variables(a) if v.name in here}
    return keys | {v.name for v in variables_of(term)}


def _definitions(items: Sequence[Item], here: set[str]) -> Iterator[tuple[str, set[str]]]:
    for item in items:
        if isinstance(item, Comparison) and item.operator == "=":
            for one, other in ((item.left, item.right), (item.right, item.left)):
                if isinstance(one, Variable):
                    yield one.name, _needs(other, here)


def _bind(items: Sequence[Item], here: set[str], given: frozenset[str]) -> set[str]:
    """Return the variables that are bound, adding what equalities define until none is left."""
    bound = set(given)
    for item in items:
        if isinstance(item, Atom):
            bound |= {term.name for term in item.arguments if isinstance(term, Variable)}
    waiting = [entry for entry in _definitions(items, here) if entry[0] not in bound]
    while True:
        ready = {name for name, needs in waiting if needs <= bound}
        if not ready:
            return bound
        bound |= ready
        waiting = [entry for entry in waiting if entry[0] not in bound]


def _uses(items: Sequence[Item], outside: tuple[Term, ...], place: Place) -> Iterator[_Use]:
    """Yield the places that need bound variables, those of the head first."""
    code, what = ("C0401", "of the head") if place is Place.HEAD else ("C0403", "to aggregate")
    for term in outside:
        for variable in variables_of(term):
            name = plain(variable.name)
            message = f"Variable `{name}` {what} is not bound by the body."
            note = f"let it occur in a positive atom, or define it: `{name} = …`"
            yield _Use(code, message, note, variable)
    for item in items:
        if isinstance(item, Negation):
            for term in item.atom.arguments:
                for variable in variables_of(term):
                    message = (
                        f"Variable `{plain(variable.name)}` of the negated "
                        f"`{item.atom.relation}` is not bound."
                    )
                    note = "bind it in a positive atom, or write `_` for any value"
                    yield _Use("C0402", message, note, variable)
    for item in items:
        if isinstance(item, Comparison | Atom):
            for term in terms_of(item):
                if not (isinstance(item, Atom) and isinstance(term, Variable)):
                    for variable in variables_of(term):
                        message = f"Variable `{plain(variable.name)}` is used but not bound."
                        note = "comparisons and functors need values: bind it in a positive atom"
                        yield _Use("C0403", message, note, variable)


def _roots(
    uses: Iterator[_Use], items: Sequence[Item], here: set[str], bound: set[str]
) -> list[_Use]:
    """Return the first use of each unbound variable that is not merely computed from others."""
    if here <= bound:
        return []
    computed = {
        name for name, needs in _definitions(items, here) if needs - bound and name not in needs
    }
    first: dict[str, _Use] = {}
    for use in uses:
        if use.variable.name not in bound:
            first.setdefault(use.variable.name, use)
    causes = [use for name, use in first.items() if name not in computed]
    return causes or list(first.values())


def _finding(use: _Use, own: Sequence[Term]) -> Diagnostic:
    name = use.variable.name
    for term in own:
        for aggregate in aggregates_in(term):
            if any(variable.name == name for variable in variables(aggregate)):
                return Diagnostic(
                    "C0404",
                    f"Variable `{plain(name)}` is bound inside an aggregate only.",
                    use.variable.span,
                    "its values stay inside; bind it outside to make it a key of the aggregate",
                    places((aggregate.span, f"`{plain(name)}` is bound here")),
                )
    return Diagnostic(use.code, use.message, use.variable.span, use.note)
