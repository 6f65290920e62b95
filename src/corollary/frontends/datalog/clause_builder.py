"""Clauses and terms from the grammar's rules; lark calls the methods while it parses."""
# ruff: noqa: D102 (each method is named after the rule of the grammar that it builds)

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from lark import Transformer, v_args

from corollary.core.logic import (
    NEGATED_OPERATORS,
    AggregateTerm,
    Atom,
    BodyItem,
    Clause,
    Comparison,
    Constant,
    Disjunction,
    Functor,
    Negation,
    Term,
    Truth,
    Variable,
    Wildcard,
)
from corollary.core.states import State
from corollary.core.syntax import PRECEDENCE, PREFIX_PRECEDENCE, PREFIXES, RIGHT_ASSOCIATIVE
from corollary.core.types import UNSIGNED
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

Body = tuple[BodyItem, ...]


@v_args(inline=True)
class ClauseBuilder(Transformer[Lexeme, object]):
    """One method per rule of the grammar; items are tuples of nodes."""

    # --- clauses --------------------------------------------------------------------------------

    def clause(self, heads: tuple[Atom, ...], *rest: Body | Lexeme) -> tuple[Item, ...]:
        body = rest[0] if isinstance(rest[0], tuple) else ()
        end = rest[-1]
        assert isinstance(end, Lexeme)
        return (Clause(heads, body, span_between(heads[0].span, end.span)),)

    def heads(self, *heads: Atom) -> tuple[Atom, ...]:
        return heads

    def body(self, *alternatives: Body) -> Body:
        if len(alternatives) == 1:
            return alternatives[0]
        span = span_between(alternatives[0][0].span, alternatives[-1][-1].span)
        return (Disjunction(alternatives, span),)

    def conjunction(self, *literals: Body) -> Body:
        return tuple(item for literal in literals for item in literal)

    def positive(self, atom: Atom) -> Body:
        return (atom,)

    def negation(self, sign: Lexeme, literal: Body) -> Body:
        return negate(literal, span_between(sign.span, literal[-1].span))

    def group(self, start: Lexeme, body: Body, end: Lexeme) -> Body:
        if len(body) == 1 and isinstance(body[0], Disjunction):
            return (replace(body[0], span=span_between(start.span, end.span)),)
        return body

    def comparison(self, left: Term, operator: Lexeme, right: Term) -> Body:
        return (Comparison(operator.text, left, right, span_between(left.span, right.span)),)

    def constraint(self, operator: Lexeme, _: Lexeme, left: Term, right: Term, end: Lexeme) -> Body:
        return (Comparison(operator.text, left, right, span_between(operator.span, end.span)),)

    def lone_term(self, term: Term) -> Body:
        if isinstance(term, Constant) and isinstance(term.value, bool):
            return (Truth(term.value, term.span),)
        raise InputError.of(
            "C0101",
            "A literal is expected here, but this is a value.",
            term.span,
            "a literal is an atom such as `p(x)` or a comparison such as `x < 3`",
        )

    def signed_atom(self, sign: Lexeme, atom: Atom) -> Atom:
        return replace(atom, sign=sign.text, span=span_between(sign.span, atom.span))

    def atom(self, name: SpannedName, *rest: Lexeme | BracketedList) -> Atom:
        arguments = rest[-1]
        assert isinstance(arguments, BracketedList)
        state = State(str(rest[0].value)) if isinstance(rest[0], Lexeme) else None
        span = span_between(name.span, arguments.span)
        return Atom(name.name, _terms(arguments), "", state, span)

    def arguments(self, *children: Lexeme | Term) -> BracketedList:
        return bracketed_list(children)

    def first(self, atom: Atom, *_: Lexeme) -> Atom:
        return atom

    # --- terms ----------------------------------------------------------------------------------

    def term(self, *row: Lexeme | Term) -> Term:
        return build_operation(row)

    def variable(self, name: Lexeme) -> Variable:
        return Variable(str(name.value), span=name.span)

    def wildcard(self, sign: Lexeme) -> Wildcard:
        return Wildcard(sign.span)

    def constant(self, literal: Lexeme) -> Constant:
        is_unsigned = literal.type == "INT" and literal.text.endswith("u")
        return Constant(literal.value, UNSIGNED if is_unsigned else None, literal.span)

    def parenthesised(self, start: Lexeme, term: Term, end: Lexeme) -> Term:
        return replace(term, span=span_between(start.span, end.span))

    def call(self, name: Lexeme, arguments: BracketedList) -> Functor:
        return _call(name, arguments)

    def extreme(self, name: Lexeme, *rest: Lexeme | Term) -> Functor:
        return _call(name, bracketed_list(rest))

    def aggregate(self, operator: Lexeme, *rest: Term | BracketedList) -> AggregateTerm:
        *target, body = rest
        assert isinstance(body, BracketedList)
        items = tuple(item for item in body.items if isinstance(item, BodyItem))
        goal = target[0] if target and not isinstance(target[0], BracketedList) else None
        span = span_between(operator.span, body.span)
        if goal is None and operator.text != "count":
            message = f"The aggregate `{operator.text}` needs a term to aggregate."
            note = f"write `{operator.text} x : {{ p(x) }}`"
            raise InputError.of("C0101", message, operator.span, note)
        if goal is not None and operator.text == "count":
            message = "The aggregate `count` counts tuples and takes no term."
            raise InputError.of("C0101", message, goal.span, "write `count : { p(x) }`")
        return AggregateTerm(operator.text, goal, items, span=span)

    def aggregate_body(self, start: Lexeme, body: Body, end: Lexeme) -> BracketedList:
        return BracketedList(body, span_between(start.span, end.span))

    def aggregate_atom(self, atom: Atom) -> BracketedList:
        return BracketedList((atom,), span_between(atom.span, atom.span))


