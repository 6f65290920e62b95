"""Sizes and fan-outs of relations: engines measure them, planners read them.

Planner, bulk steps and advisor estimate rows and values by the same formulas of cardinality:

    of n rows, n / (V₁ · … · Vₖ) have given values in k columns; columns count as independent
    of V values in n rows, V · (1 − (1 − f)^(n / V)) remain among a fraction f of the rows (Yao)
    of n rows thrown into D combinations of values, D · (1 − (1 − 1/D)^n) are hit (occupancy)

S. Yao: Approximating block accesses in database organizations. CACM 20(4), 1977.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from math import expm1, log1p, sqrt

from corollary.data_class import dataclass

UNMEASURED_ROWS = 1000
"""The number of tuples that is assumed for a relation that was never measured."""


def unmeasured_values(rows: float) -> float:
    """Return the values that are assumed for a column that was never measured.

    >>> unmeasured_values(100), unmeasured_values(0)
    (10.0, 1.0)
    """
    return max(1.0, sqrt(rows))


def fan_out(rows: float, values: Iterable[float]) -> float:
    """Return how many rows have given values in columns, which have these many values.

    >>> fan_out(3000, [1500])
    2.0
    """
    for each in values:
        rows /= max(1.0, each)
    return rows


def remaining_values(values: float, rows: float, fraction: float) -> float:
    """Return how many of some values in some rows remain in a fraction of the rows.

    >>> round(remaining_values(1000, 1000, 0.3)), round(remaining_values(10, 1000, 0.3))
    (300, 10)
    """
    if fraction >= 1.0 or values <= 0.0:
        return values
    if fraction <= 0.0:
        return min(values, 1.0)
    each = max(1.0, rows / values)
    return max(min(1.0, values), -values * expm1(each * log1p(-fraction)))


def distinct_rows(rows: float, combinations: float) -> float:
    """Return the expected number of distinct rows, drawn from a number of combinations.

    >>> round(distinct_rows(1000, 10)), round(distinct_rows(10, 1e12))
    (10, 10)
    """
    if combinations <= 1.0:
        return min(rows, 1.0)
    # D · (1 − (1 − 1/D)^n) without cancellation for large D.
    return min(rows, -combinations * expm1(rows * log1p(-1.0 / combinations)))


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known about the relations.

    Attributes:
        rows: tuples per relation.
        distinct: distinct values per relation and column.
        has_fixed_order: whether to ignore all this and probe literals in the order of the text.
    """

    rows: Mapping[str, int] = field(default_factory=dict)
    distinct: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    has_fixed_order: bool = False

    def fanout(self, relation: str, bound: frozenset[int] | set[int] | tuple[int, ...]) -> float:
        """Estimate how many tuples match one value of the bound columns.

        >>> Statistics({"edge": 3000}, {"edge": (1500, 1000)}).fanout("edge", (0,))
        2.0
        """
        rows = float(self.rows.get(relation, UNMEASURED_ROWS))
        distinct = self.distinct.get(relation, ())
        for column in bound:  # one that was never measured is a column that a view gets just now
            is_measured = column < len(distinct)
            rows = fan_out(rows, [distinct[column] if is_measured else unmeasured_values(rows)])
        return rows
