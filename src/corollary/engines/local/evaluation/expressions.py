"""Expressions and conditions, evaluated over columns: decode, compute with NumPy, mark faults.

Evaluation never raises: rows whose expression has no value (overflow, division by zero, a failed
conversion) are marked with the reason, and the caller decides whether that is an error. A missing
value dominates null: `null + 1 / 0` has no value. Functions are imported with their first call:
most goals call none.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from corollary.core import logic
from corollary.core.functors import catalog, conversions
from corollary.core.functors.lambdas import is_parameter
from corollary.core.logic import type_of
from corollary.core.types import Type
from corollary.core.user_functors.user_functor import UserCall
from corollary.data_class import dataclass
from corollary.engines.local.evaluation.value_vector import (
    ComputedRows,
    ValueVector,
    dense_mask,
    union_masks,
)
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Mask
from corollary.engines.local.values import native
from corollary.engines.local.values.codes import Dictionary

RANGE_BATCH_ROWS = 1 << 16
RANGE_SHORT = 1 << 10
"""So many ranges are computed at once if each has at most as many numbers."""

Columns = Mapping[str, Codes]

Missing = Mapping[str, Mask]
"""For each variable that some rows have no value of, these rows."""

NOTHING_MISSING: Missing = {}

Bound = Mapping[str, ValueVector]
"""The parameters of lambdas, whose values have no codes."""

NOTHING_BOUND: Bound = {}
MISSING_VARIABLE = "a variable without a value"


@lru_cache(maxsize=1024)
def _native(value: logic.Value, type_: Type) -> Any:
    """Return a constant as an array of length 1."""
    return native.from_python([value], type_)


def evaluate(
    expression: logic.Expression,
    frame: Columns,
    count: int,
    codes: Dictionary,
    missing: Missing = NOTHING_MISSING,
    *,
    bound: Bound = NOTHING_BOUND,
) -> ValueVector:
    """Return the values of an expression for every row of a frame.

    Args:
        expression: what to compute.
        frame: the codes of its variables.
        count: the number of rows.
        codes: decodes them.
        missing: the rows in which a variable has no value; the reason is `MISSING_VARIABLE`.
        bound: the parameters of the lambdas around it.
    """
    type_ = type_of(expression)
    match expression:
        case logic.Variable(name=name):
            column = frame[name]
            nulls = column == 0
            has_null = np.count_nonzero(nulls)
            faults = ((missing[name], MISSING_VARIABLE),) if name in missing else ()
            values = codes.decode(column, type_)
            return ValueVector(values, type_, nulls if has_null else None, faults)
        case logic.Constant(value=value):
            if value is None:
                return ValueVector(
                    native.filler_values(count, type_), type_, np.ones(count, np.bool_)
                )
            return ValueVector(_native(value, type_).repeat(count), type_)
        case logic.Functor(name=conversions.CHECKED_SUM, arguments=(logic.Variable() as total,)):
            # Aggregation leaves null for a sum that overflows: only here it becomes a fault.
            from corollary.engines.local.evaluation.kernels import OVERFLOW

            batch = evaluate(total, frame, count, codes)
            lost = dense_mask(batch.nulls, count)
            return replace(batch, nulls=None, faults=((lost, OVERFLOW),))
        case logic.Functor(name=conversions.PARTITION_OF, arguments=arguments):
            batch, shares = (evaluate(each, frame, count, codes) for each in arguments)  # type: ignore[arg-type]
            return ValueVector(native.partition_of(batch.values, batch.nulls, shares.values), type_)
        case UserCall(arguments=arguments):
            from corollary.engines.local.evaluation.functions.user_functions import (
                apply_user_functor,
            )

            inputs = [
                evaluate(each, frame, count, codes, missing, bound=bound)  # type: ignore[arg-type]
                for each in arguments
            ]
            return apply_user_functor(expression, inputs, count)
        case logic.Functor(name=name) if is_parameter(expression):
            return bound[name]
        case logic.Functor(name=name) if name in catalog.HIGHER_ORDER:
            from corollary.engines.local.evaluation.functions.lambdas import (
                LambdaScope,
                apply_lambda,
            )

            scope = LambdaScope(evaluate, frame, count, codes, missing, bound)
            return apply_lambda(expression, scope)
        case logic.Functor(name=name, arguments=arguments):
            compared = None if missing else _compare_by_codes(expression, frame, count, codes)
            if compared is not None:
                return compared
            inputs = [
                evaluate(each, frame, count, codes, missing, bound=bound)  # type: ignore[arg-type]
                for each in arguments
            ]
            from corollary.engines.local.evaluation.functions import COMBINATIONS

            combine = COMBINATIONS.get(name)
            return _apply(name, inputs, type_) if combine is None else combine(inputs, type_)


def _compare_by_codes(
    functor: logic.Functor, frame: Columns, count: int, codes: Dictionary
) -> ValueVector | None:
    """Return the truth of a comparison of variables and constants if codes decide it."""
    operator = catalog.COMPARISON_OPERATORS.get(functor.name)
    if operator is None:
        return None
    sides = [
        each for each in functor.arguments if isinstance(each, logic.Variable | logic.Constant)
    ]
    if len(sides) < 2:
        return None
    condition = logic.Condition(operator, sides[0], sides[1])
    true = _compare_codes(condition, frame, count, codes)
    if true is None:
        return None
    nulls = np.zeros(count, np.bool_)
    for side in sides:
        nulls |= _codes_of(side, frame, count, codes) == 0
    has_null = np.count_nonzero(nulls)
    return ValueVector(true.astype(np.int64), type_of(functor), nulls if has_null else None)


def _apply(name: str, inputs: list[ValueVector], type_: Type) -> ValueVector:
    from corollary.engines.local.evaluation.functions import STRICT_FUNCTIONS

    # Rows with a null or a missing operand are not computed: they must not add faults.
    rows = ComputedRows(inputs)
    operands = [(rows.take(each.values), each.type) for each in inputs]
    values, faults = STRICT_FUNCTIONS[name](operands, type_)
    if type_.stores_floats:
        values = native.canonical_floats(values)
    return rows.vector(values, type_, faults=faults)


@dataclass(frozen=True, slots=True)
class ConditionResult:
    """The mask of rows in which a condition is true, and its faults."""

    true: Mask
    faults: tuple[tuple[Mask, str], ...] = ()


def evaluate_condition(
    condition: logic.Condition,
    frame: Columns,
    count: int,
    codes: Dictionary,
    missing: Missing = NOTHING_MISSING,
) -> ConditionResult:
    """Evaluate a condition: comparisons with null are false, `is` is null-safe."""
    true = None if missing else _compare_codes(condition, frame, count, codes)
    if true is not None:
        return ConditionResult(true)
    operator = condition.operator
    one = evaluate(condition.left, frame, count, codes, missing)
    two = evaluate(condition.right, frame, count, codes, missing)
    if operator.removeprefix("!") in logic.TEXT_PREDICATES:
        from corollary.engines.local.evaluation.text_functions import evaluate_constraint

        true, new_faults = evaluate_constraint(operator.removeprefix("!"), one.values, two.values)
        true = ~true if operator.startswith("!") else true
        if one.nulls is not None:  # a pattern that is null is not invalid
            real = [(mask & ~one.nulls, reason) for mask, reason in new_faults]
            new_faults = [(mask, reason) for mask, reason in real if mask.any()]
    else:
        from corollary.engines.local.evaluation.arithmetic import compare_values

        equation = "=" if operator == "is" else operator
        true = compare_values(equation, one.values, one.type, two.values, two.type)
        new_faults = []
    nulls = union_masks(one.nulls, two.nulls)
    both = one.nulls & two.nulls if one.nulls is not None and two.nulls is not None else None
    faults = one.faults + two.faults + tuple(new_faults)
    if nulls is not None:
        true &= ~nulls
    for mask, _ in faults:
        true &= ~mask
    if operator == "is" and both is not None:
        true |= both
    return ConditionResult(true, faults)


def _compare_codes(
    condition: logic.Condition, frame: Columns, count: int, codes: Dictionary
) -> Mask | None:
    """Return the rows in which a condition is true, or None if codes do not decide it."""
    # Codes decide comparisons of order only where the domain is ordered.
    compare = logic.COMPARATORS.get(condition.operator)
    sides = (condition.left, condition.right)
    one_type, two_type = map(type_of, sides)
    if compare is None or one_type.domain != two_type.domain:
        return None
    if not all(isinstance(side, logic.Variable | logic.Constant) for side in sides):
        return None
    one, two = (_codes_of(side, frame, count, codes) for side in sides)
    # Values of one domain are equal if and only if their codes are. The order is asked for now:
    # a constant may just have been interned.
    if condition.operator not in ("=", "!=") and not codes.domain(one_type).is_ordered:
        return None
    true: Mask = compare(one, two)
    for side in (one, two):
        true &= side != 0
    return true


def _codes_of(side: logic.Expression, frame: Columns, count: int, codes: Dictionary) -> Codes:
    if isinstance(side, logic.Variable):
        return frame[side.name]
    assert isinstance(side, logic.Constant)
    return np.full(count, codes.encode_value(side.value, type_of(side)), np.int64)


def encode_vector(batch: ValueVector, codes: Dictionary) -> Codes:
    """Return the codes of values, null for rows without a value."""
    faulty = batch.fault_mask
    if faulty is None or not np.count_nonzero(faulty):
        return codes.encode(batch.values, batch.nulls, batch.type)
    return codes.encode(batch.values, union_masks(batch.nulls, faulty), batch.type)


class RangeValues:
    """The numbers of `range(a, b, step)` for every row of a frame, in batches.

    Without a step it counts up, or down if the end is below the start. A step of 0 gives the start,
    if it is not the end. One that is too small to change a large float is a fault.

    Attributes:
        faulty_rows: the rows whose range has no value.
    """

    def __init__(
        self, functor: logic.Functor, frame: Columns, count: int, dictionary: Dictionary
    ) -> None:
        inputs = [
            evaluate(each, frame, count, dictionary)  # type: ignore[arg-type]
            for each in functor.arguments
        ]
        skip = np.zeros(count, np.bool_)
        faulty = np.zeros(count, np.bool_)
        for each in inputs:
            skip |= dense_mask(each.nulls, count)
            faulty |= dense_mask(each.fault_mask, count)
        start, end = inputs[0].values, inputs[1].values
        step = inputs[2].values if len(inputs) > 2 else np.where(start <= end, 1, -1)
        faulty |= (start + step.astype(start.dtype) == start) & (step != 0)
        self.faulty_rows: Codes = np.flatnonzero(faulty & ~skip)
        self._rows: Codes = np.flatnonzero(~(skip | faulty))
        self._bounds = start[self._rows], end[self._rows], step[self._rows]
        self._dtype = start.dtype
        self._type = type_of(functor)
        self._dictionary = dictionary

    def batches(self) -> Iterator[tuple[Codes, Codes]]:
        """Yield for each number the row that it belongs to, and its code."""
        start, end, step = self._bounds
        is_short = np.zeros(len(start), np.bool_)
        if self._dtype == np.int64:  # as most are: many of them are computed at once
            low, high = np.maximum(start, -(2**61)), np.minimum(end, 2**61)
            is_exact = (low == start) & (high == end) & (step == 1)
            is_short = is_exact & (high - np.minimum(low, 2**61) <= RANGE_SHORT)
        short = np.flatnonzero(is_short & is_short.all())  # in the order of the rows
        for first in range(0, len(short), RANGE_SHORT):
            chosen = short[first : first + RANGE_SHORT]
            sizes = np.maximum(end[chosen] - start[chosen], 0)
            ends = np.cumsum(sizes)
            numbers = np.arange(ends[-1]) + (start[chosen] - ends + sizes).repeat(sizes)
            codes = self._dictionary.encode(numbers, None, self._type)
            yield self._rows[chosen].repeat(sizes), codes
        for at in range(0 if len(short) else len(start)):
            values = _between(start[at].item(), end[at].item(), step[at].item())
            while batch := list(islice(values, RANGE_BATCH_ROWS)):
                codes = self._dictionary.encode(np.array(batch, self._dtype), None, self._type)
                yield np.full(len(codes), self._rows[at], np.int64), codes


def _between(start: float, end: float, step: float) -> Iterator[float]:
    if not step:
        yield from () if start == end else (start,)
        return
    if isinstance(start, int):
        yield from range(start, int(end), int(step))
        return
    value, last = start, None
    while (value < end if step > 0 else value > end) and value != last:
        yield value
        value, last = value + step, value