def negate(body: tuple[BodyItem, ...], span: Span | None = None) -> tuple[BodyItem, ...]:
    """Return the conjunction that holds when the given one does not (De Morgan's laws).

    >>> negate((Truth(True), Truth(False)))[0].alternatives
    ((Truth(value=False),), (Truth(value=True),))
    """
    if len(body) == 1:
        return _negate_item(body[0], span)
    return (Disjunction(tuple(_negate_item(item, item.span) for item in body), span),)


def _negate_item(item: BodyItem, span: Span | None) -> tuple[BodyItem, ...]:
    match item:
        case Atom():
            return (Negation(item, span),)
        case Negation(atom=atom):
            return (atom,)
        case Comparison(operator=operator):
            return (replace(item, operator=NEGATED_OPERATORS[operator]),)
        case Truth(value=value):
            return (replace(item, value=not value),)
        case Disjunction(alternatives=alternatives):
            return tuple(
                negated
                for alternative in alternatives
                for negated in negate(alternative, alternative[0].span)
            )
        case _:
            assert_never(item)


def build_operation(row: Sequence[Lexeme | Term]) -> Term:
    """Return the term of a flat row of operands and operators, by operator precedence."""
    operands: list[Term] = []
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


def _apply(operator: tuple[int, Lexeme, bool], operands: list[Term]) -> None:
    _, sign, is_prefix = operator
    right = operands.pop()
    if is_prefix:
        span = span_between(sign.span, right.span)
        operands.append(Functor(_PREFIX_NAMES[sign.text], (right,), span=span))
    else:
        left = operands.pop()
        operands.append(Functor(sign.text, (left, right), span=span_between(left.span, right.span)))


def _call(name: Lexeme, arguments: BracketedList) -> Functor:
    return Functor(name.text, _terms(arguments), span=span_between(name.span, arguments.span))


def _terms(arguments: BracketedList) -> tuple[Term, ...]:
    return tuple(term for term in arguments.items if isinstance(term, Term))
