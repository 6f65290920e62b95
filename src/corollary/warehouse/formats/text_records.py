"""The records of a text: what they are, where they end, and blocks of them.

Records are split one by one, with the position of each field, or found by vectors: in a text whose
quotes are regular, every quote toggles between inside and outside, so a line break ends a record if
the number of quotes before it is even. Only a record with an irregular quote is split by itself,
and counting starts again after it. A text is read in blocks of whole records, so that no file has
to be in memory at once.
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

from corollary.data_class import dataclass
from corollary.warehouse.formats.dialect import Dialect

# --- one by one ----------------------------------------------------------------------------------


NEVER_CLOSED = "the quote that opens this field is never closed"
"""The problem of a record whose end is unknown."""


@dataclass(frozen=True, slots=True)
class TextRecord:
    """One record of a file: a line, or several if a quoted field holds line breaks.

    Attributes:
        line: the number of its first line, from 1.
        raw: its text in the file, without the line break at its end.
        fields: the texts of its fields, without quotes.
        delimiter_length: the length of the delimiter.
        offsets: where in `raw` each field starts, if the lengths of the fields do not determine it.
        quoted: the numbers of the fields that were in quotes.
        problem: what is wrong with the quotes, and at which offset.
    """

    line: int
    raw: str
    fields: list[str]
    delimiter_length: int
    offsets: tuple[int, ...] = ()
    quoted: frozenset[int] = frozenset()
    problem: tuple[str, int] | None = None

    def offset(self, number: int) -> int:
        """Return where in the record's text the field of this number, from 0, starts."""
        if self.offsets:
            return self.offsets[number]
        return sum(map(len, self.fields[:number])) + self.delimiter_length * number

    def position(self, offset: int) -> tuple[int, int]:
        r"""Return the line and the column, from 1, of an offset in the record's text.

        >>> TextRecord(7, 'a,"b\nc"', ["a", "b\nc"], 1).position(5)
        (8, 1)
        """
        before = self.raw[:offset]
        return self.line + before.count("\n"), offset - (before.rfind("\n") + 1) + 1


def split_records(text: str, dialect: Dialect, first_line: int = 1) -> Iterator[TextRecord]:
    r"""Yield the records of a text; the last line may have no line break.

    >>> [record.fields for record in split_records("a\tb\r\nc\t", Dialect((0, 1)))]
    [['a', 'b'], ['c', '']]
    """
    line = first_line
    start = 0
    while start < len(text):
        record, end = split_record(text, start, line, dialect)
        yield record
        line += 1 + record.raw.count("\n")
        start = end + 1


def split_record(text: str, start: int, line: int, dialect: Dialect) -> tuple[TextRecord, int]:
    """Return the record that starts at an offset, and where it ends: at a line break, or the end.

    Args:
        text: the text; a record that goes on after it counts as one that is never closed.
        start: the offset.
        line: the number of the line there.
        dialect: the syntax.
    """
    end = _line_end(text, start)
    raw = text[start:end].removesuffix("\r")
    if dialect.is_quoted and '"' in raw:
        return _split_quoted(text, start, line, dialect.delimiter)
    delimiter = dialect.delimiter
    fields = raw.split(delimiter)
    if dialect.brackets:
        fields = _join_bracketed(fields, dialect)
    return TextRecord(line, raw, fields, len(delimiter)), end


def _join_bracketed(parts: list[str], dialect: Dialect) -> list[str]:
    """Return the fields of a record that was also split inside of brackets.

    >>> _join_bracketed(["[1", "[2", "nil]]", "a"], Dialect((0, 1), ",", brackets=(("[", "]"),)))
    ['[1,[2,nil]]', 'a']
    """
    fields: list[str] = []
    depth = 0
    for part in parts:
        if depth > 0:
            fields[-1] += dialect.delimiter + part
        else:
            fields.append(part)
        for left, right in dialect.brackets:
            depth += part.count(left) - part.count(right)
    return fields


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _split_quoted(text: str, start: int, line: int, delimiter: str) -> tuple[TextRecord, int]:
    """Return the record that starts here, with fields in quotes, and where its text ends."""
    fields: list[str] = []
    offsets: list[int] = []
    quoted: set[int] = set()
    problem: tuple[str, int] | None = None
    here = start
    end = _line_end(text, start)
    while True:
        offsets.append(here - start)
        if text.startswith('"', here):
            quoted.add(len(fields))
            closing = _closing_quote(text, here)
            if closing < 0:
                problem = (NEVER_CLOSED, here - start)
                # Which line break ends it is unknown, so all of the rest is malformed.
                end = len(text.removesuffix("\n"))
                break
            fields.append(text[here + 1 : closing].replace('""', '"'))
            here = closing + 1
            end = _line_end(text, here)
        else:
            stop = text.find(delimiter, here, end)
            last = stop if stop >= 0 else end - text.endswith("\r", here, end)
            fields.append(text[here:last])
            here = last
        if text.startswith(delimiter, here) and here < end:
            here += len(delimiter)
            continue
        if text[here:end] not in {"", "\r"}:
            problem = ("text follows the closing quote of a field", here - start)
        break
    raw = text[start:end].removesuffix("\r")
    gap = len(delimiter)
    return TextRecord(line, raw, fields, gap, tuple(offsets), frozenset(quoted), problem), end


def _closing_quote(text: str, opening: int) -> int:
    here = opening + 1
    while (closing := text.find('"', here)) >= 0 and text.startswith('"', closing + 1):
        here = closing + 2
    return closing


