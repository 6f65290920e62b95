"""Queries after names and types are resolved: what the binder makes and the lowering reads.

Every function and operator is a functor of the rule language already, implicit conversions are
written out, and stars, aliases, `USING` and ordinals are gone. A condition is an expression of type
bool that may be null; `and`, `or`, `not`, `lt`, `same` … are functors like the others.
"""

from collections.abc import Callable, Iterator
from dataclasses import field, fields, is_dataclass, replace
from enum import StrEnum
from typing import Any

from corollary.core.logic import Value
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.source import Span

# --- expressions -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnReference:
    """A column of a source: `depth` 0 is a source of the query's own `FROM`, 1 of the query around.

    `source` is the number of the source, which is unique in the whole statement.
    """

    source: int
    column: int
    type: Type
    depth: int = 0
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ConstantValue:
    """A literal."""

    value: Value
    type: Type
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class UnknownValue(ConstantValue):
    """A text or parameter of PostgreSQL's type `unknown`: what is around it says which it has.

    Attributes:
        settle: takes note of the type that it has.
    """

    settle: Callable[[Type], object] = field(kw_only=True, compare=False, repr=False)

    def as_type(self, type_: Type) -> ConstantValue:
        """Return it as a value of a type, which it has from now on; only texts keep their value."""
        self.settle(type_.with_null(True))
        value = self.value if type_.is_symbol else None
        return ConstantValue(value, type_.with_null(value is None), self.span)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A functor of the rule language, applied."""

    functor: str
    arguments: tuple["Expression", ...]
    type: Type
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate of a grouped query, such as `sum`; `count` without arguments counts rows.

    Attributes:
        condition: that of `FILTER (WHERE …)`.
        parameters: the constants of a holistic aggregate.
    """

    name: str
    arguments: tuple["Expression", ...]
    type: Type
    is_distinct: bool = False
    condition: "Expression | None" = None
    span: Span | None = field(default=None, compare=False, repr=False)
    parameters: tuple[Value, ...] = ()


class FrameBound(StrEnum):
    """Where the frame of a window begins or ends."""

    UNBOUNDED = "unbounded"
    CURRENT = "current"
    OFFSET = "offset"


@dataclass(frozen=True, slots=True)
class WindowFrame:
    """`ROWS` or `RANGE BETWEEN start AND end`; negative offsets are rows before.

    Attributes:
        first, last: of `RANGE` with a distance, the value of the order where the frame begins or
            ends; the offset is -1 before the row and 1 after it.
    """

    is_rows: bool
    start: FrameBound
    end: FrameBound
    start_offset: int = 0
    end_offset: int = 0
    first: "Expression | None" = None
    last: "Expression | None" = None


