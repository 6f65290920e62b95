"""The hashes of Spark: Murmur3 with 32 bits, and XXH64, both of the bytes of a value.

Numbers of 32 bits and dates have four bytes, other integers, times and `float` eight, texts and
binary values their own, and a decimal with more than 18 digits those of its integer, the highest
first. All rows take a step together: the first word of each value, then the second one.

Murmur3 differs from that of its author: bytes after the last word are words of their own.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.core.arrow_buffers import narrow_words, words_of_integers
from corollary.core.records.arrays import Offsets, contents, hex_bytes, offsets_of
from corollary.core.types import Kind, Type
from corollary.engines.local.evaluation.value_vector import ValueVector, dense_mask

Words = Any
"""Unsigned integers, which wrap around."""

_C1, _C2, _N = np.array([0xCC9E2D51, 0x1B873593, 0xE6546B64], np.uint32)
_P1, _P2, _P3, _P4, _P5 = np.array(
    [
        *(0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9),
        *(0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5),
    ],
    np.uint64,
)


class _Bytes:
    """Values as bytes, one after the other.

    Attributes:
        sizes: the number of bytes of each.
    """

    def __init__(self, offsets: Offsets, data: npt.NDArray[np.uint8]) -> None:
        self._starts = offsets[:-1]
        self._data = np.concatenate([data, np.zeros(8, np.uint8)])
        self.sizes = np.diff(offsets)

    def words(self, rows: Any, at: Any, width: int, type_: Any) -> Words:
        """Return some bytes of rows as words, the lowest byte first."""
        places = self._starts[rows] + at
        found = sum(self._data[places + k].astype(type_) << type_(8 * k) for k in range(width))
        return np.asarray(found, type_)


def _rotated(words: Words, count: int) -> Words:
    one = words.dtype.type
    return (words << one(count)) | (words >> one(8 * words.itemsize - count))


# --- Murmur3 ----------------------------------------------------------------------------------


def _mixed(state: Words, word: Words) -> Words:
    state = state ^ (_rotated(word * _C1, 15) * _C2)
    return _rotated(state, 13) * np.uint32(5) + _N


def _murmur_end(state: Words, sizes: Any) -> Words:
    state = state ^ np.asarray(sizes).astype(np.uint32)
    state = (state ^ (state >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    state = (state ^ (state >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return state ^ (state >> np.uint32(16))


def _murmur_word(values: Words, state: Words, width: int) -> Words:
    state = state.astype(np.uint32)
    for at in range(0, 8 * width, 32):
        state = _mixed(state, (values >> np.uint64(at)).astype(np.uint32))
    return _murmur_end(state, width)


def _murmur_bytes(values: _Bytes, state: Words) -> Words:
    state = state.astype(np.uint32)
    whole = values.sizes // 4
    for at in range(int(whole.max(initial=0))):
        rows = np.flatnonzero(whole > at)
        state[rows] = _mixed(state[rows], values.words(rows, 4 * at, 4, np.uint32))
    for at in range(3):
        rows = np.flatnonzero(values.sizes % 4 > at)
        last = values.words(rows, 4 * whole[rows] + at, 1, np.uint8).view(np.int8)
        state[rows] = _mixed(state[rows], last.astype(np.int32).view(np.uint32))
    return _murmur_end(state, values.sizes)


# --- XXH64 ------------------------------------------------------------------------------------


def _xx_long(state: Words, word: Words) -> Words:
    return _rotated(state ^ (_rotated(word * _P2, 31) * _P1), 27) * _P1 + _P4


def _xx_int(state: Words, word: Words) -> Words:
    return _rotated(state ^ (word * _P1), 23) * _P2 + _P3


def _xx_end(state: Words) -> Words:
    state = (state ^ (state >> np.uint64(33))) * _P2
    state = (state ^ (state >> np.uint64(29))) * _P3
    return state ^ (state >> np.uint64(32))


def _xx_word(values: Words, state: Words, width: int) -> Words:
    mix = _xx_long if width == 8 else _xx_int
    return _xx_end(mix(state.astype(np.uint64) + _P5 + np.uint64(width), values))


def _xx_bytes(values: _Bytes, seed: Words) -> Words:
    seed, sizes = seed.astype(np.uint64), values.sizes
    state = seed + _P5
    blocks = sizes // 32
    long = np.flatnonzero(blocks)
    if len(long):
        state[long] = _xx_blocks(values, seed, long)
    state += sizes.astype(np.uint64)
    done = 32 * blocks
    for mix, width in ((_xx_long, 8), (_xx_int, 4), (_xx_byte, 1)):
        for _ in range(3):
            rows = np.flatnonzero(sizes - done >= width)
            state[rows] = mix(state[rows], values.words(rows, done[rows], width, np.uint64))
            done[rows] += width
    return _xx_end(state)


def _xx_byte(state: Words, word: Words) -> Words:
    return _rotated(state ^ (word * _P5), 11) * _P1


def _xx_blocks(values: _Bytes, seed: Words, rows: Any) -> Words:
    """Return the states after the blocks of 32 bytes, in rows that have some."""
    lanes = [seed + _P1 + _P2, seed + _P2, seed.copy(), seed - _P1]
    blocks = values.sizes // 32
    for block in range(int(blocks.max())):
        active = np.flatnonzero(blocks > block)
        for at, lane in enumerate(lanes):
            word = values.words(active, 32 * block + 8 * at, 8, np.uint64)
            lane[active] = _rotated(lane[active] + word * _P2, 31) * _P1
    states = [lane[rows] for lane in lanes]
    made = sum(_rotated(each, count) for each, count in zip(states, (1, 7, 12, 18), strict=True))
    for each in states:
        made = (made ^ (_rotated(each * _P2, 31) * _P1)) * _P1 + _P4
    return np.asarray(made, np.uint64)


# --- functors ---------------------------------------------------------------------------------


def _bytes_of(values: Any, type_: Type) -> _Bytes:
    if type_.kind is Kind.DECIMAL:
        is_wide = values.dtype == object
        words = words_of_integers(values) if is_wide else narrow_words(values)
        data = np.ascontiguousarray(words[:, ::-1].astype(">i8")).view(np.uint8)
        sign = np.where(data[:, :1] >= 128, np.uint8(255), np.uint8(0))
        # As few bytes as have the number with its sign.
        needed = (data[:, :-1] != sign) | ((data[:, 1:] ^ sign) >= 128)
        needed = np.column_stack([needed, np.ones(len(data), np.bool_)])
        first = needed.argmax(axis=1)
        kept = np.arange(16) >= first[:, None]
        return _Bytes(offsets_of(16 - first), data[kept])
    offsets, data = contents(values.array)
    if type_.logical_kind is Kind.BINARY:
        return _Bytes(offsets // 2, hex_bytes(data))
    return _Bytes(offsets, data)


def _hash(
    of_word: Callable[[Words, Words, int], Words],
    of_bytes: Callable[[_Bytes, Words], Words],
    inputs: Sequence[ValueVector],
    type_: Type,
) -> ValueVector:
    """Hash values of a width, 0 for any, on top of a seed, which a null leaves as it is."""
    value, seed, width = inputs
    faults = tuple(fault for each in inputs for fault in each.faults)
    seeds = seed.values if seed.nulls is None else np.where(seed.nulls, 0, seed.values)
    if dense_mask(value.nulls, len(seeds)).all():  # a null constant has any type
        return ValueVector(seeds, type_, None, faults)
    size = int(width.values[0])
    if value.type.kind is not Kind.DECIMAL:  # others have one form, whatever is said
        size = 0 if value.type.kind is Kind.SYMBOL else size or 8
    state = seeds.astype(np.int64).view(np.uint64)
    if not size:
        made = of_bytes(_bytes_of(value.values, value.type), state)
    else:
        words = value.values
        if value.type.is_float:
            with np.errstate(over="ignore"):  # beyond 32 bits, it is infinite
                words = np.where(np.isnan(words), np.nan, words + 0.0).astype(f"f{size}")
            words = words.view(f"u{size}")
        words = (words & ((1 << 8 * size) - 1) if words.dtype == object else words).astype(
            np.uint64
        )
        words &= np.uint64((1 << 8 * size) - 1)
        made = of_word(words, state, size)
    signed = made.view(np.int32 if made.itemsize == 4 else np.int64).astype(np.int64)
    if value.nulls is not None:
        signed = np.where(value.nulls, seeds, signed)
    return ValueVector(signed, type_, None, faults)


HASH_COMBINATIONS: dict[str, Callable[[Sequence[ValueVector], Type], ValueVector]] = {
    "murmur3": partial(_hash, _murmur_word, _murmur_bytes),
    "xxhash64": partial(_hash, _xx_word, _xx_bytes),
}
"""Functors that decide themselves about null."""
