"""A stream of change events as a source: what has come since it was last read.

The position has how far its carrier was read, how many messages came, and what is known of their
columns. It changes in the commit of what the events have changed: each event counts exactly once.
"""

import json
from dataclasses import replace

from corollary.analysis.change_streams import PUSH, ChangeStream
from corollary.errors import InputError
from corollary.warehouse.files.durable_files import checksum_of
from corollary.warehouse.sources.events.decoding import EventDecoder
from corollary.warehouse.sources.events.messages import Carrier, EventFieldReader
from corollary.warehouse.sources.quarantine import NO_BAD_ROWS, to_bad_rows
from corollary.warehouse.sources.schema_drift import FileSummary
from corollary.warehouse.sources.source import EarlierRows, EventBatch, Position, SourceChange
from corollary.warehouse.sources.source_spec import InputSource, RunCollector, SourceSpec

CARRIED = "carried"
"""The field of a position that says how far the carrier was read."""
LAG = "lag"
"""The field of a position that says how many messages were left."""


class EventSource(InputSource):
    """Reads a stream.

    Args:
        spec: the `.input`.
        stream: how its events change the relation.
        carrier: brings the messages.
        fields: finds the fields of events.
    """

    def __init__(
        self, spec: SourceSpec, stream: ChangeStream, carrier: Carrier, fields: EventFieldReader
    ) -> None:
        super().__init__(spec, "events")
        identity = [spec.name, stream.keys, stream.sequence, stream.has_history]
        self._form = checksum_of(json.dumps([*identity, str(stream.sequence_type)]).encode())
        self._stream, self._carrier, self._fields = stream, carrier, fields

    def is_unchanged(self, before: Position | None) -> bool:
        """Return whether no message has come since a position."""
        before = self._comparable(before)
        return before is not None and not self._carrier.has_more(before[CARRIED])

    def _change(
        self, before: Position | None, earlier: EarlierRows, collector: RunCollector
    ) -> SourceChange:
        spec, stream, known = self._spec, self._stream, before or {}
        if before is None and len(earlier) and spec.directive.parameter("IO") == PUSH:
            raise InputError.of(
                "C1745",
                f"`{spec.relation.name}` has rows of events that were pushed with other keys, or "
                "another sequence or type, and they cannot be read again.",
                spec.directive.span,
                "bring the former `.input` back, or let a new relation take events like these",
            )
        delivery = self._carrier.read(known.get(CARRIED), stream.most)
        decoder = EventDecoder(
            stream,
            self._fields,
            collector.expected,
            known.get("arrived", 0),
            known.get("kinds", {}),
            {name: (how[0], how[1]) for name, how in known.get("encodings", {}).items()},
        )
        rows = decoder.decode(delivery.messages)
        columns = tuple(sorted(decoder.columns - stream.silent_fields))
        collector.add_summary(
            spec.location.name, FileSummary(rows.num_rows, [], 0, columns), NO_BAD_ROWS
        )
        for place, found in decoder.malformed.items():
            bad = to_bad_rows(spec.relation.name, self.name, place, found)
            collector.add_summary(place, FileSummary(0, found, len(found)), bad)
        collector.raise_if_malformed()
        events = known.get("events", 0) + rows.num_rows
        position = {
            CARRIED: delivery.position,
            LAG: delivery.lag,
            "arrived": decoder.arrived,
            "events": events,
            "kinds": decoder.kinds,
            "encodings": decoder.encodings,
        }
        empty = spec.empty_table()
        reread = None if before is None else frozenset[str]()
        change = collector.to_source_change((empty, empty), position, reread, (), events)
        return replace(change, events=EventBatch(stream, rows, before is None, delivery.lag))
