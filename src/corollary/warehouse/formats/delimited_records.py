"""Splits the text of a facts file into records and fields, with the position of each."""

from collections.abc import Iterator

from corollary.data_class import dataclass
from corollary.warehouse.formats.dialect import Dialect

NEVER_CLOSED = "the quote that opens this field is never closed"
"""The problem of a record whose end is unknown."""


@dataclass(frozen=True, slots=True)
class TextRecord:
    """One record of a file: a line, or several if a quoted field holds line breaks.

    Attributes:
        line: the number of its first line, from 1.
        raw: its text in the file, without the line break at its end.
        fields: the texts of its fields, without quotes.
        delimiter_length: the length of the delimiter.
        offsets: where in `raw` each field starts, if the lengths of the fields do not determine it.
        quoted: the numbers of the fields that were in quotes.
        problem: what is wrong with the quotes, and at which offset.
    """

    line: int
    raw: str
    fields: list[str]
    delimiter_length: int
    offsets: tuple[int, ...] = ()
    quoted: frozenset[int] = frozenset()
    problem: tuple[str, int] | None = None

    def offset(self, number: int) -> int:
        """Return where in the record's text the field of this number, from 0, starts."""
        if self.offsets:
            return self.offsets[number]
        return sum(map(len, self.fields[:number])) + self.delimiter_length * number

    def position(self, offset: int) -> tuple[int, int]:
        r"""Return the line and the column, from 1, of an offset in the record's text.

        >>> TextRecord(7, 'a,"b\nc"', ["a", "b\nc"], 1).position(5)
        (8, 1)
        """
        before = self.raw[:offset]
        return self.line + before.count("\n"), offset - (before.rfind("\n") + 1) + 1


def split_records(text: str, dialect: Dialect, first_line: int = 1) -> Iterator[TextRecord]:
    r"""Yield the records of a text; the last line may have no line break.

    >>> [record.fields for record in split_records("a\tb\r\nc\t", Dialect((0, 1)))]
    [['a', 'b'], ['c', '']]
    """
    line = first_line
    start = 0
    while start < len(text):
        record, end = split_record(text, start, line, dialect)
        yield record
        line += 1 + record.raw.count("\n")
        start = end + 1


def split_record(text: str, start: int, line: int, dialect: Dialect) -> tuple[TextRecord, int]:
    """Return the record that starts at an offset, and where it ends: at a line break, or the end.

    Args:
        text: the text; a record that goes on after it counts as one that is never closed.
        start: the offset.
        line: the number of the line there.
        dialect: the syntax.
    """
    end = _line_end(text, start)
    raw = text[start:end].removesuffix("\r")
    if dialect.is_quoted and '"' in raw:
        return _split_quoted(text, start, line, dialect.delimiter)
    delimiter = dialect.delimiter
    fields = raw.split(delimiter)
    if dialect.brackets:
        fields = _join_bracketed(fields, dialect)
    return TextRecord(line, raw, fields, len(delimiter)), end


def _join_bracketed(parts: list[str], dialect: Dialect) -> list[str]:
    """Return the fields of a record that was also split inside of brackets.

    >>> _join_bracketed(["[1", "[2", "nil]]", "a"], Dialect((0, 1), ",", brackets=(("[", "]"),)))
    ['[1,[2,nil]]', 'a']
    """
    fields: list[str] = []
    depth = 0
    for part in parts:
        if depth > 0:
            fields[-1] += dialect.delimiter + part
        else:
            fields.append(part)
        for left, right in dialect.brackets:
            depth += part.count(left) - part.count(right)
    return fields


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _split_quoted(text: str, start: int, line: int, delimiter: str) -> tuple[TextRecord, int]:
    """Return the record that starts here, with fields in quotes, and where its text ends."""
    fields: list[str] = []
    offsets: list[int] = []
    quoted: set[int] = set()
    problem: tuple[str, int] | None = None
    here = start
    end = _line_end(text, start)
    while True:
        offsets.append(here - start)
        if text.startswith('"', here):
            quoted.add(len(fields))
            closing = _closing_quote(text, here)
            if closing < 0:
                problem = (NEVER_CLOSED, here - start)
                # Which line break ends it is unknown, so all of the rest is malformed.
                end = len(text.removesuffix("\n"))
                break
            fields.append(text[here + 1 : closing].replace('""', '"'))
            here = closing + 1
            end = _line_end(text, here)
        else:
            stop = text.find(delimiter, here, end)
            last = stop if stop >= 0 else end - text.endswith("\r", here, end)
            fields.append(text[here:last])
            here = last
        if text.startswith(delimiter, here) and here < end:
            here += len(delimiter)
            continue
        if text[here:end] not in {"", "\r"}:
            problem = ("text follows the closing quote of a field", here - start)
        break
    raw = text[start:end].removesuffix("\r")
    gap = len(delimiter)
    return TextRecord(line, raw, fields, gap, tuple(offsets), frozenset(quoted), problem), end


def _closing_quote(text: str, opening: int) -> int:
    here = opening + 1
    while (closing := text.find('"', here)) >= 0 and text.startswith('"', closing + 1):
        here = closing + 2
    return closing
