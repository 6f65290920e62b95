r"""Where the records of a large text begin, found range by range at the same time.

A line break ends a record if the number of quotes before it is even, as in `text_records`. A task
that has a range of the text does not know how many quotes precede it; so it notes the first line
break for both cases, and how many quotes and line breaks it has seen. With that, each range is
known to begin inside or outside of quotes. All this holds as long as quotes are regular: a reader
of a range notices the first one that is not, and the file is then read as a whole.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from corollary.data_class import dataclass
from corollary.warehouse.files.input_files import open_file
from corollary.warehouse.files.places import place_of
from corollary.warehouse.formats.text_stream import TextStream

_PIECE_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class TextRange:
    """Some bytes of a file.

    Attributes:
        is_quoted: whether quotes mean anything.
        is_checksum: whether only the checksum of the bytes is wanted.
    """

    path: str
    shown: str
    start: int
    end: int
    is_quoted: bool
    is_checksum: bool = False


@dataclass(frozen=True, slots=True)
class RangeScan:
    """What was seen in a range.

    Attributes:
        lines: its line breaks.
        quotes: its quotes.
        starts: where the first record begins behind a line break, and how many line breaks
            precede it in the range: if the range begins outside of quotes, and if inside.
        checksum: of the bytes, if that was asked for.
    """

    lines: int = 0
    quotes: int = 0
    starts: tuple[tuple[int, int] | None, tuple[int, int] | None] = (None, None)
    checksum: str = ""


@dataclass(frozen=True, slots=True)
class RecordRange:
    """Bytes of a text that begin with a record, and the number of line breaks before them."""

    start: int
    end: int
    lines: int


def scan_range(asked: TextRange) -> RangeScan:
    """Return what there is in a range; this runs in a task.

    Raises:
        InputError: `C0804`, it is no file any more.
        OSError: it cannot be read.
    """
    with open_file(place_of(asked.path), asked.shown, None) as file:
        if asked.is_checksum:
            return RangeScan(checksum=TextStream(file, asked.shown, None).checksum())
        file.seek(asked.start)
        return _scan(iter(lambda: file.read(_PIECE_BYTES), b""), asked)


def _scan(pieces: Iterator[bytes], asked: TextRange) -> RangeScan:
    lines = quotes = 0
    starts: list[tuple[int, int] | None] = [None, None]
    here = asked.start
    for piece in pieces:
        content = np.frombuffer(piece, np.uint8)[: asked.end - here]
        breaks = np.flatnonzero(content == ord("\n"))
        quoted = np.flatnonzero(content == ord('"')) if asked.is_quoted else breaks[:0]
        if None in starts:
            before = (np.searchsorted(quoted, breaks) + quotes) % 2
            for parity in (0, 1):
                found = np.flatnonzero(before == parity)
                if starts[parity] is None and len(found):
                    first = int(found[0])
                    starts[parity] = here + int(breaks[first]) + 1, lines + first + 1
        lines += len(breaks)
        quotes += len(quoted)
        here += len(content)
        if here >= asked.end:
            break
    return RangeScan(lines, quotes, (starts[0], starts[1]))


def record_ranges(size: int, scans: Sequence[RangeScan]) -> list[RecordRange]:
    """Return ranges of a text that begin with a record, from the scans of all its ranges.

    One without a line break outside of quotes belongs to the one before it.
    """
    found = [(0, 0)]
    lines, quotes = scans[0].lines, scans[0].quotes
    for scan in scans[1:]:
        start = scan.starts[quotes % 2]
        if start is not None and start[0] < size:
            found.append((start[0], lines + start[1]))
        lines += scan.lines
        quotes += scan.quotes
    ends = [*(start for start, _ in found[1:]), size]
    return [RecordRange(start, end, line) for (start, line), end in zip(found, ends, strict=True)]
