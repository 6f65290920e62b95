"""Functions on text; where an argument is binary, those on binary values that have their names."""

from dataclasses import replace

from corollary.core.functors.catalog import FUNCTORS, result_type
from corollary.core.functors.java_formats import FormatPart, read_format
from corollary.core.functors.number_formats import NumberFormat, read_number_format
from corollary.core.functors.spec import BYTES, TEXT, WHOLE
from corollary.core.functors.texts import HMAC_ALGORITHMS
from corollary.core.types import (
    BINARY,
    BOOL,
    DECIMAL_MAX_DIGITS,
    FLOAT,
    FLOAT32,
    NUMBER,
    SQL_NUMERIC,
    SYMBOL,
    array_of,
    decimal,
)
from corollary.frontends.sql.binder.functions.arguments import (
    MANY,
    Builder,
    SqlFunction,
    expressions_of,
    fitted,
    literal_integer,
    literal_pattern,
    literal_text,
    with_default,
)
from corollary.frontends.sql.binder.functions.time_functions import time_to_char
from corollary.frontends.sql.binder.session import type_name
from corollary.frontends.sql.binder.values.common_types import (
    bits_of,
    call,
    decimal_of,
    integer,
    is_untyped,
)
from corollary.frontends.sql.binder.values.conversions import cast, convert, to_decimal
from corollary.frontends.sql.binder.values.operators import (
    Site,
    attempt,
    choose,
    compare,
    connect,
    unfit,
)
from corollary.frontends.sql.query_tree import ConstantValue, Expression, FunctionCall

REST = 2**31 - 1
"""The length that means the rest of a text."""

_NUMBER = ConstantValue("a number that `elt` has a text for", SYMBOL)
_NO_TEXT = call("to_string", (call("to_number", (_NUMBER,), NUMBER),), SYMBOL)
"""A text that has no value: what is read as a number is none, and the error quotes it."""


def _trim(functor: str, is_reversed: bool = False) -> SqlFunction:
    """Return a function that takes characters away; some have these before the text."""

    def build(arguments: list[Expression], site: Site) -> Expression:
        values = [fitted(each, TEXT, site) for each in arguments]
        return call(functor, tuple(values[::-1] if is_reversed else values), SYMBOL, site.span)

    return SqlFunction(1, 2, build)


def _concat(arguments: list[Expression], site: Site) -> Expression:
    parts = tuple(_flat([fitted(each, TEXT, site) for each in arguments]))
    return parts[0] if len(parts) == 1 else call("cat", parts, SYMBOL, site.span)


def _flat(parts: list[Expression]) -> list[Expression]:
    """Return the parts of a chain `a || b || c` as one list."""
    first = parts[0]
    if isinstance(first, FunctionCall) and first.functor == "cat":
        return [*first.arguments, *parts[1:]]
    return parts


def _concat_with(arguments: list[Expression], site: Site) -> Expression:
    """`concat_ws(separator, …)`: nulls are left out, so each part brings its separator along."""
    is_literal = isinstance(arguments[0], ConstantValue) and isinstance(arguments[0].value, str)
    if not is_literal or any(each.type.is_array for each in arguments):
        return _concat_lists(arguments, site)
    separator = literal_text(arguments[0], site)
    parts = [fitted(each, TEXT, site) for each in arguments[1:]]
    empty, sign = ConstantValue("", SYMBOL), ConstantValue(separator, SYMBOL)
    if not parts:
        return empty
    pieces = []
    for part in parts:
        piece = call("cat", (sign, part), SYMBOL, site.span)
        if part.type.nullable:
            piece = FunctionCall("coalesce", (piece, empty), SYMBOL, site.span)
        pieces.append(piece)
    joined = pieces[0] if len(pieces) == 1 else call("cat", tuple(pieces), SYMBOL, site.span)
    return call(
        "substring", (joined, integer(len(separator) + 1), integer(REST)), SYMBOL, site.span
    )


def _concat_lists(arguments: list[Expression], site: Site) -> Expression:
    """`concat_ws(separator, …)` with arrays, of which each element is a part."""
    texts = array_of(replace(SYMBOL, nullable=True))
    nothing = ConstantValue((), texts)
    separator = fitted(arguments[0], TEXT, site)
    lists: list[Expression] = [nothing, nothing]
    for each in arguments[1:]:
        if not each.type.is_array:
            part = fitted(each, TEXT, site)
            lists.append(FunctionCall("array", (part,), texts, site.span))
            continue
        found = convert(each, texts.with_null(each.type.nullable))
        lists.append(FunctionCall("coalesce", (found, nothing), texts, site.span))
    joined = FunctionCall("array_concat", tuple(lists), texts, site.span)
    return call("array_join", (joined, separator), SYMBOL, site.span)


