"""Clauses and terms from the grammar's rules; the parser calls the methods."""
# ruff: noqa: D102 (each method is named after the rule of the grammar that it builds)

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from corollary.core import logic
from corollary.core.functors import lambdas
from corollary.core.functors.conversions import CAST
from corollary.core.functors.holistic import ARGUMENTS, HOLISTIC
from corollary.core.states import State
from corollary.core.syntax import PRECEDENCE, PREFIX_PRECEDENCE, PREFIXES, RIGHT_ASSOCIATIVE
from corollary.core.types import NIL, PLAIN_BRANCH, SYMBOL, UNSIGNED
from corollary.errors import InputError
from corollary.frontends.datalog.lexer import Lexeme
from corollary.frontends.datalog.parse_nodes import (
    BracketedList,
    Item,
    SpannedName,
    bracketed_list,
    span_between,
)
from corollary.source import Span

Body = tuple[logic.BodyItem, ...]


class ClauseBuilder:
    """One method per rule of the grammar; items are tuples of nodes."""

    # --- clauses --------------------------------------------------------------------------------

    def clause(self, heads: tuple[logic.Atom, ...], *rest: Body | Lexeme) -> tuple[Item, ...]:
        neck, body, end = rest if len(rest) > 1 else (None, (), *rest)
        assert isinstance(body, tuple)
        assert isinstance(end, Lexeme)
        is_null_safe = isinstance(neck, Lexeme) and neck.text == ":="
        if not body and any(map(_has_aggregate, heads)):  # `n(count : { p(_) }).` is a rule
            body = (logic.Truth(True, end.span),)
        return (logic.Clause(heads, body, span_between(heads[0].span, end.span), is_null_safe),)

    def subsumption(
        self, head: logic.Atom, sign: Lexeme, dominating: logic.Atom, *rest: Body | Lexeme
    ) -> tuple[Item, ...]:
        neck, body, end = rest
        assert isinstance(neck, Lexeme)
        assert isinstance(body, tuple)
        assert isinstance(end, Lexeme)
        if sign.text != "<=":
            message = f"`{sign.text}` does not stand between two heads."
            note = "between two heads only `<=` may stand: it is subsumption"
            raise InputError.of("C0101", message, sign.span, note)
        if head.relation != dominating.relation:
            message = "A subsumption is between two tuples of one relation."
            note = f"name `{head.relation}` on both sides of `<=`"
            raise InputError.of("C0101", message, dominating.span, note)
        span = span_between(head.span, end.span)
        return (logic.Clause((head,), body, span, neck.text == ":=", dominating),)

    def heads(self, *heads: logic.Atom) -> tuple[logic.Atom, ...]:
        return heads

    def body(self, *alternatives: Body) -> Body:
        if len(alternatives) == 1:
            return alternatives[0]
        span = span_between(alternatives[0][0].span, alternatives[-1][-1].span)
        return (logic.Disjunction(alternatives, span),)

    def conjunction(self, *literals: Body) -> Body:
        return tuple(item for literal in literals for item in literal)

    def positive(self, atom: logic.Atom) -> Body:
        return (atom,)

    def negation(self, sign: Lexeme, literal: Body) -> Body:
        return negate(literal, span_between(sign.span, literal[-1].span))

    def group(self, start: Lexeme, body: Body, end: Lexeme) -> Body:
        if len(body) == 1 and isinstance(body[0], logic.Disjunction):
            return (replace(body[0], span=span_between(start.span, end.span)),)
        return body

    def comparison(self, left: logic.Term, operator: Lexeme, right: logic.Term) -> Body:
        return (logic.Comparison(operator.text, left, right, span_between(left.span, right.span)),)

    def constraint(
        self, operator: Lexeme, _: Lexeme, left: logic.Term, right: logic.Term, end: Lexeme
    ) -> Body:
        return (
            logic.Comparison(operator.text, left, right, span_between(operator.span, end.span)),
        )

    def lone_term(self, term: logic.Term) -> Body:
        if isinstance(term, logic.Constant) and isinstance(term.value, bool):
            return (logic.Truth(term.value, term.span),)
        raise InputError.of(
            "C0101",
            "A literal is expected here, but this is a value.",
            term.span,
            "a literal is an atom such as `p(x)` or a comparison such as `x < 3`",
        )

    def signed_atom(self, sign: Lexeme, atom: logic.Atom) -> logic.Atom:
        return replace(atom, sign=sign.text, span=span_between(sign.span, atom.span))

    def atom(self, name: SpannedName, *rest: Lexeme | BracketedList) -> logic.Atom:
        arguments = rest[-1]
        assert isinstance(arguments, BracketedList)
        state = State(str(rest[0].value)) if isinstance(rest[0], Lexeme) else None
        span = span_between(name.span, arguments.span)
        return logic.Atom(name.name, _terms(arguments), "", state, span)

    def arguments(self, *children: Lexeme | logic.Term) -> BracketedList:
        return bracketed_list(children)

    def goal(self, body: Body, *_: Lexeme) -> Body:
        return body

    # --- terms ----------------------------------------------------------------------------------

    def term(self, *row: Lexeme | logic.Term) -> logic.Term:
        return build_operation(row)

    def variable(self, name: Lexeme) -> logic.Variable:
        return logic.Variable(str(name.value), span=name.span)

    def wildcard(self, sign: Lexeme) -> logic.Wildcard:
        return logic.Wildcard(sign.span)

    def lambda_parameter(self, name: Lexeme) -> logic.Functor:
        return lambdas.parameter(str(name.value), name.span)

    def lambda_term(self, first: Lexeme, *rest: Lexeme | logic.Term) -> logic.Functor:
        names = [str(each.value) for each in (first, *rest) if isinstance(each, Lexeme)]
        body = rest[-1]
        assert not isinstance(body, Lexeme)
        return lambdas.lambda_of(names, body, span_between(first.span, body.span))

    def constant(self, literal: Lexeme) -> logic.Constant:
        is_unsigned = literal.type == "INT" and literal.text.endswith("u")
        return logic.Constant(literal.value, UNSIGNED if is_unsigned else None, literal.span)

    def parenthesised(self, start: Lexeme, term: logic.Term, end: Lexeme) -> logic.Term:
        return replace(term, span=span_between(start.span, end.span))

    def call(self, name: Lexeme, arguments: BracketedList) -> logic.Functor:
        return _call(name, arguments)

    def nil(self, word: Lexeme) -> logic.Functor:
        return logic.Functor(NIL, (), span=word.span)

    def record(self, *children: Lexeme | logic.Term) -> logic.Functor:
        fields = bracketed_list(children)
        return logic.Functor(PLAIN_BRANCH, _terms(fields), span=fields.span)

    def branch_value(self, name: Lexeme, fields: BracketedList | None = None) -> logic.Functor:
        terms = () if fields is None else _terms(fields)
        span = name.span if fields is None else span_between(name.span, fields.span)
        return logic.Functor(str(name.value), terms, span=span)

    def cast(
        self, start: Lexeme, _: Lexeme, term: logic.Term, name: SpannedName, end: Lexeme
    ) -> logic.Functor:
        kind = logic.Constant(name.name, SYMBOL, name.span)
        return logic.Functor(CAST, (term, kind), span=span_between(start.span, end.span))

    def extreme(self, name: Lexeme, *rest: Lexeme | logic.Term) -> logic.Functor:
        return _call(name, bracketed_list(rest))

    def aggregate(self, operator: Lexeme, *rest: logic.Term | BracketedList) -> logic.AggregateTerm:
        *target, body = rest
        assert isinstance(body, BracketedList)
        items = tuple(item for item in body.items if isinstance(item, logic.BodyItem))
        goal = target[0] if target and not isinstance(target[0], BracketedList) else None
        span = span_between(operator.span, body.span)
        if goal is None and operator.text != "count":
            message = f"The aggregate `{operator.text}` needs a term to aggregate."
            note = f"write `{operator.text} x : {{ p(x) }}`"
            raise InputError.of("C0101", message, operator.span, note)
        if goal is not None and operator.text == "count":
            message = "The aggregate `count` counts tuples and takes no term."
            raise InputError.of("C0101", message, goal.span, "write `count : { p(x) }`")
        return logic.AggregateTerm(operator.text, goal, items, span=span)

    def holistic(
        self, operator: Lexeme, arguments: BracketedList, body: BracketedList
    ) -> logic.AggregateTerm:
        items = tuple(item for item in body.items if isinstance(item, logic.BodyItem))
        terms, wanted = _terms(arguments), HOLISTIC[operator.text]
        constants = [each for each in terms if isinstance(each, logic.Constant)]
        # One more column says how often a row counts.
        extra = len(terms) - len(constants) - wanted.columns
        is_wrong = extra < 0 if wanted.is_open else extra not in (0, 1)
        if is_wrong or len(constants) != wanted.parameters:
            columns = "one column" if wanted.columns == 1 else f"{wanted.columns} columns"
            also = f" and {wanted.parameters} literals" if wanted.parameters else ""
            message = f"The aggregate `{operator.text}` is of {columns}{also}."
            raise InputError.of("C0101", message, operator.span, "see docs/language.md")
        target = logic.Functor(ARGUMENTS, terms, span=arguments.span)
        span = span_between(operator.span, body.span)
        return logic.AggregateTerm(operator.text, target, items, span=span)

    def aggregate_body(self, start: Lexeme, body: Body, end: Lexeme) -> BracketedList:
        return BracketedList(body, span_between(start.span, end.span))

    def aggregate_atom(self, atom: logic.Atom) -> BracketedList:
        return BracketedList((atom,), span_between(atom.span, atom.span))


