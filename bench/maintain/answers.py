"""Comparing answers, quickly where they agree."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.maintain.contenders import Contender
from bench.measure import difference, in_order


@dataclass(frozen=True, slots=True)
class Contents:
    """An answer, and a number that another answer has only if it has the same tuples."""

    name: str
    table: pa.Table
    print: int


def contents_of(contender: Contender) -> Contents:
    """Read an answer and take its print."""
    table = contender.answer()
    return Contents(contender.name, table, print_of(table))


def disagreement(contender: Contender, expected: Contents, where: str) -> list[str]:
    """Say how an answer differs from the expected one; nothing if it does not."""
    table = contender.answer()
    if table.num_rows == expected.table.num_rows and print_of(table) == expected.print:
        return []
    found = difference(expected.name, in_order(expected.table), contender.name, table)
    return [f"{where}: {each}" for each in found]


def print_of(table: pa.Table) -> int:
    """Return a number for a set of rows of numbers, whatever their order.

    >>> print_of(pa.table({"x": [1, 2], "y": [3, 4]})) == print_of(
    ...     pa.table({"a": [2, 1], "b": [4, 3]})
    ... )
    True
    >>> print_of(pa.table({"x": [1, 2], "y": [3, 4]})) == print_of(
    ...     pa.table({"x": [1, 2], "y": [4, 3]})
    ... )
    False
    """
    mixed = np.zeros(table.num_rows, np.uint64)
    for column in table.columns:
        mixed = _mix(mixed + column.to_numpy().astype(np.int64).view(np.uint64))
    return int(mixed.sum(dtype=np.uint64))


def _mix(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Scramble 64-bit words (splitmix64)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: npt.NDArray[np.uint64] = words ^ (words >> np.uint64(31))
    return mixed
