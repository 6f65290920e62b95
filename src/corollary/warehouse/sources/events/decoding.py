"""From messages to change events; those that are none are set aside, with their place and reason.

| message | becomes |
|---|---|
| a JSON object | an upsert of that row, or where the condition of deletes holds, a delete |
| an envelope: `c`, `r`, `u` | an upsert of `after` |
| an envelope: `d` | a delete of `before`, or where that is missing of the message's key |
| no value | a delete of the key, where events come in order; else nothing: `d` has said it |
| an envelope of transactions or statements, and `m` | nothing |
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.analysis.change_streams import DELETED, SEQUENCE, ChangeStream
from corollary.core.arrow import arrow_type
from corollary.core.arrow_buffers import bool_array
from corollary.core.program import Relation
from corollary.data_class import dataclass
from corollary.errors import Diagnostic, InputError
from corollary.warehouse.formats.typed_values import from_texts
from corollary.warehouse.sources import json_file, json_line
from corollary.warehouse.sources.events import envelopes
from corollary.warehouse.sources.events.messages import EventFieldReader
from corollary.warehouse.sources.schema_drift import ExpectedColumns

_NOTES = {
    "C1731": "send one JSON object as the value of each message",
    "C1732": "let the event say its key and its sequence, or correct `keys` and `sequence_by`",
}


@dataclass(slots=True)
class EventDecoder:
    """Makes events of the messages of one reading.

    Attributes:
        stream: how they are written.
        fields: finds their fields.
        expected: what messages say of the relation.
        arrived: how many messages have come before.
        kinds: the kinds of values that columns of envelopes have had.
        encodings: how these columns were written.
        malformed: the findings about messages that are no events, by their place.
        columns: the fields of rows.
    """

    stream: ChangeStream
    fields: EventFieldReader
    expected: ExpectedColumns
    arrived: int = 0
    kinds: dict[str, list[str]] = field(default_factory=dict)
    encodings: dict[str, tuple[str, int]] = field(default_factory=dict)
    malformed: dict[str, list[list[Diagnostic]]] = field(default_factory=dict)
    columns: set[str] = field(default_factory=set)

    def decode(self, messages: pa.Table) -> pa.Table:
        """Return the events of messages: the columns of a row, their sequence, whether they delete.

        Raises:
            InputError: the table that the events are of was altered or emptied.
        """
        numbers = pa.array(np.arange(self.arrived, self.arrived + messages.num_rows))
        messages = messages.append_column("at", numbers)
        self.arrived += messages.num_rows
        is_event = pc.is_valid(messages.column("value"))
        gone = messages.filter(pc.invert(is_event))
        given = self._parsed(self._as_texts(messages.filter(is_event)))
        given = self._relevant(given)
        given, sequences = self._sequenced(given)
        is_delete = given.column("is_delete")
        changed = given.filter(pc.invert(is_delete)), sequences.filter(pc.invert(is_delete))
        deleted = given.filter(is_delete), sequences.filter(is_delete)
        parts = [self._upserts(*changed), self._deletes(*deleted)]
        if gone.num_rows and self.stream.keys and not self.stream.sequence:
            parts.append(self._tombstones(gone))
        return pa.concat_tables(parts)

    def _as_texts(self, messages: pa.Table) -> pa.Table:
        """Return messages whose values are UTF-8, as texts."""
        values = messages.column("value")
        try:
            texts = values.cast(pa.large_string())
        except pa.ArrowInvalid:  # the rare case: which ones are no text is found one by one
            good = np.array([_is_text(each) for each in values.to_pylist()], bool)
            self._set_aside(messages, ~good, "C1731", "the message is not UTF-8")
            return self._as_texts(messages.filter(bool_array(good)))
        return messages.append_column("text", texts)

    def _parsed(self, messages: pa.Table) -> pa.Table:
        """Return the messages that are JSON objects, with their fields."""
        valid = pc.fill_null(self.fields.are_valid(messages.column("text")), False)
        if messages.num_rows and not pc.all(valid).as_py():
            self._set_aside(messages, ~_mask(valid), "C1731", "the message is not a JSON object")
            messages = messages.filter(valid)
        found = self.fields.read(messages.column("text"))
        for name in found.column_names:
            messages = messages.append_column(name, found.column(name))
        return messages

    def _relevant(self, messages: pa.Table) -> pa.Table:
        """Return the messages that tell of rows.

        Raises:
            InputError: `C1734`, the table was emptied.
        """
        if not self.stream.is_debezium:
            return messages
        op = messages.column("op")
        if pc.any(pc.equal(op, envelopes.TRUNCATE)).as_py():
            raise InputError.of(
                "C1734",
                f"The table of the events of `{self.stream.relation.name}` was emptied (TRUNCATE), "
                "and events do not say which rows are gone.",
                self.stream.directive.span,
                "let a new snapshot be sent to another topic, and read that into a new relation; "
                "nothing was changed",
            )
        known = _among(op, (*envelopes.CHANGES, *envelopes.OTHERS))
        self._set_aside(messages, ~known, "C1731", "the message is not an envelope with an `op`")
        return messages.filter(bool_array(_among(op, envelopes.CHANGES)))

    def _sequenced(self, messages: pa.Table) -> tuple[pa.Table, pa.ChunkedArray]:
        """Return the messages that have a sequence, and it."""
        if not self.stream.sequence:
            return messages, messages.column("at")
        type_ = self.stream.sequence_type
        texts = messages.column("sequence").cast(pa.string())
        present = _mask(pc.is_valid(texts))
        values, failures = from_texts(texts.fill_null("0"), type_) if len(texts) else (texts, {})
        present[list(failures)] = False
        wanted = ", ".join(f"`{each}`" for each in self.stream.sequence)
        what = f"the event has no sequence: {wanted}, a `{type_}`"
        self._set_aside(messages, ~present, "C1732", what)
        if failures:
            values = from_texts(texts.filter(bool_array(present)), type_)[0]
        else:
            values = values.filter(bool_array(present))
        return messages.filter(bool_array(present)), values.cast(arrow_type(type_))

    def _upserts(self, messages: pa.Table, sequences: pa.ChunkedArray) -> pa.Table:
        """Return events that say what a row is."""
        rows = messages.column("row")
        there = _mask(pc.fill_null(pc.not_equal(rows, "null"), False))
        self._set_aside(messages, ~there, "C1731", "the event has no row in `after`")
        encodings: dict[str, tuple[str, int]] = {}
        if self.stream.is_debezium:
            partial = _mask(pc.fill_null(pc.match_substring(rows, envelopes.UNAVAILABLE), False))
            what = (
                "a value is not in the event, as it has not changed: REPLICA IDENTITY FULL sends it"
            )
            self._set_aside(messages, partial & there, "C1731", what)
            there &= ~partial
        messages, sequences = (
            messages.filter(bool_array(there)),
            sequences.filter(bool_array(there)),
        )
        if self.stream.is_debezium and messages.num_rows:
            schemas = pc.drop_null(messages.column("schema").unique()).to_pylist()
            encodings, kinds = envelopes.encodings_of(
                self.stream,
                self.fields,
                messages.column("row"),
                schemas,
                self.kinds,
            )
            self.kinds, self.encodings = kinds, {**self.encodings, **encodings}
        shape = self.stream.shape(self.stream.filled)
        found, good = self._typed(
            messages, messages.column("row"), shape, encodings, has_fields=True
        )
        return self._with_marks(found, sequences.filter(bool_array(good)), is_delete=False)

    def _deletes(self, messages: pa.Table, sequences: pa.ChunkedArray) -> pa.Table:
        """Return events that say that a row is gone."""
        rows = messages.column("row")
        if messages.num_rows and self.stream.is_debezium:
            missing = pc.fill_null(pc.equal(rows, "null"), True)
            if pc.any(missing).as_py():
                keys = self._key_rows(messages)
                rows = pc.if_else(missing, keys, rows)
        return self._gone(messages, rows, sequences)

    def _tombstones(self, messages: pa.Table) -> pa.Table:
        """Return the deletes that messages without a value are."""
        return self._gone(messages, self._key_rows(messages), messages.column("at"))

    def _gone(
        self, messages: pa.Table, rows: pa.ChunkedArray, sequences: pa.ChunkedArray
    ) -> pa.Table:
        there = _mask(pc.is_valid(rows))
        self._set_aside(messages, ~there, "C1732", "the event does not say the key of a row")
        keep = bool_array(there)
        messages, rows, sequences = (each.filter(keep) for each in (messages, rows, sequences))
        shape = self.stream.shape(self.stream.keys)
        found, good = self._typed(messages, rows, shape, self.encodings)
        return self._with_marks(found, sequences.filter(bool_array(good)), is_delete=True)

    def _key_rows(self, messages: pa.Table) -> pa.ChunkedArray:
        keys = messages.column("key")
        try:
            return self.fields.key_rows(keys.cast(pa.large_string()), self.stream.keys)
        except pa.ArrowInvalid:  # keys that are no text: none of them says a row
            return pa.chunked_array([pa.nulls(len(keys), pa.string())])

    def _typed(
        self,
        messages: pa.Table,
        rows: pa.ChunkedArray,
        shape: Relation,
        encodings: Mapping[str, tuple[str, int]],
        *,
        has_fields: bool = False,
    ) -> tuple[pa.Table, "np.ndarray[Any, np.dtype[np.bool_]]"]:
        """Return the rows that fit their columns, and of which messages they are."""
        good = np.ones(messages.num_rows, bool)
        if not messages.num_rows:
            return pa.table({}), good
        encoded = envelopes.encoded_shape(shape, encodings)
        read = ExpectedColumns(encoded, self.expected.directive, is_compact=False)
        records = json_file.read_lines(rows, read)
        if has_fields:
            self.columns |= set(records.columns)
        for first, *_ in records.malformed:
            at = json_line.first_line_number([first]) - 1
            good[at] = False
            self._note(messages, at, first.code, first.message, first.note)
        table = records.table
        missing = np.zeros(table.num_rows, bool)
        for key in self.stream.keys:
            missing |= ~_mask(pc.is_valid(table.column(key)))
        if missing.any():
            at_fault = np.flatnonzero(good)[missing]
            for at in at_fault.tolist():
                self._note(messages, at, "C1732", "the event has no value for the key", None)
            good[at_fault] = False
            table = table.filter(bool_array(~missing))
        try:
            return envelopes.decode_columns(table, shape, encodings), good
        except pa.ArrowInvalid as error:
            raise InputError.of(
                "C1733",
                f"Values of `{self.stream.relation.name}` are not what the schema of their events "
                f"says: {error}.",
                self.stream.directive.span,
                "let the connector send the schema of what it sends; nothing was changed",
            ) from None

    def _with_marks(
        self, rows: pa.Table, sequences: pa.ChunkedArray, *, is_delete: bool
    ) -> pa.Table:
        """Return rows as events; columns that they lack are null."""
        stream, count = self.stream, len(sequences)
        types = [arrow_type(stream.type_of(name)) for name in stream.columns]
        columns = [
            rows.column(name).cast(type_) if name in rows.column_names else pa.nulls(count, type_)
            for name, type_ in zip(stream.columns, types, strict=True)
        ]
        order = arrow_type(stream.sequence_type)
        marks = [sequences.cast(order), pa.repeat(pa.scalar(is_delete), count)]
        types += [order, pa.bool_()]
        names = (*stream.columns, SEQUENCE, DELETED)
        schema = pa.schema(list(zip(names, types, strict=True)))
        return pa.Table.from_arrays([*columns, *marks], schema=schema)

    def _set_aside(
        self, messages: pa.Table, bad: "np.ndarray[Any, np.dtype[np.bool_]]", code: str, what: str
    ) -> None:
        for at in np.flatnonzero(bad).tolist():
            self._note(messages, at, code, what, _NOTES.get(code))

    def _note(self, messages: pa.Table, at: int, code: str, what: str, note: str | None) -> None:
        """Note what is wrong with a message."""
        place, number, value, key = (
            messages.column(name)[at].as_py() for name in ("place", "number", "value", "key")
        )
        bad = json_line.BadLineError(code, what, note=note)
        raw = value if value is not None else key or b""
        finding = json_line.line_finding(place, (number, raw), bad)
        self.malformed.setdefault(place, []).append([finding])


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _mask(values: pa.ChunkedArray) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    return np.asarray(values.to_numpy(), bool)


def _among(values: pa.ChunkedArray, words: Sequence[str]) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    return _mask(pc.is_in(values, value_set=pa.array(words, values.type)))
