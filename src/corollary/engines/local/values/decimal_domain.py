"""The code domain of decimals: that of integers, and pairs of words for those of 128 bits."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core import arrow_buffers
from corollary.engines.local.storage.blocks import Blocks, pack_columns, unpack_columns
from corollary.engines.local.storage.code_range import WIDE_CODE, Codes
from corollary.engines.local.storage.sorting import sort_with_rows
from corollary.engines.local.values.domains import SCALAR_VALUES_MAX, InternedValues, NumericDomain
from corollary.engines.local.values.native import NativeArray

SIGN = np.uint64(1 << 63)


class DecimalDomain(NumericDomain):
    """The integers of decimals of one scale.

    Those that do not fit 64 bits are interned as *keys* of 16 bytes, which are in their order.
    """

    def __init__(self) -> None:
        super().__init__(np.int64)
        self._wide = InternedValues("S16", WIDE_CODE)

    @property
    def is_ordered(self) -> bool:
        """Whether codes other than null are in the order of their values: none is interned."""
        return not self._wide.count and super().is_ordered

    def encode(self, values: NativeArray) -> Codes:
        """Return the codes of values, new ones interned."""
        if values.dtype != object:
            return super().encode(values)
        return self.encode_words(arrow_buffers.words_of_integers(values))

    def encode_words(self, words: arrow_buffers.DecimalWords) -> Codes:
        """Return the codes of values given as words, new ones interned."""
        is_wide = arrow_buffers.wide_mask(words)
        wide = is_wide.nonzero()[0]
        if not len(wide):
            return super().encode(words[:, 0])
        codes = np.empty(len(words), np.int64)
        codes[~is_wide] = super().encode(words[~is_wide, 0])
        keys = _keys_of(words[wide])
        if len(keys) <= SCALAR_VALUES_MAX:
            codes[wide] = [self._wide.code(key) for key in keys.tolist()]
        else:
            codes[wide] = self._wide.encode(keys)
        return codes

    def decode(self, codes: Codes) -> NativeArray:
        """Return the values of codes, an arbitrary one for null; int64 if all fit."""
        is_wide = self._wide_codes(codes)
        if is_wide is None:
            return super().decode(codes)
        return arrow_buffers.integers_of_words(self.decode_words(codes))

    def decode_words(self, codes: Codes) -> arrow_buffers.DecimalWords:
        """Return the values of codes as words, arbitrary ones for null."""
        is_wide = self._wide_codes(codes)
        if is_wide is None:
            return arrow_buffers.narrow_words(super().decode(codes))
        # What stands for the wide ones must not be taken for an interned value.
        words = arrow_buffers.narrow_words(super().decode(np.where(is_wide, 0, codes)))
        words[is_wide] = _words_of(self._wide.decode(codes[is_wide]))
        return words

    def encode_arrow(self, array: pa.Array) -> Codes:
        """Return the codes of decimals, new ones interned, 0 for null."""
        words, nulls = arrow_buffers.decimal_words(array), arrow_buffers.null_mask(array)
        if nulls is None:
            return self.encode_words(words)
        codes = np.zeros(len(words), np.int64)
        codes[~nulls] = self.encode_words(words[~nulls])
        return codes

    def decode_arrow(self, codes: Codes, type_: pa.DataType) -> pa.Array:
        """Return codes as an array of a type of 16 bytes."""
        return arrow_buffers.fixed_array(self.decode_words(codes), type_, codes == 0)

    def _wide_codes(self, codes: Codes) -> npt.NDArray[np.bool_] | None:
        """Return the mask of codes of wide values, None if there are none."""
        if not self._wide.count:
            return None
        is_wide = codes >= WIDE_CODE
        return is_wide if is_wide.any() else None

    def dump(self) -> tuple[dict[str, Any], list[Blocks]]:
        """Return the domain of integers, and the low and high words of the wide ones."""
        header, blocks = super().dump()
        words = _words_of(self._wide.values.array[: self._wide.count]).view(np.uint64)
        block = pack_columns([words[:, 0], words[:, 1]])
        return {**header, "wide": self._wide.count}, [*blocks, Blocks.of([block])]

    def restore(self, header: Mapping[str, Any], blocks: list[Blocks]) -> None:
        """Replace the contents by a header and parts of a file."""
        super().restore(header, blocks)
        columns, _ = unpack_columns(blocks[1].block(0), 2, header["wide"])
        words = np.stack([column.astype(np.uint64) for column in columns], axis=1).view(np.int64)
        keys: npt.NDArray[Any] = _keys_of(words)
        self._wide.fill(*sort_with_rows(keys))

    @property
    def nbytes(self) -> int:
        """The size of the interned values in bytes."""
        return super().nbytes + self._wide.nbytes


def _keys_of(words: arrow_buffers.DecimalWords) -> npt.NDArray[np.bytes_]:
    """Return integers as bytes that are in their order: the highest first, without the sign."""
    plain = words.view(np.uint64)
    pairs = np.stack([plain[:, 1] ^ SIGN, plain[:, 0]], axis=1).astype(">u8")
    return pairs.view("S16").reshape(len(words))


def _words_of(keys: npt.NDArray[np.bytes_]) -> arrow_buffers.DecimalWords:
    """Return the words of the integers with some keys."""
    pairs = np.ascontiguousarray(keys).view(">u8").reshape(len(keys), 2).astype(np.uint64)
    return np.stack([pairs[:, 1], pairs[:, 0] ^ SIGN], axis=1).view(np.int64)
