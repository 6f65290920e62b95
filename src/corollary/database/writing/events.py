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
from collections.abc import Sequence
from dataclasses import field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.analysis.bags import COPIES_COLUMN
from corollary.core.arrow import from_python, group_rows, nullary_table, single_array, to_python
from corollary.core.arrow_buffers import index_array, number_scalar, true_mask
from corollary.core.program import Relation
from corollary.core.types import SYMBOL
from corollary.data_class import dataclass
from corollary.errors import Diagnostic
from corollary.warehouse.copies import net_counts, repeat_rows
from corollary.warehouse.formats.delimited import first_findings
from corollary.warehouse.sources.quarantine import NO_BAD_ROWS, QUARANTINE, RAW_MAX_CHARACTERS

INSERTS = ("insert", "i", "c", "r", "+", "update_postimage")
DELETES = ("delete", "d", "-", "−", "update_preimage")
IS_INSERT_COLUMN = "•is_insert"
"""The column of a table of events that distinguishes inserts from deletes."""
ORDER_COLUMN = "•order"
"""The column of a table of events that they are sorted by."""


@dataclass(frozen=True, slots=True)
class Events:
    """Some events of a batch, in the order in which they came.

    Attributes:
        rows: the columns of the relation; then, if there is an operation, whether it is an insert,
            and if there is an order, the values of that. None if they are elsewhere.
        bad: the malformed records, as rows of the quarantine.
        findings: about malformed records.
        place: where they belong among the others of the batch; those with equal places come in
            the order in which they were read.
        records: how many records were read, if lines of malformed ones count from the first
            record of the batch.
    """

    rows: pa.Table | None
    bad: pa.Table = field(default_factory=lambda: NO_BAD_ROWS)
    findings: tuple[list[Diagnostic], ...] = ()
    place: tuple[object, ...] = ()
    records: int = 0


@dataclass(frozen=True, slots=True)
class NetRows:
    """The net change of some events: no tuple is in both tables; of copies, some go first."""

    added: pa.Table
    removed: pa.Table


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


def with_signs(
    rows: pa.Table, relation: Relation, op: str | None, source: str, batch: str
) -> tuple[pa.Table, pa.Table]:
    """Return events with signs in place of operations, and those whose operation is unknown.

    Args:
        rows: the columns of the relation, the operation, and perhaps the order.
        relation: the relation that they change.
        op: the column of the operation; None if all rows are inserts.
        source: the name of the stream.
        batch: the name of the batch.
    """
    if op is None:
        return rows, NO_BAD_ROWS
    at = relation.arity
    sign = insert_signs(rows.column(at))
    unknown = rows.filter(pc.is_null(sign)).select([*range(at), at])
    bad = _unknown_operations(unknown, relation, op, source, batch)
    signed = rows.set_column(at, IS_INSERT_COLUMN, sign)
    return signed.filter(pc.is_valid(sign)), bad


def in_order(rows: pa.Table) -> pa.Table:
    """Return events sorted by their order, if they have one: null first, deletes before inserts."""
    if ORDER_COLUMN not in rows.column_names:
        return rows
    order = rows.column(ORDER_COLUMN)
    keys = {"is_known": order.is_valid(), "order": order}
    if IS_INSERT_COLUMN in rows.column_names:
        keys["sign"] = rows.column(IS_INSERT_COLUMN)
    by = [(name, "ascending") for name in keys]
    return rows.take(pc.sort_indices(pa.table(keys), sort_keys=by)).drop_columns([ORDER_COLUMN])


def join_events(found: Sequence[Events]) -> Events:
    """Return the events of a batch as one; None for the rows if there are none here."""
    ordered = sort_events(found)
    tables = [each.rows for each in ordered if each.rows is not None]
    if not tables:
        rows = None
    elif not tables[0].num_columns:
        rows = nullary_table(min(1, sum(each.num_rows for each in tables)))
    else:
        rows = pa.concat_tables(tables)
    bad = pa.concat_tables([NO_BAD_ROWS, *(each.bad for each in ordered)])
    return Events(rows, bad, tuple(finding for each in ordered for finding in each.findings))


def sort_events(found: Sequence[Events]) -> list[Events]:
    """Return events in the order of their places, with lines that count in the whole batch."""
    numbered, before = [], 0
    for each in found:
        numbered.append(_behind(each, before) if each.records else each)
        before += each.records
    return sorted(numbered, key=lambda each: each.place)


def _behind(events: Events, before: int) -> Events:
    """Return events whose malformed records come after others; line 0 means none."""
    if not before or not events.bad.num_rows:
        return events
    at = QUARANTINE.columns.index("line")
    line = events.bad.column(at)
    is_known = pc.greater(line, number_scalar(0))
    moved = pc.if_else(is_known, pc.add(line, number_scalar(before)), line)
    shape = events.bad.schema.field(at)
    findings = tuple([_moved(each, before) for each in found] for found in events.findings)
    return replace(events, bad=events.bad.set_column(at, shape, moved), findings=findings)


def _moved(finding: Diagnostic, lines: int) -> Diagnostic:
    """Return a finding about a row that comes after a number of others."""
    if finding.span is None:
        return finding
    span = finding.span
    file = replace(span.file, first_line=span.file.first_line + lines)
    moved = replace(span, file=file, line=span.line + lines, end_line=span.end_line + lines)
    return replace(finding, span=moved)


def first_bad_rows(
    bad: pa.Table, findings: Sequence[list[Diagnostic]], source: str
) -> list[Diagnostic]:
    """Return the first findings about malformed records, of which there are some.

    About an unknown operation there is none: the reason of the quarantine says it.
    """
    (first,) = bad.slice(0, 1).to_pylist()
    unknown = Diagnostic(first["code"], f"{first['reason']}: {first['raw']}.")
    return first_findings(list(findings), source) or [unknown]


def net_change(rows: pa.Table, relation: Relation, *, has_copies: bool = False) -> NetRows:
    """Return the net change of events.

    Args:
        rows: as in `Events`.
        relation: the relation that they change.
        has_copies: whether equal rows of the relation are copies.
    """
    rows = in_order(rows)
    if IS_INSERT_COLUMN not in rows.column_names:
        return NetRows(rows, rows.slice(0, 0))
    if has_copies:
        removed, added = _net_copies(rows, relation)
        return NetRows(added, removed)
    last = _last_events(rows, relation)
    added = last.filter(last.column(IS_INSERT_COLUMN))
    removed = last.filter(pc.invert(last.column(IS_INSERT_COLUMN)))
    return NetRows(_without_sign(added, relation), _without_sign(removed, relation))


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
    aggregates = [(IS_INSERT_COLUMN, "last")]
    last = group_rows(rows, relation.columns, aggregates, use_threads=False)
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
) -> pa.Table:
    """Return the rows with an unknown operation; their line numbers are no longer known."""
    if not rows.num_rows:
        return NO_BAD_ROWS
    bad = []
    for row in to_python(rows):
        reason = f"`{row[-1]!s}` is not an operation (column `{op}`)"
        values = dict(zip((*relation.columns, op), map(str, row), strict=True))
        raw = json.dumps(values, ensure_ascii=False)[:RAW_MAX_CHARACTERS]
        bad.append((relation.name, source, batch, 0, "C0985", reason, raw))
    return from_python(bad, QUARANTINE)
