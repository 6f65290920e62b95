"""Functors of texts."""

from collections.abc import Iterable
from functools import partial

from corollary.core.functors.spec import FunctorSpec, Word, define

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
    yield base("to_base64(b: binary) -> symbol", "the bytes in Base64")
    yield base(
        "from_base64(s: symbol) -> binary",
        "the bytes of a text in Base64, in which other characters do not matter",
        is_fallible=True,
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
        ("trim", "the text without blanks at both ends", "", False),
        ("ltrim", "the text without blanks on the left", "", False),
        ("rtrim", "the text without blanks on the right", "", False),
        ("reverse", "the characters from the last to the first", "reverse", True),
    ):
        yield _define(
            f"{name}(s: symbol) -> symbol",
            doc,
            sql_names=sql_names,
            readable={"": f"{name}(s)"} if has_counterpart else {},
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
        pattern_at=1,
    )
    yield _define(
        "regexp_extract(s: symbol, pattern: symbol, group: number) -> symbol",
        'what a group of the first match has, all of the match for 0; `""` without a match',
        pattern_at=1,
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
        sql_names="position locate",
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
