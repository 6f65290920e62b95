"""Estimates of the rows that flow through a pipeline, from sizes and distinct values of columns."""

from collections.abc import Mapping
from math import prod

from corollary.core.functors.conversions import CHECKED_SUM
from corollary.core.logic import Condition, Constant, Expression, Functor, Variable
from corollary.core.pipeline import Compute, Filter, Pipeline, Probe
from corollary.core.statistics import fan_out
from corollary.data_class import dataclass
from corollary.engines.local.evaluation.pipelines import live_variables
from corollary.engines.local.storage.table import Table

ESTIMATE_GROWTH = 2
"""Distinct values are estimated again when a relation has grown or shrunk by this factor."""


DISTINCT_MIN_ROWS = 1 << 16
"""Fewer rows are not worth making distinct on the way…"""

DISTINCT_MIN_RATIO = 2
"""…and neither are rows that may be distinct: there have to be this many times more."""


@dataclass(frozen=True, slots=True)
class RowFlow:
    """The rows that flow through a pipeline.

    Attributes:
        most: the rows of the largest frame.
        distinct_after: the stages after which most rows must be equal.
    """

    most: float
    distinct_after: frozenset[int]


def computes_values(pipeline: Pipeline) -> bool:
    """Whether a pipeline computes with values; to compare codes for equality is not enough.

    Looking up codes in sorted words is at least as fast here as in DuckDB, and needs no conversion.
    """
    for stage in pipeline.stages:
        match stage:
            case Compute(expression=term) if _is_computed(term):
                return True
            case Filter(condition=Condition(operator=operator, left=left, right=right)):
                is_plain = not _is_computed(left) and not _is_computed(right)
                if not is_plain or operator not in ("=", "!=", "is"):
                    return True
            case _:
                pass
    return False


def _is_computed(term: Expression) -> bool:
    """Whether a term is a value that is computed; a sum is only looked at."""
    return isinstance(term, Functor) and term.name != CHECKED_SUM


class RowEstimates:
    """Estimates for the pipelines on some tables."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._tables = tables
        self._distinct: dict[str, tuple[int, tuple[int, ...]]] = {}

    def _distinct_values(self, relation: str, size: int) -> tuple[int, ...]:
        """Return the distinct values of the columns; always those of NEW, which is close enough."""
        known_size, known = self._distinct.get(relation, (0, ()))
        if not known or not known_size <= size * ESTIMATE_GROWTH <= known_size * ESTIMATE_GROWTH**2:
            known = self._tables[relation].distinct_values()
            self._distinct[relation] = (size, known)
        return known

    def flow(self, pipeline: Pipeline) -> "RowFlow":
        """Return the rows that are expected to flow through a pipeline."""
        rows = most = 1.0
        distinct_after: set[int] = set()
        values: dict[str, float] = {}
        for at, (stage, needed) in enumerate(
            zip(pipeline.stages, live_variables(pipeline), strict=True)
        ):
            if isinstance(stage, Compute):
                values.setdefault(stage.variable.name, rows)
            if not isinstance(stage, Probe):
                continue
            rows *= self._fan_out(stage, values)
            most = max(most, rows)
            # No more than all combinations of the values that are still needed can be distinct.
            heads = prod(few for name, few in values.items() if name in needed)
            is_bag = pipeline.is_bag or rows < DISTINCT_MIN_ROWS
            if not is_bag and rows >= DISTINCT_MIN_RATIO * heads:
                distinct_after.add(at)
                rows = heads
        return RowFlow(most, frozenset(distinct_after))

    def _fan_out(self, stage: Probe, values: dict[str, float]) -> float:
        """Return how many tuples match a row; note how many values the variables have."""
        relation = stage.source.relation
        size = self._tables[relation].size(stage.source.state)
        distinct = self._distinct_values(relation, size) if size else (0,) * len(stage.slots)
        bound: list[float] = []
        for slot, found in zip(stage.slots, distinct, strict=True):
            if isinstance(slot, Constant) or (isinstance(slot, Variable) and slot.name in values):
                bound.append(found)
            if isinstance(slot, Variable):
                few = max(1, min(found, size))
                values[slot.name] = min(values.get(slot.name, few), few)
        return fan_out(size, bound)
