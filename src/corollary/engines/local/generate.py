"""`range(a, b, step)`: several rows from one."""

from collections.abc import Iterator
from itertools import islice

import numpy as np
import numpy.typing as npt

from corollary.core.terms import Functor
from corollary.engines.local import expressions
from corollary.engines.local.codes import Dictionary
from corollary.engines.local.layout import Codes

Rows = npt.NDArray[np.int64]
BATCH = 1 << 16


class Numbers:
    """The numbers of a range for every row of a frame, made in batches.

    Without a step it counts up, or down where the end is below the start. A step that leads nowhere
    (0, or lost in a large float) is a fault.

    Attributes:
        faulty: the rows whose range has no value.
    """

    def __init__(
        self, functor: Functor, frame: expressions.Frame, count: int, dictionary: Dictionary
    ) -> None:
        inputs = [
            expressions.evaluate(each, frame, count, dictionary)  # type: ignore[arg-type]
            for each in functor.arguments
        ]
        skip = np.zeros(count, np.bool_)
        faulty = np.zeros(count, np.bool_)
        for each in inputs:
            skip |= expressions.mask_of(each.nulls, count)
            faulty |= expressions.mask_of(each.faulty, count)
        start, end = inputs[0].values, inputs[1].values
        step = inputs[2].values if len(inputs) > 2 else np.where(start <= end, 1, -1)
        faulty |= start + step.astype(start.dtype) == start
        self.faulty: Rows = np.flatnonzero(faulty & ~skip)
        self._bounds = [
            (row, start[row].item(), end[row].item(), step[row].item())
            for row in np.flatnonzero(~(skip | faulty)).tolist()
        ]
        self._dtype = start.dtype
        self._type = expressions.type_of(functor)
        self._dictionary = dictionary

    def batches(self) -> Iterator[tuple[Rows, Codes]]:
        """Yield which row each number belongs to, and the numbers' codes."""
        for row, start, end, step in self._bounds:
            values = _between(start, end, step)
            while batch := list(islice(values, BATCH)):
                codes = self._dictionary.encode(np.array(batch, self._dtype), None, self._type)
                yield np.full(len(codes), row, np.int64), codes


def _between(start: float, end: float, step: float) -> Iterator[float]:
    if isinstance(start, int):
        yield from range(start, int(end), int(step))
        return
    value, last = start, None
    while (value < end if step > 0 else value > end) and value != last:
        yield value
        value, last = value + step, value
