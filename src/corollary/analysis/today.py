"""`today()` becomes a variable that a base relation of one tuple binds, so that it is maintained.

`late(x) :- order(x, due), due < today().` becomes

    late(x) :- order(x, due), due < `today()`, corollary.today(`today()`).

The relation is declared where it is used. An aggregate that uses `today()` reads it by itself.
"""

from dataclasses import replace
from functools import partial
from typing import assert_never

from corollary.analysis.traverse import replace_terms
from corollary.core import logic
from corollary.core.program import Column, Declaration, NormalProgram, Program, Relation, TypeName
from corollary.core.syntax import TODAY
from corollary.core.types import DATE

TODAY_RELATION = "corollary.today"
"""The relation of the day; users set it with `--today` and `set_today`."""

TODAY_COLUMN = "day"
_VARIABLE = f"{TODAY}()"


def today_relation() -> Relation:
    """Return the relation of the day in normal form."""
    return Relation(TODAY_RELATION, (TODAY_COLUMN,), (DATE,), is_derived=False)


def is_today(variable: logic.Variable) -> bool:
    """Whether a variable stands for a `today()` of the text."""
    return variable.name.startswith(_VARIABLE)


def with_today(program: Program, before: NormalProgram | None = None) -> Program:
    """Return a program in which a relation gives the day; the same one if there is no `today()`.

    Args:
        program: as written.
        before: the program in force until now, whose day is kept.
    """
    is_used = any(logic.applies_functor(each, (TODAY,)) for each in program.clauses)
    is_kept = before is not None and TODAY_RELATION in before.relations
    if not is_used and not is_kept:
        return program
    clauses = tuple(_Replacement().clause(clause) for clause in program.clauses)
    declarations = program.declarations
    if all(each.name != TODAY_RELATION for each in declarations):
        columns = (Column(TODAY_COLUMN, TypeName(str(DATE))),)
        declarations = (*declarations, Declaration(TODAY_RELATION, columns))
    return replace(program, clauses=clauses, declarations=declarations)


class _Replacement:
    """Replaces `today()` in one clause; each aggregate has a variable of its own."""

    def __init__(self) -> None:
        self._count = 0

    def clause(self, clause: logic.Clause) -> logic.Clause:
        name = self._next()
        term = partial(self._term, name=name)
        heads = tuple(replace_terms(head, term) for head in clause.heads)
        body = tuple(replace_terms(item, term) for item in clause.body)
        if heads == clause.heads and body == clause.body:
            return clause
        return replace(clause, heads=heads, body=self._bound((*heads, *body), body, name))

    def _next(self) -> str:
        self._count += 1
        return _VARIABLE if self._count == 1 else f"{_VARIABLE} {self._count}"

    def _bound(
        self, items: tuple[logic.BodyItem, ...], body: tuple[logic.BodyItem, ...], name: str
    ) -> tuple[logic.BodyItem, ...]:
        """Return a body that binds a variable, if some items use it."""
        variable = logic.Variable(name)
        terms = (term for item in logic.literals_of(items) for term in logic.terms_of(item))
        if not any(variable in logic.variables_of(term) for term in terms):
            return body
        return (*body, logic.Atom(TODAY_RELATION, (variable,)))

    def _term(self, term: logic.Term, name: str) -> logic.Term:
        match term:
            case logic.Functor(name=functor, arguments=()) if functor == TODAY:
                return logic.Variable(name, span=term.span)
            case logic.Functor(arguments=arguments):
                return replace(term, arguments=tuple(self._term(each, name) for each in arguments))
            case logic.AggregateTerm():
                return self._aggregate(term)
            case logic.Variable() | logic.Constant() | logic.Wildcard():
                return term
            case _:
                assert_never(term)

    def _aggregate(self, term: logic.AggregateTerm) -> logic.AggregateTerm:
        name = self._next()
        body = tuple(replace_terms(each, partial(self._term, name=name)) for each in term.body)
        target = None if term.target is None else self._term(term.target, name)
        if (body, target) == (term.body, term.target):
            return term
        used = body if target is None else (*body, logic.Comparison("=", target, target))
        return replace(term, target=target, body=self._bound(used, body, name))
