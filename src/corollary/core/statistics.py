"""Sizes and fan-outs of relations, made by engines, read by planners."""

from collections.abc import Mapping
from dataclasses import dataclass, field

GUESS = 1000
"""The size of a relation nobody has measured."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known about the relations.

    Attributes:
        rows: tuples per relation.
        distinct: distinct values per relation and column.
        is_as_written: whether they are to be ignored, and literals probed as they are written.
    """

    rows: Mapping[str, int] = field(default_factory=dict)
    distinct: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    is_as_written: bool = False

    def fanout(self, relation: str, bound: frozenset[int] | set[int] | tuple[int, ...]) -> float:
        """Estimate how many tuples match one value of the bound columns.

        >>> Statistics({"edge": 3000}, {"edge": (1500, 1000)}).fanout("edge", (0,))
        2.0
        """
        rows = float(self.rows.get(relation, GUESS))
        distinct = self.distinct.get(relation)
        for column in bound:
            rows /= max(1.0, float(distinct[column])) if distinct else rows**0.5 or 1.0
        return rows
