"""Files of blocks: opening a file reads only its directory, and every block has a checksum.

| part | what it is |
|---|---|
| preamble | magic with the version of the format, checksum and length of the directory |
| directory | a header in JSON; for every part the ends and the checksums of its blocks |
| data | the blocks of all parts, one after the other |

A block holds columns of integers and a text. A column is cut into byte planes (all lowest bytes,
then all second ones, …), as many as its largest value needs: neighbours in a plane resemble each
other, so that planes compress well. Planes and text are compressed together, where that pays.
"""

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.data_class import dataclass
from corollary.errors import WarehouseError

Integers = npt.NDArray[Any]

BLOCK_HEADER = struct.Struct("<?Q")
"""Whether the block is compressed, and its uncompressed length; the planes per column follow."""

BLOCK_CODEC = pa.Codec("zstd", compression_level=1)

COMPRESSION_RATIO = 16
"""Blocks are stored compressed if that saves more than one byte in this many."""

PLANE_DTYPES: tuple[Any, ...] = (
    np.uint8,
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint32,
    *(np.uint64,) * 4,
)
"""The smallest NumPy type for integers of 0, 1, … 8 bytes."""

MAGIC = b"corolix2"
PREAMBLE = struct.Struct("<8sIQ")
HEADER_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class Blocks:
    """A sequence of blocks of bytes.

    Attributes:
        ends: the end of each block in the data.
        name: the name of the file in messages.
    """

    ends: npt.NDArray[np.uint64]
    checksums: npt.NDArray[np.uint32]
    data: pa.Buffer
    name: str = ""

    @classmethod
    def of(cls, blocks: Sequence[bytes]) -> Self:
        """Return new blocks, with their checksums."""
        ends = np.cumsum([len(block) for block in blocks], dtype=np.uint64)
        checksums = np.array([zlib.crc32(block) for block in blocks], np.uint32)
        return cls(ends, checksums, pa.py_buffer(b"".join(blocks)))

    def first(self, count: int) -> Self:
        """Return the first blocks."""
        end = int(self.ends[count - 1]) if count else 0
        data = self.data.slice(0, end)
        return replace(self, ends=self.ends[:count], checksums=self.checksums[:count], data=data)

    def append(self, blocks: Sequence[bytes]) -> Self:
        """Return these blocks and more of them; these are copied as they are."""
        more = self.of(blocks)
        start = np.uint64(self.data.size)
        ends = np.concatenate([self.ends, more.ends + start])
        checksums = np.concatenate([self.checksums, more.checksums])
        data = pa.py_buffer(b"".join((memoryview(self.data), memoryview(more.data))))
        return replace(self, ends=ends, checksums=checksums, data=data)

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def nbytes(self) -> int:
        """The size in bytes, mapped files included."""
        return int(self.data.size) + self.ends.nbytes + self.checksums.nbytes

    def block(self, number: int) -> memoryview:
        """Return one block.

        Raises:
            WarehouseError: its checksum is wrong.
        """
        start = int(self.ends[number - 1]) if number else 0
        block = memoryview(self.data)[start : int(self.ends[number])]
        if zlib.crc32(block) != self.checksums[number]:
            raise WarehouseError.damaged(self.name)
        return block


def build_file(name: str, header: Mapping[str, Any], parts: Sequence[Blocks]) -> bytes:
    """Return the bytes of a file."""
    counts = [len(part) for part in parts]
    text = json.dumps({"name": name, "parts": counts, "header": header}).encode()
    arrays = [array.tobytes() for part in parts for array in (part.ends, part.checksums)]
    directory = b"".join((HEADER_LENGTH.pack(len(text)), text, *arrays))
    preamble = PREAMBLE.pack(MAGIC, _checksum(directory), len(directory))
    return b"".join((preamble, directory, *(memoryview(part.data) for part in parts)))


def open_file(name: str, buffer: pa.Buffer) -> tuple[dict[str, Any], list[Blocks]] | None:
    """Return the header and the parts of a file, or None if it is of another format.

    Args:
        name: the name of the file in messages about a damaged directory; it holds its own name.
        buffer: the file.

    Raises:
        WarehouseError: the directory is damaged, or the file is too short.
    """
    view = memoryview(buffer)
    if len(view) < PREAMBLE.size:
        raise WarehouseError.damaged(name)
    magic, checksum, length = PREAMBLE.unpack_from(view)
    if magic != MAGIC:
        return None
    at = PREAMBLE.size
    end = at + length
    if end > len(view) or _checksum(view[at:end]) != checksum:
        raise WarehouseError.damaged(name)
    (size,) = HEADER_LENGTH.unpack_from(view, at)
    at += HEADER_LENGTH.size
    directory = json.loads(bytes(view[at : at + size]))
    at += size
    parts = []
    for count in directory["parts"]:
        ends = np.frombuffer(view, np.uint64, count, at)
        checksums = np.frombuffer(view, np.uint32, count, at + 8 * count)
        at += 12 * count
        total = int(ends[-1]) if count else 0
        if end + total > len(view):
            raise WarehouseError.damaged(name)
        parts.append(Blocks(ends, checksums, buffer.slice(end, total), directory["name"]))
        end += total
    return directory["header"], parts


def file_identity(file: bytes | pa.Buffer) -> int:
    """Return the checksum of a file's directory, which covers the checksums of all blocks."""
    number: int = PREAMBLE.unpack_from(file)[1]
    return number


def _checksum(directory: bytes | memoryview) -> int:
    # The length stands before the directory: starting from it, the checksum covers it as well.
    return zlib.crc32(directory, len(directory) & 0xFFFFFFFF)


# --- the bytes of a block ------------------------------------------------------------------------


def pack_columns(columns: Sequence[Integers], text: bytes | memoryview = b"") -> bytes:
    """Return a block of columns of integers, taken as unsigned, and a text."""
    pieces: list[bytes] = []
    sizes = bytearray()
    for column in columns:
        values = column.astype(np.uint64, copy=False)
        size = (int(values.max()).bit_length() + 7) // 8 if len(values) else 0
        sizes.append(size)
        pieces += [(values >> np.uint64(8 * at)).astype(np.uint8).tobytes() for at in range(size)]
    plain = b"".join((*pieces, text))
    body = BLOCK_CODEC.compress(plain, asbytes=True)
    is_compressed = len(body) + len(plain) // COMPRESSION_RATIO < len(plain)
    head = BLOCK_HEADER.pack(is_compressed, len(plain))
    return b"".join((head, sizes, body if is_compressed else plain))


def unpack_columns(
    block: memoryview, columns: int, count: int
) -> tuple[list[Integers], memoryview]:
    """Return the columns of `count` unsigned integers in a block, and its text."""
    is_compressed, length = BLOCK_HEADER.unpack_from(block)
    start = BLOCK_HEADER.size + columns
    sizes = bytes(block[BLOCK_HEADER.size : start])
    body = block[start:]
    plain = memoryview(BLOCK_CODEC.decompress(body, length)) if is_compressed else body
    planes = np.frombuffer(plain, np.uint8, sum(sizes) * count)
    result = []
    at = 0
    for size in sizes:
        result.append(_join_planes(planes[at : at + size * count], size, count))
        at += size * count
    return result, plain[at:]


def _join_planes(planes: npt.NDArray[np.uint8], size: int, count: int) -> Integers:
    if size == 1:
        return planes  # a view: nothing to copy
    result: Integers = np.zeros(count, PLANE_DTYPES[size])
    for at in range(size):
        plane = planes[at * count : (at + 1) * count].astype(result.dtype)
        result |= np.left_shift(plane, 8 * at, dtype=result.dtype) if at else plane
    return result
