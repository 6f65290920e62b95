"""Functions on text; where an argument is binary, those on binary values that have their names."""

from functools import reduce

from corollary.core.functors.spec import BYTES, TEXT, WHOLE
from corollary.core.types import BINARY, BOOL, NUMBER, SYMBOL
from corollary.frontends.sql.binder.functions.arguments import (
    Builder,
    SqlFunction,
    expressions_of,
    fitted,
    literal_text,
    with_default,
)
from corollary.frontends.sql.binder.values.conversions import call, integer
from corollary.frontends.sql.binder.values.operators import Site, attempt
from corollary.frontends.sql.query_tree import ConstantValue, Expression, FunctionCall

REST = 2**31 - 1
"""The length that means the rest of a text."""


def _trim(functor: str) -> SqlFunction:
    def build(arguments: list[Expression], site: Site) -> Expression:
        if len(arguments) == 2:
            note = "only blanks can be taken away: `trim(x)`; or use `regexp_replace`"
            raise site.error("C1311", f"`{site.name}` with characters is not supported.", note)
        return call(functor, (fitted(arguments[0], TEXT, site),), SYMBOL, site.span)

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


def _matches(functor: str, count: int) -> SqlFunction:
    """Return a function whose second argument is a pattern, which must be a literal."""

    def build(arguments: list[Expression], site: Site) -> Expression:
        text, pattern = fitted(arguments[0], TEXT, site), literal_text(arguments[1], site)
        fixed: tuple[Expression, ...] = (text, ConstantValue(pattern, SYMBOL))
        if functor == "regexp_extract":
            group = arguments[2] if len(arguments) > 2 else integer(1)
            fixed += (fitted(group, WHOLE, site),)
        elif functor == "regexp_replace":
            fixed += (fitted(arguments[2], TEXT, site),)
        return call(functor, fixed, BOOL if functor == "rlike" else SYMBOL, site.span)

    return SqlFunction(3 if functor == "regexp_replace" else 2, count, build)


def _translate(arguments: list[Expression], site: Site) -> Expression:
    """`translate(text, 'abc', 'xy')`, where no new character is replaced again."""
    text = fitted(arguments[0], TEXT, site)
    old, new = literal_text(arguments[1], site), literal_text(arguments[2], site)
    pairs = {sign: new[i : i + 1] for i, sign in reversed(list(enumerate(old)))}
    if set(pairs) & set("".join(pairs.values())):
        note = "use `replace` several times"
        raise site.error("C1311", "A character that is put in would be taken out again.", note)

    def replaced(found: Expression, pair: tuple[str, str]) -> Expression:
        signs = (ConstantValue(pair[0], SYMBOL), ConstantValue(pair[1], SYMBOL))
        return call("replace", (found, *signs), SYMBOL, site.span)

    return reduce(replaced, pairs.items(), text)


TEXT_FUNCTIONS: dict[str, SqlFunction] = {
    **expressions_of(
        {
            "instr(text: symbol, part: symbol)": "position(part, text)",
            "space(n: number)": "repeat(' ', n)",
            "ilike(text: symbol, pattern: symbol)": "like(lower(text), lower(pattern))",
        }
    ),
    **{name: with_default("substring", integer(REST)) for name in ("substring", "substr")},
    **{name: _matches("rlike", 2) for name in ("rlike", "regexp", "regexp_like")},
    "trim": _trim("trim"),
    "btrim": _trim("trim"),
    "ltrim": _trim("ltrim"),
    "rtrim": _trim("rtrim"),
    "replace": with_default("replace", ConstantValue("", SYMBOL)),
    "lpad": with_default("lpad", ConstantValue(" ", SYMBOL)),
    "rpad": with_default("rpad", ConstantValue(" ", SYMBOL)),
    "regexp_replace": _matches("regexp_replace", 3),
    "regexp_extract": _matches("regexp_extract", 3),
    "concat": SqlFunction(1, 10_000, _concat),
    "concat_ws": SqlFunction(1, 10_000, _concat_with),
    "translate": SqlFunction(3, 3, _translate),
}
"""The functions on text, by their names in Spark."""


# --- binary values ----------------------------------------------------------------------------


def _concat_binary(arguments: list[Expression], site: Site) -> Expression:
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


def _unhex(arguments: list[Expression], site: Site) -> Expression:
    """The first of an odd number of digits is a byte; null where there are other characters."""
    digits = fitted(arguments[0], TEXT, site)
    rest = call("rem", (call("strlen", (digits,), NUMBER), integer(2)), NUMBER)
    padding = call("substring", (ConstantValue("0", SYMBOL), integer(1), rest), SYMBOL)
    padded = call("cat", (padding, digits), SYMBOL, site.span)
    return attempt(call("from_hex", (padded,), BINARY, site.span), [digits], site)


def _bit_length(arguments: list[Expression], site: Site) -> Expression:
    count = call("byte_count", (fitted(arguments[0], BYTES, site),), NUMBER)
    return call("*", (count, integer(8)), NUMBER, site.span)


BINARY_FUNCTIONS: dict[str, SqlFunction] = {
    **expressions_of(
        {
            "length len char_length character_length octet_length(b: binary)": "byte_count(b)",
            "left(b: binary, n: number)": "slice_bytes(b, 1, n)",
            "hex(b: binary)": "to_hex(b)",
            "base64(b: binary)": "to_base64(b)",
        }
    ),
    **{name: with_default("slice_bytes", integer(REST)) for name in ("substring", "substr")},
    "bit_length": SqlFunction(1, 1, _bit_length),
    "concat": SqlFunction(1, 10_000, _concat_binary),
    "decode": SqlFunction(2, 2, _coded("from_utf8")),
}
"""Where an argument is binary."""

CODING_FUNCTIONS: dict[str, SqlFunction] = {
    **expressions_of({"unbase64(s: symbol)": "from_base64(s)"}),
    "encode": SqlFunction(2, 2, _coded("to_utf8")),
    "unhex": SqlFunction(1, 1, _unhex),
}
"""What makes binary values of texts."""
