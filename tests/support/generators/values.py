"""Values of every type."""

import struct
from datetime import UTC

from hypothesis import strategies as st

from corollary.core.logic import Value
from corollary.core.types import Type
from corollary.core.values import decimal_value


def values(type_: Type) -> st.SearchStrategy[Value]:
    largest = 10**type_.precision - 1
    by_kind: dict[str, st.SearchStrategy[Value]] = {
        "symbol": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
        "number": st.integers(-(2**63), 2**63 - 1),
        "unsigned": st.integers(0, 2**64 - 1),
        "float": st.floats(),
        "decimal": st.integers(-largest, largest).map(
            lambda each: decimal_value(each, type_.scale)
        ),
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
