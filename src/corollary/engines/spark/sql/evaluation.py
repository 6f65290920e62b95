"""What Spark SQL has no equal function for, on Arrow batches, by the code of the local engine.

These objects are sent to Spark's Python workers. They know nothing of Spark: a batch of columns
comes in, an array goes out.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import arrow_type
from corollary.core.arrow_buffers import decimal_integers, fixed_array, fixed_values, null_mask
from corollary.core.logic import Condition, Expression, Functor
from corollary.core.types import DECIMAL_MAX_DIGITS, FLOAT, Kind, Type
from corollary.core.values import unscaled_integer
from corollary.engines.local.evaluation import decimals, expressions
from corollary.engines.local.evaluation.aggregates import sum_groups
from corollary.engines.local.evaluation.expressions import RangeValues
from corollary.engines.local.evaluation.value_vector import dense_mask
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.values import native
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.spark.sql.columns import held_column, held_type, plain_column

VALUE, FAULT = "value", "fault"


@dataclass(frozen=True, slots=True)
class Arguments:
    """The variables that the columns of a batch hold, behind one that only says how long it is."""

    names: tuple[str, ...]
    types: tuple[Type, ...]

    def frame(self, columns: tuple[pa.Array, ...], codes: Dictionary) -> dict[str, Codes]:
        """Return the columns as the local engine has them."""
        return {
            name: codes.encode_arrow(pa.chunked_array([plain_column(column, type_)]), type_)
            for name, type_, column in zip(self.names, self.types, columns, strict=True)
        }


def _struct(values: pa.Array, faults: Any) -> pa.Array:
    return pa.StructArray.from_arrays([values, pa.array(faults, pa.bool_())], [VALUE, FAULT])


@dataclass(frozen=True, slots=True)
class Evaluate:
    """The value of an expression, null where there is none, and whether there is none."""

    expression: Expression
    arguments: Arguments

    def __call__(self, length: pa.Array, *columns: pa.Array) -> pa.Array:
        """Return an array as long as the batch."""
        codes, count = Dictionary(), len(length)
        frame = self.arguments.frame(columns, codes)
        batch = expressions.evaluate(self.expression, frame, count, codes)
        faulty = dense_mask(batch.fault_mask, count)
        nulls = dense_mask(batch.nulls, count) | faulty
        return _struct(_held(batch.values, nulls, batch.type), faulty)


def _held(values: native.NativeArray, nulls: Any, type_: Type) -> pa.Array:
    widest = Type(type_.kind, precision=DECIMAL_MAX_DIGITS, scale=type_.scale)
    return held_column(native.to_arrow(values, nulls, widest), widest)


@dataclass(frozen=True, slots=True)
class Holds:
    """Whether a condition is true, and whether it has no truth value."""

    condition: Condition
    arguments: Arguments

    def __call__(self, length: pa.Array, *columns: pa.Array) -> pa.Array:
        """Return an array as long as the batch."""
        codes, count = Dictionary(), len(length)
        frame = self.arguments.frame(columns, codes)
        verdict = expressions.evaluate_condition(self.condition, frame, count, codes)
        faulty = np.zeros(count, np.bool_)
        for mask, _ in verdict.faults:
            faulty |= mask
        return _struct(pa.array(verdict.true, pa.bool_()), faulty)


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers of a range as an array, and whether it has no value."""

    functor: Functor
    arguments: Arguments

    def __call__(self, length: pa.Array, *columns: pa.Array) -> pa.Array:
        """Return an array as long as the batch."""
        codes, count = Dictionary(), len(length)
        frame = self.arguments.frame(columns, codes)
        numbers = RangeValues(self.functor, frame, count, codes)
        type_ = expressions.type_of(self.functor)
        rows, made = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for owners, values in numbers.batches():
            rows.append(owners)
            made.append(values)
        owners = np.concatenate(rows)
        values = codes.decode_arrow(np.concatenate(made), type_)
        faulty = np.zeros(count, np.bool_)
        faulty[numbers.faulty_rows] = True
        return _struct(lists(owners, held_column(values, type_), count), faulty)


def lists(owners: Codes, values: pa.Array, count: int) -> pa.Array:
    """Return for each row the values that belong to it; the rows they belong to are sorted."""
    ends = np.searchsorted(owners, np.arange(count + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), values)


@dataclass(frozen=True, slots=True)
class FloatTotal:
    """The correctly rounded sum, or mean, of each list of floats; null for an empty one."""

    is_mean: bool

    def __call__(self, lists_: pa.Array) -> pa.Array:
        """Return an array as long as the batch."""
        sizes = np.array([len(each) for each in lists_.to_pylist()], np.int64)
        result = np.zeros(len(sizes), np.float64)
        filled = np.flatnonzero(sizes)
        values = np.array([value for each in lists_.to_pylist() for value in each], np.float64)
        begins = np.concatenate([[0], np.cumsum(sizes[filled])])[:-1]
        if len(filled):
            sums, _ = sum_groups(values, begins, sizes[filled], FLOAT, FLOAT)
            with np.errstate(all="ignore"):
                result[filled] = sums / sizes[filled] if self.is_mean else sums
        return pa.array(native.canonical_floats(result), pa.float64(), mask=sizes == 0)


@dataclass(frozen=True, slots=True)
class ExactMean:
    """The quotient of an exact sum and a number of rows, correctly rounded."""

    scale: int

    def __call__(self, sums: pa.Array, sizes: pa.Array) -> pa.Array:
        """Return an array as long as the batch."""
        unit = 10**self.scale
        means = [
            None
            if total is None or not size
            else unscaled_integer(total, self.scale) / (size * unit)
            for total, size in zip(sums.to_pylist(), sizes.to_pylist(), strict=True)
        ]
        return pa.array(means, pa.float64())


def _exact_totals(totals: pa.Array, others: pa.Array) -> Any:
    """Return the sums of decimals, null being 0, and lists of them, as Python's integers."""
    sums = decimal_integers(totals).astype(object)
    nulls = null_mask(totals)
    if nulls is not None:
        sums[nulls] = 0
    owners = fixed_values(pc.list_parent_indices(others).cast(pa.int64()), np.int64)
    np.add.at(sums, owners, decimal_integers(pc.list_flatten(others)).astype(object))
    return sums


@dataclass(frozen=True, slots=True)
class LongTotal:
    """The sum of a decimal and a list of them, null if it is too large."""

    type: Type

    def __call__(self, totals: pa.Array, others: pa.Array) -> pa.Array:
        """Return an array as long as the batch."""
        sums, too_large = decimals.bounded(_exact_totals(totals, others))
        return _held(sums, too_large, self.type)


@dataclass(frozen=True, slots=True)
class LongMean:
    """The quotient of such a sum and a number of rows, correctly rounded; null for no rows."""

    scale: int

    def __call__(self, totals: pa.Array, others: pa.Array, sizes: pa.Array) -> pa.Array:
        """Return an array as long as the batch."""
        counts = fixed_values(sizes, np.int64)
        divisors = np.maximum(counts, 1).astype(object) * 10**self.scale
        # The quotient of two integers is correctly rounded in Python.
        means = (_exact_totals(totals, others) / divisors).astype(np.float64)
        return fixed_array(means, pa.float64(), counts == 0)


def returned(type_: Type) -> pa.DataType:
    """Return the Arrow type of values of a type, as `Evaluate` gives them."""
    return held_type(type_) if type_.kind in (Kind.UNSIGNED, Kind.DECIMAL) else arrow_type(type_)
