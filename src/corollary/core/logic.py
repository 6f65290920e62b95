"""Terms, clauses as the user wrote them, and rules in normal form, which all later passes read."""

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import field, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TypeVar, assert_never

from corollary.core.functors.holistic import ARGUMENTS, HOLISTIC
from corollary.core.states import State
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.source import Span

_Time = date | datetime | time | timedelta
Value = int | Decimal | float | str | bool | bytes | _Time | tuple[Any, ...] | None
"""A value in Python; type inference decides what integers and fractions without a suffix are."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A named variable; `type` is known after type inference."""

    name: str
    type: Type | None = field(default=None, compare=False)
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Wildcard:
    """`_`: a variable used nowhere else."""

    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal value; `type` is known after type inference (or by a suffix, as in `7u`)."""

    value: Value
    type: Type | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    # Python has 1 == 1.0 == True and 1.0 == Decimal("1.00"), which are different literals.

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Constant)
            and type(self.value) is type(other.value)
            and str(self.value) == str(other.value)
            and self.type == other.type
        )

    def __hash__(self) -> int:
        return hash((type(self.value), str(self.value), self.type))


@dataclass(frozen=True, slots=True)
class Functor:
    """An operator or function applied to terms, such as `x + 1` or `cat(a, b)`.

    `name` is the operator's sign (`+ - * / % ^`, unary minus is `neg`) or the function's name.
    """

    name: str
    arguments: tuple["Term", ...]
    type: Type | None = field(default=None, compare=False)
    span: Span | None = field(default=None, compare=False, repr=False)

    # A sum of thousands of terms is nested as deeply on its left: both follow it in a loop.

    def __eq__(self, other: object) -> bool:
        one: object = self
        while isinstance(one, Functor) and isinstance(other, Functor):
            if one.name != other.name or one.arguments[1:] != other.arguments[1:]:
                return False
            if not one.arguments or not other.arguments:
                return one.arguments == other.arguments
            one, other = one.arguments[0], other.arguments[0]
        return not isinstance(one, Functor) and one == other

    def __hash__(self) -> int:
        parts: list[object] = []
        term: Term = self
        while isinstance(term, Functor) and term.arguments:
            parts += [term.name, term.arguments[1:]]
            term = term.arguments[0]
        parts.append(term.name if isinstance(term, Functor) else term)
        return hash(tuple(parts))


@dataclass(frozen=True, slots=True)
class AggregateTerm:
    """`sum e : { body }`; variables of the body that are bound outside are the grouping keys."""

    operator: str
    target: "Term | None"
    body: tuple["BodyItem", ...]
    type: Type | None = field(default=None, compare=False)
    span: Span | None = field(default=None, compare=False, repr=False)


Term = Variable | Wildcard | Constant | Functor | AggregateTerm
Expression = Variable | Constant | Functor
"""The terms of normal rules."""
Slot = Variable | Constant | Wildcard
"""An argument of a normal rule's literals."""


# --- clauses -----------------------------------------------------------------------------------


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
    hold where a side is null. Only `x is y` does: null is null, and nothing else is.
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

