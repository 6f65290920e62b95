"""Sizes and fan-outs of relations: engines measure them, planners read them."""

from collections.abc import Mapping
from dataclasses import field

from corollary.core.cardinality import UNMEASURED_ROWS, fan_out, unmeasured_values
from corollary.data_class import dataclass


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
