"""Estimates of the rows that flow through a pipeline, from sizes and distinct values of columns."""

from collections.abc import Mapping

from corollary.core.logic import Constant, Variable
from corollary.core.pipeline import Pipeline, Probe
from corollary.engines.local.storage.table import Table

ESTIMATE_GROWTH = 2
"""Distinct values are estimated again when a relation has grown or shrunk by this factor."""


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

    def frames(self, pipeline: Pipeline) -> tuple[float, float]:
        """Return the largest number of rows of any frame, and a bound on the distinct heads."""
        rows, most = 1.0, 1.0
        values: dict[str, float] = {}
        for stage in pipeline.stages:
            if not isinstance(stage, Probe):
                continue
            relation = stage.source.relation
            size = self._tables[relation].size(stage.source.state)
            distinct = self._distinct_values(relation, size) if size else (0,) * len(stage.slots)
            fan_out = float(size)
            for slot, found in zip(stage.slots, distinct, strict=True):
                if isinstance(slot, Constant) or (
                    isinstance(slot, Variable) and slot.name in values
                ):
                    fan_out /= max(1, found)
                if isinstance(slot, Variable):
                    few = min(found, size) or 1
                    values[slot.name] = min(values.get(slot.name, few), few)
            rows *= fan_out
            most = max(most, rows)
        heads = 1.0
        for slot in pipeline.head:
            if isinstance(slot, Variable):
                heads *= values.get(slot.name, most)
        return most, heads
