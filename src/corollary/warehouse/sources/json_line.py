"""One line of JSON lines: its value, the values of its columns, and its defects."""

import json
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from corollary.core.arrow import nullary_table
from corollary.core.program import Relation
from corollary.errors import Diagnostic, InputError
from corollary.source import SourceFile, Span
from corollary.warehouse.files.input_files import LINE_MAX_BYTES
from corollary.warehouse.formats.block_reader import too_long_line
from corollary.warehouse.formats.typed_values import convert_columns, from_json

DEFAULT_NOTES = {
    "C0801": "correct the value, or the type of the column; texts are in quotes, numbers are not",
    "C0802": "give a value for each column; one that may be missing is declared with `?`",
    "C0803": "JSON is plain text; a NUL inside of a text is written \\u0000",
    "C0957": "write one whole JSON object or array on each line",
}

NumberedLine = tuple[int, bytes]
"""A line and its number."""


class BadLineError(Exception):
    """A line that is not a row.

    Attributes:
        code: of the finding.
        message: what is wrong.
        offset: where in the line, in characters from 0.
        note: how to correct it.
    """

    def __init__(self, code: str, message: str, offset: int = 0, note: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.offset = offset
        self.note = note or DEFAULT_NOTES.get(code)


def json_decoder(*, is_exact: bool) -> Callable[[str], Any]:
    """Return a decoder of JSON texts; fractions become decimals if exact, else floats."""
    return json.JSONDecoder(
        object_pairs_hook=_object,
        parse_float=Decimal if is_exact else float,
        parse_constant=_refuse_constant,
    ).decode


def parse_line(line: bytes, decode: Callable[[str], Any]) -> Any:
    """Return the JSON value on a line.

    Raises:
        BadLineError: it is not JSON.
    """
    if len(line) > LINE_MAX_BYTES:
        raise BadLineError("C0952", "")
    if b"\0" in line:
        raise BadLineError("C0803", "the file holds a NUL byte here", line.index(b"\0"))
    try:
        return decode(line.decode())
    except UnicodeDecodeError as error:
        note = "convert the file to UTF-8, for instance with iconv"
        message = f"the byte 0x{line[error.start]:02x} is not UTF-8 here"
        before = len(line[: error.start].decode())
        raise BadLineError("C0803", message, before, note) from None
    except json.JSONDecodeError as error:
        raise BadLineError("C0957", f"the line is not JSON: {error.msg}", error.pos) from None
    except ValueError as error:
        raise BadLineError("C0957", f"the line is not JSON: {error}") from None
    except RecursionError:
        raise BadLineError("C0957", "the line is nested too deeply") from None


def split_document(text: bytes, name: str) -> list[NumberedLine]:
    r"""Return the items of a JSON array, each on one line, with the line that it begins on.

    >>> split_document(b'[[1, 2],\n {"x": 3}]', "p.json")
    [(1, b'[1, 2]'), (2, b'{"x": 3}')]

    Raises:
        InputError: `C0957`, it is not an array; `C0803`, it is not UTF-8.
    """
    try:
        whole = text.decode()
        items = _item_spans(whole)
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        bad = BadLineError("C0803", f"the byte 0x{text[error.start]:02x} is not UTF-8 here")
        raise InputError([line_finding(name, (line, b""), bad)]) from None
    except json.JSONDecodeError as error:
        at_fault = text.split(b"\n")[error.lineno - 1]
        note = "write one JSON array with an array or an object for each row"
        message = f"the file is not a JSON array: {error.msg}"
        bad = BadLineError("C0957", message, error.colno - 1, note)
        raise InputError([line_finding(name, (error.lineno, at_fault), bad)]) from None
    found: list[NumberedLine] = []
    number = end = 0
    for start, after in items:
        number += whole.count("\n", end, start)
        item = whole[start:after]
        found.append((number + 1, " ".join(item.splitlines()).encode()))
        number += item.count("\n")
        end = after
    return found


def _item_spans(text: str) -> list[tuple[int, int]]:
    """Return where the items of a JSON array are.

    Raises:
        JSONDecodeError: it is not an array.
    """
    decode = json.JSONDecoder().raw_decode

    def skip(sign: str, at: int) -> int:
        """Return where the text goes on after a sign, and the spaces around it."""
        found = re.compile(rf"[ \t\r\n]*{re.escape(sign)}[ \t\r\n]*").match(text, at)
        if found is None:
            raise json.JSONDecodeError(f"Expecting '{sign}'", text, at)
        return found.end()

    spans: list[tuple[int, int]] = []
    at = skip("[", 0)
    while not text.startswith("]", at):
        if spans:
            at = skip(",", at)
        _, after = decode(text, at)
        spans.append((at, after))
        at = skip("", after)
    if skip("]", at) != len(text):
        raise json.JSONDecodeError("Extra data", text, at + 1)
    return spans


def column_values(value: object, relation: Relation) -> list[Any]:
    """Return the values of the columns: in an object by name, in an array in order.

    Raises:
        BadLineError: one is missing.
    """
    match value:
        case dict():
            return [
                value[name] if name in value else _absent(relation, at)
                for at, name in enumerate(relation.columns)
            ]
        case list():
            if len(value) != relation.arity:
                message = (
                    f"{len(value)} values stand where `{relation.name}` has "
                    f"{relation.arity} columns"
                )
                raise BadLineError("C0802", message)
            return value
        case _:
            raise BadLineError("C0957", "the line is neither a JSON object nor an array")


def convert_rows(
    rows: Sequence[Sequence[Any]], relation: Relation
) -> tuple[pa.Table, dict[int, list[str]]]:
    """Return a table of the rows whose values have the right types, and why others do not."""
    if not relation.types:
        return nullary_table(len(rows)), {}
    columns = list(zip(*rows, strict=True)) if rows else [()] * relation.arity
    return convert_columns(columns, relation, from_json)


def line_finding(name: str, place: NumberedLine, bad: BadLineError) -> Diagnostic:
    """Return the finding about a malformed line of a file."""
    span = line_span(name, place, bad.offset)
    if bad.code == "C0952":
        return too_long_line(name, span.line, span.file.text)
    return Diagnostic(bad.code, bad.message, span, bad.note)


def first_line_number(findings: Sequence[Diagnostic]) -> int:
    """Return the number of the line that findings are about."""
    span = findings[0].span
    return 0 if span is None else span.line


def line_span(name: str, place: NumberedLine, offset: int = 0) -> Span:
    """Return the span of a character in a line of a file."""
    number, line = place
    raw = line.removesuffix(b"\r").decode("utf-8", "backslashreplace")
    return Span(SourceFile(name, raw, number), number, offset + 1, number, offset + 2)


def _absent(relation: Relation, column: int) -> Any:
    """Return the value of a column that is missing in an object: null, if it may be null."""
    if relation.types[column].nullable:
        return None
    where = f"column `{relation.columns[column]}` of `{relation.name}`"
    raise BadLineError("C0802", f"the object has no value for {where}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object names a key twice")
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"`{name}` is not JSON; write it as a text")
