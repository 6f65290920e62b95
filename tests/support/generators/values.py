"""Values of every type."""

import struct
from datetime import UTC
from decimal import Decimal

from hypothesis import strategies as st

from corollary.core.logic import Value
from corollary.core.types import (
    Type,
)


def values(type_: Type) -> st.SearchStrategy[Value]:
    largest = Decimal(10**type_.precision - 1).scaleb(-type_.scale)
    by_kind: dict[str, st.SearchStrategy[Value]] = {
        "symbol": st.text(st.characters(exclude_categories=["Cs"])),
        "number": st.integers(-(2**63), 2**63 - 1),
        "unsigned": st.integers(0, 2**64 - 1),
        "float": st.floats(),
        "decimal": st.decimals(-largest, largest, places=type_.scale, allow_nan=False),
        "bool": st.booleans(),
        "date": st.dates(),
        "timestamp": st.datetimes(timezones=st.just(UTC)).map(lambda at: at.replace(fold=0)),
    }
    found = by_kind[type_.kind]
    return st.none() | found if type_.nullable else found


def is_same(left: Value, right: Value) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return struct.pack("d", left) == struct.pack("d", right)
    return type(left) is type(right) and left == right and str(left) == str(right)
