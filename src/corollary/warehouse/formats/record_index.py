"""Where the records of a text end, found by vectors: a line break inside quotes ends none.

`delimited_records` says what a record is. In a text whose quotes are regular, every quote toggles
between inside and outside, so a line break ends a record if the number of quotes before it is even.
Only a record with an irregular quote is split by itself, and counting starts again after it.
"""

import numpy as np
import numpy.typing as npt

from corollary.data_class import dataclass
from corollary.warehouse.formats.delimited_records import NEVER_CLOSED, split_record
from corollary.warehouse.formats.dialect import Dialect

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