@dataclass(frozen=True, slots=True)
class OrderItem:
    """A term of `ORDER BY`."""

    expression: "Expression"
    is_descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A function `OVER (PARTITION BY … ORDER BY … frame)`: an aggregate, `rank`, `lag` ….

    Attributes:
        parameters: the constants of a holistic aggregate.
        ignores_nulls: whether `IGNORE NULLS` is said.
    """

    name: str
    arguments: tuple["Expression", ...]
    partition: tuple["Expression", ...]
    order: tuple[OrderItem, ...]
    frame: WindowFrame | None
    type: Type
    span: Span | None = field(default=None, compare=False, repr=False)
    parameters: tuple[Value, ...] = ()
    ignores_nulls: bool = False


@dataclass(frozen=True, slots=True)
class ScalarSubquery:
    """A query in place of a value: null if it has no row, an error if it has two."""

    query: "Query"
    type: Type
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Exists:
    """`EXISTS (query)`."""

    query: "Query"
    type: Type
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Quantified:
    """`x < ANY (query)` or `ALL`; `x IN (query)` is `= ANY`, of several columns `(x, y) IN`.

    Attributes:
        comparison: the functor that compares each of `left` with a column: `eq`, `lt`, …
    """

    left: tuple["Expression", ...]
    comparison: str
    is_all: bool
    query: "Query"
    type: Type
    span: Span | None = field(default=None, compare=False, repr=False)


Expression = (
    ColumnReference
    | ConstantValue
    | FunctionCall
    | AggregateCall
    | WindowCall
    | ScalarSubquery
    | Exists
    | Quantified
)


# --- sources -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueryColumn:
    """A column of a query or table, with its name as it is spelled where it was defined."""

    name: str
    type: Type
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TableSource:
    """A relation in `FROM`.

    Attributes:
        number: unique in the statement.
        is_bag: whether it has copies, to be read through `relation.rows`.
        keys: the sets of columns, by number, whose values tell its rows apart; an empty set says
            that there is at most one row.
    """

    number: int
    relation: str
    columns: tuple[QueryColumn, ...]
    is_bag: bool
    keys: tuple[frozenset[int], ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SubquerySource:
    """A query in `FROM`, or a reference to a common table expression that is not recursive."""

    number: int
    query: "Query"
    columns: tuple[QueryColumn, ...]
    cte: str | None = None
    """The name that all references to one common table expression share; it is unique."""
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RecursiveSource:
    """A reference to a recursive common table expression, inside or outside of its definition."""

    number: int
    cte: str
    columns: tuple[QueryColumn, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RangeSource:
    """`range(start, end, step)` in `FROM`: the numbers from `start` on, before `end`."""

    number: int
    arguments: tuple[Expression, Expression, Expression]
    columns: tuple[QueryColumn, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


class JoinKind(StrEnum):
    """The joins; `RIGHT` and `USING` are rewritten by the binder."""

    INNER = "inner"
    LEFT = "left"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"


@dataclass(frozen=True, slots=True)
class JoinedSource:
    """Two sources joined; `condition` is None for `CROSS JOIN` and the comma."""

    kind: JoinKind
    left: "Source"
    right: "Source"
    condition: Expression | None
    span: Span | None = field(default=None, compare=False, repr=False)


Source = TableSource | SubquerySource | RecursiveSource | RangeSource | JoinedSource


# --- queries -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Select:
    """One block.

    Attributes:
        source: None for a query without `FROM`, which has one row.
        group_by: the keys; None if the query is not grouped, empty if it is one group. With it,
            expressions of `columns` and `having` refer to keys by equal expressions.
        grouping_sets: the keys, by their number in `group_by`, of each grouping; None for one.
    """

    columns: tuple[tuple[QueryColumn, Expression], ...]
    source: Source | None
    where: Expression | None = None
    group_by: tuple[Expression, ...] | None = None
    grouping_sets: tuple[frozenset[int], ...] | None = None
    having: Expression | None = None
    is_distinct: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


class SetOperator(StrEnum):
    """The set operations."""

    UNION = "union"
    INTERSECT = "intersect"
    EXCEPT = "except"


@dataclass(frozen=True, slots=True)
class SetOperation:
    """`left UNION [ALL] right`, the columns of both sides of the same types."""

    operator: SetOperator
    is_all: bool
    left: "Query" = field(hash=False)  # a chain of thousands is nested as deeply
    right: "Query"
    columns: tuple[QueryColumn, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Values:
    """`VALUES (1, 'a'), …`."""

    rows: tuple[tuple[Expression, ...], ...]
    columns: tuple[QueryColumn, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ConstantRows:
    """Many rows of literals, of `VALUES` or of a list of `IN`, as plain values."""

    rows: tuple[tuple[Value, ...], ...] = field(hash=False)
    columns: tuple[QueryColumn, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Ordered:
    """A query with `ORDER BY` and perhaps `LIMIT`; the terms refer to output columns by number.

    Terms that are no output columns were appended to the query's columns by the binder as hidden
    ones; `width` says how many columns are the user's. `has_chosen` says whether the order was that
    of DISTINCT ON.
    """

    query: Select
    order: tuple[tuple[int, bool, bool], ...]
    """Column, whether descending, whether nulls come first."""
    limit: int | None
    offset: int
    width: int
    columns: tuple[QueryColumn, ...]
    has_chosen: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RecursiveTable:
    """A recursive common table expression.

    Attributes:
        name: unique in the program.
        bases: the branches of its union that do not refer to the tables of the same `WITH`.
        steps: those that do.
        is_all: whether the union keeps copies.
    """

    name: str
    columns: tuple[QueryColumn, ...]
    bases: tuple["Query", ...]
    steps: tuple["Query", ...]
    is_all: bool
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class WithRecursive:
    """A query over recursive common table expressions, which may refer to each other."""

    tables: tuple[RecursiveTable, ...]
    query: "Query"
    columns: tuple[QueryColumn, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


Query = Select | SetOperation | Values | ConstantRows | Ordered | WithRecursive


def output_columns(query: Query) -> tuple[QueryColumn, ...]:
    """Return the columns of a query."""
    if isinstance(query, Select):
        return tuple(column for column, _ in query.columns)
    return query.columns


# --- walks ---------------------------------------------------------------------------------------


Node = object
NumberedSource = TableSource | SubquerySource | RecursiveSource | RangeSource
_LEAVES = (Type, Span, QueryColumn, str, int, float, bool, type(None), frozenset)
_NESTING = ScalarSubquery | Exists | Quantified | SubquerySource


def walk(node: Node, *, into_subqueries: bool = True) -> Iterator[Node]:
    """Yield a node of a query tree and all nodes below it, parents first.

    Args:
        node: an expression, a source, a query, or a tuple of them.
        into_subqueries: whether the queries of subqueries in expressions are entered.
    """
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, tuple):
            stack += reversed(part)
        elif not isinstance(part, _LEAVES) and is_dataclass(part):
            yield part
            if isinstance(part, ConstantRows):
                continue
            is_closed = isinstance(part, ScalarSubquery | Exists | Quantified)
            names = [each.name for each in fields(part)]
            if is_closed and not into_subqueries:
                names.remove("query")
            stack += reversed([getattr(part, name) for name in names])


def sources_in(node: Node) -> Iterator[NumberedSource]:
    """Yield the sources with a number below a node."""
    for part in walk(node):
        if isinstance(part, NumberedSource):
            yield part


def free_references(query: Query) -> tuple[ColumnReference, ...]:
    """Return the references to columns of the queries around a query, in order, each once."""
    own = {each.number for each in sources_in(query)}
    found = {
        (part.source, part.column): part
        for part in reversed(list(walk(query)))
        if isinstance(part, ColumnReference) and part.source not in own
    }
    return tuple(reversed(found.values()))


def has_subquery(expression: Expression | None) -> bool:
    """Whether a query stands inside an expression."""
    return any(isinstance(part, ScalarSubquery | Exists | Quantified) for part in walk(expression))


def calls_in(expressions: Node, kind: type[AggregateCall] | type[WindowCall]) -> list[Expression]:
    """Return the calls of a kind in expressions, not those of subqueries, each once."""
    found: dict[Expression, None] = {}
    for part in walk(expressions, into_subqueries=False):
        if isinstance(part, kind):
            found.setdefault(part)
    return list(found)


def conjuncts(condition: Expression | None) -> Iterator[Expression]:
    """Yield the parts of a condition that `AND` joins."""
    if isinstance(condition, FunctionCall) and condition.functor == "and":
        for each in condition.arguments:
            yield from conjuncts(each)
    elif condition is not None:
        yield condition


def constant_of(expression: Expression) -> Value:
    """Return the value of a literal; None for anything else."""
    return expression.value if isinstance(expression, ConstantValue) else None


def without_order(query: Query) -> Query:
    """Return a query without an `ORDER BY` that has no effect: one without `LIMIT`.

    Columns that are only there for the order go with it.
    """
    while isinstance(query, Ordered) and query.limit is None and not query.offset:
        shown = zip(query.columns, query.query.columns, strict=False)
        columns = tuple((column, expression) for column, (_, expression) in shown)
        query = replace(query.query, columns=columns)
    return query


def map_references(
    node: Any, change: Callable[[ColumnReference, int], Expression], level: int = 0
) -> Any:
    """Return a query, or a part of one, with its references to columns changed.

    Args:
        node: what is changed.
        change: gets a reference, and how many queries of the node it is inside of.
        level: how many queries the node is inside of itself.
    """
    if isinstance(node, ColumnReference):
        return change(node, level)
    if isinstance(node, tuple):
        return tuple(map_references(each, change, level) for each in node)
    if not is_dataclass(node) or isinstance(node, (type, ConstantRows, *_LEAVES)):
        return node
    changed: dict[str, Any] = {}
    for each in fields(node):
        value = getattr(node, each.name)
        if isinstance(value, tuple) or is_dataclass(value):
            is_inner = each.name == "query" and isinstance(node, _NESTING)
            found = map_references(value, change, level + is_inner)
            if found != value:
                changed[each.name] = found
    return replace(node, **changed) if changed else node
