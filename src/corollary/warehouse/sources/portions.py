"""Files of a source, and portions of them: a whole file, or a range of a large one."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

import pyarrow as pa

from corollary.data_class import dataclass
from corollary.warehouse.files.input_files import Fingerprint
from corollary.warehouse.formats.dialect import Dialect
from corollary.warehouse.formats.text_records import ReadableText, count_lines, split_blocks
from corollary.warehouse.formats.text_stream import TextStream

PORTION_BYTES = 1 << 26
"""The bytes of a portion of a large file, and of the small files that one task reads."""
PARQUET_PORTION_BYTES = 1 << 24
"""The same for Parquet, which is compressed."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a source as it is read, here or in a task.

    Attributes:
        name: in positions and in the quarantine.
        shown: in messages.
        path: the real path.
        format: `csv`, `jsonl`, `json` or `parquet`.
        fingerprint: when it was listed; it must not be written until all of it is read.
        partition: the values of the columns that are not in it but in the log of its Delta table.
        allows_missing: whether missing columns are null, as in a Delta table that has got columns;
            its schema says which there are.
    """

    name: str
    shown: str
    path: str
    format: str
    fingerprint: Fingerprint
    partition: Mapping[str, pa.Scalar] = field(default_factory=dict)
    allows_missing: bool = False

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.fingerprint[0]

    @property
    def portion_bytes(self) -> int:
        """The bytes of a portion of it."""
        return PARQUET_PORTION_BYTES if self.format == "parquet" else PORTION_BYTES

    @property
    def is_text(self) -> bool:
        """Whether it is a text in which each line, or record, can be read by itself."""
        return self.format in ("csv", "jsonl")


@dataclass(frozen=True, slots=True)
class Portion:
    """What is read at once of a file: all of it, bytes of a text, or row groups of Parquet.

    Attributes:
        start: the first byte of the text, or the first row group.
        end: the byte or row group after the last; None for all that follows.
        before: how many line breaks, or rows, precede it.
    """

    file: DataFile
    start: int = 0
    end: int | None = None
    before: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole file."""
        return self.start == 0 and self.end is None


def group_by_size(portions: Iterable[Portion]) -> Iterator[list[Portion]]:
    """Yield portions together as long as their files are small, in their order.

    >>> def sizes(format_: str) -> list[int]:
    ...     files = (DataFile(f"{at}", "", "", format_, (6_000_000, 0, 0, 0)) for at in range(10))
    ...     return [len(group) for group in group_by_size(map(Portion, files))]
    >>> sizes("csv"), sizes("parquet")
    ([10], [2, 2, 2, 2, 2])
    """
    group: list[Portion] = []
    total = 0.0
    for each in portions:
        share = each.file.size / each.file.portion_bytes if each.is_whole else 1.0
        if group and total + share > 1:
            yield group
            group, total = [], 0.0
        group.append(each)
        total += share
    if group:
        yield group


# --- portions of a text ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EarlierText:
    """The part of a text that has been read before.

    Attributes:
        head: its first block, in which headers are.
        lines: how many line breaks it has.
        is_whole: whether it ends with a record, so that what follows can be read by itself.
    """

    head: bytes
    lines: int
    is_whole: bool


def read_earlier_text(
    text: TextStream, size: int, checksum: str, dialect: Dialect
) -> EarlierText | None:
    """Read the first bytes of a file; return None unless they have a checksum.

    Args:
        text: the file, at its start and not compressed.
        size: how many bytes of the file, with its byte order mark.
        checksum: of these bytes.
        dialect: the syntax, which says where records end.
    """
    part = FirstBytes(text, size - text.mark_bytes)
    head: bytes | None = None
    lines, has_regular_quotes = 0, True
    for block in split_blocks(part, dialect):
        head = block.data if head is None else head
        lines += count_lines(block.data)
        has_regular_quotes &= block.has_regular_quotes
    if text.checksum_so_far() != checksum:
        return None
    return EarlierText(head or b"", lines, has_regular_quotes and part.last == b"\n")


class FirstBytes:
    """The first bytes of a text.

    Attributes:
        last: the last byte that was read.
    """

    def __init__(self, text: ReadableText, size: int) -> None:
        self._text = text
        self._left = size
        self.last = b""

    def read(self, size: int, /) -> bytes:
        """Return at most some bytes, and none only at the end."""
        if self._left <= 0:
            return b""
        data = self._text.read(min(size, self._left))
        self._left -= len(data)
        self.last = data[-1:] or self.last
        return data