TEXT_PREDICATES = ("match", "contains")
EQUATIONS = ("=", "is")
"""The comparisons that give a variable its value where nothing else binds it."""
COMPARATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""What compares two values as an operator does, nulls apart."""
MIRRORED_OPERATORS = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The operators that say the same of two values in the other order."""
NEGATED_OPERATORS = {
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


QueryPlan = tuple[tuple[int, tuple[int, ...]], ...]
"""For some versions of a rule, the order of its positive atoms by their numbers, from 1.

Version k of a recursive rule is the one whose k-th recursive atom, from 0, reads the last round.
"""


@dataclass(frozen=True, slots=True)
class Clause:
    """A rule or (without a body) a fact as the user wrote it.

    In a null-safe rule, `head := body.`, null joins null: a variable that occurs several times in
    literals and keys of aggregates may be null. In `head :- body.` it may not. A subsumption
    `head <= dominating :- body.` has a second atom: where that is there, the head goes.
    """

    heads: tuple[Atom, ...]
    body: tuple[BodyItem, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)
    is_null_safe: bool = False
    dominating: Atom | None = None
    plan: "QueryPlan" = field(default=(), compare=False, repr=False)
    """`.plan 0:(2,1)`: a hint that changes nothing of what the rule means."""
    may_never_end: bool = field(default=False, compare=False, repr=False)
    """Whether it is a null-safe rule, as SQL's are, that makes new values without end."""


# --- normal form -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Origin:
    """The source clause (as text and span) and the passes that made a rule of it.

    Attributes:
        alternative: of a clause with disjunctions, the number of its conjunction, from 1.
        plan: the order of its atoms, as a hint.
        may_never_end: whether a loop over it is stopped by default, see `Clause`.
    """

    text: str
    span: Span | None = field(default=None, compare=False, repr=False)
    passes: tuple[str, ...] = ()
    alternative: int | None = field(default=None, compare=False, repr=False)
    plan: QueryPlan = field(default=(), compare=False, repr=False)
    may_never_end: bool = field(default=False, compare=False, repr=False)

    def with_pass(self, name: str) -> "Origin":
        """Return the origin with one more pass."""
        return replace(self, passes=(*self.passes, name))


NO_RULE = Origin("")
"""The origin of steps that only copy tuples; no message refers to them."""


@dataclass(frozen=True, slots=True)
class Literal:
    """An atom of a normal rule, positive or negated; a negated one is fully bound."""

    relation: str
    slots: tuple[Slot, ...]
    negated: bool = False
    sign: str = ""
    state: State | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison of a normal rule; `x = e` also computes `x` where `x` is not bound yet.

    `x = x` holds when `x` is not null. `x = range(...)` binds several values. The operator `is`
    binds like `=` but accepts null; the expressions of heads become such conditions.
    """

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Rule:
    """One head, a conjunction of literals and conditions, and the origin.

    A lenient rule collects the bindings that another rule will need: a missing value is not an
    error in it, and a row in which nothing is false counts. In a null-safe rule null joins null.
    """

    head: Literal
    literals: tuple[Literal, ...]
    conditions: tuple[Condition, ...]
    origin: Origin
    is_lenient: bool = False
    is_null_safe: bool = False


def rewrite_rule(
    rule: Rule,
    head: Literal,
    literals: Iterable[Literal],
    conditions: tuple[Condition, ...],
    by: str,
) -> Rule:
    """Return a rule that the pass `by` has made of another one."""
    return replace(
        rule,
        head=head,
        literals=tuple(literals),
        conditions=conditions,
        origin=rule.origin.with_pass(by),
    )


@dataclass(frozen=True, slots=True)
class Accumulator:
    """What is computed of each group: an operator over a column, None for `count`.

    Attributes:
        is_nullable: of all but `count` and `sum`, whether the value of a group of nulls is null;
            else such a group has none.
        others: of holistic operators, the further columns.
        weights: the columns whose product says how often a row counts.
        parameters: the constants that the operator needs.
    """

    operator: str
    value: int | None
    is_nullable: bool = False
    others: tuple[int, ...] = ()
    weights: tuple[int, ...] = ()
    parameters: tuple[Value, ...] = ()

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that it reads."""
        return () if self.value is None else (self.value, *self.others, *self.weights)

    @property
    def is_holistic(self) -> bool:
        """Whether it is computed of all values of a group at once."""
        return self.operator in HOLISTIC

    @property
    def is_extreme(self) -> bool:
        """Whether it is a least or greatest value."""
        return self.operator in ("min", "max")

    @property
    def has_every_group(self) -> bool:
        """Whether each group has a value, or null."""
        return self.is_nullable or self.operator in ZERO_IF_EMPTY


ZERO_IF_EMPTY = ("count", "sum")
"""The operators that have a value for a group without values."""


@dataclass(frozen=True, slots=True)
class Aggregation:
    """A derived relation `relation(keys…, values…)` that aggregates another one.

    For every group of tuples of `body` that agree on the columns `groups`: the value of each
    accumulator over its tuples. A group whose values are all null has the sum 0.

    Attributes:
        groups: the columns of `body` that hold the keys, in the order of the keys.
        accumulators: what is computed; if there are several, each has every group.
    """

    relation: str
    body: str
    groups: tuple[int, ...]
    accumulators: tuple[Accumulator, ...]
    origin: Origin

    @property
    def keys(self) -> tuple[int, ...]:
        """The columns of `relation` that hold the keys."""
        return tuple(range(len(self.groups)))

    @property
    def values(self) -> tuple[int, ...]:
        """The columns of `body` that are aggregated, each once."""
        return tuple(dict.fromkeys(at for each in self.accumulators for at in each.columns))

    @property
    def only(self) -> Accumulator:
        """The accumulator of an aggregation that has one."""
        (found,) = self.accumulators
        return found

    @property
    def has_every_group(self) -> bool:
        """Whether each group has a tuple, also one of nulls."""
        return all(each.has_every_group for each in self.accumulators)

    @property
    def extreme(self) -> Accumulator | None:
        """The accumulator, if it is the only one and a least or greatest value."""
        found = self.accumulators[0]
        is_extreme = len(self.accumulators) == 1 and found.is_extreme
        return found if is_extreme else None

    @property
    def holistic(self) -> Accumulator | None:
        """The accumulator, if it is the only one and holistic."""
        found = self.accumulators[0]
        return found if len(self.accumulators) == 1 and found.is_holistic else None


@dataclass(frozen=True, slots=True)
class OrderColumn:
    """A column that rows are ordered by."""

    column: int
    is_descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class RowFrame:
    """The rows around a row that a window function sees.

    Attributes:
        is_rows: whether bounds are rows (ROWS) or rows with those equal in the order (RANGE).
        start, end: the first and the last row, relative to the row; None for that of the partition.
        first, last: of RANGE with distances, the columns that have the first and last value of the
            order; `start` or `end` is -1 or 1 then.
    """

    is_rows: bool
    start: int | None
    end: int | None
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """A function of a row and of the rows of its partition.

    Attributes:
        name: one of `WINDOW_FUNCTIONS`. A sum without values is 0.
        arguments: the columns of its arguments: the value, and the default of `lag` and `lead`.
        frame: of the functions that have one.
        distance: of `lag`, `lead` and `nth_value`.
        ignores_nulls: whether rows without a value are passed over, by functions that choose one.
        parameters: the constants of a holistic aggregate.
    """

    name: str
    arguments: tuple[int, ...] = ()
    frame: RowFrame | None = None
    distance: int = 1
    ignores_nulls: bool = False
    parameters: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Windowing:
    """A derived relation `relation(columns of body…, values…)`: window functions of each row.

    Rows of `body` that agree on the columns `partition` are ordered by `order`; those that are
    equal in it, by all columns of `body` in turn, ascending and nulls first.

    Attributes:
        top: if only the first rows of each partition are there, the number of a function that is
            `row_number` or `rank`, and its greatest value.
    """

    relation: str
    body: str
    partition: tuple[int, ...]
    order: tuple[OrderColumn, ...]
    functions: tuple[WindowFunction, ...]
    origin: Origin
    top: tuple[int, int] | None = None

    @property
    def groups(self) -> tuple[int, ...]:
        """The columns of `body` that hold the keys."""
        return self.partition

    @property
    def keys(self) -> tuple[int, ...]:
        """The columns of `relation` that hold the keys."""
        return self.partition


AnyAggregation = Aggregation | Windowing


# --- what they contain -------------------------------------------------------------------------


Folded = TypeVar("Folded")


def aggregated_terms(aggregate: AggregateTerm) -> tuple[Term, ...]:
    """Return what an aggregate is of: terms, and for a holistic one constants; nothing for count.

    >>> aggregated_terms(AggregateTerm("sum", Constant(1), ()))
    (Constant(value=1, type=None),)
    """
    match aggregate.target:
        case None:
            return ()
        case Functor(name=name, arguments=arguments) if name == ARGUMENTS:
            return arguments
        case target:
            return (target,)


def subterms(term: Term) -> Iterator[Term]:
    """Yield a term and the terms inside it, left to right, aggregates not entered."""
    stack = [term]
    while stack:
        part = stack.pop()
        yield part
        if isinstance(part, Functor):
            stack += reversed(part.arguments)


def fold_term(
    term: Term,
    combine: Callable[[Term, tuple[Folded, ...]], Folded],
    is_whole: Callable[[Term], bool] | None = None,
) -> Folded:
    """Return what `combine` makes of a term and the results for its arguments.

    Arguments come before their functor, left to right; aggregates and what is whole have none.

    >>> total = Functor("+", (Functor("*", (Constant(2), Constant(3))), Constant(4)))
    >>> fold_term(total, lambda part, inside: 1 + sum(inside))
    5
    """
    results: list[Folded] = []
    stack: list[tuple[Term, bool]] = [(term, False)]
    while stack:
        part, is_entered = stack.pop()
        if not isinstance(part, Functor) or (is_whole is not None and is_whole(part)):
            results.append(combine(part, ()))
        elif not is_entered:
            stack.append((part, True))
            stack += ((argument, False) for argument in reversed(part.arguments))
        else:
            first = len(results) - len(part.arguments)
            inside = tuple(results[first:])
            del results[first:]
            results.append(combine(part, inside))
    return results[0]


def variables_of(term: Term) -> Iterator[Variable]:
    """Yield the variables of a term, left to right, with repetitions, not those of aggregates.

    >>> [v.name for v in variables_of(Functor("+", (Variable("x"), Variable("y"))))]
    ['x', 'y']
    """
    yield from (part for part in subterms(term) if isinstance(part, Variable))


def literals_of(items: tuple[BodyItem, ...]) -> Iterator[Atom | Negation | Comparison | Truth]:
    """Yield the literals of a body in order, those in disjunctions too, not those in aggregates."""
    for item in items:
        match item:
            case Disjunction(alternatives=alternatives):
                for alternative in alternatives:
                    yield from literals_of(alternative)
            case Atom() | Negation() | Comparison() | Truth():
                yield item
            case _:
                assert_never(item)


def applies_functor(clause: Clause, names: Collection[str]) -> bool:
    """Whether a clause applies one of some functors, aggregates entered.

    >>> clause = Clause((Atom("p", (Functor("+", (Variable("x"), Constant(1))),)),))
    >>> applies_functor(clause, ("+",)), applies_functor(clause, ("*",))
    (True, False)
    """
    work: list[object] = [*clause.heads, *clause.body]
    while work:
        match work.pop():
            case Atom(arguments=arguments):
                work += arguments
            case Functor(name=name, arguments=arguments):
                if name in names:
                    return True
                work += arguments
            case Comparison(left=left, right=right):
                work += (left, right)
            case Negation(atom=atom):
                work.append(atom)
            case Disjunction(alternatives=alternatives):
                work += [item for alternative in alternatives for item in alternative]
            case AggregateTerm(target=target, body=body):
                work += (target, *body)
            case _:
                pass  # a leaf
    return False


def terms_of(item: Atom | Negation | Comparison | Truth) -> tuple[Term, ...]:
    """Return the terms of a literal."""
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


def type_of(term: Expression | AggregateTerm) -> Type:
    """Return the type that inference gave to a term."""
    assert term.type is not None, f"{term} has no type"
    return term.type


def variable_names(literal: Literal | Condition) -> set[str]:
    """Return the names of the variables of a normal literal or condition."""
    if isinstance(literal, Literal):
        return {slot.name for slot in literal.slots if isinstance(slot, Variable)}
    return {v.name for side in (literal.left, literal.right) for v in variables_of(side)}


def head_arguments(rule: Rule) -> tuple[Variable | Constant, ...]:
    """Return the arguments of a rule's head, which are variables and constants."""
    return tuple(slot for slot in rule.head.slots if isinstance(slot, Variable | Constant))


def rules_by_head(rules: Iterable[Rule]) -> dict[str, list[Rule]]:
    """Return the rules of each relation, in their order."""
    found: dict[str, list[Rule]] = {}
    for rule in rules:
        found.setdefault(rule.head.relation, []).append(rule)
    return found


def has_wildcard(literal: Literal) -> bool:
    """Whether an argument is `_`."""
    return any(isinstance(slot, Wildcard) for slot in literal.slots)


def range_of(condition: Condition) -> tuple[Variable, Functor] | None:
    """Return the variable that a `range` gives several values, and the `range`, if there is one."""
    for one, other in ((condition.left, condition.right), (condition.right, condition.left)):
        if isinstance(other, Functor) and other.name == "range" and isinstance(one, Variable):
            return one, other
    return None
