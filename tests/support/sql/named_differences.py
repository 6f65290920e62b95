"""The differences to Spark that docs/sql.md names, and which of them a value that differs is."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from support.sql.tried_calls import FAILED, NOT_UTF8, OTHER_YEARS, Difference

INT = range(-(2**31), 2**31)
_NUMBER = re.compile(r"-?(?:\d+\.?\d*(?:[Ee]-?\d+)?|Infinity)|NaN")
_LEAST = (2.0**-1074, 2.0**-149)
"""The least DOUBLE and FLOAT, of which Java 17 writes two digits."""

_FAR_YEAR = re.compile(r"\s*[+-]?\d{5,7}(?:-.*|\s*)")
_DECIDING = re.compile(r" (?:AND|OR|IN|BETWEEN) ")


@dataclass(frozen=True, slots=True)
class Named:
    """A difference: the first words of its row in docs/sql.md, an example, and what it is."""

    told: str
    example: str
    applies: Callable[[Difference], bool]


def name_of(found: Difference) -> str | None:
    """Return which difference of docs/sql.md this is; None if it is none of them."""
    return next((each.told for each in NAMED if each.applies(found)), None)


def _is_year(found: Difference) -> bool:
    if found.there is OTHER_YEARS:
        return True
    values = (found.there, *found.operands.values())
    texts = (each for each in values if isinstance(each, str))
    is_text = found.part.startswith("from_unixtime(") or any(map(_FAR_YEAR.fullmatch, texts))
    return found.here is FAILED and is_text


def _is_beside_null(found: Difference) -> bool:
    values = [*found.operands.values()]
    values += [part for each in values if isinstance(each, list) for part in each]
    has_both = None in values and any(each is not None for each in values)
    is_divided = re.match("try_(?:mod|divide)", found.part) is not None and 0 in values
    return found.here is FAILED and found.there is None and (has_both or is_divided)


def _is_decided(found: Difference) -> bool:
    return found.there is FAILED and _DECIDING.search(found.part) is not None


def _is_no_int(found: Difference) -> bool:
    return found.there is FAILED and any(map(_is_beyond_int, found.operands.values()))


def _is_beyond_int(value: Any) -> bool:
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d+\s*", value):
        value = int(value)
    return isinstance(value, int) and value not in INT


def _is_infinite(found: Difference) -> bool:
    values = found.there if isinstance(found.there, list) else [found.there]
    is_large = any(isinstance(each, float) and not math.isfinite(each) for each in values)
    return is_large and found.here in (FAILED, None)


def _is_not_a_number(found: Difference) -> bool:
    is_rounded = re.match(r"floor|ceil", found.part) is not None
    return is_rounded and found.here is FAILED and found.there == 0


def _is_no_text(found: Difference) -> bool:
    values = (found.there, *found.operands.values())
    return found.here in (FAILED, None) and any(map(_has_no_text, values))


def _has_no_text(value: Any) -> bool:
    if isinstance(value, bytes):
        text = value.decode(errors="replace")
        return "\0" in text or text.encode() != value
    return value is NOT_UTF8 or (isinstance(value, str) and "\0" in value)


def _has_more_digits(found: Difference) -> bool:
    if any(abs(each) in _LEAST for each in found.operands.values() if isinstance(each, float)):
        return True
    if not isinstance(found.here, str) or not isinstance(found.there, str):
        return False
    texts = (found.here, found.there)
    one, other = ([float(each) for each in _NUMBER.findall(text)] for text in texts)
    return one == other and len({_NUMBER.sub("#", text) for text in texts}) == 1


def _is_zero(found: Difference) -> bool:
    values = (found.there, *found.operands.values())
    numbers = (each for each in values if isinstance(each, float))
    return any(each == 0 and math.copysign(1, each) < 0 for each in numbers)


def _has_no_limit(found: Difference) -> bool:
    return found.part.startswith("levenshtein(") and found.here is None


def _has_wrapped(found: Difference) -> bool:
    values = found.operands.values()
    are_low = all(isinstance(each, int) and each < 0 for each in values)
    return found.part.startswith("pmod(") and found.here is FAILED and are_low


def _is_long_sum(found: Difference) -> bool:
    is_sum = re.search(r" [+-] ", found.part) is not None
    return is_sum and found.here is FAILED and isinstance(found.there, Decimal)


NAMED = (
    Named("a year out of 1 to 9999", "date_add(d, 3000000)", _is_year),
    Named("an operand without a value after a null", "p + s", _is_beside_null),
    Named("an operand without a value before one that decides", "i IN (s, i)", _is_decided),
    Named("a number out of `INT` where Spark has an `INT`", "left(s, '4294967296')", _is_no_int),
    Named("a `DOUBLE` that gets too large", "x * 1e308D", _is_infinite),
    Named("`floor` and `ceil` of `NaN`", "floor(x)", _is_not_a_number),
    Named("bytes that are no text", "CAST(b1 AS STRING)", _is_no_text),
    Named("`-0.0`", "CAST(- x AS STRING)", _is_zero),
    Named("a `DOUBLE` as a text", "CAST(x AS STRING)", _has_more_digits),
    Named("`levenshtein` with a limit that is null", "levenshtein(s, t, i)", _has_no_limit),
    Named("`pmod` of two large negative numbers", "pmod(i + 1, -2147483648)", _has_wrapped),
    Named("a sum of decimals", "CAST(0.1 AS DECIMAL(38,38)) + i", _is_long_sum),
)
