"""Values as integers in their order: codes where these are in it, else ranks among the values."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from corollary.core.arrow import single_array
from corollary.core.types import Type
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.local.values.symbols import SymbolDomain

Keys = npt.NDArray[np.int64]


class OrderKeys(NamedTuple):
    """The keys of a column.

    Attributes:
        keys: for each row; 0 for null, which is the least, and NaN is the greatest.
        codes: the code of each key; None where they are the same.
    """

    keys: Keys
    codes: Codes | None

    def code_of(self, keys: Keys) -> Codes:
        """Return the codes of keys."""
        return keys if self.codes is None else self.codes[keys]


def order_keys(codes: Codes, type_: Type, dictionary: Dictionary) -> OrderKeys:
    """Return the keys of a column of codes."""
    domain = dictionary.domain(type_)
    if not isinstance(domain, SymbolDomain) and domain.is_ordered:
        return OrderKeys(codes, None)
    distinct, rows = np.unique(codes, return_inverse=True)
    if not len(distinct) or distinct[0]:  # null has a key in any case
        distinct, rows = np.insert(distinct, 0, 0), rows + 1
    values = dictionary.decode_arrow(distinct[1:], type_.stored)
    order = pc.sort_indices(single_array(values)).to_numpy()
    ranks = np.zeros(len(distinct), np.int64)
    ranks[1:][order] = np.arange(1, len(distinct))
    sorted_codes = np.zeros(len(distinct), np.int64)
    sorted_codes[1:] = distinct[1:][order]
    return OrderKeys(ranks[rows], sorted_codes)
