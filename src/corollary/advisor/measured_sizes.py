"""Measures the sizes of the stored relations of a database.

Columns are counted exactly; combinations of columns when an estimate asks for them, each once. Of
relations that are large, or in partitions outside of this process, every partition gives a part of
its rows, and the number of values is estimated from how often those of the sample occur in it:

    V = n · d / (n − f1 + f1 · n / N)

| symbol | meaning |
|---|---|
| N, n | rows of the relation, and of the sample |
| d, f1 | values in the sample, and those that occur once in it |

P. Haas, L. Stokes: Estimating the number of classes in a finite population. JASA 93, 1998 (Duj1).
A key has f1 = n, hence V = N; where every value occurs often, f1 = 0, hence V = d.
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from corollary.advisor.cost.relation_sizes import ColumnSummary, RelationSizes
from corollary.core.logic import Value
from corollary.data_class import dataclass
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


SAMPLED_MIN_ROWS = 2_000_000
"""Of larger relations, a sample is measured."""
SAMPLE_ROWS = 200_000
"""The number of rows of a sample."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """Rows of a relation: all of them, or a sample.

    Attributes:
        total: the number of rows of the relation.
    """

    table: "pa.Table"
    total: int

    @property
    def share(self) -> float:
        return float(self.table.num_rows) / self.total if self.total else 1.0

    def values(self, counts: "pa.Array") -> float:
        """Return the number of values in the relation, by how often those of the sample occur."""
        import pyarrow.compute as pc

        if self.table.num_rows == self.total:
            return float(len(counts))
        once = int(pc.sum(pc.equal(counts, 1)).as_py() or 0)
        rows = int(self.table.num_rows)
        estimate = rows * len(counts) / max(1.0, rows - once + once * rows / self.total)
        return min(float(self.total), max(float(len(counts)), estimate))


def measure_sizes(database: Database) -> RelationSizes:
    """Return the sizes of the stored relations of a database."""
    engine = state_of(database).engine
    samples: dict[str, _Sample] = {}
    distinct: dict[str, tuple[int, ...]] = {}
    frequencies: dict[str, tuple[int, ...]] = {}
    width: dict[str, float] = {}
    columns: dict[str, tuple[ColumnSummary, ...]] = {}
    for name, relation in state_of(database).loaded.normal.relations.items():
        if not relation.is_declared or not relation.is_stored:
            continue
        sample = samples[name] = _take_sample(engine, name)
        table = sample.table
        if table.num_rows and table.num_columns:
            found = [_measure_column(table.column(at), sample) for at in range(table.num_columns)]
            distinct[name] = tuple(values for values, _, _ in found)
            frequencies[name] = tuple(top for _, top, _ in found)
            columns[name] = tuple(summary for _, _, summary in found)
            width[name] = table.nbytes / table.num_rows
    rows = {name: each.total for name, each in samples.items()}
    shares = {name: each.share for name, each in samples.items() if each.share < 1.0}
    counter = _CombinationCounter(samples)
    return RelationSizes(rows, distinct, frequencies, width, columns, counter.count, shares)


def _take_sample(engine: "Engine", name: str) -> _Sample:
    """Return all rows of a relation, or a sample of a large one."""
    import pyarrow as pa

    handle = engine.handle(name)
    total = len(handle)
    if total <= SAMPLED_MIN_ROWS and not (handle.is_distributed and total > SAMPLE_ROWS):
        return _Sample(handle.table(), total)
    share = min(1.0, SAMPLE_ROWS / max(1, total))
    parts = handle.map_partitions(partial(_sample_rows, share=share))
    return _Sample(pa.concat_tables(parts), total)


def _sample_rows(table: "pa.Table", share: float) -> "pa.Table":
    """Return a share of the rows of a partition; the same ones in every run."""
    import numpy as np
    import pyarrow as pa

    count = min(table.num_rows, max(1, round(share * table.num_rows)))
    dice = np.random.default_rng(table.num_rows)
    found = table.slice(0, 0)
    if count:
        found = table.take(np.sort(dice.choice(table.num_rows, count, replace=False)))
    plain = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in found.schema
    ]
    return found.cast(pa.schema(plain))


def _measure_column(column: "pa.ChunkedArray", sample: _Sample) -> tuple[int, int, ColumnSummary]:
    """Return the number of values, the frequency of the most frequent one, and the summary."""
    import pyarrow.compute as pc

    found = pc.value_counts(column)
    counts, values = found.field("counts"), found.field("values")
    order = pc.select_k_unstable(
        counts, k=min(FREQUENT_MAX_VALUES, len(counts)), sort_keys=[("", "descending")]
    )
    top = [round(each / sample.share) for each in counts.take(order).to_pylist()]
    least = 1 if sample.share == 1.0 else 1.5 / sample.share  # one row of a sample says nothing
    frequent: dict[Value, int] = {
        value: rows
        for value, rows in zip(values.take(order).to_pylist(), top, strict=True)
        if rows >= least
    }
    most = int(top[0]) if frequent else 1
    return round(sample.values(counts)), most, ColumnSummary(frequent, _quantiles(column))


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

    def __init__(self, samples: Mapping[str, _Sample]) -> None:
        self._samples = samples
        self._known: dict[tuple[str, frozenset[int]], float] = {}

    def count(self, relation: str, columns: frozenset[int]) -> float | None:
        key = relation, columns
        sample = self._samples.get(relation)
        if sample is None:
            return None
        if key not in self._known:
            table = sample.table.select(sorted(columns))
            names = [f"c{at}" for at in range(table.num_columns)]
            groups = table.rename_columns(names).group_by(names, use_threads=False)
            counts = groups.aggregate([([], "count_all")]).column("count_all").combine_chunks()
            self._known[key] = sample.values(counts)
        return self._known[key]
