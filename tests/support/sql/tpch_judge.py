"""Answers of TPC-H's views against DuckDB's.

Decimals are compared exactly where both engines have them. Where Spark's rules give a decimal and
DuckDB a double (`AVG`, `/`), they may differ by one in the last digit of the decimal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

RELATIVE = 1e-9


def differences(found: Iterable[Sequence[Any]], expected: Iterable[Sequence[Any]]) -> list[str]:
    """Say how answers differ; nothing if they do not."""
    ours, theirs = _in_order(found), _in_order(expected)
    if len(ours) != len(theirs):
        return [f"{len(ours)} rows, not {len(theirs)}: {ours[:2]} and {theirs[:2]}"]
    return [
        f"{one} and not {other}"
        for one, other in zip(ours, theirs, strict=True)
        if not all(_is_same(a, b) for a, b in zip(one, other, strict=True))
    ]


def _in_order(rows: Iterable[Sequence[Any]]) -> list[Sequence[Any]]:
    """Return rows sorted, numbers that may differ a little last and rounded."""
    return sorted(rows, key=lambda row: [_place(value) for value in row])


def _place(value: Any) -> tuple[bool, str]:
    if isinstance(value, float | Decimal):
        return value is not None, f"{float(value):+025.4f}"
    return value is not None, str(value).rjust(25) if isinstance(value, int) else str(value)


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, Decimal) and isinstance(other, float):
        digit = 10.0 ** one.as_tuple().exponent
        return abs(float(one) - other) <= digit + RELATIVE * abs(other)
    if isinstance(one, float) and isinstance(other, float | Decimal):
        return abs(one - float(other)) <= RELATIVE * max(1.0, abs(one))
    return bool(one == other)
