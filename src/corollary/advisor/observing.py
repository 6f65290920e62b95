"""Sizes, update rates and frequencies, from what a database holds and has seen."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from corollary.advisor.estimating import Sizes
from corollary.advisor.scheme import Query
from corollary.database.database import Database, state_of, warehouse_of
from corollary.warehouse.query_log import queries_asked

if TYPE_CHECKING:
    import pyarrow as pa

SHORTEST = 3600.0
"""The seconds that a history is thought to last, at least."""


def sizes_of(database: Database, *, is_scanned: bool = False) -> Sizes:
    """Return what the stored relations of a database hold.

    Args:
        database: the database.
        is_scanned: whether its engine reads relations in full to join them.
    """
    rows: dict[str, int] = {}
    distinct: dict[str, tuple[int, ...]] = {}
    most: dict[str, tuple[int, ...]] = {}
    width: dict[str, float] = {}
    for name, relation in state_of(database).loaded.normal.relations.items():
        if not relation.is_declared or not relation.is_stored:
            continue
        table = state_of(database).engine.read(name)
        rows[name] = table.num_rows
        if table.num_rows and table.num_columns:
            counts = [_frequencies(table, at) for at in range(table.num_columns)]
            distinct[name] = tuple(values for values, _ in counts)
            most[name] = tuple(top for _, top in counts)
            width[name] = table.nbytes / table.num_rows
    return Sizes(rows, distinct, most, width, is_scanned)


def _frequencies(table: "pa.Table", at: int) -> tuple[int, int]:
    """Return how many values a column has, and how often the most frequent one stands there."""
    import pyarrow.compute as pc

    counts = pc.value_counts(table.column(at)).field("counts")
    return len(counts), int(pc.max(counts).as_py() or 0)


def queries_logged(database: Database) -> list[Query]:
    """Return the queries that were asked of derived relations, with how often in an hour."""
    warehouse = warehouse_of(database)
    if warehouse is None:
        return []
    relations = state_of(database).loaded.normal.relations
    found = []
    for asked in queries_asked(warehouse.catalog):
        name, _, pattern = asked.form.rpartition("^")
        relation = relations.get(name)
        if relation is not None and relation.is_derived and relation.arity == len(pattern):
            bound = frozenset(at for at, sign in enumerate(pattern) if sign == "b")
            found.append(Query(name, bound, asked.per_hour))
    return found


def update_rates(database: Database) -> Mapping[str, float]:
    """Return how many tuples of base relations change in an hour, going by the kept history.

    What the first kept commit brought is what there is, not how it changes; where the program came
    alone, the first commit with tuples.
    """
    warehouse = warehouse_of(database)
    if warehouse is None:
        return {}
    commits = warehouse.commits()
    if len(commits) < 2:
        return {}
    newest, oldest = commits[0], commits[-1]
    hours = max(SHORTEST, newest.created - oldest.created) / 3600.0
    changed: dict[str, float] = {}
    relations = state_of(database).loaded.normal.relations
    counts = list(warehouse.catalog.counts(oldest.number - 1, newest.number))
    first = oldest.number if oldest.number > 1 else min((each[0] for each in counts), default=1)
    for number, name, added, removed in counts:
        relation = relations.get(name) if number > first else None
        if relation is not None and relation.is_declared and not relation.is_derived:
            changed[name] = changed.get(name, 0.0) + (added + removed) / hours
    return changed