# --- by vectors ----------------------------------------------------------------------------------


Offsets = npt.NDArray[np.int64]

_WINDOW_BYTES = 2**16
"""The bytes in which the end of an irregular record is searched first."""
_WINDOW_GROWTH = 16
_PADDING = np.frombuffer(b"\n", np.uint8)
_LINE_BREAK, _QUOTE = ord("\n"), ord('"')


@dataclass(frozen=True, slots=True)
class RecordIndex:
    """The records of a text that are complete: those that end with a line break.

    Attributes:
        ends: the offset after the line break of each.
        irregular: the numbers of the records with irregular quotes, from 0.
        quotes: the offsets of all quotes, if they mean anything.
    """

    ends: Offsets
    irregular: Offsets
    quotes: Offsets

    @property
    def starts(self) -> Offsets:
        """The offset at which each record starts."""
        starts = np.zeros(len(self.ends), np.int64)
        starts[1:] = self.ends[:-1]
        return starts

    @property
    def end(self) -> int:
        """The offset after the last complete record."""
        return int(self.ends[-1]) if len(self.ends) else 0


def index_records(data: bytes, dialect: Dialect) -> RecordIndex:
    """Return the complete records of a text that starts with a record."""
    content = np.frombuffer(data, np.uint8)
    breaks = np.flatnonzero(content == _LINE_BREAK)
    if not dialect.is_quoted or b'"' not in data:
        nothing = np.empty(0, np.int64)
        return RecordIndex(breaks + 1, nothing, nothing)
    quotes = np.flatnonzero(content == _QUOTE)
    return _QuotedText(data, dialect, content, breaks, quotes).index()


class _QuotedText:
    """A text with quotes, some of which may be irregular."""

    def __init__(
        self,
        data: bytes,
        dialect: Dialect,
        content: npt.NDArray[np.uint8],
        breaks: Offsets,
        quotes: Offsets,
    ) -> None:
        self._data = data
        self._dialect = dialect
        self._breaks = breaks
        self._quotes = quotes
        # How many quotes there are before each line break.
        self._quotes_before = np.searchsorted(quotes, breaks)
        self._misplaced = _misplaced_quotes(content, quotes, dialect.delimiter.encode())

    def index(self) -> RecordIndex:
        """Return the index of the records."""
        found: list[Offsets] = []
        irregular: list[int] = []
        count = start = 0
        while True:
            opened = int(np.searchsorted(self._quotes, start))
            misplaced = self._misplaced[opened % 2]
            at = int(np.searchsorted(misplaced, opened))
            is_regular = at == len(misplaced)
            stop = len(self._data) if is_regular else int(self._quotes[misplaced[at]])
            ends = self._ends_between(start, stop, opened)
            found.append(ends)
            count += len(ends)
            if is_regular:
                break
            # The record with the misplaced quote.
            end = self._end_of_record(int(ends[-1]) if len(ends) else start)
            if end is None:
                break
            irregular.append(count)
            found.append(np.array([end], np.int64))
            count += 1
            start = end
        numbers = np.array(irregular, np.int64)
        return RecordIndex(np.concatenate(found), numbers, self._quotes)

    def _ends_between(self, start: int, stop: int, opened: int) -> Offsets:
        """Return the ends of the records in a range whose quotes are regular."""
        first, last = np.searchsorted(self._breaks, [start, stop])
        is_outside = (self._quotes_before[first:last] - opened) % 2 == 0
        ends: Offsets = self._breaks[first:last][is_outside] + 1
        return ends

    def _end_of_record(self, start: int) -> int | None:
        """Return where the record that starts here ends; None if its end is not in the text."""
        size = _WINDOW_BYTES
        while True:
            window = self._data[start : start + size]
            text = window.decode("utf-8", "surrogateescape")
            record, end = split_record(text, 0, 1, self._dialect)
            is_closed = record.problem is None or record.problem[0] != NEVER_CLOSED
            if is_closed and end < len(text):
                return start + len(text[: end + 1].encode("utf-8", "surrogateescape"))
            if start + size >= len(self._data):
                return None
            size *= _WINDOW_GROWTH


def _misplaced_quotes(
    content: npt.NDArray[np.uint8], quotes: Offsets, delimiter: bytes
) -> tuple[Offsets, Offsets]:
    """Return the numbers of the quotes that are misplaced if the even, or the odd, ones open.

    A quote that opens follows a delimiter, a line break or (second half of a doubled one) a quote;
    one that closes is followed by one of them. With a delimiter of several bytes all count as
    misplaced, so that all records with quotes are irregular.
    """
    numbers = np.arange(len(quotes))
    if len(delimiter) > 1:
        return numbers, numbers
    # Line breaks around the text, so that the first and the last byte have neighbours.
    padded = np.concatenate([_PADDING, content, _PADDING])
    is_before, is_after = np.zeros((2, 256), np.bool_)
    is_before[list(b'\n"' + delimiter)] = True
    is_after[list(b'\r\n"' + delimiter)] = True
    may_open = is_before[padded[quotes]]
    may_close = is_after[padded[quotes + 2]]
    is_even = numbers % 2 == 0
    return (
        numbers[~np.where(is_even, may_open, may_close)],
        numbers[~np.where(is_even, may_close, may_open)],
    )


# --- in blocks -----------------------------------------------------------------------------------


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
