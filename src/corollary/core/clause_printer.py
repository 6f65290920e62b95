"""Clauses, atoms, terms and values as text that parses back to the same.

>>> from corollary.core.terms import Constant, Functor, Variable
>>> print_term(Functor("*", (Functor("+", (Variable("x"), Constant(1))), Variable("y"))))
'(x + 1) * y'
"""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import assert_never

from corollary.core.functors import TOTAL
from corollary.core.rules import (
    CONSTRAINTS,
    Atom,
    BodyItem,
    Clause,
    Comparison,
    Disjunction,
    Negation,
    Truth,
)
from corollary.core.terms import Aggregate, Constant, Functor, Term, Value, Variable, Wildcard
from corollary.core.types import UNSIGNED, Type
from corollary.core.words import (
    PRECEDENCE,
    PREFIX_PRECEDENCE,
    PREFIXES,
    RIGHT_ASSOCIATIVE,
    is_plain_name,
    is_plain_relation,
    is_plain_word,
)

_CONTROL = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\u0000"}
_STRING = str.maketrans({**_CONTROL, '"': '\\"'})
_QUOTED = str.maketrans({**_CONTROL, "`": "\\`"})
_PRIMARY = 100


# --- clauses --------------------------------------------------------------------------------------


def print_clause(clause: Clause) -> str:
    """Return a rule or fact as text, with its full stop."""
    heads = ", ".join(print_atom(head) for head in clause.heads)
    if not clause.body:
        return f"{heads}."
    match clause.body:
        case (Disjunction(alternatives=alternatives),):
            return f"{heads} :- {_alternatives(alternatives)}."
        case _:
            return f"{heads} :- {print_body(clause.body)}."


def print_body(body: tuple[BodyItem, ...]) -> str:
    """Return a conjunction as text."""
    return ", ".join(_body_item(item) for item in body)


def _alternatives(alternatives: tuple[tuple[BodyItem, ...], ...]) -> str:
    return " ; ".join(print_body(alternative) for alternative in alternatives)


def _body_item(item: BodyItem) -> str:
    match item:
        case Atom():
            return print_atom(item)
        case Negation(atom=atom):
            return f"!{print_atom(atom)}"
        case Comparison(operator=operator, left=left, right=right):
            return print_comparison(operator, left, right)
        case Truth(value=value):
            return "true" if value else "false"
        case Disjunction(alternatives=alternatives):
            return f"({_alternatives(alternatives)})"
        case _:
            assert_never(item)


def print_comparison(operator: str, left: Term, right: Term) -> str:
    """Return a comparison as text, `match` and `contains` as calls."""
    if operator.removeprefix("!") in CONSTRAINTS:
        return f"{operator}({print_term(left)}, {print_term(right)})"
    return f"{print_term(left)} {operator} {print_term(right)}"


def print_atom(atom: Atom) -> str:
    """Return an atom as text."""
    state = "" if atom.state is None else f"@{atom.state}"
    arguments = ", ".join(print_term(argument) for argument in atom.arguments)
    return f"{atom.sign}{print_relation(atom.relation)}{state}({arguments})"


# --- terms ----------------------------------------------------------------------------------------


def print_term(term: Term) -> str:
    """Return a term as text, with the fewest brackets that keep its meaning clear."""
    match term:
        case Variable(name=name):
            return name if is_plain_name(name) else _backquoted(name)
        case Wildcard():
            return "_"
        case Constant(value=value, type=type_):
            return print_value(value, type_)
        case Aggregate(operator=operator, target=target, body=body):
            aimed = "" if target is None else f" {print_term(target)}"
            inner = (
                _alternatives(body[0].alternatives)
                if len(body) == 1 and isinstance(body[0], Disjunction)
                else print_body(body)
            )
            return f"{operator}{aimed} : {{ {inner} }}"
        case Functor(name=name, arguments=arguments):
            return _functor(name, arguments)
        case _:
            assert_never(term)


def _functor(name: str, arguments: tuple[Term, ...]) -> str:
    if name == TOTAL:
        return print_term(arguments[0])
    if name in PREFIXES and len(arguments) == 1:
        sign = PREFIXES[name] + (" " if PREFIXES[name].isalpha() else "")
        # In front of a number the minus sign would become part of the number.
        is_number = name == "neg" and isinstance(arguments[0], Constant)
        least = _PRIMARY + 1 if is_number else PREFIX_PRECEDENCE
        return f"{sign}{_enclosed(arguments[0], least)}"
    if name in PRECEDENCE and len(arguments) == 2:
        precedence = PRECEDENCE[name]
        is_right = name in RIGHT_ASSOCIATIVE
        left = _enclosed(arguments[0], precedence + is_right)
        right = _enclosed(arguments[1], precedence + (not is_right))
        return f"{left} {name} {right}"
    return f"{name}({', '.join(print_term(argument) for argument in arguments)})"


def _enclosed(term: Term, least: int) -> str:
    text = print_term(term)
    return text if _precedence(term) >= least else f"({text})"


def _precedence(term: Term) -> int:
    match term:
        case Functor(name=name, arguments=arguments) if name in PRECEDENCE and len(arguments) == 2:
            return PRECEDENCE[name]
        case Functor(name=name) if name in PREFIXES:
            return PREFIX_PRECEDENCE
        case Constant() if print_term(term).startswith("-"):
            return PREFIX_PRECEDENCE
        case _:
            return _PRIMARY


def print_value(value: Value, type_: Type | None = None) -> str:
    """Return a value as a literal.

    >>> print_value(date(2026, 11, 15)), print_value("a"), print_value(None)
    ('d"2026-11-15"', '"a"', 'null')
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            is_unsigned = type_ is not None and type_.domain == UNSIGNED.domain
            return f"{value}{'u' if is_unsigned else ''}"
        case Decimal():
            return _fraction(str(value))
        case float():
            return _fraction(repr(value))
        case str():
            return print_string(value)
        case datetime():
            moment = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            return f't"{moment.isoformat()}Z"'
        case date():
            return f'd"{value.isoformat()}"'
        case _:
            assert_never(value)


def _fraction(text: str) -> str:
    """Return digits as a literal with a point or an exponent; some values have no literal."""
    if not text.lstrip("-")[:1].isdigit():
        return f"to_float({print_string(text.lower())})"
    text = text.lower().replace("e+", "e")
    return text if "." in text or "e" in text else f"{text}e0"


# --- names and strings ----------------------------------------------------------------------------


def print_relation(name: str) -> str:
    """Return a relation's name, in backquotes where it needs them."""
    return name if is_plain_relation(name) else _backquoted(name)


def print_word(name: str) -> str:
    """Return a column's or parameter's name, in backquotes where it needs them."""
    return name if is_plain_word(name) else _backquoted(name)


def _backquoted(name: str) -> str:
    return f"`{name.translate(_QUOTED)}`"


def print_string(text: str) -> str:
    """Return a string literal."""
    return f'"{text.translate(_STRING)}"'
