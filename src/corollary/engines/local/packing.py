"""Columns of integers, and text, as one block of bytes.

A column is cut into byte planes (all lowest bytes, then all second ones, …), as many as its largest
value needs. The planes and the text are compressed together, where that pays.
"""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Integers = npt.NDArray[Any]

HEAD = struct.Struct("<?Q")
"""Whether the block is compressed, and its length if it were not; the columns' planes follow."""

CODEC = pa.Codec("zstd", compression_level=1)

WORTH = 16
"""Compressing pays if it saves one byte in so many."""

DTYPES: tuple[Any, ...] = (np.uint8, np.uint8, np.uint16, np.uint32, np.uint32, *(np.uint64,) * 4)
"""The type that holds integers of so many bytes."""


def pack(columns: Sequence[Integers], text: bytes = b"") -> bytes:
    """Return columns of integers, taken as unsigned, and a text behind them."""
    pieces: list[bytes] = []
    sizes = bytearray()
    for column in columns:
        values = column.astype(np.uint64, copy=False)
        size = (int(values.max()).bit_length() + 7) // 8 if len(values) else 0
        sizes.append(size)
        pieces += [(values >> np.uint64(8 * at)).astype(np.uint8).tobytes() for at in range(size)]
    plain = b"".join((*pieces, text))
    body = CODEC.compress(plain, asbytes=True)
    is_compressed = len(body) + len(plain) // WORTH < len(plain)
    head = HEAD.pack(is_compressed, len(plain))
    return b"".join((head, sizes, body if is_compressed else plain))


def unpack(block: memoryview, columns: int, count: int) -> tuple[list[Integers], memoryview]:
    """Return so many columns of so many unsigned integers, and the text behind them."""
    is_compressed, length = HEAD.unpack_from(block)
    start = HEAD.size + columns
    sizes = bytes(block[HEAD.size : start])
    body = block[start:]
    plain = memoryview(CODEC.decompress(body, length)) if is_compressed else body
    planes = np.frombuffer(plain, np.uint8, sum(sizes) * count)
    result = []
    at = 0
    for size in sizes:
        result.append(_joined(planes[at : at + size * count], size, count))
        at += size * count
    return result, plain[at:]


def _joined(planes: npt.NDArray[np.uint8], size: int, count: int) -> Integers:
    if size == 1:
        return planes
    result: Integers = np.zeros(count, DTYPES[size])
    for at in range(size):
        plane = planes[at * count : (at + 1) * count].astype(result.dtype)
        result |= np.left_shift(plane, 8 * at, dtype=result.dtype) if at else plane
    return result
