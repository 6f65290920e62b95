"""Functions that take texts apart and put them together, as Spark SQL has them.

What Arrow computes exactly so is computed by it, all else in Python, once for each distinct row.
Counting is by code points.
"""

import hashlib
import hmac
import re
from base64 import b32encode, b64decode, b64encode
from collections.abc import Callable
from decimal import Context, Decimal
from functools import lru_cache, partial
from math import isfinite, isnan
from typing import Any
from unicodedata import category
from urllib.parse import unquote_plus
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import re2

from corollary.core.arrow_buffers import bool_values, fixed_values
from corollary.core.functors.java_formats import show_formatted
from corollary.core.functors.number_formats import read_number_format
from corollary.core.functors.texts import HMAC_ALGORITHMS
from corollary.core.types import Type
from corollary.core.values import is_encodable
from corollary.engines.local.evaluation.functions.arrays import each_list
from corollary.engines.local.evaluation.functions.urls import part_of_url
from corollary.engines.local.evaluation.kernels import (
    FAILED_CONVERSION,
    OVERFLOW,
    Kernel,
    NoValueError,
    Operand,
    Result,
    each_row,
    each_typed_row,
    faults_of,
    on_values,
)
from corollary.engines.local.evaluation.text_functions import TEXT_FUNCTIONS
from corollary.engines.local.values.texts import Texts

TEXT_MAX_CHARACTERS = 1 << 24
"""A longer text is an overflow."""

_WIDE = Context(prec=100)
"""No decimal has more digits."""

UNKNOWN_GROUP = "unknown group in the replacement"


def _mapped(ascii_name: str, function: Callable[[str], str]) -> Callable[..., Result]:
    """Return a function that Arrow computes where all characters are of ASCII."""
    each = each_row(function)

    def apply(operands: list[Operand], type_: Type) -> Result:
        texts = operands[0][0]
        if texts.is_ascii:
            return Texts(pc.call_function(ascii_name, [texts.array])), []
        return each(operands, type_)

    return apply


def _trimmed(name: str, strip: Callable[[str, str], str]) -> Callable[..., Result]:
    def apply(operands: list[Operand], type_: Type) -> Result:
        distinct = [" "] if len(operands) == 1 else operands[1][0].distinct()[0].tolist()
        if len(distinct) > 1:
            return each_row(strip)(operands, type_)
        options = pc.TrimOptions("".join(distinct))
        return Texts(pc.call_function(name, [operands[0][0].array], options)), []

    return apply


def _initcap(text: str) -> str:
    return " ".join(word[:1].title() + word[1:] for word in text.lower().split(" "))


def _checked_size(size: int) -> None:
    if size > TEXT_MAX_CHARACTERS:
        raise NoValueError(OVERFLOW)


