"""Functions in Python (udfs) that a query calls, where an SQL engine has no exact form.

The compiler only says what is to be computed; an engine that can run our code registers a function
for it under the name that the query has. Names follow from what is computed, so that equal
functions have one name.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from sqlglot import exp

from corollary.core.logic import Condition, Expression, Windowing, type_of, variables_of
from corollary.core.types import BOOL, DECIMAL_MAX_DIGITS, Type
from corollary.data_class import dataclass
from corollary.sqlgen import nodes
from corollary.sqlgen.dialect import SqlDialect
from corollary.sqlgen.expressions import SqlExpression
from corollary.sqlgen.nodes import Node

UDF = "udf"
"""Where a node of a tree has the function that it calls."""

VALUE, FAULT = "value", "fault"
"""What evaluation gives: a value, null where there is none, and whether there is none."""

PLACE, DIGIT = "place", "digit"
"""What a float adds to running totals, and where."""


@dataclass(frozen=True, slots=True)
class EvaluateExpression:
    """The value of an expression, or the truth of a condition, and whether it has none.

    Attributes:
        arguments: the variables that the columns hold, behind one that is always true.
        result: the type of the value.
    """

    what: Expression | Condition
    arguments: tuple[tuple[str, Type], ...]
    result: Type


@dataclass(frozen=True, slots=True)
class SplitWords:
    """The words of an integer or a decimal, the most significant first (`core/totals.py`)."""

    type: Type


@dataclass(frozen=True, slots=True)
class JoinWords:
    """The integer or decimal of a type that words say; null if it is too large."""

    type: Type


@dataclass(frozen=True, slots=True)
class MeanOfWords:
    """The mean of integers or decimals, from their number and the words of their sum."""

    type: Type


@dataclass(frozen=True, slots=True)
class SplitDigits:
    """The rows (place, digit) that a float adds to running totals (`core/totals.py`)."""

    operator: str


@dataclass(frozen=True, slots=True)
class ReadDigits:
    """The sum or mean that the rows (place, digit) of a group say."""

    operator: str


@dataclass(frozen=True, slots=True)
class WindowRows:
    """The rows of a partition with the values of their window functions.

    Attributes:
        types: of the columns of the rows, then of the values.
    """

    windowing: Windowing
    types: tuple[Type, ...]


Udf = (
    EvaluateExpression
    | SplitWords
    | JoinWords
    | MeanOfWords
    | SplitDigits
    | ReadDigits
    | WindowRows
)


def call_udf(function: Udf, *arguments: Node) -> Node:
    """Return a call of a function."""
    made = nodes.call(f"corollary_{sha256(repr(function).encode()).hexdigest()[:24]}", *arguments)
    made.meta[UDF] = function
    return made


def udfs_in(queries: Iterable[Node]) -> Mapping[str, Udf]:
    """Return the functions that queries call, by name."""
    return {
        node.this: node.meta[UDF]
        for query in queries
        for node in query.find_all(exp.Anonymous)
        if UDF in node.meta
    }


def evaluate_by_udf(
    what: Expression | Condition,
    sides: Sequence[Expression],
    values: Mapping[str, SqlExpression],
    dialect: SqlDialect,
) -> tuple[Node, Type]:
    """Return the call that evaluates an expression or a condition, and the type of its value.

    Args:
        what: the expression or condition.
        sides: the expressions in it.
        values: its variables.
        dialect: the engine that calls.
    """
    types = {each.name: type_of(each) for side in sides for each in variables_of(side)}
    result = BOOL
    if not isinstance(what, Condition):
        result = type_of(what)
        if result.is_decimal:  # what is computed may have all digits that there are
            result = replace(result, precision=DECIMAL_MAX_DIGITS)
    columns = [
        nodes.cast(values[name].value, dialect.type_name(type_)) for name, type_ in types.items()
    ]
    function = EvaluateExpression(what, tuple(types.items()), result)
    return call_udf(function, exp.Boolean(this=True), *columns), result