def negate(
    body: tuple[logic.BodyItem, ...], span: Span | None = None
) -> tuple[logic.BodyItem, ...]:
    """Return the conjunction that holds when the given one does not (De Morgan's laws).

    >>> negate((logic.Truth(True), logic.Truth(False)))[0].alternatives
    ((Truth(value=False),), (Truth(value=True),))
    """
    if len(body) == 1:
        return _negate_item(body[0], span)
    return (logic.Disjunction(tuple(_negate_item(item, item.span) for item in body), span),)


def _negate_item(item: logic.BodyItem, span: Span | None) -> tuple[logic.BodyItem, ...]:
    match item:
        case logic.Atom():
            return (logic.Negation(item, span),)
        case logic.Negation(atom=atom):
            return (atom,)
        case logic.Comparison(operator="is", left=left, right=right):
            for one, other in ((left, right), (right, left)):
                if isinstance(other, logic.Constant) and other.value is None:
                    return (replace(item, operator="=", left=one, right=one),)
            null = logic.Constant(None, span=item.span)
            ways = (
                (replace(item, operator="!="),),
                (replace(item, right=null), replace(item, operator="=", left=right)),
                (replace(item, operator="=", right=left), replace(item, left=null)),
            )
            return (logic.Disjunction(ways, span),)
        case logic.Comparison(operator=operator):
            return (replace(item, operator=logic.NEGATED_OPERATORS[operator]),)
        case logic.Truth(value=value):
            return (replace(item, value=not value),)
        case logic.Disjunction(alternatives=alternatives):
            return tuple(
                negated
                for alternative in alternatives
                for negated in negate(alternative, alternative[0].span)
            )
        case _:
            assert_never(item)


