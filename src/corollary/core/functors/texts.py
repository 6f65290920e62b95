"""Functors of texts."""

import json
from collections.abc import Iterable
from functools import partial
from typing import Any

from corollary.core.functors.spec import FunctorSpec, Nullness, Word, computed, define
from corollary.core.logic import Functor
from corollary.core.types import Type, type_from_json
from corollary.errors import InputError

_define = partial(define, section="text")
_growing = partial(_define, is_fallible=True, is_expanding=True)

_PART = (
    # Beyond the text, neither number may leave the type that the function takes.
    "CASE WHEN s IS NOT NULL AND start IS NOT NULL AND length IS NOT NULL THEN"
    " CASE WHEN start >= 0 AND start <= {size}(s) AND length >= 0"
    " THEN SUBSTR(s, CAST(LEAST(start, {most}) + CAST('1' AS BIGINT) AS {type}),"
    " CAST(LEAST(length, {most}) AS {type})) ELSE '' END END"
)
_MOST = "CAST('2147483646' AS BIGINT)"


HMAC_ALGORITHMS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")


def texts() -> Iterable[FunctorSpec]:
    """Yield the functions of texts that Soufflé has, too."""
    base = partial(define, section="base text", is_reserved=True)
    yield base(
        "cat(a: symbol, b: symbol, …) -> symbol",
        "the texts joined",
        is_expanding=True,
        readable="a || b",
        exact={"duckdb": "a || b", "spark": "CONCAT(arguments)"},
    )
    yield base(
        "strlen(s: symbol) -> number",
        "the number of code points",
        word=Word.CLOSED,
        sql_names="length len char_length character_length",
        readable="length(s)",
        exact={"duckdb": "CAST(LENGTH(s) AS BIGINT)", "spark": "CAST(CHAR_LENGTH(s) AS BIGINT)"},
    )
    yield base(
        "substr(s: symbol, start: number, length: number) -> symbol",
        'a part, from 0; cut off at the end; `""` where the start or the length is out of range',
        readable="CASE WHEN start < 0 OR length < 0 THEN ''"
        " ELSE substring(s, start + 1, length) END",
        exact={
            "duckdb": _PART.format(size="LENGTH", most=_MOST, type="BIGINT"),
            "spark": _PART.format(size="CHAR_LENGTH", most=_MOST, type="INT"),
        },
    )
    yield base(
        "ord(s: symbol) -> number",
        "a number for a text: the same on every machine, not Soufflé's",
        is_expanding=True,
        word=Word.WRAPPED,
    )


def binaries() -> Iterable[FunctorSpec]:
    """Yield the functions of binary values, which are stored as hexadecimal digits."""
    base = partial(define, section="binary")
    yield base(
        "to_hex(b: binary) -> symbol",
        "the bytes as hexadecimal digits",
        readable="hex(b)",
        exact="b",
    )
    yield base(
        "from_hex(s: symbol) -> binary",
        "the bytes of hexadecimal digits, two for each",
        is_fallible=True,
        readable="unhex(s)",
    )
    yield base("to_utf8(s: symbol) -> binary", "the bytes of a text in UTF-8")
    yield base(
        "from_utf8(b: binary) -> symbol", "the text whose bytes in UTF-8 they are", is_fallible=True
    )
    yield base(
        "repair_utf8(b: binary) -> symbol", "the same, with `\ufffd` for bytes that are none"
    )
    yield base("to_base64(b: binary) -> symbol", "the bytes in Base64, in lines of 76")
    yield base(
        "from_base64(s: symbol) -> binary",
        "the bytes of a text in Base64, in which other characters do not matter",
        is_fallible=True,
    )
    yield base(
        "from_base32(s: symbol) -> binary",
        "the bytes of a text in 32 characters; others do not matter",
        sql_names="from_base32",
    )
    yield base(
        "bitmap_count(b: binary) -> number",
        "the number of bits that are 1",
        sql_names="bitmap_count",
    )
    yield base(
        "hmac(key: binary, b: binary, algorithm: symbol) -> binary",
        'the HMAC of the bytes by `"md5"`, `"sha1"`, `"sha224"`, `"sha256"`, `"sha384"` or'
        ' `"sha512"`, a literal; an empty key is an error',
        is_fallible=True,
        literals={2: HMAC_ALGORITHMS},
    )
    yield base(
        "digest(b: binary, algorithm: symbol) -> symbol",
        'the bytes hashed by `"crc32"` or one of these, in hexadecimal; `""` if there is no such',
    )
    yield base(
        "byte_count(b: binary) -> number",
        "the number of bytes",
        word=Word.CLOSED,
        readable="octet_length(b)",
        exact={
            "duckdb": "CAST(LENGTH(b) DIV 2 AS BIGINT)",
            "spark": "CAST(CHAR_LENGTH(b) DIV 2 AS BIGINT)",
        },
    )
    yield base(
        "join_bytes(a: binary, b: binary, …) -> binary",
        "the bytes of all one after the other",
        is_expanding=True,
        readable="a || b",
        exact={"duckdb": "a || b", "spark": "CONCAT(arguments)"},
    )
    yield base(
        "slice_bytes(b: binary, start: number, length: number) -> binary",
        "some of the bytes; a start below 0 counts from the end, 0 is as 1",
    )