def _matches(functor: str, count: int) -> SqlFunction:
    """Return a function whose second argument is a pattern, which must be a literal."""

    def build(arguments: list[Expression], site: Site) -> Expression:
        pattern, groups = literal_pattern(arguments[1], site)
        text = fitted(arguments[0], TEXT, site)
        fixed: tuple[Expression, ...] = (text, ConstantValue(pattern, SYMBOL))
        if "group" in FUNCTORS[functor].arguments:
            group = literal_integer(arguments[2], site) if len(arguments) > 2 else 1
            if not 0 <= group <= groups:
                message = f"The pattern has {groups} groups, and no group {group}."
                raise site.error("C1306", message, "write 0 for all that matches")
            fixed += (integer(group),)
        elif functor == "regexp_replace":
            fixed += (fitted(arguments[2], TEXT, site),)
        elif len(arguments) > 2:  # a group, by which Spark finds the match as a whole
            literal_integer(arguments[2], site)
        result = result_type(functor, [each.type for each in fixed])
        return call(functor, fixed, result, site.span)

    return SqlFunction(3 if functor == "regexp_replace" else 2, count, build)


def _first_match(arguments: list[Expression], site: Site) -> Expression:
    """`regexp_substr(text, pattern)`: null where there is no match, or an empty one."""
    found = _matches("regexp_extract", 3).build([*arguments, integer(0)], site)
    nothing = ConstantValue("", SYMBOL)
    return FunctionCall("null_if", (found, nothing), SYMBOL.with_null(True), site.span)


def _chosen(arguments: list[Expression], site: Site) -> Expression:
    """`elt(n, first, …)`: the text with a number, which must be there."""
    number, *texts = arguments[0], *(fitted(each, TEXT, site) for each in arguments[1:])
    number = fitted(number, WHOLE, site)
    tests = [compare("eq", number, integer(at), site) for at in range(1, len(texts))]
    # Any other number has no value.
    bounds = (
        call("le", (integer(1), number), BOOL),
        call("le", (number, integer(len(texts))), BOOL),
    )
    last = choose([(connect("and", bounds, site.span), texts[-1])], _NO_TEXT, SYMBOL, site.span)
    found = choose(list(zip(tests, texts, strict=False)), last, SYMBOL, site.span)
    if not number.type.nullable:
        return found
    is_null = FunctionCall("is_null", (number,), BOOL, site.span)
    nothing = ConstantValue(None, SYMBOL.with_null(True))
    return choose([(is_null, nothing)], found, SYMBOL, site.span)


def _mask(arguments: list[Expression], site: Site) -> Expression:
    """`mask(text, upper, lower, digit, other)`: literal characters, null for those to keep."""
    signs = ["" if is_untyped(each) else literal_text(each, site) for each in arguments[1:]]
    if any(
        len(sign) != 1 and not is_untyped(each)
        for sign, each in zip(signs, arguments[1:], strict=True)
    ):
        message = "`mask` takes single characters."
        raise site.error("C1306", message, "write one character, or NULL to keep them")
    written = (ConstantValue(each, SYMBOL) for each in signs)
    return call("mask", (fitted(arguments[0], TEXT, site), *written), SYMBOL, site.span)


_SIGNS = {"S": "[+-]?", "MI": "-?"}
_BLANKS = (
    r"[\t-\r\x{1c}-\x{20}\x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}"
    r"\x{2028}\x{2029}\x{205f}\x{3000}]"
)


def _number_format(arguments: list[Expression], site: Site) -> tuple[str, NumberFormat] | None:
    """Return the format of numbers that is the second argument; None for NULL."""
    if isinstance(arguments[1], ConstantValue) and arguments[1].value is None:
        return None
    text = literal_text(arguments[1], site)
    found = read_number_format(text)
    if found is None:
        message = f"`{text}` is not a format of numbers."
        raise site.error("C1306", message, "write one such as 'S9,999.99', '999PR' or '$99.9'")
    return text, found


