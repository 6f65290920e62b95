"""The types of columns in CREATE TABLE."""

from corollary.errors import InputError
from corollary.frontends.sql.column_types import read_type
from corollary.frontends.sql.statements.nodes import DeclaredType
from corollary.frontends.sql.statements.tokens import TokenCursor
from corollary.frontends.sql.statements.trees import parse_type

_CURES = {
    "CHAR": "write `VARCHAR(n)` or `STRING`: Spark would add blanks to a CHAR",
    "CHARACTER": "write `VARCHAR(n)` or `STRING`: Spark would add blanks to a CHAR",
    "TEXT": "write `STRING`",
    "FLOAT": "write `DOUBLE`: floats have 64 bits here",
    "REAL": "write `DOUBLE`: floats have 64 bits here",
}


def read_declared_type(cursor: TokenCursor) -> DeclaredType:
    """Return the type that comes next; it may be null.

    Raises:
        InputError: there is no such type here.
    """
    start, span, word = cursor.position, cursor.span, cursor.word()
    if not word.isidentifier():
        cursor.fail("the type of a column")
    cursor.position += 1
    inside = cursor.bracketed() if cursor.is_next("(") else []
    tokens = cursor.tokens[start : cursor.position]
    if word in _CURES:
        text = f"`{word}` is not a type that columns can have here."
        raise InputError.of("C1362", text, span, _CURES[word])
    found = read_type(parse_type(tokens, cursor.file), cursor.file)
    length = None
    if found.type.is_symbol and inside:
        length = int(inside[0].text) if inside[0].text.isdecimal() else 0
        if len(inside) > 1 or not length:
            raise InputError.of(
                "C1362", f"`{word}` has one length, 1 or more.", span, "write `VARCHAR(20)`"
            )
    written = "".join(token.text.upper() for token in tokens)
    return DeclaredType(found.type.with_null(True), written, found.bits, length)
