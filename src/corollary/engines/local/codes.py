"""Values as small non-negative integers: one code domain per type, null is code 0.

Codes are stable: a value keeps its code for ever, so growing a domain never recodes a relation.
Small non-negative integers (`INLINE`) are coded by themselves; everything else is interned in the
order of arrival. Codes have no order of their own: comparisons decode.
"""

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core.types import Domain, Kind, Type
from corollary.engines.local import native
from corollary.engines.local.layout import Codes

INLINE = 1 << 20
"""Three columns of numbers, some of them beyond this, still fit one word."""

Native = native.Native


class CodeDomain(Protocol):
    """The values of one type and their codes."""

    largest: int

    def encode(self, values: Native) -> Codes:
        """Return the codes of values, new ones interned."""

    def decode(self, codes: Codes) -> Native:
        """Return the values of codes; for null, anything."""

    @property
    def nbytes(self) -> int:
        """The bytes the domain holds."""


class SymbolDomain:
    """Strings, interned through a dictionary."""

    def __init__(self) -> None:
        self.largest = 0
        self._code_of: dict[str, int] = {}
        self._values: list[str] = [""]
        self._array: npt.NDArray[np.object_] = np.array([""], object)
        self._characters = 0

    def encode(self, values: Native) -> Codes:
        """Return the codes of strings, new ones interned."""
        code_of = self._code_of
        get = code_of.get
        codes = np.fromiter((get(value, 0) for value in values), np.int64, len(values))
        unknown = np.flatnonzero(codes == 0)
        for index in unknown.tolist():
            value = values[index]
            code = code_of.get(value)
            if code is None:
                code = code_of[value] = len(self._values)
                self._values.append(value)
                self._characters += len(value)
            codes[index] = code
        self.largest = len(self._values) - 1
        return codes

    def decode(self, codes: Codes) -> Native:
        """Return the strings of codes; the empty one for null."""
        if len(self._array) < len(self._values):
            tail = np.empty(len(self._values) - len(self._array), object)
            tail[:] = self._values[len(self._array) :]
            self._array = np.concatenate([self._array, tail])
        return self._array[codes]

    @property
    def nbytes(self) -> int:
        """The bytes the strings take, roughly."""
        return self._characters + 150 * len(self._values)


class NumericDomain:
    """Fixed-width values: small non-negative integers inline, the others interned.

    The interned values are looked up in a sorted array; `_codes` holds their codes beside it.
    """

    def __init__(self, dtype: Any, inline: int) -> None:
        self.largest = 0
        self._dtype = np.dtype(dtype)
        self._inline = inline
        self._sorted = np.empty(0, np.int64)
        self._codes = np.empty(0, np.int64)
        self._values = np.empty(0, np.int64)

    def encode(self, values: Native) -> Codes:
        """Return the codes of values, new ones interned."""
        bits = np.ascontiguousarray(values, self._dtype).view(np.int64)
        if self._inline:
            is_inline = (bits >= 0) & (bits < self._inline - 1)
            if is_inline.all():
                codes = bits + 1
                if len(codes):
                    self.largest = max(self.largest, int(codes.max()))
                return codes
            codes = np.where(is_inline, bits + 1, 0)
            codes[~is_inline] = self._intern(bits[~is_inline])
            self.largest = max(self.largest, int(codes.max()))
            return codes
        codes = self._intern(bits)
        self.largest = len(self._values)
        return codes

    def _intern(self, bits: Codes) -> Codes:
        wanted, back = np.unique(bits, return_inverse=True)
        places = np.searchsorted(self._sorted, wanted)
        if len(self._sorted):
            known = self._sorted[np.minimum(places, len(self._sorted) - 1)] == wanted
        else:
            known = np.zeros(len(wanted), np.bool_)
        fresh = wanted[~known]
        if len(fresh):
            first = self._inline + len(self._values) + (0 if self._inline else 1)
            codes = np.arange(first, first + len(fresh), dtype=np.int64)
            self._sorted = np.insert(self._sorted, places[~known], fresh)
            self._codes = np.insert(self._codes, places[~known], codes)
            self._values = np.concatenate([self._values, fresh])
            places = np.searchsorted(self._sorted, wanted)
        found: Codes = self._codes[places][back.ravel()]
        return found

    def decode(self, codes: Codes) -> Native:
        """Return the values of codes; for null, anything."""
        offset = self._inline or 1
        if not self._inline:
            places = codes - offset
            bits = self._values[places] if len(self._values) else np.zeros(len(codes), np.int64)
        elif len(self._values):
            interned = codes >= self._inline
            bits = codes - 1
            bits[interned] = self._values[codes[interned] - offset]
        else:
            bits = codes - 1
        return bits.view(self._dtype)

    @property
    def nbytes(self) -> int:
        """The bytes the interned values take."""
        return 3 * self._values.nbytes