def build_operation(row: Sequence[Lexeme | logic.Term]) -> logic.Term:
    """Return the term of a flat row of operands and operators, by operator precedence."""
    operands: list[logic.Term] = []
    pending: list[tuple[int, Lexeme, bool]] = []  # precedence, operator, whether it is a prefix
    is_operand_next = True
    for member in row:
        if not isinstance(member, Lexeme):
            operands.append(member)
            is_operand_next = False
        elif is_operand_next:
            pending.append((PREFIX_PRECEDENCE, member, True))
        else:
            precedence = PRECEDENCE[member.text]
            least = precedence + (member.text in RIGHT_ASSOCIATIVE)
            while pending and pending[-1][0] >= least:
                _apply(pending.pop(), operands)
            pending.append((precedence, member, False))
            is_operand_next = True
    while pending:
        _apply(pending.pop(), operands)
    return operands[0]


_PREFIX_NAMES = {sign: name for name, sign in PREFIXES.items()}


def _apply(operator: tuple[int, Lexeme, bool], operands: list[logic.Term]) -> None:
    _, sign, is_prefix = operator
    right = operands.pop()
    if is_prefix:
        span = span_between(sign.span, right.span)
        operands.append(logic.Functor(_PREFIX_NAMES[sign.text], (right,), span=span))
    else:
        left = operands.pop()
        operands.append(
            logic.Functor(sign.text, (left, right), span=span_between(left.span, right.span))
        )


def _has_aggregate(atom: logic.Atom) -> bool:
    return any(
        isinstance(part, logic.AggregateTerm)
        for term in atom.arguments
        for part in logic.subterms(term)
    )


def _call(name: Lexeme, arguments: BracketedList) -> logic.Functor:
    return logic.Functor(name.text, _terms(arguments), span=span_between(name.span, arguments.span))


def _terms(arguments: BracketedList) -> tuple[logic.Term, ...]:
    return tuple(term for term in arguments.items if isinstance(term, logic.Term))