def _number_pattern(form: NumberFormat) -> str:
    """Return the pattern of the texts in a format; blanks may be before and after digits."""
    core, is_whole = "", False
    for group in form.groups[:-1]:  # may be left out, unless it or one before has all its digits
        is_whole |= group[0] == "0"
        core = f"(?:{core}{_digits(group)}{_BLANKS}*,)" + ("" if is_whole else "?")
    fraction = f"{_digits('9' * form.scale)}{_BLANKS}*" if form.scale else ""
    if form.groups:
        core += f"{_digits(form.groups[-1])}{_BLANKS}*"
        core += f"(?:[.]{fraction})?" if form.has_point else ""
    else:
        core = f"[.]?{fraction}"
    core = _SIGNS.get(form.sign, "") + (r"\$" if form.has_money else "") + core
    return f"^(?:{core}|<{core}>)$" if form.end == "PR" else f"^{core}{_SIGNS.get(form.end, '')}$"


def _digits(group: str) -> str:
    return f"(?:{_BLANKS}*[0-9]){{{'' if group[0] == '0' else '0,'}{len(group)}}}"


_NUMBER_TEXT = expressions_of(
    {
        "text(s: symbol, pattern: symbol, other: symbol)": """
            if("and"(rlike(s, pattern), rlike(s, '[0-9]')),
            cat(if(rlike(s, '^[^<-]*[<-][^<-]*$'), '-', ''), regexp_replace(s, other, '')),
            'no number')"""
    }
)["text"]
"""The text of a number that is written in a pattern; another one is converted to none."""


def _to_number(is_try: bool) -> SqlFunction:
    """Return `to_number(text, format)`."""

    def build(arguments: list[Expression], site: Site) -> Expression:
        given = _number_format(arguments, site)
        text = fitted(arguments[0], TEXT, site)
        if given is None:
            return ConstantValue(None, decimal(10, 0).with_null(True), site.span)
        written, form = given
        digits = form.whole_digits + form.scale
        if digits > DECIMAL_MAX_DIGITS:
            message = f"`{written}` has more than {DECIMAL_MAX_DIGITS} digits."
            raise site.error("C1306", message, "write fewer of them")
        patterns = (_number_pattern(form), f"[,$+<>-]|{_BLANKS}")
        type_ = decimal(digits, form.scale)
        values = [text, *(ConstantValue(each, SYMBOL) for each in patterns)]
        found = cast(_NUMBER_TEXT.build(values, site), type_, 64)
        assert found is not None
        is_null = FunctionCall("is_null", (text,), BOOL, site.span)
        nothing = ConstantValue(None, type_.with_null(True))
        found = choose([(is_null, nothing)], found, type_, site.span)
        return attempt(found, arguments[:1], site) if is_try else found

    return SqlFunction(2, 2, build)


_IMPLICIT = {FLOAT32.logical_kind: decimal(14, 7), FLOAT.logical_kind: decimal(30, 15)}
"""The decimals that floats are taken for."""


def _number_to_char(arguments: list[Expression], site: Site) -> Expression:
    """`to_char(number, format)`; a text is a number, too."""
    value, given = arguments[0], _number_format(arguments, site)
    if given is None or is_untyped(value):
        return ConstantValue(None, SYMBOL.with_null(True), site.span)
    if value.type.is_symbol or value.type.logical_kind in _IMPLICIT:
        found = cast(value, _IMPLICIT.get(value.type.logical_kind, decimal(38, 18)), 64)
        assert found is not None
    elif value.type.logical_kind in SQL_NUMERIC:
        found = to_decimal(value, decimal_of(value).scale, decimal_of(value).precision)
    else:
        raise unfit(site, value, NUMBER)
    return call("format_decimal", (found, ConstantValue(given[0], SYMBOL)), SYMBOL, site.span)


def _to_char(arguments: list[Expression], site: Site) -> Expression:
    """`to_char(x, format)`, also called `to_varchar`."""
    build = time_to_char if arguments[0].type.is_time else _number_to_char
    return build(arguments, site)