def _replace(text: str, old: str, new: str) -> str:
    if not old:
        return text
    _checked_size(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


def _slice(bounds: Callable[..., tuple[Any, Any]], operands: list[Operand], type_: Type) -> Result:
    """Cut texts between two places, that of the first character and that after the last one."""
    texts, *numbers = (values for values, _ in operands)
    if texts.is_ascii:
        sizes = texts.byte_lengths()
        starts, ends = bounds(sizes, *numbers)
        starts = np.clip(starts, 0, sizes)
        return texts.slice_bytes(starts, np.clip(ends, starts, sizes) - starts), []

    def cut(text: str, *row: int) -> str:
        start, end = bounds(np.array([len(text)]), *(np.array([each]) for each in row))
        return text[max(int(start[0]), 0) : max(int(end[0]), 0)]

    return each_row(cut)(operands, type_)


def _substring_bounds(sizes: Any, first: Any, length: Any) -> tuple[Any, Any]:
    """Count from 1, or from the end where the start is negative; 0 is as 1."""
    starts = np.where(first > 0, first - 1, np.where(first < 0, sizes + first, 0))
    length = np.maximum(length, 0)
    # Neither sum can overflow where it is taken.
    return starts, np.where(starts < 0, starts + length, starts + np.minimum(length, sizes))


def _right_bounds(sizes: Any, count: Any) -> tuple[Any, Any]:
    return sizes - np.clip(count, 0, sizes), sizes


def _position(operands: list[Operand], type_: Type) -> Result:
    (parts, _), (texts, _) = operands
    distinct, _ = parts.distinct()
    if len(distinct) == 1 and texts.is_ascii:
        found = pc.find_substring(texts.array, distinct[0])
        return fixed_values(found.cast(pa.int64()), np.int64) + 1, []
    return each_row(lambda part, text: text.find(part) + 1)(operands, type_)


def _pad(is_left: bool) -> Kernel:
    def pad(text: str, size: int, filling: str) -> str:
        lacking = size - len(text)
        if lacking <= 0 or not filling:
            return text[: max(size, 0)]
        _checked_size(size)
        more = (filling * (lacking // len(filling) + 1))[:lacking]
        return more + text if is_left else text + more

    return each_row(pad)


def _repeat(text: str, count: int) -> str:
    count = max(count, 0)
    _checked_size(len(text) * count)
    return text * count


def _split_part(text: str, separator: str, number: int) -> str:
    if number == 0:
        raise NoValueError("part number 0")
    parts = text.split(separator) if separator else [text]
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if 0 <= place < len(parts) else ""


@lru_cache(maxsize=256)
def _pattern(text: str) -> Any:
    return re2.compile(text)


_REPLACEMENT_PART = re.compile(r"\\(.)|\$([0-9])|([\\$])|([^\\$]+)", re.DOTALL)


@lru_cache(maxsize=256)
def _replacement(by: str, groups: int) -> tuple[str | int, ...]:
    r"""Return the texts and the numbers of groups of a replacement, which are written `$1`.

    >>> _replacement(r"a$1\$", 1)
    ('a', 1, '$')
    """
    parts: list[str | int] = []
    for escaped, group, stray, text in _REPLACEMENT_PART.findall(by):
        if stray or (group and int(group) > groups):
            raise NoValueError(UNKNOWN_GROUP)
        parts.append(int(group) if group else escaped or text)
    return tuple(parts)


def _regexp_replace(text: str, pattern: str, by: str) -> str:
    compiled = _pattern(pattern)
    made: list[str] = []
    end = 0
    for found in compiled.finditer(text):
        parts = _replacement(by, compiled.groups)
        made.append(text[end : found.start()])
        made += [each if isinstance(each, str) else found.group(each) or "" for each in parts]
        end = found.end()
    made.append(text[end:])
    _checked_size(sum(map(len, made)))
    return "".join(made)


def _regexp_extract(text: str, pattern: str, group: int) -> str:
    found = _pattern(pattern).search(text)
    return "" if found is None else found.group(group) or ""


def _character(number: int) -> str:
    if number < 0:
        return ""
    if number % 256 == 0:
        raise NoValueError("no text has the character 0")
    return chr(number % 256)


# --- binary values, which are stored as hexadecimal digits ------------------------------------


def _from_hex(operands: list[Operand], type_: Type) -> Result:  # noqa: ARG001
    digits = pc.ascii_upper(operands[0][0].array)
    bad = ~bool_values(pc.match_substring_regex(digits, "^(?:[0-9A-F]{2})*$"))
    if bad.any():  # what has no value has pairs of digits, too
        digits = pc.if_else(pa.array(bad), "", digits)
    return Texts(digits), faults_of(bad, FAILED_CONVERSION)


def _from_utf8(digits: str, errors: str = "strict") -> str:
    try:
        text = bytes.fromhex(digits).decode(errors=errors)
    except UnicodeDecodeError:
        raise NoValueError("bytes that are not UTF-8") from None
    if not is_encodable(text):
        raise NoValueError("no text has the character 0")
    return text


def _from_base64(text: str) -> str:
    """As MIME has it: other characters do not matter, the padding may be missing."""
    digits, _, padding = re.sub("[^A-Za-z0-9+/=]", "", text).partition("=")
    lacking = -len(digits) % 4
    if lacking == 3 or f"={padding}" not in ("=", "=" * lacking):
        raise NoValueError(FAILED_CONVERSION)
    return b64decode(digits + "=" * lacking).hex().upper()


def _byte_bounds(sizes: Any, first: Any, length: Any) -> tuple[Any, Any]:
    starts, ends = _substring_bounds(sizes // 2, first, length)
    return 2 * starts, 2 * ends


_SOUNDS = dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "01230127022455012623017202", strict=True))
_NOT_ESCAPED = re.compile("%(?![0-9a-fA-F]{2})")


def _soundex(text: str) -> str:
    """Return a sound; letters with one digit in a row count once, also with H or W between them."""
    if not text or text[0].upper() not in _SOUNDS or not text[0].isascii():
        return text
    found, last = text[0].upper(), _SOUNDS[text[0].upper()]
    for character in text[1:]:
        sound = _SOUNDS.get(character.upper(), "0") if character.isascii() else "0"
        if sound != "7":
            found += sound if sound not in ("0", last) else ""
            last = sound
    return found.ljust(4, "0")[:4]


def _luhn_check(text: str) -> bool:
    if not text or not all(each.isdecimal() and each < "\U00010000" for each in text):
        return False
    digits = [int(each) for each in reversed(text)]
    return sum(digits[::2] + [each * 2 // 10 + each * 2 % 10 for each in digits[1::2]]) % 10 == 0


def _base64(value: bytes) -> str:
    coded = b64encode(value).decode()
    return "\r\n".join(coded[at : at + 76] for at in range(0, len(coded), 76))


def _sha2(text: str, bits: int) -> str:
    known = bits in (0, 224, 256, 384, 512)
    return hashlib.new(f"sha{bits or 256}", text.encode()).hexdigest() if known else ""


def _url_decode(text: str) -> str:
    if _NOT_ESCAPED.search(text):
        raise NoValueError("a `%` without two hexadecimal digits")
    return unquote_plus(text)


@lru_cache(maxsize=256)
def _translation(old: str, new: str) -> dict[int, str]:
    pairs = zip(old, new.ljust(len(old), "\0"), strict=False)
    return {ord(each): by.strip("\0") for each, by in reversed(list(pairs))}


def _substring_index(text: str, separator: str, count: int) -> str:
    """Return what is before or after a separator; they may overlap."""
    if not separator or not count:
        return ""
    at = -1 if count > 0 else len(text)
    for _ in range(min(abs(count), len(text) + 1)):
        if count > 0:
            at = text.find(separator, at + 1)
        else:
            at = text.rfind(separator, 0, max(at + len(separator) - 1, 0))
        if at < 0:
            return text
    return text[:at] if count > 0 else text[at + len(separator) :]


def _regexp_instr(text: str, pattern: str) -> int:
    """Return where a match begins, as Java counts: in units of 16 bits."""
    found = _pattern(pattern).search(text)
    return 0 if found is None else len(_units(text[: found.start()])) + 1


def _all_matches(text: str, pattern: str, group: int) -> list[str]:
    matches = list(_pattern(pattern).finditer(text))
    if not text.isascii():
        for found in matches:
            # Java matches nothing between the two units of such a character, too.
            if found.start() == found.end() and text[found.end() :][:1] > "\uffff":
                raise NoValueError("an empty match at a character of two units")
    return [found.group(group) or "" for found in matches]


def _levenshtein(one: str, other: str, most: int | None = None) -> int:
    row = list(range(len(other) + 1))
    for at, left in enumerate(one, 1):
        before, row = row, [at]
        for column, right in enumerate(other):
            row.append(min(before[column] + (left != right), before[column + 1] + 1, row[-1] + 1))
    return row[-1] if most is None or row[-1] <= most else -1


_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _convert_base(text: str, base: int, to: int) -> str:
    """Return digits in another base; the number has 64 bits, the first one is a sign if asked."""
    text = text.strip(" ")
    if not 2 <= base <= 36 or not 2 <= abs(to) <= 36 or not text:
        return ""
    is_negative = text[0] == "-"
    number = 0
    for character in text[is_negative:]:
        digit = _DIGITS.find(character.upper()) if character.isascii() else -1
        if not 0 <= digit < base:
            break
        number = number * base + digit
        if number >= 1 << 64:
            raise NoValueError(OVERFLOW)
    if is_negative and to > 0:
        number = (1 << 64) - (1 if number >> 63 else number or 1 << 64)
    if to < 0 and number >> 63:
        is_negative, number = True, (1 << 64) - number
    found = ""
    while number or not found:
        number, digit = divmod(number, abs(to))
        found = _DIGITS[digit] + found
    return f"-{found}" if is_negative and to < 0 else found


def _format_number(source: Type, value: Any, digits: int) -> str:
    if digits < 0:
        return ""
    _checked_size(digits)
    if not source.is_float:
        return f"{Decimal(value).scaleb(-source.scale, _WIDE):,.{digits}f}"
    if not isfinite(value):
        return "NaN" if isnan(value) else "\N{INFINITY}" if value > 0 else "-\N{INFINITY}"
    # The fewest digits that mean the float, or, where that is less, those of its exact value.
    shortest = Decimal(repr(value))
    exponent = shortest.as_tuple().exponent
    is_short = isinstance(exponent, int) and -exponent <= digits
    return f"{shortest if is_short else value:,.{digits}f}"


def _format_decimal(source: Type, value: Any, written: str) -> str:
    form = read_number_format(written)
    if form is None:
        raise NoValueError(FAILED_CONVERSION)
    return form.write(int(value), source.scale)


def _format_value(source: Type, value: Any, form: str, bits: int) -> str:
    if source.is_decimal:
        value = Decimal(int(value)).scaleb(-source.scale, _WIDE)
    try:
        return show_formatted(value, form, bits)
    except (ValueError, OverflowError):
        raise NoValueError(FAILED_CONVERSION) from None


_DIGITS_OF_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_BASE32 = {
    each: at
    for digits in (_DIGITS_OF_BASE32, _DIGITS_OF_BASE32.lower())
    for at, each in enumerate(digits)
}


def _from_base32(text: str) -> str:
    number, count = 0, 0
    for sign in text.partition("=")[0]:
        if sign in _BASE32:
            number, count = number << 5 | _BASE32[sign], count + 1
    blocks, rest = divmod(count, 8)
    size = 5 * blocks + (0, 1, 1, 1, 2, 3, 3, 4)[rest]
    if rest == 1:  # as in Java: a byte with bits of the digits before it
        number = number >> 5 << 8 | number >> 2 & 0xFF
    return f"{number >> (0, 0, 2, 7, 4, 1, 6, 3)[rest]:0{2 * size}X}" if size else ""


def _hmac(key: str, message: str, algorithm: str) -> str:
    if not key:
        raise NoValueError("an empty key")
    made = hmac.new(bytes.fromhex(key), bytes.fromhex(message), algorithm)
    return made.hexdigest().upper()


def _digest(digits: str, algorithm: str) -> str:
    data = bytes.fromhex(digits)
    if algorithm == "crc32":
        return f"{crc32(data):x}"
    return hashlib.new(algorithm, data).hexdigest() if algorithm in HMAC_ALGORITHMS else ""


def _units(text: str) -> list[bytes]:
    """Return the units of 16 bits that a text is in Java."""
    data = text.encode("utf-16-le")
    return [data[at : at + 2] for at in range(0, len(data), 2)]


def _jaro_winkler(one: str, other: str) -> float:
    if not one or not other:
        return float(one == other)
    left, right = _units(one), _units(other)
    reach = max(max(len(left), len(right)) // 2 - 1, 0)
    pairs = dict[int, int]()
    for at, unit in enumerate(left):
        for there in range(max(0, at - reach), min(len(right), at + reach + 1)):
            if right[there] == unit and there not in pairs:
                pairs[there] = at
                break
    count = len(pairs)
    if not count:
        return 0.0
    orders = zip(sorted(pairs), sorted(pairs.values()), strict=True)
    moved = sum(right[there] != left[at] for there, at in orders)
    jaro = (count / len(left) + count / len(right) + (count - moved / 2) / count) / 3
    both = list(zip(left[:4], right, strict=False))
    alike = next((at for at, (x, y) in enumerate(both) if x != y), len(both))
    return jaro + 0.1 * alike * (1 - jaro)


def _mask(text: str, upper: str = "X", lower: str = "x", digit: str = "n", other: str = "") -> str:
    signs = {"Lu": upper, "Ll": lower, "Nd": digit}
    return "".join(signs.get(category(each), other) or each for each in text)


TEXT_PART_FUNCTIONS: dict[str, Kernel] = {
    "upper": _mapped("ascii_upper", str.upper),
    "lower": _mapped("ascii_lower", str.lower),
    "trim": _trimmed("utf8_trim", str.strip),
    "ltrim": _trimmed("utf8_ltrim", str.lstrip),
    "rtrim": _trimmed("utf8_rtrim", str.rstrip),
    "reverse": on_values(lambda texts: Texts(pc.utf8_reverse(texts.array))),
    "initcap": each_row(_initcap),
    "replace": each_row(_replace),
    "substring": partial(_slice, _substring_bounds),
    "left": partial(_slice, lambda sizes, count: (np.zeros_like(sizes), count)),
    "right": partial(_slice, _right_bounds),
    "position": _position,
    "lpad": _pad(is_left=True),
    "rpad": _pad(is_left=False),
    "repeat": each_row(_repeat),
    "split_part": each_row(_split_part),
    "regexp_replace": each_row(_regexp_replace),
    "regexp_extract": each_row(_regexp_extract),
    "chr": each_row(_character),
    "ascii": each_row(lambda text: ord(text[0]) if text else 0),
    "to_hex": on_values(lambda digits: digits),
    "from_hex": _from_hex,
    "to_utf8": each_row(lambda text: text.encode().hex().upper()),
    "from_utf8": each_row(_from_utf8),
    "repair_utf8": each_row(partial(_from_utf8, errors="replace")),
    "to_base64": each_row(lambda digits: _base64(bytes.fromhex(digits))),
    "from_base64": each_row(_from_base64),
    "byte_count": on_values(lambda digits: digits.byte_lengths() // 2),
    "join_bytes": TEXT_FUNCTIONS["cat"],
    "slice_bytes": partial(_slice, _byte_bounds),
    "to_base32": each_row(lambda text: b32encode(text.encode()).decode()),
    "soundex": each_row(_soundex),
    "luhn_check": each_row(_luhn_check),
    "crc32": each_row(lambda text: crc32(text.encode())),
    "sha2": each_row(_sha2),
    "url_decode": each_row(_url_decode),
    "levenshtein": each_row(_levenshtein),
    "translate": each_row(lambda text, old, new: text.translate(_translation(old, new))),
    "substring_index": each_row(_substring_index),
    "regexp_instr": each_row(_regexp_instr),
    "format_number": each_typed_row(_format_number),
    "format_decimal": each_typed_row(_format_decimal),
    "format_value": each_typed_row(_format_value),
    "conv": each_row(_convert_base),
    "parse_url": each_row(part_of_url),
    "from_base32": each_row(_from_base32),
    "bitmap_count": each_row(lambda digits: int(digits or "0", 16).bit_count()),
    "digest": each_row(_digest),
    "hmac": each_row(_hmac),
    "jaro_winkler_similarity": each_row(_jaro_winkler),
    "mask": each_row(_mask),
    "regexp_extract_all": each_list(_all_matches),
}
