"""Rules of `inline` relations that cannot stand alone, put into the rules that read them.

A relation that is declared `inline` may have rules that are not safe, as in Soufflé: they only have
a meaning where they are read.

    .decl apart(x: number, y: number) inline
    apart(x, y) :- x != y.
    r(a, b) :- p(a), p(b), apart(a, b).            becomes    r(a, b) :- p(a), p(b), a != b.

An atom becomes the body of the rule, with its arguments for the variables of the head and other
names for the rest; of several rules, their alternatives. A negated atom becomes the negated bodies,
if they have no further variables. Where this cannot be done (the relation is read from a file or
written, or recursive), everything stays as it is, and the checks report what is not safe.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from corollary.analysis.traverse import equations, map_body, map_term
from corollary.core import logic, program
from corollary.core.graph import closure_of
from corollary.frontends.datalog.parse_nodes import Item

Definitions = Mapping[str, Sequence[logic.Clause]]


class _NotInlinedError(Exception):
    """A use of a relation that its rules cannot replace."""


def inline_rules(items: list[Item]) -> list[Item]:
    """Return the items of a program without the inline relations whose rules cannot stand alone."""
    declared = {
        each.name
        for each in items
        if isinstance(each, program.Declaration)
        and "inline" in each.hints
        and "no_inline" not in each.hints
    }
    shown = {each.relation for each in items if isinstance(each, program.Directive)}
    clauses = [each for each in items if isinstance(each, logic.Clause)]
    found = {
        name: [each for each in clauses if each.heads[0].relation == name]
        for name in declared - shown
    }
    definitions: dict[str, list[logic.Clause]] = {}
    for _ in found:  # what reads a relation without a meaning of its own may have none either
        definitions = {
            name: defining
            for name, defining in found.items()
            if not all(_is_safe(each, definitions) for each in defining)
        }
    rules = [each for defining in definitions.values() for each in defining]
    if not rules or not all(map(_is_plain, rules)):
        return items
    try:
        return [
            _Inlining(definitions).clause(each) if isinstance(each, logic.Clause) else each
            for each in items
            if not _is_of(each, definitions)
        ]
    except _NotInlinedError:
        return items


def _is_of(item: Item, definitions: Definitions) -> bool:
    match item:
        case program.Declaration(name=name):
            return name in definitions
        case logic.Clause(heads=(head, *_)):
            return head.relation in definitions
        case _:
            return False


def _is_plain(clause: logic.Clause) -> bool:
    return len(clause.heads) == 1 and clause.dominating is None and not clause.is_null_safe


def _is_safe(clause: logic.Clause, definitions: Definitions) -> bool:
    """Return whether the body binds the variables of the head, as far as is easily seen."""
    bound = {
        variable.name
        for item in clause.body
        if isinstance(item, logic.Atom) and item.relation not in definitions
        for term in item.arguments
        for variable in logic.variables_of(term)
    }
    bound = closure_of(
        bound,
        (
            ({each.name for each in logic.variables_of(other)}, variable.name)
            for side, other in equations(clause.body)
            for variable in logic.variables_of(side)
        ),
    )
    has_alternatives = any(isinstance(item, logic.Disjunction) for item in clause.body)
    heads = {each.name for term in clause.heads[0].arguments for each in logic.variables_of(term)}
    return has_alternatives or heads <= bound


class _Inlining:
    """Puts rules into one clause."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._around: list[str] = []
        self._count = 0

    def clause(self, clause: logic.Clause) -> logic.Clause:
        body = self._items(clause.body)
        heads = tuple(replace(head, arguments=self._terms(head.arguments)) for head in clause.heads)
        if body == clause.body and heads == clause.heads:
            return clause
        return replace(clause, heads=heads, body=body, plan=())

    def _items(self, items: Iterable[logic.BodyItem]) -> tuple[logic.BodyItem, ...]:
        return tuple(made for item in items for made in self._item(item))

    def _item(self, item: logic.BodyItem) -> tuple[logic.BodyItem, ...]:
        match item:
            case logic.Atom(relation=name, arguments=arguments):
                if name in self._definitions:
                    return self._read(item)
                return (replace(item, arguments=self._terms(arguments)),)
            case logic.Negation(atom=atom):
                if atom.relation in self._definitions:
                    return tuple(map(_negated, self._alternatives(atom, is_negated=True)))
                return (item,)
            case logic.Comparison(left=left, right=right):
                left, right = self._terms((left, right))
                return (replace(item, left=left, right=right),)
            case logic.Disjunction(alternatives=alternatives):
                return (replace(item, alternatives=tuple(map(self._items, alternatives))),)
            case logic.Truth():
                return (item,)
            case _:
                assert_never(item)

    def _terms(self, terms: Iterable[logic.Term]) -> tuple[logic.Term, ...]:
        def inlined(part: logic.Term, inside: tuple[logic.Term, ...]) -> logic.Term:
            if isinstance(part, logic.Functor):
                return replace(part, arguments=inside)
            if isinstance(part, logic.AggregateTerm):
                return replace(part, body=self._items(part.body))
            return part

        return tuple(logic.fold_term(term, inlined) for term in terms)

    def _read(self, atom: logic.Atom) -> tuple[logic.BodyItem, ...]:
        alternatives = self._alternatives(atom)
        if len(alternatives) == 1:
            return alternatives[0]
        return (logic.Disjunction(tuple(alternatives), atom.span),)

    def _alternatives(
        self, atom: logic.Atom, *, is_negated: bool = False
    ) -> list[tuple[logic.BodyItem, ...]]:
        """Return what each rule of the relation says about an atom."""
        name = atom.relation
        if name in self._around or atom.sign or atom.state is not None:
            raise _NotInlinedError
        self._around.append(name)
        found = []
        for rule in self._definitions[name]:
            if len(rule.heads[0].arguments) != len(atom.arguments):
                raise _NotInlinedError
            self._count += 1
            renaming = _Renaming(self._count)
            equations = renaming.bind(rule.heads[0].arguments, atom.arguments)
            body = renaming.items(rule.body)
            if is_negated and renaming.has_own:
                raise _NotInlinedError
            whole = self._items((*equations, *body))
            found.append(whole or (logic.Truth(True, atom.span),))
        self._around.pop()
        return found


