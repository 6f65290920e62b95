"""The texts of arrays and structs have the order of these, and come back."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from corollary.core import types
from corollary.core.arrow import (
    arrow_type,
    from_stored_column,
    load_value,
    store_value,
    to_python,
    to_stored_column,
)
from corollary.core.arrow_buffers import python_array
from corollary.core.types import Type, array_of, decimal, struct_of, type_from_json
from corollary.core.values import format_value, parse_value

VALUES: dict[Type, tuple[Any, ...]] = {
    types.NUMBER: (0, -1, 5, 2**63 - 1, -(2**63)),
    types.UNSIGNED: (0, 2**64 - 1),
    types.FLOAT: (0.0, -1.5, math.nan, math.inf, -math.inf, 2.5),
    decimal(20, 2): tuple(map(Decimal, ("-1.50", "1.00", "99999999999999.99", "-9999999999.99"))),
    types.SYMBOL: ("", "a", "a\x01", "a\x02", "\x03", '"', "ä", "ab", "a\x02\x03"),
    types.BOOL: (True, False),
    types.BINARY: (b"", b"\0", b"a"),
    types.DATE: (date(1, 1, 1), date(2020, 1, 2), date(1969, 1, 1)),
    types.TIMESTAMP: (datetime(1960, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, 1, 2, 3, 4, UTC)),
    types.TIMESTAMP_NTZ: (datetime(1960, 1, 1), datetime(2020, 1, 1, 1, 2, 3, 4)),  # noqa: DTZ001
}
DICE = random.Random(7)


def drawn(values: tuple[Any, ...], count: int) -> list[tuple[Any, ...]]:
    return [tuple(DICE.choices((None, *values), k=DICE.randint(0, 4))) for _ in range(count)]


def order(value: Any) -> Any:
    match value:
        case None:
            return (0,)
        case tuple():
            return (1, tuple(map(order, value)))
        case float() if math.isnan(value):
            return (2,)
        case _:
            return (1, value)


@pytest.mark.parametrize("field", VALUES, ids=str)
def test_structs(field: Type) -> None:
    type_ = struct_of([("a", field), ("the b", array_of(types.SYMBOL)), ("c", field)])
    arrays = drawn(VALUES[types.SYMBOL], 20)
    values = (None, *VALUES[field])
    structs = [tuple(map(DICE.choice, (values, (None, *arrays), values))) for _ in range(60)]
    column = pa.chunked_array([python_array([*structs, None], arrow_type(type_))])
    stored = to_stored_column(column, type_)
    back = to_python(pa.table([from_stored_column(stored, type_)], ["x"]))
    assert list(map(repr, back)) == [repr((each,)) for each in (*structs, None)]
    texts = dict(zip(map(repr, structs), stored.to_pylist(), strict=False))
    by_text = sorted(structs, key=lambda each: texts[repr(each)].encode())
    assert list(map(repr, by_text)) == list(map(repr, sorted(structs, key=order)))
    assert repr(load_value(store_value(structs[0], type_), type_)) == repr(structs[0])
    shown = format_value(structs[0], type_)
    assert format_value(parse_value(shown, type_), type_) == shown
    assert type_from_json(type_.as_json) == type_


@pytest.mark.parametrize("is_nested", [False, True])
@pytest.mark.parametrize("element", VALUES, ids=str)
def test_order_and_way_back(element: Type, is_nested: bool) -> None:
    values = VALUES[element]
    if is_nested:
        element, values = array_of(element), tuple(drawn(values, 20))
    type_, arrays = array_of(element), drawn(values, 60)
    column = pa.chunked_array([python_array([*arrays, None], arrow_type(type_))])
    stored = to_stored_column(column, type_)
    back = to_python(pa.table([from_stored_column(stored, type_)], ["x"]))
    assert list(map(repr, back)) == [repr((each,)) for each in (*arrays, None)]
    texts = dict(zip(map(repr, arrays), stored.to_pylist(), strict=False))
    by_text = sorted(arrays, key=lambda each: texts[repr(each)].encode())
    assert list(map(repr, by_text)) == list(map(repr, sorted(arrays, key=order)))
    assert repr(load_value(store_value(arrays[0], type_), type_)) == repr(arrays[0])
