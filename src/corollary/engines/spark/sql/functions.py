"""Functions of ours that SQL can call, registered when they are first needed."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from corollary.core.logic import Condition, Expression, Functor, variable_names, variables_of
from corollary.core.types import BOOL, Type
from corollary.engines.local.evaluation.expressions import type_of
from corollary.engines.spark.sql import evaluation, sql
from corollary.engines.spark.sql.columns import sql_type
from corollary.engines.spark.sql.immutable_sets import Pieces

Scope = dict[str, tuple[sql.Node, Type]]
"""For each variable its column and type."""


class Functions:
    """The functions of one session."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._known: dict[str, str] = {}

    def name(self, function: Callable[..., Any], result: str) -> str:
        """Return the name under which SQL can call a function."""
        key = f"{function!r} {result}"
        known = self._known.get(key)
        if known is None:
            from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]

            def apply(*columns: pa.Array) -> pa.Array:
                return function(*columns)

            known = self._known[key] = self._pieces.new_name()
            made = arrow_udf(apply, result)
            self._pieces.session.udf.register(known, made)
        return known

    def evaluate(self, expression: Expression, scope: Scope) -> sql.Node:
        """Return a struct of the value of an expression, and whether there is none."""
        arguments, nodes = _arguments({v.name for v in variables_of(expression)}, scope)
        result = _struct(sql_type(type_of(expression)))
        return sql.call(self.name(evaluation.Evaluate(expression, arguments), result), *nodes)

    def holds(self, condition: Condition, scope: Scope) -> sql.Node:
        """Return a struct of the truth of a condition, and whether it has none."""
        arguments, nodes = _arguments(variable_names(condition), scope)
        function = evaluation.Holds(condition, arguments)
        return sql.call(self.name(function, _struct(sql_type(BOOL))), *nodes)

    def range(self, functor: Functor, scope: Scope) -> sql.Node:
        """Return a struct of the numbers of a range, and whether it has no value."""
        arguments, nodes = _arguments({v.name for v in variables_of(functor)}, scope)
        result = _struct(f"ARRAY<{sql_type(type_of(functor))}>")
        return sql.call(self.name(evaluation.Range(functor, arguments), result), *nodes)

    def float_total(self, values: sql.Node, *, is_mean: bool) -> sql.Node:
        """Return the exact sum or mean of an array."""
        return sql.call(self.name(evaluation.FloatTotal(is_mean), "DOUBLE"), values)

    def mean(self, total: sql.Node, size: sql.Node, scale: int) -> sql.Node:
        """Return the quotient of an exact sum and a number."""
        return sql.call(self.name(evaluation.ExactMean(scale), "DOUBLE"), total, size)

    def long_total(self, total: sql.Node, others: sql.Node, type_: Type) -> sql.Node:
        """Return the sum of a decimal and an array of them, null if it is too large for a type."""
        return sql.call(self.name(evaluation.LongTotal(type_), sql_type(type_)), total, others)

    def long_mean(self, total: sql.Node, others: sql.Node, size: sql.Node, scale: int) -> sql.Node:
        """Return the quotient of such a sum, however large, and a number."""
        return sql.call(self.name(evaluation.LongMean(scale), "DOUBLE"), total, others, size)


def _struct(value: str) -> str:
    return f"STRUCT<{evaluation.VALUE}: {value}, {evaluation.FAULT}: BOOLEAN>"


def _arguments(names: set[str], scope: Scope) -> tuple[evaluation.Arguments, Sequence[sql.Node]]:
    listed = sorted(names)
    types = tuple(scope[name][1] for name in listed)
    nodes = [sql.true(), *(scope[name][0] for name in listed)]
    return evaluation.Arguments(tuple(listed), types), nodes