def more_texts() -> Iterable[FunctorSpec]:
    """Yield the functions of texts as in Spark SQL."""
    for name, doc, sql_names, has_counterpart in (
        ("upper", "capital letters", "upper ucase", True),
        ("lower", "small letters", "lower lcase", True),
        ("initcap", "a capital letter after each blank, else small ones", "initcap", False),
        ("reverse", "the characters from the last to the first", "reverse", True),
    ):
        yield _define(
            f"{name}(s: symbol) -> symbol",
            doc,
            sql_names=sql_names,
            readable={"": f"{name}(s)"} if has_counterpart else {},
        )
    for name, where in (
        ("trim", "at both ends"),
        ("ltrim", "on the left"),
        ("rtrim", "on the right"),
    ):
        yield _define(
            f"{name}(s: symbol, characters?: symbol) -> symbol",
            f"the text without blanks, or other characters, {where}",
        )
    yield _define(
        "substring(s: symbol, start: number, length: number) -> symbol",
        "a part; a start below 0 counts from the end, 0 is as 1",
    )
    for name, doc in (("left", "the first characters"), ("right", "the last characters")):
        yield _define(
            f"{name}(s: symbol, n: number) -> symbol",
            doc,
            sql_names=name,
            readable=f"{name}(s, n)",
        )
    yield _growing(
        "replace(s: symbol, old: symbol, new: symbol) -> symbol",
        "every `old` replaced; an empty one is not there",
        readable="replace(s, old, new)",
    )
    for name, side in (("lpad", "left"), ("rpad", "right")):
        yield _growing(
            f"{name}(s: symbol, n: number, pad: symbol) -> symbol",
            f"n characters: cut off, or filled up on the {side}",
            readable=f"{name}(s, n, pad)",
        )
    yield _growing(
        "repeat(s: symbol, n: number) -> symbol",
        "the text n times",
        sql_names="repeat",
        readable="repeat(s, n)",
    )
    yield _growing(
        "regexp_replace(s: symbol, pattern: symbol, by: symbol) -> symbol",
        "every match of an RE2 pattern, a literal, replaced; in `by`, `$1` is a group, and a"
        " character after `\\` itself",
        patterns=(1,),
    )
    yield _define(
        "regexp_extract(s: symbol, pattern: symbol, group: number) -> symbol",
        'what a group of the first match has, all of the match for 0; `""` without a match',
        patterns=(1,),
    )
    yield _define(
        "split_part(s: symbol, separator: symbol, n: number) -> symbol",
        'the part with a number, from the end if below 0; `""` if there is none, an error for 0',
        is_fallible=True,
        sql_names="split_part",
    )
    yield _define(
        "position(part: symbol, s: symbol) -> number",
        "where the part begins, 0 if it is not there",
        word=Word.CLOSED,
    )
    yield _define(
        "chr(n: number) -> symbol",
        "the character of a number, modulo 256",
        is_fallible=True,
        sql_names="chr char",
    )
    yield _define(
        "ascii(s: symbol) -> number",
        "the number of the first character",
        word=Word.CLOSED,
        sql_names="ascii",
    )
    computed_text = partial(computed, section="text")
    yield computed_text(
        "octet_length(s: symbol) -> number", "the number of bytes", "CAST(STRLEN(s) AS BIGINT)"
    )
    yield computed_text(
        "quote(s: symbol) -> symbol",
        "the text in quotes, with a backslash before those inside",
        "CHR(39) || REPLACE(s, CHR(39), CHR(92) || CHR(39)) || CHR(39)",
    )
    yield computed_text(
        "url_encode(s: symbol) -> symbol",
        "as a part of a URL",
        "REPLACE(REPLACE(REPLACE(URL_ENCODE(s), '%20', '+'), '%2A', '*'), '~', '%7E')",
    )
    yield computed_text(
        "find_in_set(s: symbol, list: symbol) -> number",
        "which of the parts between commas it is, 0 for none",
        "CASE WHEN s IS NOT NULL AND list IS NOT NULL THEN CASE WHEN CONTAINS(s, ',') THEN 0"
        " ELSE COALESCE(LIST_POSITION(STRING_SPLIT(list, ','), s), 0) END END",
    )
    yield computed_text("md5(s: symbol) -> symbol", "MD5 of its bytes, in hexadecimal", "MD5(s)")
    yield computed_text(
        "sha1(s: symbol) -> symbol",
        "SHA-1 of its bytes, in hexadecimal",
        "SHA1(s)",
        sql_names="sha sha1",
    )
    yield computed_text(
        "hex(x: symbol|number) -> symbol",
        "the bytes, or the bits of a number, in hexadecimal",
        "HEX(x)",
    )
    yield computed_text(
        "regexp_count(s: symbol, pattern: symbol) -> number",
        "how many matches of an RE2 pattern, a literal, there are",
        "CAST(LEN(REGEXP_EXTRACT_ALL(s, pattern)) AS BIGINT)",
        patterns=(1,),
        sql_names="",
    )
    for name, doc, fields in (
        ("to_base32", "its bytes in 32 characters", {}),
        ("soundex", "the letter and three digits of its sound in English", {}),
        ("url_decode", "the text of a part of a URL", {"is_fallible": True}),
    ):
        yield _define(f"{name}(s: symbol) -> symbol", doc, sql_names=name, **fields)
    yield _define(
        "luhn_check(s: symbol) -> bool", "whether its last digit is right", sql_names="luhn_check"
    )
    yield _define("crc32(s: symbol) -> number", "CRC-32 of its bytes", sql_names="crc32")
    yield _define(
        "sha2(s: symbol, bits: number) -> symbol",
        'SHA-2 of its bytes with 224, 256, 384 or 512 bits, in hexadecimal; 0 is 256, others `""`',
    )
    yield _define(
        "levenshtein(a: symbol, b: symbol, most?: number) -> number",
        "how many characters have to change to make one text of the other; -1 if more than `most`",
        sql_names="levenshtein",
    )
    yield _define(
        "translate(s: symbol, old: symbol, new: symbol) -> symbol",
        "each character of `old` replaced by the one at its place in `new`, if any",
        sql_names="translate",
    )
    yield _define(
        "jaro_winkler_similarity(a: symbol, b: symbol) -> float",
        "how alike two texts are, from 0 to 1; those that begin alike are more so",
        sql_names="jaro_winkler_similarity",
    )
    yield _define(
        "parse_url(s: symbol, part: symbol, key?: symbol) -> symbol",
        "`HOST`, `PATH`, `QUERY`, `REF`, `PROTOCOL`, `FILE`, `AUTHORITY` or `USERINFO` of a URL, or"
        " what a key of its query has; null if there is none",
        is_fallible=True,
        nullness=Nullness.ALWAYS,
        sql_names="parse_url",
    )
    yield _define(
        "mask(s: symbol, upper?: symbol, lower?: symbol, digit?: symbol, other?: symbol) -> symbol",
        "`X` for each capital letter, `x` for small ones, `n` for digits, or other characters, none"
        " for those to keep",
    )
    yield _define(
        "regexp_extract_all(s: symbol, pattern: symbol, group: number) -> [symbol]",
        "what a group of each match of an RE2 pattern, a literal, has; no match is empty at a"
        " character beyond 16 bits",
        is_fallible=True,
        patterns=(1,),
    )
    yield _define(
        "substring_index(s: symbol, separator: symbol, n: number) -> symbol",
        "what is before the separator number n, or after it, counted from the end, if n is below 0",
        sql_names="substring_index",
    )
    yield _define(
        "regexp_instr(s: symbol, pattern: symbol) -> number",
        "where the first match of an RE2 pattern, a literal, begins; 0 if there is none",
        patterns=(1,),
    )
    yield _define(
        "format_number(x: number|float|decimal, digits: number) -> symbol",
        'with commas, and so many digits after the point, rounded half to even; `""` below 0',
        is_fallible=True,
    )
    yield _define(
        "format_decimal(x: decimal, format: symbol) -> symbol",
        'in a format of Spark such as `"S$9,999.99"`, a literal; with `#` for digits if it does not'
        " fit",
        is_fallible=True,
    )
    yield _define(
        "format_value(x: number|float|decimal|symbol, form: symbol, bits: number) -> symbol",
        "as one conversion of Java's formats writes it, a literal such as `%08.2f`; an integer has"
        " so many bits",
        is_fallible=True,
    )
    yield _define(
        "conv(s: symbol, base: number, to: number) -> symbol",
        "the digits at the start, in a base from 2 to 36, in another base: 64 bits without a sign,"
        ' with one in a base below 0; `""` for other bases and no text',
        is_fallible=True,
    )


