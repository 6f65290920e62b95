"""Safety: every variable is bound.

A variable is bound by a positive atom, also inside a record there, or by `x = e` once all variables
of `e` are bound; `[x, y] = e` binds two. Heads,
negated atoms, comparisons and functors need bound variables. Each conjunction that a body
multiplies out to is checked separately; an aggregate's body may use what is bound outside it, and
what it binds stays inside.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field

from corollary.analysis import traverse
from corollary.analysis.patterns import equated_terms, pattern_terms, pattern_variables
from corollary.analysis.phrases import related_spans
from corollary.analysis.resolution import ResolvedProgram
from corollary.analysis.scopes import written_name
from corollary.core import logic
from corollary.core.graph import closure_of
from corollary.data_class import dataclass
from corollary.errors import Diagnostic

CONJUNCTIONS_MAX = 4096
"""The maximum number of conjunctions that a body may multiply out to."""

_NO_WILDCARD = {
    traverse.TermPosition.HEAD: "stand in a head",
    traverse.TermPosition.EQUATED: "be compared",
    traverse.TermPosition.COMPARED: "be compared",
    traverse.TermPosition.IS: "be compared",
    traverse.TermPosition.TARGET: "be aggregated",
}


_PATTERNS = (
    traverse.TermPosition.ARGUMENT,
    traverse.TermPosition.NEGATED,
    traverse.TermPosition.EQUATED,
)
"""Where a record may have `_` for a field."""


def safety(resolved: ResolvedProgram) -> Iterator[Diagnostic]:
    """Yield the unbound variables, each once in a clause."""
    for clause in resolved.clauses:
        yield from _wildcards(clause)
        if not clause.body:
            yield from _fact(clause)
            continue
        if traverse.count_conjunctions(clause.body) > CONJUNCTIONS_MAX:
            yield Diagnostic(
                "C0407",
                "The alternatives of this rule multiply out to more than "
                f"{CONJUNCTIONS_MAX} rules.",
                clause.span,
                "define a relation for each disjunction",
            )
            continue
        heads = tuple(term for head in clause.heads for term in head.arguments)
        yield from _ClauseCheck().check(clause.body, heads, frozenset(), traverse.TermPosition.HEAD)


def _wildcards(clause: logic.Clause) -> Iterator[Diagnostic]:
    for whole, position in traverse.clause_terms(clause):
        if isinstance(whole, logic.Variable) or (
            isinstance(whole, logic.Wildcard)
            and position in (traverse.TermPosition.ARGUMENT, traverse.TermPosition.NEGATED)
        ):
            continue
        may_be_pattern = position in _PATTERNS
        in_patterns = {id(each) for each in pattern_terms(whole)} if may_be_pattern else set()
        for part in logic.subterms(whole):
            if isinstance(part, logic.Wildcard) and (part is whole or id(part) not in in_patterns):
                where = _NO_WILDCARD.get(position) if part is whole else None
                yield Diagnostic(
                    "C0405",
                    f"`_` has no value and cannot {where or 'be computed with'}.",
                    part.span,
                    "name it, and bind the name in the body",
                )


def _fact(clause: logic.Clause) -> Iterator[Diagnostic]:
    for head in clause.heads:
        for term in head.arguments:
            for part in logic.subterms(term):
                if isinstance(part, logic.Variable):
                    yield Diagnostic(
                        "C0406",
                        f"A fact holds values only, but `{written_name(part.name)}` is a variable.",
                        part.span,
                        "write a symbol in quotes, or give the clause a body",
                    )


@dataclass(slots=True)
class _VariableUse:
    """An occurrence that needs a bound variable, and the message if it is not bound."""

    code: str
    message: str
    note: str
    variable: logic.Variable


@dataclass(slots=True)
class _ClauseCheck:
    """The check of one clause; a variable is reported once."""

    seen: set[str] = field(default_factory=set)

    def check(
        self,
        body: tuple[logic.BodyItem, ...],
        outside: tuple[logic.Term, ...],
        given: frozenset[str],
        position: traverse.TermPosition,
    ) -> Iterator[Diagnostic]:
        """Yield what is not bound in a body and the terms computed from it."""
        for items in traverse.conjunctions(body):
            own = [*outside, *(term for item in items for term in logic.terms_of(item))]
            here = {v.name for term in own for v in logic.variables_of(term)}
            bound = _bind(items, here, given)
            for use in _root_causes(_uses(items, outside, position), items, here, bound):
                if use.variable.name not in self.seen:
                    self.seen.add(use.variable.name)
                    yield _finding(use, own)
            for term in own:
                for aggregate in traverse.aggregates_in(term):
                    target = () if aggregate.target is None else (aggregate.target,)
                    inner = frozenset(given | here)
                    yield from self.check(
                        aggregate.body, target, inner, traverse.TermPosition.TARGET
                    )


def _needs(term: logic.Term, here: set[str]) -> set[str]:
    """Return the variables that must be bound before a term has a value."""
    keys = {
        v.name
        for a in traverse.aggregates_in(term)
        for v in traverse.all_variables(a)
        if v.name in here
    }
    return keys | {v.name for v in logic.variables_of(term)}


def _definitions(items: Sequence[traverse.Item], here: set[str]) -> Iterator[tuple[str, set[str]]]:
    for item in items:
        if isinstance(item, logic.Comparison) and item.operator in logic.EQUATIONS:
            for left, right in equated_terms(item.left, item.right):
                for one, other in ((left, right), (right, left)):
                    for part in pattern_terms(one):
                        if isinstance(part, logic.Variable):
                            yield part.name, _needs(other, here)


def _bind(items: Sequence[traverse.Item], here: set[str], given: frozenset[str]) -> set[str]:
    """Return the bound variables: of positive atoms, and what equalities define from them."""
    bound = set(given)
    for item in items:
        if isinstance(item, logic.Atom):
            bound |= {variable.name for variable in pattern_variables(item)}
    return closure_of(bound, ((needs, name) for name, needs in _definitions(items, here)))


def _uses(
    items: Sequence[traverse.Item], outside: tuple[logic.Term, ...], position: traverse.TermPosition
) -> Iterator[_VariableUse]:
    """Yield the occurrences that need bound variables, those of the head first."""
    code, what = (
        ("C0401", "of the head")
        if position is traverse.TermPosition.HEAD
        else ("C0403", "to aggregate")
    )
    for term in outside:
        for variable in logic.variables_of(term):
            name = written_name(variable.name)
            message = f"Variable `{name}` {what} is not bound by the body."
            note = f"let it occur in a positive atom, or define it: `{name} = …`"
            yield _VariableUse(code, message, note, variable)
    for item in items:
        if isinstance(item, logic.Negation):
            for term in item.atom.arguments:
                for variable in logic.variables_of(term):
                    message = (
                        f"Variable `{written_name(variable.name)}` of the negated "
                        f"`{item.atom.relation}` is not bound."
                    )
                    note = "bind it in a positive atom, or write `_` for any value"
                    yield _VariableUse("C0402", message, note, variable)
    for item in items:
        if isinstance(item, logic.Comparison | logic.Atom):
            for term in logic.terms_of(item):
                if not (isinstance(item, logic.Atom) and isinstance(term, logic.Variable)):
                    for variable in logic.variables_of(term):
                        message = f"Variable `{written_name(variable.name)}` is used but not bound."
                        note = "comparisons and functors need values: bind it in a positive atom"
                        yield _VariableUse("C0403", message, note, variable)


def _root_causes(
    uses: Iterator[_VariableUse], items: Sequence[traverse.Item], here: set[str], bound: set[str]
) -> list[_VariableUse]:
    """Return the first use of each unbound variable that is not computed from another one."""
    if here <= bound:
        return []
    computed = {
        name for name, needs in _definitions(items, here) if needs - bound and name not in needs
    }
    first: dict[str, _VariableUse] = {}
    for use in uses:
        if use.variable.name not in bound:
            first.setdefault(use.variable.name, use)
    causes = [use for name, use in first.items() if name not in computed]
    return causes or list(first.values())


def _finding(use: _VariableUse, own: Sequence[logic.Term]) -> Diagnostic:
    name = use.variable.name
    for term in own:
        for aggregate in traverse.aggregates_in(term):
            if any(variable.name == name for variable in traverse.all_variables(aggregate)):
                return Diagnostic(
                    "C0404",
                    f"Variable `{written_name(name)}` is bound inside an aggregate only.",
                    use.variable.span,
                    "its values stay inside; bind it outside to make it a key of the aggregate",
                    related_spans((aggregate.span, f"`{written_name(name)}` is bound here")),
                )
    return Diagnostic(use.code, use.message, use.variable.span, use.note)
