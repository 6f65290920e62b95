"""The earlier text of a file that got longer: whether it is still there, and where it ended."""

from corollary.data_class import dataclass
from corollary.warehouse.formats.dialect import Dialect
from corollary.warehouse.formats.text_records import ReadableText, count_lines, split_blocks
from corollary.warehouse.formats.text_stream import TextStream


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
