"""The code domain of symbols."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from corollary.engines.local import strings
from corollary.engines.local.blocks import Blocks
from corollary.engines.local.growing import Growing
from corollary.engines.local.layout import Codes
from corollary.engines.local.native import Native
from corollary.engines.local.strings import StoredStrings

SEARCHES = 64
"""When one in so many stored strings has been looked for, all are made ready to be found."""

READS = 16
"""The same for strings that are read."""

NOTHING = np.array(None, object)


class SymbolDomain:
    """Strings, interned through a dictionary.

    Strings that were saved stay where they are stored. Those that are met are kept here as well,
    until they are so many that all are taken in.
    """

    def __init__(self) -> None:
        self._code_of: dict[str, int] = {}
        self._values = Growing(object)
        self._values.extend([""])  # null
        self._characters = 0
        self._stored: StoredStrings | None = None
        self._searched = self._read = 0

    # --- values and codes ----------------------------------------------------------------------

    def encode(self, values: Native) -> Codes:
        """Return the codes of strings, new ones interned."""
        code_of = self._code_of
        get = code_of.get
        codes = np.fromiter((get(value, 0) for value in values), np.int64, len(values))
        unknown = (codes == 0).nonzero()[0].tolist()
        if unknown and self._stored is not None:
            self._recall([values[index] for index in unknown])
        fresh: list[str] = []
        for index in unknown:
            value = values[index]
            code = get(value)
            if code is None:
                code = code_of[value] = self._values.count + len(fresh)
                fresh.append(value)
                self._characters += len(value)
            codes[index] = code
        self._values.extend(fresh)
        return codes

    def decode(self, codes: Codes) -> Native:
        """Return the strings of codes; the empty one for null."""
        found = self._values.array[codes]
        if self._stored is not None:
            missing = np.unique(codes[found == NOTHING])
            if len(missing):
                self._fetch(self._stored, missing)
                found = self._values.array[codes]
        return found

    def arrow(self, codes: Codes) -> pa.Array | None:
        """Return the strings of many codes, null for null, if that is done best without Python."""
        stored = self._stored
        if stored is None or len(codes) * READS < len(stored):
            return None
        fresh = pa.array(self._values.array[len(stored) : self._values.count], pa.large_string())
        found = pa.concat_arrays([stored.all(), fresh]).take(pa.array(codes, mask=codes == 0))
        return None if found.nbytes >> 31 else found.cast(pa.string())

    @property
    def nbytes(self) -> int:
        """The bytes the strings take, roughly."""
        stored = 0 if self._stored is None else self._stored.nbytes
        return self._characters + 150 * (1 + len(self._code_of)) + stored

    # --- stored strings ------------------------------------------------------------------------

    def _recall(self, values: list[str]) -> None:
        """Take in the codes of strings that are stored."""
        assert self._stored is not None
        wanted = dict.fromkeys(values)
        self._searched += len(wanted)
        if self._searched * SEARCHES > len(self._stored):
            self._load(self._stored)
        else:
            self._code_of.update(self._stored.find(wanted))

    def _fetch(self, stored: StoredStrings, codes: Codes) -> None:
        """Take in the strings of codes, sorted and distinct, that are stored."""
        self._read += len(codes)
        if self._read * READS > len(stored):
            self._load(stored)
        else:
            self._values.array[codes] = stored.take(codes).to_numpy(zero_copy_only=False)

    def _load(self, stored: StoredStrings) -> None:
        """Take in everything."""
        listed = stored.all().to_pylist()
        self._values.array[: len(listed)] = listed
        self._code_of.update(zip(listed[1:], range(1, len(listed)), strict=True))
        self._characters += sum(map(len, listed))
        self._stored = None

    def saved(self) -> tuple[dict[str, Any], list[Blocks]]:
        """Return all strings in the order of their codes."""
        stored, values = self._stored, self._values
        known = 0 if stored is None else len(stored)
        fresh = pa.array(values.array[known : values.count], pa.large_string())
        if stored is None:
            stored = strings.store(fresh)
        elif len(fresh):
            stored = strings.store(pa.concat_arrays([stored.all(), fresh]))
        return {"count": len(stored)}, [stored.texts, stored.permutation, stored.fences]

    def restore(self, header: Mapping[str, Any], blocks: list[Blocks]) -> None:
        """Become what was saved."""
        self._stored = StoredStrings(header["count"], *blocks)
        self._values = Growing(object, len(self._stored))
        self._values.array[0] = ""
        self._code_of = {}
        self._characters = self._searched = self._read = 0
