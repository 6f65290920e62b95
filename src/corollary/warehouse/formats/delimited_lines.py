"""Turns a table into the lines of a facts file, and finds what could not be read back."""

import re
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import canonical_floats, distinct_values, to_stored_column
from corollary.core.logic import Value
from corollary.core.program import Directive, Relation
from corollary.core.records import record_text
from corollary.core.types import Type
from corollary.core.values import SCALARS, format_value, quote_text
from corollary.errors import Diagnostic, InputError, Severity
from corollary.warehouse.formats.dialect import Dialect

CONTROL_CHARACTERS = r"[\x00-\x08\x0b-\x1f\x7f-\x{9f}]"
"""What would change a terminal rather than show in it; all but tabs and line breaks."""
AMBIGUOUS_CHARACTERS = r"[\x00-\x1f\x7f-\x{9f}\\]"
"""These, what separates fields and lines, and what begins an escape."""
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_BATCH_ROWS = 65536
_BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"


def lines_of(
    table: pa.Table,
    relation: Relation,
    directive: Directive,
    dialect: Dialect,
    *,
    escaped: str = "",
    warnings: list[Diagnostic] | None = None,
) -> Iterator[bytes]:
    r"""Yield the lines of a file with these rows, many in each piece.

    Args:
        table: the rows.
        relation: the relation of the rows.
        directive: the `.output`, for messages.
        dialect: the syntax of the file.
        escaped: a pattern of characters that are written as escapes such as `\x1b`. Without one,
            rows that could not be read back are refused.
        warnings: gets the findings about rows that have the delimiter or a line break inside of a
            field, which are written then, as Soufflé does; without it they are refused.

    Raises:
        InputError: `C0807`; a row has a text that the file's syntax cannot express.
    """
    if dialect.has_header and relation.types:
        names = dialect.delimiter.join(_in_file_order(relation.columns, dialect))
        yield (directive.parameter("attributeNames", names) + "\n").encode()
    for first in range(0, table.num_rows, _BATCH_ROWS):
        if not relation.types:
            yield b"()\n"
            return
        rows = table.slice(first, _BATCH_ROWS).combine_chunks()
        texts = [text_column(*pair) for pair in zip(rows.columns, relation.types, strict=True)]
        if escaped:
            texts = [
                _escape(text, escaped) if type_.is_symbol else text
                for text, type_ in zip(texts, relation.types, strict=True)
            ]
        else:
            _Check(relation, directive, dialect, rows, first, warnings=warnings).check(texts)
        if dialect.is_quoted:
            texts = [
                _quote(_with_quoted_symbols(text, type_))
                if type_.is_symbol or type_.is_binary or _needs_quotes(text, dialect)
                else text
                for text, type_ in zip(texts, relation.types, strict=True)
            ]
        yield join_fields(_in_file_order(texts, dialect), dialect.delimiter)


