"""Witnesses: which assignments have the least or greatest value that an aggregate finds.

A variable of the body of `min` or `max` that the rule uses outside, but binds nowhere outside, is a
witness. The body is asked once more for the value that was found:

    youngest(p, n) :- n = min x : { family(p, x) }.
    youngest(p, n) :- n = min x : { family(p', x) }, family(p, x'), x' = n.

All assignments with that value are witnesses. Other aggregates have none: C0404 says so.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from corollary.analysis import traverse
from corollary.analysis.patterns import pattern_terms, pattern_variables
from corollary.core import logic
from corollary.core.graph import closure_of
from corollary.core.program import Program
from corollary.core.syntax import EXTREMES


def with_witnesses(program: Program) -> Program:
    """Return a program in which witnesses are bound; the same one if there are none."""
    clauses = tuple(map(_with_witnesses, program.clauses))
    return program if clauses == program.clauses else replace(program, clauses=clauses)


def _with_witnesses(clause: logic.Clause) -> logic.Clause:
    terms = [term for item in (*clause.heads, *clause.body) for term in _terms(item)]
    extremes = [
        aggregate
        for term in terms
        for aggregate in traverse.aggregates_in(term)
        if aggregate.operator in EXTREMES
    ]
    if not extremes:
        return clause
    used = {variable.name for term in terms for variable in logic.variables_of(term)}
    bound = _bound(clause.body)
    taken = {variable.name for term in terms for variable in traverse.all_variables(term)}
    taken |= {variable.name for variable in traverse.all_variables_in(clause.body)}
    for aggregate in extremes:
        inside = {
            variable.name
            for item in logic.literals_of(aggregate.body)
            for term in logic.terms_of(item)
            for variable in logic.variables_of(term)
        }
        witnesses = (inside & used) - bound
        if witnesses:
            clause = _ask_again(clause, aggregate, witnesses, inside - used, taken)
    return clause


def _terms(item: logic.BodyItem) -> tuple[logic.Term, ...]:
    return () if isinstance(item, logic.Disjunction) else logic.terms_of(item)


def _bound(body: tuple[logic.BodyItem, ...]) -> set[str]:
    """Return the variables that atoms and equations bind; those of alternatives count as bound."""
    bound: set[str] = set()
    for item in body:
        match item:
            case logic.Atom():
                bound |= {each.name for each in pattern_variables(item)}
            case logic.Disjunction():
                bound |= {each.name for each in traverse.all_variables_in((item,))}
            case logic.Negation() | logic.Comparison() | logic.Truth():
                pass
            case _:
                assert_never(item)
    return closure_of(
        bound,
        (
            ({variable.name for variable in logic.variables_of(other)}, part.name)
            for one, other in traverse.equations(body)
            for part in pattern_terms(one)
            if isinstance(part, logic.Variable)
        ),
    )


def _ask_again(
    clause: logic.Clause,
    aggregate: logic.AggregateTerm,
    witnesses: set[str],
    local: set[str],
    taken: set[str],
) -> logic.Clause:
    """Return the clause in which the body of an aggregate binds its witnesses."""
    hidden = {name: _fresh(name, taken) for name in sorted(witnesses)}
    value = logic.Variable(_fresh(aggregate.operator, taken), span=aggregate.span)
    copied = _rename(aggregate, {name: _fresh(name, taken) for name in sorted(local)})
    assert copied.target is not None
    items = (
        *(_substitute(item, aggregate, value) for item in clause.body),
        logic.Comparison("=", value, _rename(aggregate, hidden), aggregate.span),
        *copied.body,
        logic.Comparison("=", copied.target, value, aggregate.span),
    )
    heads = tuple(
        traverse.replace_terms(head, lambda each: traverse.replace_part(each, aggregate, value))
        for head in clause.heads
    )
    return replace(clause, heads=heads, body=tuple(item for item in items if item is not None))


def _fresh(name: str, taken: set[str]) -> str:
    """Return a name that the clause does not have; as it begins with `_`, nobody warns of it."""
    fresh = f"_{name}'"
    while fresh in taken:
        fresh += "'"
    taken.add(fresh)
    return fresh


def _substitute(
    item: logic.BodyItem, aggregate: logic.AggregateTerm, value: logic.Variable
) -> logic.BodyItem | None:
    """Return an item with the value in place of the aggregate; None for `_ = aggregate`."""
    if isinstance(item, logic.Disjunction):
        return item
    made = traverse.replace_terms(item, lambda each: traverse.replace_part(each, aggregate, value))
    if isinstance(made, logic.Comparison) and made.operator == "=":
        sides = made.left, made.right
        if value in sides and any(isinstance(side, logic.Wildcard) for side in sides):
            return None
    return made


def _rename(aggregate: logic.AggregateTerm, names: Mapping[str, str]) -> logic.AggregateTerm:
    """Return an aggregate with other names of variables."""

    def renamed(term: logic.Term) -> logic.Term:
        if isinstance(term, logic.Variable):
            return replace(term, name=names.get(term.name, term.name))
        return term

    found = traverse.map_term(aggregate, renamed)
    assert isinstance(found, logic.AggregateTerm)
    return found
