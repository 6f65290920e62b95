"""The sizes of relations: rows, values of columns, frequent values, quantiles."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import field

from corollary.core.logic import Value
from corollary.data_class import dataclass


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """How the values of a column are distributed.

    Attributes:
        frequent: the rows of its most frequent values.
        quantiles: sorted values that cut the rows into equal parts.
    """

    frequent: Mapping[Value, int] = field(default_factory=dict)
    quantiles: tuple[Value, ...] = ()

    def fraction_below(self, value: Value, *, is_inclusive: bool) -> float | None:
        """Return the fraction of rows with a smaller value, or an equal one; None if unknown.

        >>> ColumnSummary(quantiles=(0, 10, 20, 30, 40)).fraction_below(20, is_inclusive=False)
        0.5
        """
        if len(self.quantiles) < 2:
            return None
        try:
            at = (bisect_right if is_inclusive else bisect_left)(self.quantiles, value)  # type: ignore[type-var]
        except TypeError:
            return None
        parts = len(self.quantiles) - 1
        if at == 0 or at > parts:
            return 0.0 if at == 0 else 1.0
        low, high = self.quantiles[at - 1], self.quantiles[at]
        inside = 0.5
        if isinstance(value, int | float) and isinstance(low, int | float):
            assert isinstance(high, int | float)
            inside = (value - low) / (high - low) if high > low else 0.0
        return min(1.0, (at - 1 + inside) / parts)


@dataclass(frozen=True, slots=True)
class RelationSizes:
    """The sizes of relations.

    Attributes:
        rows: the number of tuples.
        distinct: the number of values of each column.
        max_frequency: the frequency of the most frequent value of each column.
        row_bytes: bytes of a tuple.
        columns: how the values of each column are distributed.
        count: counts the combinations of values in some columns of a relation; None if it cannot.
        sampled: the relations that were measured by a sample, and its share of their rows.
    """

    rows: Mapping[str, int] = field(default_factory=dict)
    distinct: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    max_frequency: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    row_bytes: Mapping[str, float] = field(default_factory=dict)
    columns: Mapping[str, tuple[ColumnSummary, ...]] = field(default_factory=dict)
    count: Callable[[str, frozenset[int]], float | None] | None = None
    sampled: Mapping[str, float] = field(default_factory=dict)

    @property
    def stored_bytes(self) -> float:
        """The bytes of all stored relations."""
        return sum(rows * self.row_bytes.get(name, 8.0) for name, rows in self.rows.items())

    def summary(self, relation: str, at: int) -> ColumnSummary:
        """Return how the values of a column are distributed, as far as it is known."""
        found = self.columns.get(relation, ())
        return found[at] if at < len(found) else ColumnSummary()

    def constant_fraction(self, relation: str, at: int, value: Value, distinct: float) -> float:
        """Return the fraction of the rows of a relation that have a value in a column."""
        frequent = self.summary(relation, at).frequent
        rows = float(self.rows.get(relation, 0))
        if not frequent or rows <= 0:
            return 1.0 / max(1.0, distinct)
        if value in frequent:
            return frequent[value] / rows
        rest = max(0.0, rows - sum(frequent.values()))
        return rest / rows / max(1.0, distinct - len(frequent)) if rest else 1.0 / (2.0 * rows)