def text_column(column: pa.ChunkedArray, type_: Type) -> pa.Array:
    """Return the values of a column as text, like `values.text_of`; null stays null."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # before Arrow 23 an empty column came as no chunk
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if type_.is_binary:
        return to_stored_column(pa.chunked_array([array]), type_).combine_chunks().cast(pa.string())
    if type_.members or type_.is_float32 or type_.is_time_of_day:
        values, rows = distinct_values(array)
        return pa.array([format_value(each, type_) for each in values], pa.string()).take(rows)
    if type_.is_float:
        floats = canonical_floats(array).to_pylist()
        return pa.array([None if v is None else repr(v) for v in floats], pa.string())
    if type_.is_timestamp or type_.is_timestamp_ntz:
        # Without the zone Arrow is twenty times as fast.
        text = pc.cast(array.cast(pa.timestamp("us")), pa.string())
        text = pc.replace_substring(pc.replace_substring(text, " ", "T"), ".000000", "")
        end = "Z" if type_.is_timestamp else ""
        return pc.binary_join_element_wise(text, end, "", null_handling="emit_null")
    text = pc.cast(array, pa.string())
    if type_.is_decimal and pc.any(pc.match_substring(text, "E")).as_py():
        # Arrow writes small decimals with an exponent.
        texts = [None if v is None else format_value(v, type_) for v in array.to_pylist()]
        return pa.array(texts, pa.string())
    return text


def join_fields(texts: list[pa.Array], delimiter: str) -> bytes:
    r"""Return the lines with these fields, each with its line break; null is the empty field.

    >>> join_fields([pa.array(["a", None]), pa.array(["b", "c"])], ";")
    b'a;b\n;c\n'
    """
    ended = _join([texts[-1], ""], "\n")
    lines = _join([*texts[:-1], ended], delimiter) if len(texts) > 1 else ended
    content = lines.buffers()[2]  # the lines are adjacent in memory already
    return b"" if content is None else content.to_pybytes()


def _join(parts: list[pa.Array | str], separator: str) -> pa.Array:
    return pc.binary_join_element_wise(
        *parts, separator, null_handling="replace", null_replacement=""
    )


def _escape(text: pa.Array, characters: str) -> pa.Array:
    r"""Return texts with escapes in place of the characters of a pattern.

    >>> _escape(pa.array(["a", "\x1b[1m\t"]), AMBIGUOUS_CHARACTERS).to_pylist()
    ['a', '\\x1b[1m\\t']
    """
    needs = pc.fill_null(pc.match_substring_regex(text, characters), False)
    if not pc.any(needs, min_count=0).as_py():
        return text
    pattern = re.compile(characters.replace("{", "").replace("}", ""))
    escaped = [pattern.sub(_escape_of, each) for each in text.filter(needs).to_pylist()]
    return pc.replace_with_mask(text, needs, pa.array(escaped, text.type))


def _escape_of(found: re.Match[str]) -> str:
    character = found.group()
    return _ESCAPES.get(character, f"\\x{ord(character):02x}")


def _with_quoted_symbols(text: pa.Array, type_: Type) -> pa.Array:
    """Return records with quotes around the symbols inside, as Soufflé writes them in quotes."""
    record = type_.record
    if record is None:
        return text

    def print_scalar(value: Value, inner: Type) -> str:
        return record_text.quoted(value) if isinstance(value, str) else format_value(value, inner)

    words = text.dictionary_encode()
    printed = [
        record_text.print_record(each, record, SCALARS, print_scalar)
        for each in words.dictionary.to_pylist()
    ]
    return pa.array(printed, pa.string()).take(words.indices)


def _quote(text: pa.Array) -> pa.Array:
    doubled = pc.replace_substring(text, '"', '""')
    return pc.binary_join_element_wise('"', doubled, '"', "", null_handling="emit_null")


def _in_file_order(items: "tuple[str, ...] | list[pa.Array]", dialect: Dialect) -> list[pa.Array]:
    order = sorted(range(len(items)), key=dialect.positions.__getitem__)
    return [items[number] for number in order]


def _needs_quotes(text: pa.Array, dialect: Dialect) -> bool:
    return bool(pc.any(_splits(text, dialect.delimiter, is_last=False), min_count=0).as_py())


def _has_odd_brackets(text: pa.Array, dialect: Dialect) -> pa.Array:
    """Return for each record whether brackets in its symbols could hide where it ends."""
    is_odd = pc.match_substring(text, '"')
    for left, right in dialect.brackets:
        counts = pc.count_substring(text, left), pc.count_substring(text, right)
        is_odd = pc.or_(is_odd, pc.not_equal(*counts))
    return is_odd


def _splits(text: pa.Array, delimiter: str, *, is_last: bool) -> pa.Array:
    """Return for each field whether a reader would see a delimiter inside it.

    With a delimiter of several characters the field's end may make one: `a;` before `;;`.
    """
    if is_last:
        return pc.match_substring(text, delimiter)
    followed = pc.binary_join_element_wise(text, "", delimiter)
    return pc.not_equal(pc.find_substring(followed, delimiter), pc.binary_length(text))


class _Check:
    """Finds texts that could not be read back from the file."""

    def __init__(
        self,
        relation: Relation,
        directive: Directive,
        dialect: Dialect,
        rows: pa.Table,
        first: int,
        *,
        warnings: list[Diagnostic] | None,
    ) -> None:
        self.relation = relation
        self.directive = directive
        self.dialect = dialect
        self.rows = rows
        self.first = first
        self.warnings = warnings

    def check(self, texts: list[pa.Array]) -> None:
        """Raise for the first column with such a text."""
        cure = "write rfc4180=true in the directive, which puts symbols in quotes"
        last = max(self.dialect.positions)
        for number, (text, type_) in enumerate(zip(texts, self.relation.types, strict=True)):
            position = self.dialect.positions[number]
            if type_.is_symbol:
                self.refuse(number, pc.match_substring(text, "\0"), "a NUL character", None)
            if self.dialect.is_quoted:
                continue
            splits = _splits(text, self.dialect.delimiter, is_last=position == last)
            if self.dialect.brackets and type_.record is not None:
                splits = pc.and_(splits, _has_odd_brackets(text, self.dialect))
            self.warn(number, splits, f"the delimiter {quote_text(self.dialect.delimiter)}", cure)
            if type_.is_symbol:
                breaks = pc.match_substring_regex(text, "[\r\n]")
                self.warn(number, breaks, "a line break", cure)
            if type_.nullable and (type_.is_symbol or type_.is_binary):
                empty = pc.equal(text, "")
                self.refuse(number, empty, "an empty text, which would read as null", cure)
            is_begin = position == self.first == 0 and not self.dialect.has_header
            if type_.is_symbol and is_begin:
                mark = pc.starts_with(text[:1], _BYTE_ORDER_MARK)
                self.refuse(number, mark, "a byte order mark at the start of the file", cure)

    def warn(self, column: int, is_bad: pa.Array, what: str, cure: str) -> None:
        """Note that a row is ambiguous, once for all rows, or raise if nobody takes warnings."""
        if self.warnings is None:
            self.refuse(column, is_bad, what, cure)
        elif all(each.span is not self.directive.span for each in self.warnings):
            message = self.message(column, is_bad, what)
            if message:
                message = f"{message}: the file cannot be read back"
                found = Diagnostic(
                    "C0808", message, self.directive.span, cure, severity=Severity.WARNING
                )
                self.warnings.append(found)

    def refuse(self, column: int, is_bad: pa.Array, what: str, cure: str | None) -> None:
        """Raise if a row is bad, naming it."""
        message = self.message(column, is_bad, what)
        if message:
            raise InputError.of("C0807", message, self.directive.span, cure)

    def message(self, column: int, is_bad: pa.Array, what: str) -> str:
        """Return what is to be said about the first bad row; nothing if all are good."""
        if not pc.any(is_bad, min_count=0).as_py():
            return ""
        index = pc.index(is_bad, True).as_py()
        fields = (
            quote_text(format_value(values[index].as_py(), type_))
            for values, type_ in zip(self.rows.columns, self.relation.types, strict=True)
        )
        return (
            f"row {self.first + index + 1} of `{self.relation.name}`, ({', '.join(fields)}), "
            f"has {what} in column `{self.relation.columns[column]}`"
        )