def _format(arguments: list[Expression], site: Site) -> Expression:
    """`format_string(format, …)`: a text of its parts; a null is written as `null`."""
    if is_untyped(arguments[0]):
        return ConstantValue(None, SYMBOL.with_null(True), site.span)
    form, *values = literal_text(arguments[0], site), *arguments[1:]
    try:
        parts = list(read_format(form))
    except ValueError as error:
        message = f"`{error}` is not a conversion that is known here."
        note = "there are %s, %b, %d, %x, %o, %c, %e, %f and %g with the flags that Java takes"
        raise site.error("C1311", message, f"{note}; write dates by `date_format`") from None
    found: list[Expression] = [ConstantValue("", SYMBOL)]
    for part in parts:
        if isinstance(part, str):
            found.append(ConstantValue(part, SYMBOL))
            continue
        assert part.argument is not None
        if part.argument >= len(values):
            message = f"`{part.text}` has no argument."
            raise site.error("C1306", message, "write a value for each conversion")
        found.append(_converted(part, values[part.argument], site))
    return call("cat", tuple(found), SYMBOL, site.span)


def _converted(part: FormatPart, value: Expression, site: Site) -> Expression:
    nothing = ConstantValue(part.show_text("false" if part.letter == "b" else "null"), SYMBOL)
    if is_untyped(value):
        return nothing
    type_, letter = value.type, part.letter
    is_float = type_.is_float or type_.is_float32
    wanted = {"s": "numbers, texts and booleans", "b": "values", "c": "integers up to 32 bits"}
    is_plain = type_.is_number or is_float or type_.is_decimal or type_.is_symbol or type_.is_bool
    is_fit = {
        "s": is_plain and not type_.is_interval and not type_.members,
        "b": True,
        "c": type_.is_number and bits_of(value) <= 32,
        **dict.fromkeys("dxo", type_.is_number),
        **dict.fromkeys("efg", is_float),
    }
    if not is_fit[letter]:
        takes = wanted.get(letter, "integers" if letter in "dxo" else "DOUBLE and FLOAT")
        message = f"`{part.text}` takes {takes}, not {type_name(type_)}."
        raise site.error("C1308", message, "cast it, as in `CAST(x AS STRING)` for `%s`")
    if letter == "b" and not type_.is_bool:
        is_null = FunctionCall("is_null", (value,), BOOL, site.span)
        there = ConstantValue(part.show_text("true"), SYMBOL)
        return choose([(is_null, nothing)], there, SYMBOL, site.span)
    if letter in "efg":
        value = convert(value, FLOAT)
    bits = integer(bits_of(value) if type_.is_number else 64)
    if letter in "sb" and not type_.is_decimal:
        value = convert(value, SYMBOL) if type_.is_symbol else cast(value, SYMBOL, 64) or value
    shown = value
    if part.text != "%s" or type_.is_decimal:
        shown = call("format_value", (value, ConstantValue(part.text, SYMBOL), bits), SYMBOL)
    if not type_.nullable:
        return shown
    return FunctionCall("coalesce", (shown, nothing), SYMBOL, site.span)


