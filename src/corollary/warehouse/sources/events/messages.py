"""What carriers of change events bring."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from corollary.analysis.change_streams import ChangeStream
from corollary.data_class import dataclass
from corollary.warehouse.sources.source import Position

MESSAGE_SCHEMA = pa.schema(
    [
        ("key", pa.large_binary()),
        ("value", pa.large_binary()),
        ("place", pa.dictionary(pa.int32(), pa.string())),
        ("number", pa.int64()),
    ]
)
"""A message: its key and value, and its place: a file and a line, or a partition and an offset."""

NO_MESSAGES = pa.Table.from_arrays(
    [pa.nulls(0, each.type) for each in MESSAGE_SCHEMA], schema=MESSAGE_SCHEMA
)


@dataclass(frozen=True, slots=True)
class Delivery:
    """Messages that a carrier has brought.

    Attributes:
        messages: of `MESSAGE_SCHEMA`; those of one key are in order.
        position: how far the carrier was read, as JSON values.
        lag: how many messages are left, or files of which it is not known.
    """

    messages: pa.Table
    position: Position
    lag: int = 0


class Carrier(Protocol):
    """Brings messages."""

    def has_more(self, before: Position | None) -> bool:
        """Return whether there are messages after a position.

        Raises:
            InputError: it cannot be reached.
        """

    def read(self, before: Position | None, most: int) -> Delivery:
        """Return the messages after a position, in order, at most a number of them.

        Raises:
            InputError: it cannot be reached, or has lost messages that were not read.
        """


class EventFieldReader(Protocol):
    """Finds the fields of events in their JSON; see `corollary.engines.local.bulk.event_fields`."""

    def are_valid(self, texts: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return which texts are JSON objects."""

    def read(self, texts: pa.ChunkedArray) -> pa.Table:
        """Return `op`, `row`, `is_delete`, `sequence` and perhaps `schema` of events."""

    def key_rows(self, keys: pa.ChunkedArray, columns: tuple[str, ...]) -> pa.ChunkedArray:
        """Return the keys of messages as JSON of rows."""

    def kinds(self, rows: pa.ChunkedArray, columns: tuple[str, ...]) -> dict[str, set[str]]:
        """Return which kinds of JSON values fields of rows have."""


class MakeEventFields(Protocol):
    """Makes what finds the fields of a stream."""

    def __call__(self, stream: ChangeStream) -> EventFieldReader:
        """Return it."""


def message_table(
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
    place: str,
    numbers: Sequence[int],
) -> pa.Table:
    """Return the messages of one place."""
    codes = np.zeros(len(values), np.int32)
    columns = [
        pa.array(keys, pa.large_binary()),
        pa.array(values, pa.large_binary()),
        pa.DictionaryArray.from_arrays(codes, [place]),
        pa.array(numbers, pa.int64()),
    ]
    return pa.Table.from_arrays(columns, schema=MESSAGE_SCHEMA)
