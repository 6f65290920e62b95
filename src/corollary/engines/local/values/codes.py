"""The dictionary: values as non-negative integers, one code domain per type, null is 0."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core.types import Domain, Kind, Type
from corollary.engines.local.storage.blocks import Blocks
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.values import native
from corollary.engines.local.values.domains import CodeDomain, NumericDomain
from corollary.engines.local.values.native import NativeArray
from corollary.engines.local.values.symbols import SymbolDomain


class Dictionary:
    """All code domains of one engine."""

    def __init__(self) -> None:
        self._domains: dict[Domain, CodeDomain] = {}

    def dump(self) -> list[tuple[Domain, dict[str, Any], list[Blocks]]]:
        """Return all domains, each as a header and parts of a file."""
        return [(domain, *each.dump()) for domain, each in self._domains.items()]

    def restore(self, saved: Iterable[tuple[Domain, Mapping[str, Any], list[Blocks]]]) -> None:
        """Replace all domains by those of a file; codes from before are invalid afterwards."""
        self._domains.clear()
        for (kind, scale), header, blocks in saved:
            self.domain(Type(kind, scale=scale)).restore(header, blocks)

    def domain(self, type_: Type) -> CodeDomain:
        """Return the domain of a type."""
        known = self._domains.get(type_.domain)
        if known is None:
            known = self._domains[type_.domain] = _new_domain(type_.kind)
        return known

    def encode(
        self, values: NativeArray, nulls: npt.NDArray[np.bool_] | None, type_: Type
    ) -> Codes:
        """Return the codes of native values, 0 where they are null."""
        if nulls is None or not np.count_nonzero(nulls):
            return self.domain(type_).encode(values)
        codes = np.zeros(len(values), np.int64)
        codes[~nulls] = self.domain(type_).encode(values[~nulls])
        return codes

    def decode(self, codes: Codes, type_: Type) -> NativeArray:
        """Return the native values of codes, an arbitrary one for null."""
        return self.domain(type_).decode(codes)

    def encode_value(self, value: Any, type_: Type) -> int:
        """Return the code of one Python value."""
        if value is None:
            return 0
        return int(self.domain(type_).encode(native.from_python([value], type_))[0])

    def encode_python(self, values: Iterable[Any], type_: Type) -> Codes:
        """Return the codes of Python values, None for null."""
        values = list(values)
        if None not in values:
            return self.domain(type_).encode(native.from_python(values, type_))
        nulls = np.fromiter((value is None for value in values), np.bool_, len(values))
        present = native.from_python([value for value in values if value is not None], type_)
        codes = np.zeros(len(values), np.int64)
        codes[~nulls] = self.domain(type_).encode(present)
        return codes

    def encode_arrow(self, column: pa.ChunkedArray, type_: Type) -> Codes:
        """Return the codes of an Arrow column."""
        if type_.kind is Kind.SYMBOL:
            return self._encode_strings(column, type_)
        values, nulls = native.from_arrow(column, type_)
        return self.encode(values, nulls, type_)

    def _encode_strings(self, column: pa.ChunkedArray, type_: Type) -> Codes:
        # Arrow finds the distinct strings; only these become Python objects.
        encoded = column.dictionary_encode().combine_chunks()
        if not len(column):
            return np.empty(0, np.int64)
        strings = np.array(encoded.dictionary.to_pylist(), object)
        codes = np.append(self.domain(type_).encode(strings), 0)  # null has the index after them
        indices = encoded.indices.fill_null(len(strings)).to_numpy(zero_copy_only=False)
        result: Codes = codes[indices]
        return result

    def decode_arrow(self, codes: Codes, type_: Type) -> pa.Array:
        """Return codes as an Arrow array."""
        if isinstance(domain := self.domain(type_), SymbolDomain):
            strings = domain.decode_arrow(codes)
            if strings is not None:
                return strings
        return native.to_arrow(self.decode(codes, type_), codes == 0, type_)

    @property
    def nbytes(self) -> int:
        """The size of all domains in bytes."""
        return sum(domain.nbytes for domain in self._domains.values())


def _new_domain(kind: Kind) -> CodeDomain:
    match kind:
        case Kind.SYMBOL:
            return SymbolDomain()
        case Kind.FLOAT:
            return NumericDomain(np.float64)
        case Kind.UNSIGNED:
            return NumericDomain(np.uint64)
        case _:
            return NumericDomain(np.int64)
