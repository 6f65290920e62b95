"""The code domain of decimals: that of integers, and Python's integers for those of 128 bits."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from corollary.core.arrow_buffers import LEAST_INTEGER, LOW_BITS, decimal_words
from corollary.engines.local.storage.blocks import Blocks, pack_columns, unpack_columns
from corollary.engines.local.storage.code_range import WIDE_CODE, Codes
from corollary.engines.local.values.domains import NumericDomain
from corollary.engines.local.values.native import NativeArray

WIDE_INTEGER_BYTES = 150
"""The approximate size of an integer of 128 bits, in a list and in a dictionary."""


class DecimalDomain(NumericDomain):
    """The integers behind decimals of one scale.

    Those that do not fit 64 bits are few in practice: they are interned in a dictionary.
    """

    def __init__(self) -> None:
        super().__init__(np.int64)
        self._wide: list[int] = []
        self._wide_codes: dict[int, int] = {}

    @property
    def is_ordered(self) -> bool:
        """Whether codes other than null are in the order of their values: none is interned."""
        return not self._wide and super().is_ordered

    def encode(self, values: NativeArray) -> Codes:
        """Return the codes of values, new ones interned."""
        if values.dtype != object:
            return super().encode(values)
        is_wide = np.asarray((values <= LEAST_INTEGER) | (values > -LEAST_INTEGER - 1), np.bool_)
        codes = np.empty(len(values), np.int64)
        codes[~is_wide] = super().encode(values[~is_wide].astype(np.int64))
        codes[is_wide] = [self._wide_code(value) for value in values[is_wide].tolist()]
        return codes

    def _wide_code(self, value: int) -> int:
        code = self._wide_codes.get(value)
        if code is None:
            code = self._wide_codes[value] = WIDE_CODE + len(self._wide)
            self._wide.append(value)
        return code

    def decode(self, codes: Codes) -> NativeArray:
        """Return the values of codes, an arbitrary one for null; int64 if all fit."""
        if not self._wide:
            return super().decode(codes)
        wide = (codes >= WIDE_CODE).nonzero()[0]
        if not len(wide):
            return super().decode(codes)
        # What stands for the wide ones must not be taken for an interned value.
        values = super().decode(np.where(codes >= WIDE_CODE, 0, codes)).astype(object)
        values[wide] = [self._wide[code - WIDE_CODE] for code in codes[wide].tolist()]
        return values

    def dump(self) -> tuple[dict[str, Any], list[Blocks]]:
        """Return the domain of integers, and the low and high words of the wide ones."""
        header, blocks = super().dump()
        words = decimal_words(self._wide)
        block = pack_columns([words[:, 0], words[:, 1]])
        return {**header, "wide": len(self._wide)}, [*blocks, Blocks.of([block])]

    def restore(self, header: Mapping[str, Any], blocks: list[Blocks]) -> None:
        """Replace the contents by a header and parts of a file."""
        super().restore(header, blocks)
        (low, high), _ = unpack_columns(blocks[1].block(0), 2, header["wide"])
        words = zip(high.tolist(), low.tolist(), strict=True)
        self._wide = [_signed(one) << 64 | two for one, two in words]
        self._wide_codes = {value: WIDE_CODE + at for at, value in enumerate(self._wide)}

    @property
    def nbytes(self) -> int:
        """The size of the interned values in bytes."""
        return super().nbytes + WIDE_INTEGER_BYTES * len(self._wide)


def _signed(word: int) -> int:
    """Return the upper 64 bits of an integer with their sign."""
    return word - (LOW_BITS + 1) if word >> 63 else word
