"""The text of a file, read once and in order: expanded, hashed and reported on the way."""

import gzip
import hashlib
import io
import zlib
from collections.abc import Callable
from typing import BinaryIO

from corollary.errors import InputError
from corollary.source import Span
from corollary.warehouse.files import input_files
from corollary.warehouse.files.input_files import BYTE_ORDER_MARK, EXPANDED_MAX_RATIO, GZIP_MAGIC

_PIECE_BYTES = 2**22


def _ignore_progress(_: int) -> None:
    """Do nothing about bytes that have been read."""


class TextStream:
    """The text of a file without compression and byte order mark.

    Args:
        file: the file at its start; what is compressed must be seekable.
        name: what messages call it.
        span: the directive that names it.
        report: called with the number of the file's bytes that have been read so far.

    Attributes:
        is_compressed: whether the file is compressed.
        mark_bytes: the length of the byte order mark.
    """

    def __init__(
        self,
        file: BinaryIO,
        name: str,
        span: Span | None,
        report: Callable[[int], None] = _ignore_progress,
    ) -> None:
        self._name = name
        self._span = span
        self._raw = _HashedFile(file, report)
        self._text: _HashedFile | gzip.GzipFile = self._raw
        self._limit: int | None = None
        self._expanded = 0
        head = file.read(len(GZIP_MAGIC))
        self.is_compressed = head == GZIP_MAGIC
        self._raw.put_back(head)
        if self.is_compressed:
            here = file.tell()
            size = file.seek(0, io.SEEK_END)
            file.seek(here)
            self._limit = max(input_files.EXPANDED_ALLOWED_BYTES, EXPANDED_MAX_RATIO * size)
            # What GzipFile needs of a file is `read`.
            self._text = gzip.GzipFile(fileobj=self._raw, mode="rb")  # type: ignore[call-overload]
        first = self._read(len(BYTE_ORDER_MARK))
        self._first = first.removeprefix(BYTE_ORDER_MARK)
        self.mark_bytes = len(first) - len(self._first)

    def read(self, size: int) -> bytes:
        """Return at most some bytes of the text, and none only at its end.

        Raises:
            InputError: `C0804`; it is a damaged gzip file, or expands too far.
        """
        if self._first:
            first, self._first = self._first[:size], self._first[size:]
            return first
        return self._read(size)

    def read_all(self) -> bytes:
        """Return what of the text has not been read."""
        pieces = []
        while piece := self.read(_PIECE_BYTES):
            pieces.append(piece)
        return b"".join(pieces)

    def checksum(self) -> str:
        """Return the checksum of the bytes of the file, all of which are read first."""
        while self._raw.read(_PIECE_BYTES):
            pass
        return self._raw.checksum()

    def checksum_so_far(self) -> str:
        """Return the checksum of the bytes of the file that have been read."""
        return self._raw.checksum()

    def _read(self, size: int) -> bytes:
        if self._limit is None:
            return self._text.read(size)
        try:
            data = self._text.read(size)
        except (EOFError, OSError, zlib.error) as error:
            message = f"`{self._name}` cannot be read: it is not a sound gzip file ({error})"
            raise InputError.of("C0804", message, self._span) from None
        self._expanded += len(data)
        if self._expanded > self._limit:
            message = (
                f"`{self._name}` cannot be read: it expands to more than {EXPANDED_MAX_RATIO} "
                "times its size"
            )
            raise InputError.of("C0804", message, self._span, "decompress it first")
        return data


class _HashedFile:
    """A file whose bytes are hashed as they are read, as `durable_files.checksum_of` hashes."""

    def __init__(self, file: BinaryIO, report: Callable[[int], None]) -> None:
        self._file = file
        self._report = report
        self._hash = hashlib.blake2b(digest_size=16)
        self._put_back = b""
        self._bytes = 0

    def put_back(self, data: bytes) -> None:
        """Let the next `read` return these bytes first."""
        self._put_back = data

    def read(self, size: int = -1) -> bytes:
        """Return at most some bytes."""
        data, self._put_back = self._put_back, b""
        # A terminal or pipe may return less than asked for; only no byte is the end.
        data += self._file.read(max(0, size - len(data)) if size >= 0 else -1)
        self._hash.update(data)
        self._bytes += len(data)
        self._report(self._bytes)
        return data

    def checksum(self) -> str:
        """Return the checksum of the bytes that were read."""
        return self._hash.hexdigest()
