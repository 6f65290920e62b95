"""Splits a text into blocks of whole records, so that no file has to be in memory at once."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from corollary.data_class import dataclass
from corollary.warehouse.formats.dialect import Dialect
from corollary.warehouse.formats.record_index import RecordIndex, index_records

BLOCK_BYTES = 2**22
"""About the size of a block; one with a longer record is larger."""
PEEKED_BYTES = 2**16


class ReadableText(Protocol):
    """A text that is read from start to end."""

    def read(self, size: int, /) -> bytes:
        """Return at most some bytes, and none only at the end."""


class PeekedText:
    """A text whose beginning is known before it is read.

    Attributes:
        head: its first line, perhaps with more or, if it is very long, with less.
    """

    def __init__(self, text: ReadableText) -> None:
        self._text = text
        self.head = b""
        while b"\n" not in self.head and len(self.head) < PEEKED_BYTES:
            piece = text.read(PEEKED_BYTES)
            if not piece:
                break
            self.head += piece
        self._left = self.head

    def read(self, size: int, /) -> bytes:
        """Return at most some bytes, and none only at the end."""
        found, self._left = self._left[:size], self._left[size:]
        return found or self._text.read(size)


def read_head(text: ReadableText, size: int) -> bytes:
    """Return the first bytes of a text, fewer only if it has no more."""
    head = b""
    while len(head) < size and (piece := text.read(size - len(head))):
        head += piece
    return head


@dataclass(frozen=True, slots=True)
class RecordBlock:
    """Some records that follow each other.

    Attributes:
        data: their text; it ends with a line break, also where the file does not.
        first_line: the number of its first line, from 1.
        quoted_records: the index of its records if there are quotes that mean anything, else None.
    """

    data: bytes
    first_line: int
    quoted_records: RecordIndex | None = None

    @property
    def has_regular_quotes(self) -> bool:
        """Whether quotes are only around fields, and doubled inside."""
        records = self.quoted_records
        return records is None or (not len(records.irregular) and records.end == len(self.data))

    def records(self, dialect: Dialect) -> RecordIndex:
        """Return the index of its records."""
        return self.quoted_records or index_records(self.data, dialect)


def split_blocks(
    text: ReadableText, dialect: Dialect, first_line: int = 1
) -> Iterator[RecordBlock]:
    r"""Yield the blocks of a text, from its first record to its last.

    >>> import io
    >>> [each.data for each in split_blocks(io.BytesIO(b"a\nb"), Dialect((0,)))]
    [b'a\nb\n']
    """
    data, line, is_last = b"", first_line, False
    wanted = BLOCK_BYTES
    while not is_last:
        while len(data) < wanted:
            piece = text.read(wanted - len(data))
            if not piece:
                is_last = True
                break
            data += piece
        if is_last and data and not data.endswith(b"\n"):
            data += b"\n"
        records = index_quoted_records(data, dialect)
        end = records.end if records is not None else data.rfind(b"\n") + 1
        if is_last:
            end = len(data)  # the end of a quote that is never closed
        if not end:  # a record that is longer than a block
            wanted = 2 * len(data)
            continue
        block = RecordBlock(data[:end], line, records)
        yield block
        line += count_lines(block.data)
        data, wanted = data[end:], BLOCK_BYTES


def index_quoted_records(data: bytes, dialect: Dialect) -> RecordIndex | None:
    """Return the index of records if there are quotes that mean anything."""
    return index_records(data, dialect) if dialect.is_quoted and b'"' in data else None


def count_lines(data: bytes) -> int:
    """Return the number of line breaks."""
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n")))