FROM_JSON, TO_JSON = "from_json", "to_json"
"""The functors with literals that only SQL writes; the second one of the first is its type."""


JSON_OPTIONS = {FROM_JSON: 2, TO_JSON: 1}
"""Which of their arguments has the options."""

JSON_NOTE = "write the view in SQL, where it is as in `from_json(s, 'a INT, b STRING')`"


def json_literal(term: Functor, at: int) -> Any:
    """Return what an argument says, a literal of JSON.

    Raises:
        ValueError: it is none.
    """
    return json.loads(str(getattr(term.arguments[at], "value", "")))


def has_json_options(term: Functor) -> bool:
    """Whether the argument that says how JSON is read or written, if there is one, is a literal."""
    at = JSON_OPTIONS.get(term.name)
    if at is None or at >= len(term.arguments):
        return True
    try:
        return isinstance(json_literal(term, at), dict)
    except ValueError:
        return False


def json_type(term: Functor) -> Type:
    """Return the type that the functor gives, by a literal that only SQL writes.

    Raises:
        InputError: it is none.
    """
    try:
        return type_from_json(json_literal(term, 1))
    except (ValueError, TypeError):
        message = f"The second argument of `{FROM_JSON}` is not a type as a literal of JSON."
        raise InputError.of("C0309", message, term.span, JSON_NOTE) from None