def _domain(kind: Kind) -> CodeDomain:
    match kind:
        case Kind.SYMBOL:
            return SymbolDomain()
        case Kind.FLOAT:
            return NumericDomain(np.float64, 0)
        case Kind.UNSIGNED:
            return NumericDomain(np.uint64, INLINE)
        case _:
            return NumericDomain(np.int64, INLINE)


class Dictionary:
    """All code domains of one engine, and the width that a column of each type needs."""

    def __init__(self) -> None:
        self._domains: dict[Domain, CodeDomain] = {}

    def domain(self, type_: Type) -> CodeDomain:
        """Return the domain of a type."""
        known = self._domains.get(type_.domain)
        if known is None:
            known = self._domains[type_.domain] = _domain(type_.kind)
        return known

    def encode(self, values: Native, nulls: npt.NDArray[np.bool_] | None, type_: Type) -> Codes:
        """Return the codes of native values, 0 where `nulls` says so."""
        if nulls is None or not nulls.any():
            return self.domain(type_).encode(values)
        codes = np.zeros(len(values), np.int64)
        codes[~nulls] = self.domain(type_).encode(values[~nulls])
        return codes

    def decode(self, codes: Codes, type_: Type) -> Native:
        """Return the native values of codes; where the code is null, anything of the type."""
        return self.domain(type_).decode(codes)

    def code(self, value: Any, type_: Type) -> int:
        """Return the code of one Python value."""
        if value is None:
            return 0
        return int(self.domain(type_).encode(native.from_python([value], type_))[0])

    def encode_python(self, values: Iterable[Any], type_: Type) -> Codes:
        """Return the codes of Python values, None being null."""
        listed = list(values)
        nulls = np.fromiter((value is None for value in listed), np.bool_, len(listed))
        present = native.from_python([value for value in listed if value is not None], type_)
        codes = np.zeros(len(listed), np.int64)
        codes[~nulls] = self.domain(type_).encode(present)
        return codes

    def encode_arrow(self, column: pa.ChunkedArray, type_: Type) -> Codes:
        """Return the codes of an Arrow column."""
        if type_.kind is Kind.SYMBOL:
            return self._encode_strings(column, type_)
        values, nulls = native.from_arrow(column, type_)
        return self.encode(values, nulls, type_)

    def _encode_strings(self, column: pa.ChunkedArray, type_: Type) -> Codes:
        encoded = column.dictionary_encode().combine_chunks()
        if not len(column):
            return np.empty(0, np.int64)
        words = np.array(encoded.dictionary.to_pylist(), object)
        codes = np.append(self.domain(type_).encode(words), 0)
        indices = encoded.indices.fill_null(len(words)).to_numpy(zero_copy_only=False)
        found: Codes = codes[indices]
        return found

    def decode_arrow(self, codes: Codes, type_: Type) -> pa.Array:
        """Return codes as an Arrow array."""
        return native.to_arrow(self.decode(codes, type_), codes == 0, type_)

    @property
    def nbytes(self) -> int:
        """The bytes all domains hold."""
        return sum(domain.nbytes for domain in self._domains.values())
