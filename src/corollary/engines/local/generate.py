"""`range(a, b, step)`: several rows from one."""

import numpy as np
import numpy.typing as npt

from corollary.core.terms import Functor
from corollary.engines.local import expressions
from corollary.engines.local.codes import Dictionary
from corollary.engines.local.layout import Codes


def numbers(
    functor: Functor, frame: expressions.Frame, count: int, dictionary: Dictionary
) -> tuple[npt.NDArray[np.int64], Codes, npt.NDArray[np.int64]]:
    """Return the row that each number belongs to, the numbers' codes, and the faulty rows.

    Without a step it counts up, or down where the end is below the start; a step of 0 is a fault.
    """
    inputs = [expressions.evaluate(each, frame, count, dictionary) for each in functor.arguments]  # type: ignore[arg-type]
    skip = np.zeros(count, np.bool_)
    faulty = np.zeros(count, np.bool_)
    for each in inputs:
        if each.nulls is not None:
            skip |= each.nulls
        if each.faulty is not None:
            faulty |= each.faulty
    start, end = inputs[0].values, inputs[1].values
    if len(inputs) > 2:
        step = inputs[2].values
        faulty |= step == 0
    else:
        step = np.where(start <= end, 1, -1)
    rows: list[npt.NDArray[np.int64]] = []
    values = []
    for row in np.flatnonzero(~(skip | faulty)).tolist():
        made = _between(start[row].item(), end[row].item(), step[row].item(), start.dtype)
        rows.append(np.full(len(made), row, np.int64))
        values.append(made)
    faulty_rows = np.flatnonzero(faulty & ~skip)
    if not rows:
        return np.empty(0, np.int64), np.empty(0, np.int64), faulty_rows
    joined = np.concatenate(values)
    codes = dictionary.encode(joined, None, expressions.type_of(functor))
    return np.concatenate(rows), codes, faulty_rows


def _between(
    start: float, end: float, step: float, dtype: np.dtype[np.generic]
) -> npt.NDArray[np.generic]:
    if isinstance(start, int):
        return np.array(range(start, int(end), int(step)), dtype)
    made = []
    value = start
    while value < end if step > 0 else value > end:
        made.append(value)
        value += step
    return np.array(made, dtype)