class _Renaming:
    """Gives the variables of a rule the arguments of an atom, and other names to the rest."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._terms: dict[str, logic.Term] = {}
        self.has_own = False

    def bind(
        self, heads: Sequence[logic.Term], arguments: Sequence[logic.Term]
    ) -> list[logic.BodyItem]:
        """Return the equations between the head and an atom that are left."""
        left = []
        for head, argument in zip(heads, arguments, strict=True):
            is_new = isinstance(head, logic.Variable) and head.name not in self._terms
            if is_new and isinstance(argument, logic.Variable | logic.Constant):
                self._terms[head.name] = argument  # type: ignore[union-attr]
            elif not isinstance(argument, logic.Wildcard):
                left.append((head, argument))
        return [
            logic.Comparison("=", self.term(head), argument, argument.span)
            for head, argument in left
        ]

    def term(self, term: logic.Term) -> logic.Term:
        """Return a term of the rule."""
        return map_term(term, self._replacement)

    def items(self, items: Iterable[logic.BodyItem]) -> tuple[logic.BodyItem, ...]:
        """Return literals of the rule."""
        return map_body(items, self._replacement)

    def _replacement(self, part: logic.Term) -> logic.Term:
        if not isinstance(part, logic.Variable):
            return part
        if part.name not in self._terms:
            self.has_own = True
            self._terms[part.name] = replace(part, name=f"{part.name}_inline{self._number}")
        return self._terms[part.name]


def _negated(items: tuple[logic.BodyItem, ...]) -> logic.BodyItem:
    """Return that not all of some literals hold."""
    if len(items) == 1:
        return _opposite(items[0])
    return logic.Disjunction(tuple((_opposite(item),) for item in items), items[0].span)


def _opposite(item: logic.BodyItem) -> logic.BodyItem:
    match item:
        case logic.Atom(sign="", state=None):
            return logic.Negation(item, item.span)
        case logic.Negation(atom=atom):
            return atom
        case logic.Comparison(operator=operator) if operator in logic.NEGATED_OPERATORS:
            return replace(item, operator=logic.NEGATED_OPERATORS[operator])
        case logic.Truth(value=value):
            return replace(item, value=not value)
        case _:
            raise _NotInlinedError
