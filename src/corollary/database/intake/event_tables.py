"""What change events do to the relation of their stream.

| stream | kept in `p.events` | the rows of `p` |
|---|---|---|
| without a key | nothing | all that came |
| of type 1 | of each key the sequence of its last event, and whether it was a delete | its values |
| of type 2 | the last event of each key and sequence | one for each run of values |

Which event counts is decided by `change_events`; here are the rows that follow from it. All of it
is in parts that belong to the source, and in the commit that has the position of the stream.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.analysis.change_streams import (
    DELETED,
    END_AT,
    SEQUENCE,
    START_AT,
    ChangeStream,
    change_stream,
    is_change_stream,
)
from corollary.core.arrow import schema_of, sort_rows
from corollary.core.arrow_buffers import index_array
from corollary.core.program import Column, Declaration, Program, Relation, TypeName
from corollary.core.states import State
from corollary.database.intake.change_events import apply_events
from corollary.database.writing.operations import Operation
from corollary.engines.local.bulk.event_fields import EventFields
from corollary.warehouse.copies import difference, distinct, minus
from corollary.warehouse.row_words import row_words
from corollary.warehouse.sources.source import EarlierRows, EventBatch


class FindPart(Protocol):
    """Finds the rows that a source has given to a relation."""

    def __call__(self, relation: Relation) -> EarlierRows:
        """Return them."""


def make_field_reader(stream: ChangeStream) -> EventFields:
    """Return what finds the fields of a stream's events."""
    directive = stream.directive
    deletes = directive.parameter("apply_as_deletes")
    return EventFields(stream.sequence, deletes, stream.is_debezium, directive.span)


def with_event_relations(program: Program, relations: Mapping[str, Relation]) -> Program:
    """Return the program with the relations in which streams keep what may still count."""
    keys = {each.name: each.key for each in program.declarations}
    known = {each.name for each in program.declarations}
    added = {}
    for directive in program.directives:
        if is_change_stream(directive):
            relation = relations[directive.relation]
            stream = change_stream(relation, directive, keys.get(relation.name, ()))
            if stream.events is not None and stream.events.name not in known:
                added[stream.events.name] = stream.events
    if not added:
        return program
    declarations = [
        Declaration(
            each.name,
            tuple(map(Column, each.columns, map(TypeName.of, each.types))),
        )
        for each in added.values()
    ]
    return replace(program, declarations=(*program.declarations, *declarations))


def event_operations(
    batch: EventBatch, part: str, find_part: FindPart, *, has_copies: bool
) -> tuple[pa.Table, pa.Table, list[Operation]]:
    """Return the rows that events add and remove, and what changes in the relation of events.

    Args:
        batch: the events.
        part: the name of the parts of their source.
        find_part: finds these parts.
        has_copies: whether equal rows of the relation are copies.
    """
    stream = batch.stream
    events = stream.events
    rows = find_part(stream.relation)
    if events is None:
        new = batch.rows.select(list(stream.columns))
        if has_copies:
            return new, new.slice(0, 0), []
        new = distinct(new)
        there = rows.matching(new, range(new.num_columns)) if new.num_rows else new
        return minus(new, there.cast(new.schema)), new.slice(0, 0), []
    kept = find_part(events)
    before = None
    if batch.is_first and len(kept):  # it is read again from its start
        before = rows.table()
        everything = _as_events(kept.table(), batch.rows.schema)
        held = everything.slice(0, 0)
    else:
        keys = _padded(distinct(batch.rows.select(list(stream.keys))), events)
        at = [events.columns.index(each) for each in stream.keys]
        held = everything = _as_events(kept.matching(keys, at), batch.rows.schema)
    added, removed = apply_events(held, batch.rows, stream.keys, has_history=stream.has_history)
    if stream.has_history:
        now = history_of(pa.concat_tables([minus(held, removed), added]), stream)
        before = history_of(held, stream) if before is None else before
    else:
        now = added.filter(pc.invert(added.column(DELETED)))
        if before is None:
            known = removed.filter(pc.invert(removed.column(DELETED))).select(list(stream.keys))
            at = [stream.relation.columns.index(each) for each in stream.keys]
            before = rows.matching(_padded(known, stream.relation), at)
    if held is not everything:
        removed = everything
    shape = schema_of(stream.relation)
    sides = (each.select(shape.names).cast(shape) for each in (before, now))
    come, gone = difference(*sides)
    operations = [
        Operation(sign, events.name, rows.select(list(events.columns)), part)
        for sign, rows in ((State.REMOVED, removed), (State.ADDED, added))
    ]
    return come, gone, operations


def _as_events(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return kept events with the columns of those that come; values that are elsewhere are null.

    Of type 1, only the sequences of events that are kept are compared, and not their values.
    """
    columns = [
        rows.column(each.name).cast(each.type)
        if each.name in rows.column_names
        else pa.nulls(rows.num_rows, each.type)
        for each in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _padded(keys: pa.Table, relation: Relation) -> pa.Table:
    """Return the values of keys in the columns of a relation, whose others are null."""
    return _as_events(keys, pa.schema([each.with_nullable(True) for each in schema_of(relation)]))


def history_of(events: pa.Table, stream: ChangeStream) -> pa.Table:
    """Return a row for each run of upserts with equal values, and from when to when it was true.

    The runs of a key follow one another, and end where a delete does, or values differ.
    """
    rows = events.num_rows
    order = [(events.column_names.index(each), False) for each in (*stream.keys, SEQUENCE)]
    events = sort_rows(events, order)
    sequences = events.column(SEQUENCE).combine_chunks()
    is_gone = np.asarray(events.column(DELETED).to_numpy(), bool)
    is_same_key = _goes_on(events, stream.keys)
    goes_on = is_same_key & _goes_on(events, stream.tracked)
    goes_on[1:] &= ~is_gone[:-1]
    goes_on &= ~is_gone
    starts = np.flatnonzero(~is_gone & ~goes_on)
    follows = np.append(goes_on[1:], False)
    ends = np.flatnonzero(~is_gone & ~follows)
    has_next = np.append(is_same_key[1:], False)[ends] if rows else np.zeros(0, bool)
    following = pa.array(np.minimum(ends + 1, max(0, rows - 1)), mask=~has_next)
    found = events.take(index_array(ends)).select(list(stream.columns))
    found = found.append_column(START_AT, sequences.take(index_array(starts)))
    return found.append_column(END_AT, sequences.take(following))


def _goes_on(rows: pa.Table, names: Sequence[str]) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    """Return which rows have the same values in some columns as those before, null being equal."""
    same = np.ones(rows.num_rows, bool)
    same[:1] = False
    if names and rows.num_rows:
        words = row_words([rows.column(each) for each in names], rows.num_rows)
        same[1:] &= words[1:] == words[:-1]
    return same
