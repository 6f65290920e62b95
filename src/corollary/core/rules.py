"""Clauses as the user wrote them, and rules in normal form as everything behind reads them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import assert_never

from corollary.core.origin import Origin
from corollary.core.states import State
from corollary.core.terms import (
    Constant,
    Expression,
    Slot,
    Term,
    Variable,
    Wildcard,
    variables_of,
)
from corollary.source import Span


@dataclass(frozen=True, slots=True)
class Atom:
    """`p(x, 1)`; in active rules `+p(x)`, `-p(x)` (sign) or `p@old(x)` (state)."""

    relation: str
    arguments: tuple[Term, ...]
    sign: str = ""
    state: State | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Negation:
    """`!p(x)`."""

    atom: Atom
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`x < y + 1`; `match(pattern, text)` and `contains(part, whole)` are comparisons too.

    Their negations are the operators `!match` and `!contains`; like every comparison they do not
    hold where a side is null.
    """

    operator: str
    left: Term
    right: Term
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Truth:
    """`true` or `false` as a body literal."""

    value: bool
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Disjunction:
    """`( a, b ; c )`: one of the alternatives holds."""

    alternatives: tuple[tuple["BodyItem", ...], ...]
    span: Span | None = field(default=None, compare=False, repr=False)


BodyItem = Atom | Negation | Comparison | Truth | Disjunction

CONSTRAINTS = ("match", "contains")
NEGATED = {
    "=": "!=",
    "!=": "=",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "match": "!match",
    "!match": "match",
    "contains": "!contains",
    "!contains": "contains",
}


@dataclass(frozen=True, slots=True)
class Clause:
    """A rule or (without a body) a fact as the user wrote it."""

    heads: tuple[Atom, ...]
    body: tuple[BodyItem, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


# --- normal form -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Literal:
    """An atom of a normal rule: positive or negated, arguments plain, a negated one fully bound."""

    relation: str
    slots: tuple[Slot, ...]
    negated: bool = False
    sign: str = ""
    state: State | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison of a normal rule; `x = e` also computes `x` where `x` is not bound yet.

    `x = x` holds when `x` is not null. `x = range(...)` makes several values. The operator `is`
    binds like `=` but lets null through: it stands for expressions in heads.
    """

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Rule:
    """One head, a conjunction of literals and conditions, and where it comes from.

    A lenient rule collects what another rule will ask for: a missing value is no error in it, and
    a row in which nothing is false counts.
    """

    head: Literal
    literals: tuple[Literal, ...]
    conditions: tuple[Condition, ...]
    origin: Origin
    is_lenient: bool = False


@dataclass(frozen=True, slots=True)
class Aggregation:
    """A derived relation `relation(keys…, value)` that aggregates another one.

    For every group of tuples of `body` that agree on the columns `groups`: the value of
    `operator` over the column `value` of its tuples. A group whose values are all null has
    the sum 0 and no least, greatest or mean value.

    Attributes:
        groups: the columns of `body` that hold the keys, in the order of the keys.
        value: the column of `body` that is aggregated; None for `count`.
    """

    relation: str
    operator: str
    body: str
    groups: tuple[int, ...]
    value: int | None
    origin: Origin


def walk(items: tuple[BodyItem, ...]) -> Iterator[Atom | Negation | Comparison | Truth]:
    """Yield the literals of a body in order, disjunctions opened, aggregates not entered."""
    for item in items:
        match item:
            case Disjunction(alternatives=alternatives):
                for alternative in alternatives:
                    yield from walk(alternative)
            case Atom() | Negation() | Comparison() | Truth():
                yield item
            case _:
                assert_never(item)


def terms_of(item: Atom | Negation | Comparison | Truth) -> tuple[Term, ...]:
    """Return the terms that stand in a literal."""
    match item:
        case Atom(arguments=arguments):
            return arguments
        case Negation(atom=atom):
            return atom.arguments
        case Comparison(left=left, right=right):
            return (left, right)
        case Truth():
            return ()
        case _:
            assert_never(item)


def names_in(literal: Literal | Condition) -> set[str]:
    """Return the names of the variables of a normal literal or condition."""
    if isinstance(literal, Literal):
        return {slot.name for slot in literal.slots if isinstance(slot, Variable)}
    return {v.name for side in (literal.left, literal.right) for v in variables_of(side)}


def head_of(rule: Rule) -> tuple[Variable | Constant, ...]:
    """Return the arguments of a rule's head, which are variables and constants."""
    return tuple(slot for slot in rule.head.slots if isinstance(slot, Variable | Constant))


def is_plain(literal: Literal) -> bool:
    """Whether the arguments are distinct variables, so that the literal is its relation."""
    names = [slot.name for slot in literal.slots if isinstance(slot, Variable)]
    return len(names) == len(literal.slots) == len(set(names))


def has_wildcard(literal: Literal) -> bool:
    """Whether `_` stands in the literal."""
    return any(isinstance(slot, Wildcard) for slot in literal.slots)