TEXT_FUNCTIONS: dict[str, SqlFunction] = {
    **expressions_of(
        {
            "instr(text: symbol, part: symbol)": "position(part, text)",
            "space(n: number)": "repeat(' ', n)",
            "ilike(text: symbol, pattern: symbol)": "like(lower(text), lower(pattern))",
            "locate position(part: symbol, text: symbol)": "position(part, text)",
            "locate position(part: symbol, text: symbol, start: number)": """
                if(is_null(start), 0, lt(start, 1), position(part, text) * 0,
                eq(part, ''), position(part, text),
                eq(position(part, substring(text, start, 2147483647)), 0), 0,
                position(part, substring(text, start, 2147483647)) + start - 1)""",
            "overlay(text: symbol, new: symbol, start: number)": """
                cat(substring(text, 1, start - 1), new,
                substring(text, start + strlen(new), 2147483647))""",
            "overlay(text: symbol, new: symbol, start: number, n: number)": """
                cat(substring(text, 1, start - 1), new,
                substring(text, start + if(lt(n, 0), strlen(new), n), 2147483647))""",
            "try_url_decode(s: symbol)": "try(url_decode(s))",
            "try_parse_url(s: symbol, part: symbol)": "try(parse_url(s, part))",
            "try_parse_url(s: symbol, part: symbol, k: symbol)": "try(parse_url(s, part, k))",
            "base64(s: symbol)": "to_base64(to_utf8(s))",
            "bit_length(s: symbol)": "octet_length(s) * 8",
            "sha2(s: symbol, bits: number)": "null_if(sha2(s, bits), '')",
            "conv(s: symbol, base: number, to: number)": "null_if(conv(s, base, to), '')",
            "format_number(x: number|float|decimal, digits: number)": """
                null_if(format_number(x, digits), '')""",
            "validate_utf8 try_validate_utf8 make_valid_utf8(s: symbol)": "s",
            "is_valid_utf8(s: symbol)": "eq(s, s)",
            "collation(s: symbol)": "'SYSTEM.BUILTIN.UTF8_BINARY'",
        }
    ),
    **{name: with_default("substring", integer(REST)) for name in ("substring", "substr")},
    **{name: _matches("rlike", 2) for name in ("rlike", "regexp", "regexp_like")},
    "trim": _trim("trim"),
    "btrim": _trim("trim"),
    "ltrim": _trim("ltrim", is_reversed=True),
    "rtrim": _trim("rtrim", is_reversed=True),
    "replace": with_default("replace", ConstantValue("", SYMBOL)),
    "lpad": with_default("lpad", ConstantValue(" ", SYMBOL)),
    "rpad": with_default("rpad", ConstantValue(" ", SYMBOL)),
    "regexp_replace": _matches("regexp_replace", 3),
    "regexp_extract": _matches("regexp_extract", 3),
    "regexp_extract_all": _matches("regexp_extract_all", 3),
    "regexp_count": _matches("regexp_count", 2),
    "regexp_instr": _matches("regexp_instr", 3),
    "regexp_substr": SqlFunction(2, 2, _first_match),
    "concat": SqlFunction(1, MANY, _concat),
    "concat_ws": SqlFunction(1, MANY, _concat_with),
    "elt": SqlFunction(2, MANY, _chosen),
    "mask": SqlFunction(1, 5, _mask),
    **dict.fromkeys(("format_string", "printf"), SqlFunction(1, MANY, _format)),
    "to_number": _to_number(is_try=False),
    "try_to_number": _to_number(is_try=True),
    **dict.fromkeys(("to_char", "to_varchar"), SqlFunction(2, 2, _to_char)),
}
"""The functions on text, by their names in Spark."""


# --- binary values ----------------------------------------------------------------------------


def _concat_binary(arguments: list[Expression], site: Site) -> Expression:
    """Return bytes; beside a text, they are texts."""
    if not all(each.type.is_binary or is_untyped(each) for each in arguments):
        return _concat(arguments, site)
    parts = tuple(fitted(each, BYTES, site) for each in arguments)
    return parts[0] if len(parts) == 1 else call("join_bytes", parts, BINARY, site.span)


def _coded(functor: str) -> Builder:
    """Return a function whose second argument is a character set, of which there is one."""

    def build(arguments: list[Expression], site: Site) -> Expression:
        if literal_text(arguments[1], site).upper() not in ("UTF-8", "UTF8"):
            message = f"`{site.name}` takes the character set UTF-8 only."
            raise site.error("C1311", message, "write 'UTF-8'")
        is_text = functor == "to_utf8"
        value = fitted(arguments[0], TEXT if is_text else BYTES, site)
        return call(functor, (value,), BINARY if is_text else SYMBOL, site.span)

    return build


def _to_binary(arguments: list[Expression], site: Site) -> Expression:
    """The bytes of hexadecimal digits, the first of an odd number being one, or of a text."""
    form = literal_text(arguments[1], site).upper() if len(arguments) > 1 else "HEX"
    if form != "HEX":
        return _coded("to_utf8")(arguments, site)
    digits = fitted(arguments[0], TEXT, site)
    rest = call("rem", (call("strlen", (digits,), NUMBER), integer(2)), NUMBER)
    padding = call("substring", (ConstantValue("0", SYMBOL), integer(1), rest), SYMBOL)
    padded = call("cat", (padding, digits), SYMBOL, site.span)
    return call("from_hex", (padded,), BINARY, site.span)


def _try_to_binary(arguments: list[Expression], site: Site) -> Expression:
    return attempt(_to_binary(arguments, site), [], site)


def _bit_length(arguments: list[Expression], site: Site) -> Expression:
    count = call("byte_count", (fitted(arguments[0], BYTES, site),), NUMBER)
    return call("*", (count, integer(8)), NUMBER, site.span)


_WRITTEN_BYTES = {"BASE64": "to_base64", "HEX": "to_hex", "UTF-8": "from_utf8"}


