"""The dictionary: values as non-negative integers, one code domain per type, null is 0."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from corollary.core.arrow import arrow_type, from_stored_column, store_value, to_stored_column
from corollary.core.engine import ValueRange
from corollary.core.types import Domain, Kind, Type
from corollary.engines.local.storage.blocks import Blocks
from corollary.engines.local.storage.code_range import (
    INTERNED_CODE,
    LAST_INLINE_CODE,
    ZERO_CODE,
    CodeInterval,
    Codes,
)
from corollary.engines.local.storage.layout import Mask
from corollary.engines.local.values import native
from corollary.engines.local.values.decimal_domain import DecimalDomain
from corollary.engines.local.values.domains import NumericDomain
from corollary.engines.local.values.native import Values
from corollary.engines.local.values.symbols import SymbolDomain


class Dictionary:
    """All code domains of one engine."""

    def __init__(self) -> None:
        self._domains: dict[Domain, NumericDomain | SymbolDomain] = {}

    def dump(self) -> list[tuple[Domain, dict[str, Any], list[Blocks]]]:
        """Return all domains, each as a header and parts of a file."""
        return [(domain, *each.dump()) for domain, each in self._domains.items()]

    def restore(self, saved: Iterable[tuple[Domain, Mapping[str, Any], list[Blocks]]]) -> None:
        """Replace all domains by those of a file; codes from before are invalid afterwards."""
        self._domains.clear()
        for (kind, scale), header, blocks in saved:
            self.domain(Type(kind, scale=scale)).restore(header, blocks)

    def release(self) -> None:
        """Forget what is kept only for the next slice of a large table."""
        for each in self._domains.values():
            if isinstance(each, SymbolDomain):
                each.release()

    def domain(self, type_: Type) -> NumericDomain | SymbolDomain:
        """Return the domain of a type."""
        known = self._domains.get(type_.domain)
        if known is None:
            known = self._domains[type_.domain] = _new_domain(type_.kind)
        return known

    def encode(self, values: Values, nulls: Mask | None, type_: Type) -> Codes:
        """Return the codes of native values, 0 where they are null."""
        if nulls is None or not np.count_nonzero(nulls):
            return self._encode(values, type_)
        codes = np.zeros(len(values), np.int64)
        codes[~nulls] = self._encode(values[~nulls], type_)
        return codes

    def _encode(self, values: Any, type_: Type) -> Codes:
        domain: Any = self.domain(type_)
        codes: Codes = domain.encode(values)
        return codes

    def decode(self, codes: Codes, type_: Type) -> Any:
        """Return the native values of codes, an arbitrary one for null."""
        return self.domain(type_).decode(codes)

    def encode_value(self, value: Any, type_: Type) -> int:
        """Return the code of one Python value."""
        return 0 if value is None else int(self._encode_present([value], type_)[0])

    @staticmethod
    def has_integers(type_: Type) -> bool:
        """Whether the values of a type are integers here, most of which are their own codes."""
        return type_.kind not in (Kind.SYMBOL, Kind.RECORD, Kind.FLOAT)

    def decode_integer(self, code: int, type_: Type) -> int:
        """Return the integer that a code stands for, which is not null."""
        if code < INTERNED_CODE:
            return code - ZERO_CODE
        return int(self.decode(np.array([code]), type_)[0])

    def encode_integer(self, value: int, type_: Type) -> int:
        """Return the code of an integer that a value is inside, 0 if the type has no room for it.

        >>> from corollary.core.types import NUMBER
        >>> numbers = Dictionary()
        >>> [numbers.decode_integer(numbers.encode_integer(v, NUMBER), NUMBER) for v in (-1, 2**62)]
        [-1, 4611686018427387904]
        >>> numbers.encode_integer(2**63, NUMBER)
        0
        """
        code = value + ZERO_CODE
        if 0 < code <= LAST_INLINE_CODE and (value >= 0 or not type_.is_unsigned):
            return code
        least, most = type_.spec.bounds
        if not least <= value <= most:
            return 0
        dtype = object if type_.is_decimal else native.dtype_of(type_.kind)
        return int(self._encode(np.array([value], dtype), type_)[0])

    def encode_rows(
        self, rows: Sequence[tuple[Any, ...]], types: Sequence[Type]
    ) -> list[tuple[int, ...]]:
        """Return the codes of few rows of Python values."""
        return [
            tuple(
                [
                    value + ZERO_CODE
                    if type_.is_number
                    and type(value) is int
                    and 1 - ZERO_CODE <= value <= LAST_INLINE_CODE - ZERO_CODE
                    else self.encode_value(value, type_)
                    for value, type_ in zip(row, types, strict=True)
                ]
            )
            for row in rows
        ]

    def encode_python(self, values: Iterable[Any], type_: Type) -> Codes:
        """Return the codes of Python values, None for null."""
        values = list(values)
        if None not in values:
            return self._encode_present(values, type_)
        nulls = np.fromiter((value is None for value in values), np.bool_, len(values))
        codes = np.zeros(len(values), np.int64)
        codes[~nulls] = self._encode_present([each for each in values if each is not None], type_)
        return codes

    def _encode_present(self, values: list[Any], type_: Type) -> Codes:
        domain = self.domain(type_)
        if isinstance(domain, SymbolDomain):
            return domain.encode_python([store_value(value, type_) for value in values])
        return domain.encode(native.from_python(values, type_))

    def code_interval(self, values: ValueRange, type_: Type) -> CodeInterval | None:
        """Return the codes of a range of integers; None where codes have another order."""
        domain = self.domain(type_)
        if isinstance(domain, SymbolDomain) or not domain.is_ordered:
            return None
        # All values there are have inline codes, so that the others can be cut off.
        least = max(values.least, 1 - ZERO_CODE) + ZERO_CODE
        greatest = min(values.greatest, INTERNED_CODE - 1 - ZERO_CODE) + ZERO_CODE
        return CodeInterval(least, greatest, values.has_null)

    def encode_arrow(self, column: pa.ChunkedArray, type_: Type) -> Codes:
        """Return the codes of an Arrow column."""
        domain = self.domain(type_)
        if isinstance(domain, SymbolDomain):
            return domain.encode_arrow(to_stored_column(column, type_))
        if isinstance(domain, DecimalDomain):
            return domain.encode_arrow(column.cast(arrow_type(type_)).combine_chunks())
        values, nulls = native.from_arrow(column, type_)
        return self.encode(values, nulls, type_)

    def decode_arrow(self, codes: Codes, type_: Type) -> pa.Array | pa.ChunkedArray:
        """Return codes as an Arrow array; many long texts need several."""
        domain = self.domain(type_)
        if isinstance(domain, SymbolDomain):
            return from_stored_column(domain.decode_arrow(codes), type_)
        if isinstance(domain, DecimalDomain):
            return domain.decode_arrow(codes, arrow_type(type_))
        nulls = None if np.count_nonzero(codes) == len(codes) else codes == 0
        return native.to_arrow(domain.decode(codes), nulls, type_)

    @property
    def nbytes(self) -> int:
        """The size of all domains in bytes."""
        return sum(domain.nbytes for domain in self._domains.values())


def _new_domain(kind: Kind) -> NumericDomain | SymbolDomain:
    match kind:
        case Kind.SYMBOL:
            return SymbolDomain()
        case Kind.FLOAT:
            return NumericDomain(np.float64)
        case Kind.UNSIGNED:
            return NumericDomain(np.uint64)
        case Kind.DECIMAL:
            return DecimalDomain()
        case _:
            return NumericDomain(np.int64)
