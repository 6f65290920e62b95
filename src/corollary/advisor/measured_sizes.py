"""Measures the sizes of the stored relations of a database.

All columns are counted exactly. Combinations of columns are counted when an estimate asks for them,
each once.
"""

from typing import TYPE_CHECKING

from corollary.advisor.cost.relation_sizes import ColumnSummary, RelationSizes
from corollary.core.logic import Value
from corollary.database.database import Database, state_of

if TYPE_CHECKING:
    import pyarrow as pa

    from corollary.core.engine import Engine

FREQUENT_MAX_VALUES = 32
"""The maximum number of values of a column whose frequencies are noted."""
QUANTILE_PARTS = 64
"""The number of parts into which quantiles cut a column."""
QUANTILE_MAX_ROWS = 8192
"""The maximum number of rows that quantiles are taken from."""


def measure_sizes(database: Database) -> RelationSizes:
    """Return the sizes of the stored relations of a database."""
    engine = state_of(database).engine
    rows: dict[str, int] = {}
    distinct: dict[str, tuple[int, ...]] = {}
    frequencies: dict[str, tuple[int, ...]] = {}
    width: dict[str, float] = {}
    columns: dict[str, tuple[ColumnSummary, ...]] = {}
    for name, relation in state_of(database).loaded.normal.relations.items():
        if not relation.is_declared or not relation.is_stored:
            continue
        table = engine.read(name)
        rows[name] = table.num_rows
        if table.num_rows and table.num_columns:
            found = [_measure_column(table.column(at)) for at in range(table.num_columns)]
            distinct[name] = tuple(values for values, _, _ in found)
            frequencies[name] = tuple(top for _, top, _ in found)
            columns[name] = tuple(summary for _, _, summary in found)
            width[name] = table.nbytes / table.num_rows
    counter = _CombinationCounter(engine)
    return RelationSizes(rows, distinct, frequencies, width, columns, counter.count)


def _measure_column(column: "pa.ChunkedArray") -> tuple[int, int, ColumnSummary]:
    """Return the number of values, the frequency of the most frequent one, and the summary."""
    import pyarrow.compute as pc

    found = pc.value_counts(column)
    counts, values = found.field("counts"), found.field("values")
    order = pc.select_k_unstable(
        counts, k=min(FREQUENT_MAX_VALUES, len(counts)), sort_keys=[("", "descending")]
    )
    top = counts.take(order).to_pylist()
    frequent: dict[Value, int] = dict(zip(values.take(order).to_pylist(), top, strict=True))
    return len(counts), int(top[0]), ColumnSummary(frequent, _quantiles(column))


def _quantiles(column: "pa.ChunkedArray") -> tuple[Value, ...]:
    import numpy as np
    import pyarrow.compute as pc

    picked = np.linspace(0, len(column) - 1, min(len(column), QUANTILE_MAX_ROWS)).astype(np.int64)
    sample = column.take(picked).drop_null()
    if not len(sample):
        return ()
    ordered = sample.take(pc.array_sort_indices(sample))
    at = np.linspace(0, len(ordered) - 1, QUANTILE_PARTS + 1).astype(np.int64)
    return tuple(ordered.take(at).to_pylist())


class _CombinationCounter:
    """Counts combinations of values in columns of relations, each once."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._known: dict[tuple[str, frozenset[int]], float] = {}

    def count(self, relation: str, columns: frozenset[int]) -> float | None:
        key = relation, columns
        if key not in self._known:
            table = self._engine.read(relation).select(sorted(columns))
            names = [f"c{at}" for at in range(table.num_columns)]
            groups = table.rename_columns(names).group_by(names, use_threads=False)
            self._known[key] = float(groups.aggregate([]).num_rows)
        return self._known[key]
