"""Shares: into which of so many parts a value falls, the same on every machine and in every run."""

from zlib import crc32

import numpy as np
import numpy.typing as npt

from corollary.core.types import Kind, Type
from corollary.engines.local.layout import Mask
from corollary.engines.local.native import Native

MIX = np.uint64(0x9E3779B97F4A7C15)
"""The golden ratio in 64 bits: multiplying by it spreads neighbours over all high bits."""


def share_of(values: Native, nulls: Mask | None, type_: Type, shares: int) -> npt.NDArray[np.int64]:
    """Return the share of each value; null falls to the first.

    >>> from corollary.core.types import NUMBER
    >>> share_of(np.array([1, 2, 3, 4]), None, NUMBER, 2).tolist()
    [1, 0, 1, 0]
    """
    if type_.kind is Kind.SYMBOL:
        found = np.fromiter((crc32(each.encode()) for each in values), np.uint64, len(values))
    else:
        found = values.view(np.uint64)
    spread = (found * MIX) >> np.uint64(40)
    result = ((spread * np.uint64(shares)) >> np.uint64(24)).astype(np.int64)
    if nulls is not None:
        result[nulls] = 0
    return result
