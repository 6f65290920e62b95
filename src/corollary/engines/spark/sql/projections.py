"""Pipelines that only pick columns of tuples on the driver: they need no query."""

import pyarrow as pa

from corollary.core.logic import Variable, Wildcard
from corollary.core.pipeline import Pipeline, Probe
from corollary.core.types import Type
from corollary.engines.spark.sql.columns import names_of, schema_of
from corollary.engines.spark.sql.immutable_sets import Tuples


def picks(pipeline: Pipeline) -> list[int] | None:
    """Return the columns of its one relation that a pipeline gives, if it does nothing else.

    `p(y, x) :- e(x, y, _)` gives 1 and 0; `p(x) :- e(x, x)` does more.
    """
    if len(pipeline.stages) != 1 or not isinstance(stage := pipeline.stages[0], Probe):
        return None
    places = {slot: at for at, slot in enumerate(stage.slots) if isinstance(slot, Variable)}
    others = sum(isinstance(slot, Wildcard) for slot in stage.slots)
    if stage.bound or len(places) + others < len(stage.slots):
        return None
    found = [places[slot] for slot in pipeline.head if isinstance(slot, Variable)]
    return found if len(found) == len(pipeline.head) > 0 else None


def picked(source: Tuples, places: list[int], types: tuple[Type, ...]) -> pa.Table:
    """Return some columns of tuples on the driver, as those of another relation."""
    held = source.table()
    chosen = [held.column(at) for at in places]
    return pa.Table.from_arrays(chosen, names=names_of(types)).cast(schema_of(types))


def distinct(table: pa.Table) -> pa.Table:
    """Return the rows of a table once each."""
    if table.num_rows < 2:
        return table
    names = table.column_names
    return table.group_by(names, use_threads=False).aggregate([]).select(names)