def json_texts() -> Iterable[FunctorSpec]:
    """Yield the functions that look into texts of JSON."""
    of_json = partial(define, section="JSON", nullness=Nullness.ALWAYS, is_fallible=True)
    yield of_json(
        "get_json_object(s: symbol, path: symbol) -> symbol",
        "what is at a path such as `$.a[0].b`, `[*]` being all elements; null if there is nothing",
        sql_names="get_json_object",
    )
    yield of_json(
        "json_array_length(s: symbol) -> number",
        "the number of elements; null if it is no array",
        is_fallible=False,
        sql_names="json_array_length",
    )
    yield of_json(
        "json_object_keys(s: symbol) -> [symbol]",
        "the names in an object; null if it is none",
        sql_names="json_object_keys",
    )
    yield of_json(
        "json_tuple(s: symbol, name: symbol, …) -> [symbol]",
        "the fields of an object as texts; null if it is none",
    )
    yield of_json(
        f"{FROM_JSON}(s: symbol, type: symbol, options: symbol) -> T",
        "its value as one of a type, which SQL writes as JSON; null where it does not fit",
    )
    yield define(
        f"{TO_JSON}(x: array|struct|map, options?: symbol) -> symbol",
        "a text of JSON; fields that are null are left out, if no options of SQL say otherwise",
        section="JSON",
    )
