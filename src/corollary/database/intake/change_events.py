"""AUTO CDC: the table that events of change describe, in whatever order they arrive.

An event has a key, a sequence, and either the values of a row (an upsert) or the news that it is
gone (a delete). Kept are the events that may still count, as tuples of a base relation:

| type | what is kept | the table |
|---|---|---|
| 1 | the last event of each key | the values of those that are upserts |
| 2 | the last event of each key and sequence | a row for each run of upserts with equal values |

Which of two events is the last one (as in Spark 4.3, where that is said):

| | type 1 | type 2, at one sequence |
|---|---|---|
| the sequences differ | the greater one | |
| they are equal, one has come before | an upsert wins over it, a delete does not | a delete wins |
| both come together | an upsert, then the greater values | a delete, then the greater values |

So a delete of an unknown key stays, as a *tombstone*, and an upsert that comes late does nothing.
The table is a view on what is kept, so that maintaining it is nobody's work but the engine's.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.analysis.change_streams import DELETED, END_AT, SEQUENCE, START_AT
from corollary.core.arrow import comparable_column, sort_rows
from corollary.errors import InputError

_RANK = "__rank"


def identity_of(keys: Sequence[str], *, has_history: bool) -> tuple[str, ...]:
    """Return the columns of which each value has one event that is kept."""
    return (*keys, SEQUENCE) if has_history else tuple(keys)


def apply_events(
    held: pa.Table, batch: pa.Table, keys: Sequence[str], *, has_history: bool
) -> tuple[pa.Table, pa.Table]:
    """Return what a batch of events adds to those that are kept, and what it removes.

    Args:
        held: the events that are kept for the keys of the batch; perhaps others too.
        batch: the events that have come, with the same columns.
        keys: the columns that tell the rows of the table apart.
        has_history: whether the table is of type 2.

    Raises:
        InputError: `C1720`, an event has no key or no sequence.

    >>> def events(*rows):
    ...     return pa.table(dict(zip(["id", "v", SEQUENCE, DELETED], zip(*rows))))
    >>> held = events((1, "a", 5, False), (2, "b", 5, False))
    >>> come = events((1, "x", 4, False), (2, None, 6, True), (3, None, 1, True))
    >>> added, removed = apply_events(held, come, ["id"], has_history=False)
    >>> [(row["id"], row[DELETED]) for row in added.to_pylist()], removed["id"].to_pylist()
    ([(2, True), (3, True)], [2])
    """
    for name in (*keys, SEQUENCE):
        if batch.column(name).null_count:
            what = "sequence" if name == SEQUENCE else f"value of the key `{name}`"
            raise InputError.of(
                "C1720",
                f"{batch.column(name).null_count:,} of {batch.num_rows:,} events have no {what}.",
                None,
                "leave such events out of the source of the flow: nothing was changed",
            )
    deletes = pc.fill_null(batch.column(DELETED), False)
    batch = batch.set_column(batch.column_names.index(DELETED), DELETED, deletes)
    # Of events with one sequence that with the greater rank counts; those that are kept are odd.
    ranks = pc.if_else(deletes, 4 if has_history else 0, 2).cast(pa.int8())
    held_ranks = pc.if_else(held.column(DELETED), 3 if has_history else 1, 1).cast(pa.int8())
    every = pa.concat_tables(
        [
            held.append_column(_RANK, held_ranks),
            batch.select(held.column_names).append_column(_RANK, ranks),
        ],
        promote_options="permissive",
    )
    names, identity = every.column_names, identity_of(keys, has_history=has_history)
    order = [(names.index(each), False) for each in keys]
    order += [(names.index(each), True) for each in (SEQUENCE, _RANK)]
    order += [(at, True) for at in range(len(names))]
    every = sort_rows(every, order)
    is_last = _is_first_of(every, identity)
    is_held = pc.equal(pc.bit_wise_and(every.column(_RANK), 1), 1)
    added = every.filter(pc.and_(is_last, pc.invert(is_held)))
    removed = every.filter(pc.and_(pc.invert(is_last), is_held))
    return added.drop_columns([_RANK]), removed.drop_columns([_RANK])


def _is_first_of(rows: pa.Table, names: Sequence[str]) -> pa.Array:
    """Return which rows, sorted by some columns without nulls, differ there from those before."""
    found = np.ones(rows.num_rows, bool)
    if rows.num_rows > 1:
        found[1:] = False
        for name in names:
            column = comparable_column(rows.column(name))
            differs = pc.not_equal(column.slice(1), column.slice(0, rows.num_rows - 1))
            found[1:] |= differs.to_numpy().astype(bool)
    return pa.array(found)


def table_query(
    events: str,
    columns: Sequence[str],
    keys: Sequence[str],
    *,
    has_history: bool,
    tracked: Sequence[str] = (),
) -> str:
    """Return the query, in SQL, for the table that events describe.

    Args:
        events: the relation of those that are kept.
        columns: those of the table.
        keys: the columns that tell its rows apart.
        has_history: whether it is of type 2.
        tracked: the columns that begin another row of the history where their values differ.

    >>> print(table_query("e", ["id", "v"], ["id"], has_history=False))
    SELECT `id`, `v` FROM `e` WHERE NOT `__deleted`
    """

    def named(name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    listed = ", ".join(map(named, columns))
    if not has_history:
        return f"SELECT {listed} FROM {named(events)} WHERE NOT {named(DELETED)}"  # noqa: S608 - quoted
    sequence, deleted = named(SEQUENCE), named(DELETED)
    window = f"(PARTITION BY {', '.join(map(named, keys))} ORDER BY {sequence})"

    def differs(neighbour: str) -> str:
        """Whether a row that is no delete does not go on in its neighbour."""
        same = " AND ".join(
            f"{neighbour}({named(each)}) OVER {window} <=> {named(each)}" for each in tracked
        )
        is_gone = f"{neighbour}({deleted}) OVER {window}"
        return f"NOT {deleted} AND coalesce({is_gone} OR NOT ({same or 'true'}), true)"

    ends = f"lead({sequence}) OVER {window} AS __next, {differs('lead')} AS __ends"
    runs = f"SELECT *, {differs('lag')} AS __begins, {ends} FROM {named(events)}"  # noqa: S608
    start = f"max(CASE WHEN __begins THEN {sequence} END) OVER {window} AS __start"
    bounds = f"__start AS {START_AT}, __next AS {END_AT}"
    return f"SELECT {listed}, {bounds} FROM (SELECT *, {start} FROM ({runs})) WHERE __ends"  # noqa: S608
