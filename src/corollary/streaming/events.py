"""Change events: inserts and deletes of rows, of which the last one on a tuple counts.

In a relation with copies each of them counts, in order.

| `op`                                           | means  |
|------------------------------------------------|--------|
| `insert`, `i`, `c`, `r`, `+`, `update_postimage` | insert |
| `delete`, `d`, `-`, `−`, `update_preimage`       | delete |

Upper and lower case are the same. `c` and `r` are Debezium's (created, read in a snapshot), the
images those of the change feeds of Delta and of `corollary changes`. An update without the row
before it is not an operation: what it deletes is unknown.
"""

import json
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.analysis.bags import COPIES_COLUMN
from corollary.core.arrow import nullary_table, single_array, to_python
from corollary.core.arrow_buffers import index_array, true_mask
from corollary.core.program import Relation
from corollary.core.types import SYMBOL
from corollary.warehouse.copies import net_counts, repeat_rows
from corollary.warehouse.sources.quarantine import RAW_MAX_CHARACTERS, BadRow

INSERTS = ("insert", "i", "c", "r", "+", "update_postimage")
DELETES = ("delete", "d", "-", "−", "update_preimage")
IS_INSERT_COLUMN = "is_insert"
"""The column of a table of events that distinguishes inserts from deletes."""


@dataclass(frozen=True, slots=True)
class Events:
    """The events of a batch, in order.

    Attributes:
        rows: the columns of the relation, then `op` if there is one.
        bad: the malformed rows.
    """

    rows: pa.Table
    bad: tuple[BadRow, ...] = ()


@dataclass(frozen=True, slots=True)
class NetChange:
    """The net change of a batch: no tuple is in both tables; of copies, first some are removed."""

    added: pa.Table
    removed: pa.Table
    bad: tuple[BadRow, ...] = ()


def with_operation(relation: Relation, op: str | None) -> Relation:
    """Return the shape of events on a relation: its columns, followed by the operation."""
    if op is None:
        return relation
    return replace(relation, columns=(*relation.columns, op), types=(*relation.types, SYMBOL))


def insert_signs(ops: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return for each operation whether it is an insert; null if it is unknown.

    >>> insert_signs(pa.chunked_array([["I", "-", "u"]])).to_pylist()
    [True, False, None]
    """
    words = pc.utf8_lower(ops)
    is_insert, is_delete = (
        pc.is_in(words, value_set=pa.array(each, words.type)) for each in (INSERTS, DELETES)
    )
    return pc.if_else(pc.or_(is_insert, is_delete), is_insert, pa.scalar(None, pa.bool_()))


def net_change(
    events: Events,
    relation: Relation,
    op: str | None,
    source: str,
    batch: str,
    *,
    has_copies: bool = False,
) -> NetChange:
    """Return the net change of a batch.

    Args:
        events: the events of the batch.
        relation: the relation that they change.
        op: the column of the operation; None if all rows are inserts.
        source: the name of the stream.
        batch: the name of the batch.
        has_copies: whether equal rows of the relation are copies.
    """
    rows = events.rows
    if op is None:
        return NetChange(rows, rows.slice(0, 0), events.bad)
    sign = insert_signs(rows.column(op))
    bad = [
        *events.bad,
        *_unknown_operations(rows.filter(pc.is_null(sign)), relation, op, source, batch),
    ]
    rows = rows.select(list(relation.columns)).append_column(IS_INSERT_COLUMN, sign)
    rows = rows.filter(pc.is_valid(sign))
    if has_copies:
        removed, added = _net_copies(rows, relation)
        return NetChange(added, removed, tuple(bad))
    last = _last_events(rows, relation)
    added = last.filter(last.column(IS_INSERT_COLUMN))
    removed = last.filter(pc.invert(last.column(IS_INSERT_COLUMN)))
    return NetChange(_without_sign(added, relation), _without_sign(removed, relation), tuple(bad))


def _net_copies(rows: pa.Table, relation: Relation) -> tuple[pa.Table, pa.Table]:
    """Return the copies that all events together remove, and those that they add then."""
    ones = index_array(np.ones(rows.num_rows, np.int64))
    counted = rows.select(list(relation.columns)).append_column(COPIES_COLUMN, ones)
    is_insert = true_mask(single_array(rows.column(IS_INSERT_COLUMN)))
    removed, added = net_counts(counted, is_insert)
    return repeat_rows(removed), repeat_rows(added)


def _last_events(rows: pa.Table, relation: Relation) -> pa.Table:
    """Return the last event on each tuple."""
    if not relation.columns:
        return rows.slice(max(0, rows.num_rows - 1))
    # Several threads would not keep the order of the rows, on which `last` depends.
    grouped = rows.group_by(list(relation.columns), use_threads=False)
    last = grouped.aggregate([(IS_INSERT_COLUMN, "last")])
    return last.rename_columns(
        [
            IS_INSERT_COLUMN if name == f"{IS_INSERT_COLUMN}_last" else name
            for name in last.column_names
        ]
    )


def _without_sign(rows: pa.Table, relation: Relation) -> pa.Table:
    if not relation.columns:
        return nullary_table(rows.num_rows)
    return rows.select(list(relation.columns))


def _unknown_operations(
    rows: pa.Table, relation: Relation, op: str, source: str, batch: str
) -> list[BadRow]:
    """Return the rows with an unknown operation; their line numbers are no longer known."""
    bad = []
    for row in to_python(rows):
        reason = f"`{row[-1]}` is not an operation (column `{op}`)"
        values = dict(zip(rows.column_names, map(str, row), strict=True))
        raw = json.dumps(values, ensure_ascii=False)[:RAW_MAX_CHARACTERS]
        bad.append(BadRow(relation.name, source, batch, 0, "C0985", reason, raw))
    return bad
