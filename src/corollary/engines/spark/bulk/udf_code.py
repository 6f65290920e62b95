"""Functions of our own in Spark's queries, by the code of the local engine, on Arrow batches.

They know nothing of Spark: columns of a batch come in, an array goes out. Spark sends them to its
Python workers.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import single_array
from corollary.core.arrow_buffers import bool_array, fixed_array, fixed_values, null_mask
from corollary.core.logic import Condition
from corollary.core.totals import SpecialPlace
from corollary.core.types import FLOAT, Type
from corollary.engines.local.evaluation.aggregation import totals
from corollary.engines.local.evaluation.aggregation.exact_sums import float_digits
from corollary.engines.local.evaluation.expressions import evaluate, evaluate_condition
from corollary.engines.local.evaluation.value_vector import dense_mask, fault_mask_of
from corollary.engines.local.evaluation.windows import row_values
from corollary.engines.local.values import native
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.spark.bulk.spark_columns import column_names, from_spark, to_spark
from corollary.sqlgen import udf
from corollary.sqlgen.spark_dialect import SPARK

Run = Callable[..., pa.Array]


def udf_code(function: udf.Udf) -> tuple[Run, str]:
    """Return what computes a function, and the SQL type of its result."""
    match function:
        case udf.EvaluateExpression(result=result):
            made = f"STRUCT<{udf.VALUE}: {SPARK.type_name(result)}, {udf.FAULT}: BOOLEAN>"
            return partial(_evaluate, function), made
        case udf.SplitWords(type=type_):
            return partial(_split_words, type_), "ARRAY<BIGINT>"
        case udf.JoinWords(type=type_):
            return partial(_join_words, type_), SPARK.type_name(type_)
        case udf.MeanOfWords(type=type_):
            return partial(_mean_of_words, type_), "DOUBLE"
        case udf.SplitDigits(operator=operator):
            return partial(
                _split_digits, operator
            ), f"ARRAY<STRUCT<{udf.PLACE}: BIGINT, {udf.DIGIT}: BIGINT>>"
        case udf.ReadDigits(operator=operator):
            return partial(_read_digits, operator), "DOUBLE"
        case udf.WindowRows(types=types):
            fields = zip(column_names(types), map(SPARK.type_name, types), strict=True)
            made = ", ".join(f"{name}: {type_}" for name, type_ in fields)
            return partial(_window_rows, function), f"ARRAY<STRUCT<{made}>>"
        case _:
            assert_never(function)


def _evaluate(function: udf.EvaluateExpression, length: pa.Array, *columns: pa.Array) -> pa.Array:
    codes, count = Dictionary(), len(length)
    frame = {
        name: codes.encode_arrow(pa.chunked_array([from_spark(column, type_)]), type_)
        for (name, type_), column in zip(function.arguments, columns, strict=True)
    }
    if isinstance(function.what, Condition):
        verdict = evaluate_condition(function.what, frame, count, codes)
        values, faults = bool_array(verdict.true), dense_mask(fault_mask_of(verdict.faults), count)
    else:
        batch = evaluate(function.what, frame, count, codes)
        faults = dense_mask(batch.fault_mask, count)
        nulls = dense_mask(batch.nulls, count) | faults
        values = to_spark(native.to_arrow(batch.values, nulls, function.result), function.result)
    return pa.StructArray.from_arrays([values, bool_array(faults)], [udf.VALUE, udf.FAULT])


def _split_words(type_: Type, column: pa.Array) -> pa.Array:
    """Return for each value its words; none for null."""
    values, nulls = native.from_arrow(pa.chunked_array([from_spark(column, type_)]), type_)
    present = np.ones(len(column), np.bool_) if nulls is None else ~nulls
    words = np.stack(totals.split_words(values[present], type_), axis=1)
    return _lists(present.astype(np.int64) * words.shape[1], fixed_array(words.ravel(), pa.int64()))


def _lists(lengths: Any, values: pa.Array) -> pa.Array:
    """Return arrays of some lengths."""
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(fixed_array(ends, pa.int32()), values)


def _join_words(type_: Type, *words: pa.Array) -> pa.Array:
    values, too_large = totals.join_words([fixed_values(each, np.int64) for each in words], type_)
    nulls = dense_mask(too_large, len(values))
    return to_spark(native.to_arrow(values, nulls, type_), type_)


def _mean_of_words(type_: Type, count: pa.Array, *words: pa.Array) -> pa.Array:
    counts = fixed_values(count, np.int64)
    sums = [fixed_values(each, np.int64) for each in words]
    means = totals.mean_of_words(sums, np.maximum(counts, 1), type_.scale)
    return fixed_array(means, pa.float64(), counts == 0)


def _split_digits(operator: str, column: pa.Array) -> pa.Array:
    """Return for each float the places that it counts at; for `sum`, null counts as a term, too."""
    nulls = null_mask(column)
    present = np.ones(len(column), np.bool_) if nulls is None else ~nulls
    values, _ = native.from_arrow(pa.chunked_array([column]), FLOAT)
    is_finite = np.isfinite(values) & present
    first, digits = float_digits(np.where(is_finite, values, 0.0))
    places = [np.full(len(values), SpecialPlace.COUNT), *(first + at for at in range(len(digits)))]
    amounts = [present if operator == "mean" else np.ones(len(values), np.int64), *digits]
    for place, is_at in totals.SPECIAL_TESTS.items():
        places.append(np.full(len(values), place))
        amounts.append(is_at(values) & present)
    # A row for each value, a column for each place.
    all_places, all_amounts = (
        np.stack(each, axis=1).astype(np.int64) for each in (places, amounts)
    )
    is_used = all_amounts != 0
    fields = [fixed_array(each[is_used], pa.int64()) for each in (all_places, all_amounts)]
    return _lists(is_used.sum(axis=1), pa.StructArray.from_arrays(fields, [udf.PLACE, udf.DIGIT]))


def _read_digits(operator: str, lists: pa.Array) -> pa.Array:
    """Return the sum or mean of each array of places and digits, none of which is empty."""
    owners = fixed_values(pc.list_parent_indices(lists).cast(pa.int64()), np.int64)
    rows = pc.list_flatten(lists)
    places, digits = (fixed_values(rows.field(name), np.int64) for name in (udf.PLACE, udf.DIGIT))
    return fixed_array(totals.read_digits(operator, owners, places, digits), pa.float64())


def _window_rows(function: udf.WindowRows, lists: pa.Array) -> pa.Array:
    """Return the rows of each partition with their values, computed for all of them at once."""
    types, codes, rows = function.types, Dictionary(), pc.list_flatten(lists)
    columns = [
        codes.encode_arrow(pa.chunked_array([from_spark(rows.field(at), types[at])]), types[at])
        for at in range(rows.type.num_fields)
    ]
    values = [np.empty(0, np.int64) for _ in function.windowing.functions]
    if len(rows):
        values = row_values(function.windowing, columns, types, codes)
    made = [
        single_array(to_spark(codes.decode_arrow(value, type_), type_))
        for value, type_ in zip(values, types[len(columns) :], strict=True)
    ]
    named = pa.StructArray.from_arrays([*rows.flatten(), *made], column_names(types))
    return _lists(fixed_values(pc.list_value_length(lists).cast(pa.int64()), np.int64), named)
