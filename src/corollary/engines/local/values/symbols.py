"""The code domain of symbols."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from corollary.engines.local.storage.blocks import Blocks
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.runs import sort_distinct
from corollary.engines.local.values.domains import GrowingArray
from corollary.engines.local.values.native import NativeArray
from corollary.engines.local.values.stored_strings import StoredStrings, store_strings

LOAD_ALL_SEARCH_RATIO = 64
"""All stored strings are loaded once one in this many has been searched for by value."""

LOAD_ALL_READ_RATIO = 16
"""All stored strings are loaded once one in this many has been read by code."""

_UNREAD = np.array(None, object)


class SymbolDomain:
    """Strings, interned through a dictionary.

    Strings of a file stay there. Those that are used are cached here, until they are so many that
    loading all of them is cheaper.
    """

    def __init__(self) -> None:
        self._code_of: dict[str, int] = {}
        self._values = GrowingArray(object)
        self._values.extend([""])  # null
        self._characters = 0
        self._stored: StoredStrings | None = None
        self._searched = self._read = 0

    @property
    def is_ordered(self) -> bool:
        """Whether codes are in the order of their values: never, they are in that of arrival."""
        return False

    # --- values and codes ----------------------------------------------------------------------

    def encode(self, values: NativeArray) -> Codes:
        """Return the codes of strings, new ones interned."""
        code_of = self._code_of
        get = code_of.get
        codes = np.fromiter((get(value, 0) for value in values), np.int64, len(values))
        unknown = (codes == 0).nonzero()[0].tolist()
        if unknown and self._stored is not None:
            self._find_stored(self._stored, [values[index] for index in unknown])
        new: list[str] = []
        for index in unknown:
            value = values[index]
            code = get(value)  # again: the same new value may occur twice in a batch
            if code is None:
                code = code_of[value] = self._values.count + len(new)
                new.append(value)
                self._characters += len(value)
            codes[index] = code
        self._values.extend(new)
        return codes

    def decode(self, codes: Codes) -> NativeArray:
        """Return the strings of codes; the empty one for null."""
        values = self._values.array[codes]
        if self._stored is not None:
            unread = sort_distinct(codes[values == _UNREAD])
            if len(unread):
                self._read_stored(self._stored, unread)
                values = self._values.array[codes]
        return values

    def decode_arrow(self, codes: Codes) -> pa.Array | None:
        """Return the strings of codes, or None if they had better be decoded as Python strings.

        Many strings of a file go from its bytes to Arrow without becoming Python objects.
        """
        stored = self._stored
        if stored is None or len(codes) * LOAD_ALL_READ_RATIO < len(stored):
            return None
        new = pa.array(self._values.array[len(stored) : self._values.count], pa.large_string())
        strings = pa.concat_arrays([stored.read_all(), new]).take(pa.array(codes, mask=codes == 0))
        # `string` has 32-bit offsets: from 2 GiB on, one array cannot hold them.
        return None if strings.nbytes >> 31 else strings.cast(pa.string())

    @property
    def nbytes(self) -> int:
        """The approximate size in bytes."""
        stored = 0 if self._stored is None else self._stored.nbytes
        return self._characters + 150 * (1 + len(self._code_of)) + stored

    # --- stored strings ------------------------------------------------------------------------

    def _find_stored(self, stored: StoredStrings, values: list[str]) -> None:
        """Cache the codes of those strings that are stored."""
        distinct = dict.fromkeys(values)
        self._searched += len(distinct)
        if self._searched * LOAD_ALL_SEARCH_RATIO > len(stored):
            self._load(stored)
        else:
            self._code_of.update(stored.find(distinct))

    def _read_stored(self, stored: StoredStrings, codes: Codes) -> None:
        """Cache the strings of codes, sorted and distinct, that are stored."""
        self._read += len(codes)
        if self._read * LOAD_ALL_READ_RATIO > len(stored):
            self._load(stored)
        else:
            self._values.array[codes] = stored.take(codes).to_numpy(zero_copy_only=False)

    def _load(self, stored: StoredStrings) -> None:
        """Cache all stored strings; the file is not needed any more."""
        values = stored.read_all().to_pylist()
        self._values.array[: len(values)] = values
        self._code_of.update(zip(values[1:], range(1, len(values)), strict=True))
        self._characters += sum(map(len, values))
        self._stored = None

    def dump(self) -> tuple[dict[str, Any], list[Blocks]]:
        """Return all strings in the order of their codes."""
        stored, values = self._stored, self._values
        first = 0 if stored is None else len(stored)
        new = pa.array(values.array[first : values.count], pa.large_string())
        if stored is None:
            stored = store_strings(new)
        elif len(new):
            stored = store_strings(pa.concat_arrays([stored.read_all(), new]))
        return {"count": len(stored)}, [stored.texts, stored.permutation, stored.fences]

    def restore(self, header: Mapping[str, Any], blocks: list[Blocks]) -> None:
        """Replace the contents by a header and parts of a file, to be read when needed."""
        self._stored = StoredStrings(header["count"], *blocks)
        self._values = GrowingArray(object, len(self._stored))
        self._values.array[0] = ""
        self._code_of = {}
        self._characters = self._searched = self._read = 0
