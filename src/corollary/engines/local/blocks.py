"""Files of blocks: only a directory is read to open one, and every block has a checksum.

| part | what it is |
|---|---|
| preamble | magic with the version of the format, checksum and length of the directory |
| directory | a header in JSON; for every part the ends and the checksums of its blocks |
| data | the blocks of all parts, one after the other |
"""

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.errors import WarehouseError

MAGIC = b"corolix1"
PREAMBLE = struct.Struct("<8sIQ")
LENGTH = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class Blocks:
    """A sequence of blocks of bytes.

    Attributes:
        ends: where each of them ends in the data.
        name: what messages call the file that they are from.
    """

    ends: npt.NDArray[np.uint64]
    checksums: npt.NDArray[np.uint32]
    data: pa.Buffer
    name: str = ""

    @classmethod
    def of(cls, blocks: Sequence[bytes]) -> Self:
        """Return blocks that were just made."""
        ends = np.cumsum([len(block) for block in blocks], dtype=np.uint64)
        checksums = np.array([zlib.crc32(block) for block in blocks], np.uint32)
        return cls(ends, checksums, pa.py_buffer(b"".join(blocks)))

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def nbytes(self) -> int:
        """The bytes it takes, mapped or not."""
        return int(self.data.size) + self.ends.nbytes + self.checksums.nbytes

    def block(self, number: int) -> memoryview:
        """Return one block.

        Raises:
            WarehouseError: it is not what was written.
        """
        start = int(self.ends[number - 1]) if number else 0
        block = memoryview(self.data)[start : int(self.ends[number])]
        if zlib.crc32(block) != self.checksums[number]:
            raise WarehouseError.is_damaged(self.name)
        return block


def to_bytes(name: str, header: Mapping[str, Any], parts: Sequence[Blocks]) -> bytes:
    """Return a file."""
    counts = [len(part) for part in parts]
    text = json.dumps({"name": name, "parts": counts, "header": header}).encode()
    arrays = [array.tobytes() for part in parts for array in (part.ends, part.checksums)]
    directory = b"".join((LENGTH.pack(len(text)), text, *arrays))
    preamble = PREAMBLE.pack(MAGIC, _checksum(directory), len(directory))
    return b"".join((preamble, directory, *(memoryview(part.data) for part in parts)))


def from_buffer(name: str, buffer: pa.Buffer) -> tuple[dict[str, Any], list[Blocks]] | None:
    """Return the header and the parts of a file, or None if it is of another format.

    Args:
        name: what to call the file as long as it has not said so itself.
        buffer: the file.

    Raises:
        WarehouseError: its directory is not what was written.
    """
    view = memoryview(buffer)
    if len(view) < PREAMBLE.size:
        raise WarehouseError.is_damaged(name)
    magic, checksum, length = PREAMBLE.unpack_from(view)
    if magic != MAGIC:
        return None
    at = PREAMBLE.size
    end = at + length
    if end > len(view) or _checksum(view[at:end]) != checksum:
        raise WarehouseError.is_damaged(name)
    (size,) = LENGTH.unpack_from(view, at)
    at += LENGTH.size
    directory = json.loads(bytes(view[at : at + size]))
    at += size
    parts = []
    for count in directory["parts"]:
        ends = np.frombuffer(view, np.uint64, count, at)
        checksums = np.frombuffer(view, np.uint32, count, at + 8 * count)
        at += 12 * count
        total = int(ends[-1]) if count else 0
        if end + total > len(view):
            raise WarehouseError.is_damaged(name)
        parts.append(Blocks(ends, checksums, buffer.slice(end, total), directory["name"]))
        end += total
    return directory["header"], parts


def identity(file: bytes | pa.Buffer) -> int:
    """Return a number that tells the contents of files apart: it covers all checksums."""
    number: int = PREAMBLE.unpack_from(file)[1]
    return number


def _checksum(directory: bytes | memoryview) -> int:
    return zlib.crc32(directory, len(directory) & 0xFFFFFFFF)
