"""Scopes of variables: different variables with one name get different names.

A variable of an aggregate's body that does not occur outside is local to it, and a variable that
occurs only inside the alternatives of one disjunction is another one in each. After renaming, a
name means one variable of its clause, so that later passes need not know about scopes.

    p(a, b) :- a = count : { q(x) }, b = count : { r(x) }.
    p(a, b) :- a = count : { q(x) }, b = count : { r(x'2) }.

The target of an aggregate is local where it has the name of the result: `x = min x : { q(x) }`.
Each parameter of a lambda has a name of its own, too.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import assert_never

from corollary.analysis import traverse
from corollary.core import logic
from corollary.core.functors.catalog import HIGHER_ORDER
from corollary.core.functors.lambdas import is_lambda, is_parameter, parameters_of, with_names

NUMBER_SEPARATOR = "\x1f"
"""Separates a name from the number of its variable; no name of the user contains it."""


def written_name(name: str) -> str:
    """Return the name as the user wrote it.

    >>> written_name(f"x{NUMBER_SEPARATOR}2")
    'x'
    """
    return name.partition(NUMBER_SEPARATOR)[0]


def rename_apart(clause: logic.Clause) -> logic.Clause:
    """Return the clause with one name for each variable."""
    if logic.applies_functor(clause, HIGHER_ORDER):
        clause = _with_own_parameters(clause)
    if not traverse.has_nested_scope(clause):
        return clause
    return _Renaming().clause(clause)


def _with_own_parameters(clause: logic.Clause) -> logic.Clause:
    numbers = count(1)

    def change(term: logic.Term) -> logic.Term:
        """Return a lambda with new parameters; those of lambdas inside it are new already."""
        if not is_lambda(term):
            return term
        names = {
            each: f"{each}{NUMBER_SEPARATOR}{next(numbers)}" for each in parameters_of(term.name)
        }

        def rename(part: logic.Term, arguments: tuple[logic.Term, ...]) -> logic.Term:
            if is_parameter(part) and parameters_of(part.name)[0] in names:
                return with_names(part, names.__getitem__)
            return replace(part, arguments=arguments) if isinstance(part, logic.Functor) else part

        body = logic.fold_term(term.arguments[0], rename)
        return with_names(replace(term, arguments=(body,)), names.__getitem__)

    return traverse.map_clause(clause, change)


class _Renaming:
    """Renames the variables of one clause."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._written: set[str] = set()

    def clause(self, clause: logic.Clause) -> logic.Clause:
        head_terms = tuple(term for head in clause.heads for term in head.arguments)
        self._written = {
            variable.name for variable in traverse.all_variables_in((*clause.heads, *clause.body))
        }
        names = self._enter(clause.body, head_terms, {})
        heads = tuple(
            traverse.replace_terms(head, lambda each: self._term(each, names))
            for head in clause.heads
        )
        return replace(clause, heads=heads, body=self._body(clause.body, names))

    def _enter(
        self,
        items: tuple[logic.BodyItem, ...],
        outside: tuple[logic.Term, ...],
        names: Mapping[str, str],
    ) -> dict[str, str]:
        """Return the names visible in a scope: those around it and those it owns."""
        visible = dict(names)
        for name in _owned(items, outside):
            if name not in visible:
                visible[name] = self._fresh(name)
        return visible

    def _fresh(self, name: str) -> str:
        fresh, number = name, 1
        while fresh in self._taken:
            number += 1
            fresh = f"{name}{NUMBER_SEPARATOR}{number}"
        self._taken.add(fresh)
        return fresh

    def _other(self, name: str) -> str:
        """Return a name that the user could have written, and that the clause does not have."""
        number = 2
        while f"{name}_{number}" in self._written:
            number += 1
        self._written.add(f"{name}_{number}")
        return f"{name}_{number}"

    def _body(
        self, items: tuple[logic.BodyItem, ...], names: Mapping[str, str]
    ) -> tuple[logic.BodyItem, ...]:
        return tuple(self._item(item, names) for item in items)

    def _item(self, item: logic.BodyItem, names: Mapping[str, str]) -> logic.BodyItem:
        match item:
            case logic.Atom() | logic.Negation() | logic.Truth():
                return traverse.replace_terms(item, lambda each: self._term(each, names))
            case logic.Comparison(left=left, right=right):
                sides = (
                    self._side(left, right, item.operator, names),
                    self._side(right, left, item.operator, names),
                )
                return replace(item, left=sides[0], right=sides[1])
            case logic.Disjunction(alternatives=alternatives):
                branches = tuple(
                    self._body(branch, self._enter(branch, (), names)) for branch in alternatives
                )
                return replace(item, alternatives=branches)
            case _:
                assert_never(item)

    def _side(
        self, side: logic.Term, other: logic.Term, operator: str, names: Mapping[str, str]
    ) -> logic.Term:
        """Return a side of a comparison; in `x = min x : { … }` the inner `x` is another one."""
        match side, other:
            case logic.AggregateTerm(target=logic.Variable(name=inner)), logic.Variable(name=name):
                if inner == name and operator == "=":
                    names = {**names, name: self._other(name)}
            case _:
                pass
        return self._term(side, names)

    def _term(self, term: logic.Term, names: Mapping[str, str]) -> logic.Term:
        def rename(part: logic.Term, arguments: tuple[logic.Term, ...]) -> logic.Term:
            match part:
                case logic.Variable(name=name):
                    return part if names[name] == name else replace(part, name=names[name])
                case logic.Functor():
                    return replace(part, arguments=arguments)
                case logic.AggregateTerm(target=target, body=body):
                    inside = self._enter(body, () if target is None else (target,), names)
                    return replace(
                        part,
                        target=None if target is None else self._term(target, inside),
                        body=self._body(body, inside),
                    )
                case logic.Wildcard() | logic.Constant():
                    return part
                case _:
                    assert_never(part)

        return logic.fold_term(term, rename)


def _owned(items: tuple[logic.BodyItem, ...], outside: tuple[logic.Term, ...]) -> dict[str, None]:
    """Return the names that a scope owns.

    They occur in its own literals, or in two of its disjunctions and aggregates: what occurs in one
    only belongs to the alternatives or the body in there.
    """
    own = list(outside)
    disjunctions: list[logic.Disjunction] = []
    for item in items:
        if isinstance(item, logic.Disjunction):
            disjunctions.append(item)
        else:
            own += logic.terms_of(item)
    owned = {variable.name: None for term in own for variable in logic.variables_of(term)}
    if disjunctions:
        branches = [{v.name for v in traverse.all_variables_in((item,))} for item in disjunctions]
        branches += [
            {v.name for v in traverse.all_variables(a)}
            for term in own
            for a in traverse.aggregates_in(term)
        ]
        for at, disjunction in enumerate(disjunctions):
            others = set().union(*branches[:at], *branches[at + 1 :])
            for item in logic.literals_of((disjunction,)):
                for term in logic.terms_of(item):
                    owned |= {v.name: None for v in logic.variables_of(term) if v.name in others}
    return owned