def _bytes_to_char(arguments: list[Expression], site: Site) -> Expression:
    """`to_char(bytes, format)`, also called `to_varchar`."""
    functor = _WRITTEN_BYTES.get(literal_text(arguments[1], site).strip().upper())
    if functor is None:
        message = f"`{site.name}` of binary values has no such format."
        raise site.error("C1306", message, "write `'base64'`, `'hex'` or `'utf-8'`")
    return call(functor, (fitted(arguments[0], BYTES, site),), SYMBOL, site.span)


BINARY_FUNCTIONS: dict[str, SqlFunction] = {
    **expressions_of(
        {
            "length len char_length character_length octet_length(b: binary)": "byte_count(b)",
            "left(b: binary, n: number)": "slice_bytes(b, 1, n)",
            "hex(b: binary)": "to_hex(b)",
            "md5(b: binary)": "digest(b, 'md5')",
            "sha sha1(b: binary)": "digest(b, 'sha1')",
            "sha2(b: binary, bits: number)": """
                null_if(digest(b, if(eq(bits, 0), 'sha256', eq(bits, 224), 'sha224',
                eq(bits, 256), 'sha256', eq(bits, 384), 'sha384', eq(bits, 512), 'sha512', '')),
                '')""",
            "crc32(b: binary)": "parse_integer(conv(digest(b, 'crc32'), 16, 10))",
            "base64(b: binary)": "to_base64(b)",
            "lpad(b: binary, n: number)": "from_hex(lpad(to_hex(b), 2 * n, '00'))",
            "rpad(b: binary, n: number)": "from_hex(rpad(to_hex(b), 2 * n, '00'))",
            "lpad(b: binary, n: number, p: binary)": "from_hex(lpad(to_hex(b), 2 * n, to_hex(p)))",
            "rpad(b: binary, n: number, p: binary)": "from_hex(rpad(to_hex(b), 2 * n, to_hex(p)))",
            "reverse(b: binary)": """
                from_hex(regexp_replace(reverse(to_hex(b)), '(.)(.)', '$2$1'))""",
            "overlay(b: binary, new: binary, start: number)": """
                join_bytes(slice_bytes(b, 1, start - 1), new,
                slice_bytes(b, start + byte_count(new), 2147483647))""",
            "overlay(b: binary, new: binary, start: number, n: number)": """
                join_bytes(slice_bytes(b, 1, start - 1), new,
                slice_bytes(b, start + if(lt(n, 0), byte_count(new), n), 2147483647))""",
            "is_valid_utf8(b: binary)": """
                if(is_null(b), eq(b, b), is_null(try(from_utf8(b))), ne(b, b), eq(b, b))""",
            "validate_utf8(b: binary)": "from_utf8(b)",
            "make_valid_utf8(b: binary)": "repair_utf8(b)",
            "try_validate_utf8(b: binary)": "try(from_utf8(b))",
        }
    ),
    **{name: with_default("slice_bytes", integer(REST)) for name in ("substring", "substr")},
    "bit_length": SqlFunction(1, 1, _bit_length),
    "concat": SqlFunction(1, MANY, _concat_binary),
    **dict.fromkeys(("to_char", "to_varchar"), SqlFunction(2, 2, _bytes_to_char)),
    "decode": SqlFunction(2, 2, _coded("from_utf8")),
}
"""Where an argument is binary."""


def _hmac(arguments: list[Expression], site: Site) -> Expression:
    """`hmac(key, message, algorithm)`, by SHA-256 if nothing is said."""
    written = literal_text(arguments[2], site) if len(arguments) > 2 else "SHA256"
    name = written.lower().replace("sha-", "sha")
    if name not in HMAC_ALGORITHMS:
        known = ", ".join(HMAC_ALGORITHMS).upper()
        raise site.error("C1306", f"`hmac` does not know `{written}`.", f"there are {known}")
    key, value = (fitted(each, BYTES, site) for each in arguments[:2])
    return call("hmac", (key, value, ConstantValue(name, SYMBOL)), BINARY, site.span)


CODING_FUNCTIONS: dict[str, SqlFunction] = {
    **expressions_of({"unbase64(s: symbol)": "from_base64(s)"}),
    "encode": SqlFunction(2, 2, _coded("to_utf8")),
    "hmac": SqlFunction(2, 3, _hmac),
    "to_binary": SqlFunction(1, 2, _to_binary),
    "try_to_binary": SqlFunction(1, 2, _try_to_binary),
    "unhex": SqlFunction(1, 1, _try_to_binary),
}
"""What makes binary values of texts."""
