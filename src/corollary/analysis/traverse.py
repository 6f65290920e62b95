"""Traversals and changes of a clause: its atoms, terms, aggregates and conjunctions."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from enum import StrEnum
from itertools import product
from typing import assert_never, overload

from corollary.core import logic
from corollary.core.graph import closure_of
from corollary.core.windows import has_window
from corollary.data_class import dataclass

Item = logic.Atom | logic.Negation | logic.Comparison | logic.Truth


@dataclass(frozen=True, slots=True)
class AtomUse:
    """An atom that a clause reads, and whether it is negated or inside an aggregate."""

    atom: logic.Atom
    is_negated: bool
    is_aggregated: bool


def atom_uses(clause: logic.Clause) -> Iterator[AtomUse]:
    """Yield the atoms that a clause reads, aggregates entered, in the order of the text."""
    for head in clause.heads:
        for term in head.arguments:
            yield from _uses_in_term(term)
    yield from _uses_in_body(clause.body, is_aggregated=has_window(clause))


def _uses_in_body(items: tuple[logic.BodyItem, ...], is_aggregated: bool) -> Iterator[AtomUse]:
    for item in logic.literals_of(items):
        if isinstance(item, logic.Atom):
            yield AtomUse(item, False, is_aggregated)
        elif isinstance(item, logic.Negation):
            yield AtomUse(item.atom, True, is_aggregated)
        for term in logic.terms_of(item):
            yield from _uses_in_term(term)


def _uses_in_term(term: logic.Term) -> Iterator[AtomUse]:
    for aggregate in aggregates_in(term):
        yield from _uses_in_body(aggregate.body, is_aggregated=True)
        if aggregate.target is not None:
            yield from _uses_in_term(aggregate.target)


def aggregates_of(items: Iterable[logic.BodyItem]) -> Iterator[logic.AggregateTerm]:
    """Yield the outermost aggregates of heads and body items, those in disjunctions too."""
    for item in logic.literals_of(tuple(items)):
        for term in logic.terms_of(item):
            yield from aggregates_in(term)


def equations(
    items: Iterable[logic.BodyItem | logic.Condition],
) -> Iterator[tuple[logic.Term, logic.Term]]:
    """Yield the two sides of each equation, both ways round."""
    for item in items:
        if (
            isinstance(item, logic.Comparison | logic.Condition)
            and item.operator in logic.EQUATIONS
        ):
            yield from ((item.left, item.right), (item.right, item.left))


def bound_by_equations(
    bound: Iterable[str],
    items: Iterable[logic.BodyItem | logic.Condition],
    needed_by: Callable[[logic.Term], Iterable[logic.Variable]] = logic.variables_of,
) -> set[str]:
    """Return bound variables, and those to which equations give a value by them."""
    return closure_of(
        bound,
        (
            ({variable.name for variable in needed_by(other)}, one.name)
            for one, other in equations(items)
            if isinstance(one, logic.Variable)
        ),
    )


def aggregates_in(term: logic.Term) -> Iterator[logic.AggregateTerm]:
    """Yield the outermost aggregates of a term."""
    for part in logic.subterms(term):
        if isinstance(part, logic.AggregateTerm):
            yield part


class TermPosition(StrEnum):
    """Where a term occurs."""

    HEAD = "head"
    ARGUMENT = "argument of an atom"
    NEGATED = "argument of a negated atom"
    EQUATED = "equal to a variable"
    COMPARED = "side of a comparison"
    IS = "side of `is`"
    TARGET = "target of an aggregate"


def clause_terms(clause: logic.Clause) -> Iterator[tuple[logic.Term, TermPosition]]:
    """Yield the terms of heads and literals, then those inside their aggregates, level by level."""
    outer = [(term, TermPosition.HEAD) for head in clause.heads for term in head.arguments]
    outer += _terms_of_body(clause.body)
    while outer:
        inner: list[tuple[logic.Term, TermPosition]] = []
        for term, position in outer:
            yield term, position
            for aggregate in aggregates_in(term):
                inner += _terms_of_body(aggregate.body)
                if aggregate.target is not None:
                    inner.append((aggregate.target, TermPosition.TARGET))
        outer = inner


def _terms_of_body(items: tuple[logic.BodyItem, ...]) -> Iterator[tuple[logic.Term, TermPosition]]:
    for item in logic.literals_of(items):
        match item:
            case logic.Atom(arguments=arguments):
                yield from ((term, TermPosition.ARGUMENT) for term in arguments)
            case logic.Negation(atom=atom):
                yield from ((term, TermPosition.NEGATED) for term in atom.arguments)
            case logic.Comparison(operator="is", left=left, right=right):
                yield from ((term, TermPosition.IS) for term in (left, right))
            case logic.Comparison(operator=operator, left=left, right=right):
                for term, other in ((left, right), (right, left)):
                    is_value = operator == "=" and isinstance(other, logic.Variable)
                    yield term, TermPosition.EQUATED if is_value else TermPosition.COMPARED
            case logic.Truth():
                pass
            case _:
                assert_never(item)


def all_variables(term: logic.Term) -> Iterator[logic.Variable]:
    """Yield the variables of a term, those inside aggregates too."""
    for part in logic.subterms(term):
        match part:
            case logic.Variable():
                yield part
            case logic.AggregateTerm(target=target, body=body):
                if target is not None:
                    yield from all_variables(target)
                yield from all_variables_in(body)
            case logic.Wildcard() | logic.Constant() | logic.Functor():
                pass
            case _:
                assert_never(part)


def all_variables_in(items: tuple[logic.BodyItem, ...]) -> Iterator[logic.Variable]:
    """Yield the variables of a body, those inside aggregates too."""
    for item in logic.literals_of(items):
        for term in logic.terms_of(item):
            yield from all_variables(term)


ChangeTerm = Callable[[logic.Term], logic.Term]
ChangeAtom = Callable[[logic.Atom], logic.Atom]
"""Changes a term; what is inside of it is changed already."""


def _same(atom: logic.Atom) -> logic.Atom:
    return atom


@overload
def replace_terms(
    item: logic.Atom, change: ChangeTerm, change_atom: ChangeAtom = _same
) -> logic.Atom: ...
@overload
def replace_terms(
    item: logic.BodyItem, change: ChangeTerm, change_atom: ChangeAtom = _same
) -> logic.BodyItem: ...
def replace_terms(
    item: logic.BodyItem, change: ChangeTerm, change_atom: ChangeAtom = _same
) -> logic.BodyItem:
    """Return an item with its terms changed, and then its atoms.

    What is inside of a term is up to the change.
    """
    match item:
        case logic.Atom(arguments=arguments):
            return change_atom(replace(item, arguments=tuple(map(change, arguments))))
        case logic.Negation(atom=atom):
            return replace(item, atom=replace_terms(atom, change, change_atom))
        case logic.Comparison(left=left, right=right):
            return replace(item, left=change(left), right=change(right))
        case logic.Disjunction(alternatives=alternatives):
            made = (
                tuple(replace_terms(each, change, change_atom) for each in body)
                for body in alternatives
            )
            return replace(item, alternatives=tuple(made))
        case logic.Truth():
            return item
        case _:
            assert_never(item)


def replace_part(term: logic.Term, part: logic.Term, by: logic.Term) -> logic.Term:
    """Return a term with another one in place of a part of it, which is not inside an aggregate."""

    def swapped(each: logic.Term, arguments: tuple[logic.Term, ...]) -> logic.Term:
        if each is part:
            return by
        return replace(each, arguments=arguments) if isinstance(each, logic.Functor) else each

    return logic.fold_term(term, swapped)


def map_term(term: logic.Term, change: ChangeTerm, change_atom: ChangeAtom = _same) -> logic.Term:
    """Return a term that is changed, and all that is inside of it, aggregates too."""

    def in_part(part: logic.Term, arguments: tuple[logic.Term, ...]) -> logic.Term:
        match part:
            case logic.Functor():
                return change(replace(part, arguments=arguments))
            case logic.AggregateTerm(target=target, body=body):
                aim = None if target is None else map_term(target, change, change_atom)
                return change(replace(part, target=aim, body=map_body(body, change, change_atom)))
            case logic.Variable() | logic.Constant() | logic.Wildcard():
                return change(part)
            case _:
                assert_never(part)

    return logic.fold_term(term, in_part)


def map_body(
    items: Iterable[logic.BodyItem], change: ChangeTerm, change_atom: ChangeAtom = _same
) -> tuple[logic.BodyItem, ...]:
    """Return a body with its terms changed, and then its atoms, those inside aggregates first."""

    def in_term(term: logic.Term) -> logic.Term:
        return map_term(term, change, change_atom)

    return tuple(replace_terms(each, in_term, change_atom) for each in items)


def map_clause(
    clause: logic.Clause, change: ChangeTerm, change_atom: ChangeAtom = _same
) -> logic.Clause:
    """Return a clause with its terms changed, and then its atoms."""

    def in_term(term: logic.Term) -> logic.Term:
        return map_term(term, change, change_atom)

    heads = tuple(replace_terms(each, in_term, change_atom) for each in clause.heads)
    return replace(clause, heads=heads, body=map_body(clause.body, change, change_atom))


def has_nested_scope(clause: logic.Clause) -> bool:
    """Whether the clause has a disjunction or an aggregate."""
    return any(isinstance(item, logic.Disjunction) for item in clause.body) or any(
        isinstance(part, logic.AggregateTerm)
        for term, _ in clause_terms(clause)
        for part in logic.subterms(term)
    )


def count_conjunctions(items: Iterable[logic.BodyItem]) -> int:
    """Return how many conjunctions the body multiplies out to."""
    total = 1
    for item in items:
        if isinstance(item, logic.Disjunction):
            total *= sum(count_conjunctions(branch) for branch in item.alternatives)
    return total


def conjunctions(items: tuple[logic.BodyItem, ...]) -> Iterator[tuple[Item, ...]]:
    """Yield the conjunctions that a body multiplies out to."""
    if not any(isinstance(item, logic.Disjunction) for item in items):
        yield tuple(logic.literals_of(items))
        return
    choices: list[list[tuple[Item, ...]]] = []
    for item in items:
        match item:
            case logic.Disjunction(alternatives=alternatives):
                choices.append([way for branch in alternatives for way in conjunctions(branch)])
            case logic.Atom() | logic.Negation() | logic.Comparison() | logic.Truth():
                choices.append([(item,)])
            case _:
                assert_never(item)
    for choice in product(*choices):
        yield tuple(literal for chosen in choice for literal in chosen)
