"""COPY FROM: the lines that a client sends become an Arrow file, a block at a time.

    CopyData -> whole records -> columns of texts -> columns of values -> a temporary file

The process that commits maps the file: whatever the size of a COPY, this one has a block of it.
"""

import csv
import io
import re
import tempfile
from typing import Any
from weakref import finalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv
from sqlglot import exp

from corollary.core.arrow import schema_of, single_array
from corollary.core.program import Relation
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.serve.postgres.parameters import FALSE_TEXTS, TRUE_TEXTS
from corollary.serve.postgres.problems import PgError, not_supported
from corollary.serve.postgres.relations import VisibleRelation
from corollary.serve.postgres.statements import CopyStatement
from corollary.warehouse.formats.block_reader import SUBSTITUTE, has_lone_return
from corollary.warehouse.formats.typed_values import Failures, convert_columns, from_texts

COPY_MAX_BYTES = 256 << 20
"""The maximum size of the lines of one COPY."""
BLOCK_BYTES = 4 << 20
RECORD_MAX_BYTES = 16 << 20

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}
_ODD = rb"(?<!\\)((?:\\\\)*)\\"
"""A backslash that another one does not stand for."""
_END_MARK = re.compile(rb"^\\\.\r?\n", re.MULTILINE)
_HAS_ZONE = r"(Z|\d:\d\d.*[+-]\d\d(:?\d\d)?)$"


@dataclass(frozen=True)
class CopiedRows:
    """Rows for a relation, in a file that goes with this object."""

    relation: Relation
    rows: int
    file: Any

    @classmethod
    def of(cls, relation: VisibleRelation, rows: pa.Table) -> "CopiedRows":
        """Write rows to a file, which has their columns."""
        file = tempfile.NamedTemporaryFile(prefix="corollary-rows-")  # noqa: SIM115
        with pa.ipc.new_file(file, rows.schema) as writer:
            writer.write_table(rows)
        file.flush()
        types = {each.name: each.type for each in relation.columns}
        names = tuple(name for name in rows.column_names if name in types)
        found = Relation(relation.name, names, tuple(types[e] for e in names), is_derived=False)
        made = cls(found, rows.num_rows, file)
        finalize(made, file.close)
        return made


class CopyReader:
    """The rows of one COPY.

    Args:
        relation: what they are for.
        form: how they are written.

    Attributes:
        rows: how many there are.
        file: has them, once all are converted; it goes with this object.

    Raises:
        PgError: there is no such column.
    """

    def __init__(self, relation: VisibleRelation, form: CopyStatement) -> None:
        types = {each.name.lower(): each for each in relation.columns}
        assert isinstance(form.source, exp.Select)
        named = [each.name for each in form.source.expressions if not each.is_star] or list(types)
        for at, name in enumerate(named):
            if name.lower() not in types:
                raise PgError("42703", f"`{relation.name}` has no column `{name}`.")
            if name.lower() in (each.lower() for each in named[:at]):
                raise PgError("42701", f"The column `{name}` is named twice.")
        columns = [types[name.lower()] for name in named]
        names, kinds = tuple(e.name for e in columns), tuple(e.type for e in columns)
        self.relation = Relation(relation.name, names, kinds, is_derived=False)
        self.rows = 0
        self.file = tempfile.NamedTemporaryFile(prefix="corollary-copy-")  # noqa: SIM115
        self._writer = pa.ipc.new_file(self.file, schema_of(self.relation))
        self._form, self._is_csv = form, form.format == "csv"
        self._data = bytearray()
        self._bytes, self._line = 0, 1
        self._has_ended = False

    def feed(self, data: bytes) -> bool:
        """Take some bytes; return whether there are enough of them to be converted.

        Raises:
            PgError: there are too many.
        """
        self._bytes += len(data)
        if self._bytes > COPY_MAX_BYTES:
            text = f"One COPY has at most {COPY_MAX_BYTES >> 20} MB."
            raise PgError("54000", text, "copy the rows in several statements")
        self._data += data
        return len(self._data) >= BLOCK_BYTES

    def convert(self, *, is_last: bool = False) -> None:
        """Convert the records that are whole; if they are the last ones, all.

        Raises:
            PgError: a line is no row of the relation; it says which.
        """
        data = bytes(self._data)
        if is_last and data and not data.endswith(b"\n"):
            data += b"\n"
        end = len(data) if is_last else self._end_of_records(data)
        if not end and len(data) > RECORD_MAX_BYTES:
            raise self._error("54000", 0, f"has more than {RECORD_MAX_BYTES:,} bytes")
        block, self._data = data[:end], bytearray(data[end:])
        if self._line == 1 and self._form.has_header and block:
            block, self._line = block.partition(b"\n")[2], 2
        mark = None if self._is_csv else _END_MARK.search(block)
        if block and not self._has_ended:
            self._write(block if mark is None else block[: mark.start()])
        self._has_ended |= mark is not None
        self._line += block.count(b"\n")
        if is_last:
            self._writer.close()
            self.file.flush()

    def _end_of_records(self, data: bytes) -> int:
        """Return where the last whole record ends: lines in quotes do not end one."""
        content = np.frombuffer(data, np.uint8)
        is_break = content == ord("\n")
        if self._is_csv:
            is_break &= np.cumsum(content == ord(self._form.quote)) % 2 == 0
        breaks = np.flatnonzero(is_break)
        return int(breaks[-1]) + 1 if len(breaks) else 0

    def _write(self, block: bytes) -> None:
        texts = self._texts(block)
        for text, name, type_ in zip(
            texts, self.relation.columns, self.relation.types, strict=True
        ):
            if text.null_count and not type_.nullable:
                row = pc.index(text.is_null(), True).as_py()
                raise self._error("23502", row, f"has null in the column `{name}`", block)
            empty = -1 if type_.is_symbol else pc.index(text, "").as_py()
            if empty >= 0:
                raise self._error("22P02", empty, f"has no value in the column `{name}`", block)
        table, failures = convert_columns(texts, self.relation, _values_of)
        for row, reasons in sorted(failures.items()):
            raise self._error("22P02", row, f"is no row: {reasons[0]}", block)
        self._writer.write_table(table)
        self.rows += table.num_rows

    def _texts(self, block: bytes) -> list[pa.Array]:
        """Return the columns of whole records as texts.

        Raises:
            PgError: a record has another number of values, or is not written as it has to be.
        """
        form, quote = self._form, self._form.quote.encode()
        names, wrong = self.relation.columns, []
        is_quoted = self._is_csv and quote in block
        if b"\0" in block:
            raise PgError("22021", "A text cannot have the character 0.")
        if not is_quoted and has_lone_return(block):
            raise PgError("22P04", "A line break within a value has to be quoted or written `\\r`.")
        if not self._is_csv and b"\\" in block:
            block = re.sub(_ODD + b"\n", rb"\1\\n", block)
            block = re.sub(_ODD + re.escape(form.delimiter.encode()), rb"\1" + _MARK, block)

        def refuse(row: arrow_csv.InvalidRow) -> str:
            wrong.append(row)
            return "error"

        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(block),
                arrow_csv.ReadOptions(
                    column_names=[str(at) for at in range(len(names))],
                    use_threads=False,
                    block_size=len(block) + 1,
                ),
                arrow_csv.ParseOptions(
                    delimiter=form.delimiter,
                    quote_char=form.quote if is_quoted else False,
                    newlines_in_values=is_quoted,
                    ignore_empty_lines=False,
                    invalid_row_handler=refuse,
                ),
                arrow_csv.ConvertOptions(
                    column_types={str(at): pa.string() for at in range(len(names))},
                    null_values=[form.null],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid as problem:
            for row in wrong:
                count = f"has {row.actual_columns} values, and not {len(names)}"
                raise self._error("22P04", (row.number or 1) - 1, count, block) from None
            if "UTF8" in str(problem):
                raise PgError("22021", "A text is not valid UTF-8.") from None
            raise PgError("22P04", f"The lines of COPY are not {form.format}: {problem}") from None
        texts = [single_array(each) for each in table.columns]
        return texts if self._is_csv else [_unescaped(each, form.delimiter) for each in texts]

    def _error(self, sqlstate: str, row: int, what: str, block: bytes = b"") -> PgError:
        """Return the error of a record of a block, by its number from 0 on."""
        line = self._line + row
        if self._is_csv and self._form.quote.encode() in block:  # values may have line breaks
            text = io.StringIO(block.decode("utf-8", "replace"), newline="")
            form = self._form
            records = csv.reader(text, delimiter=form.delimiter, quotechar=form.quote)
            for _ in range(row):
                next(records)
            line = self._line + records.line_num
        name = self.relation.name
        return PgError(sqlstate, f"Line {line} of the COPY to `{name}` {what}.", "correct the line")


_MARK = SUBSTITUTE.encode()
"""Stands for a delimiter after a backslash."""


def _unescaped(text: pa.Array, delimiter: str) -> pa.Array:
    r"""Return texts in which what PostgreSQL writes with backslashes stands for itself.

    >>> _unescaped(pa.array([r"a\tb\\n"]), "|").to_pylist()
    ['a\tb\\n']
    """
    text = pc.replace_substring(text, SUBSTITUTE, delimiter)
    if not pc.any(pc.match_substring(text, "\\"), min_count=0).as_py():
        return text
    text = pc.replace_substring(text, "\\\\", "\0")
    if pc.any(pc.match_substring_regex(text, r"\\(x[0-9A-Fa-f]|[0-7])"), min_count=0).as_py():
        raise not_supported("Characters by their numbers are not supported in COPY.")
    for letter, found in _ESCAPES.items():
        text = pc.replace_substring(text, f"\\{letter}", found)
    return pc.replace_substring(pc.replace_substring(text, "\\", ""), "\0", "\\")


def _values_of(text: pa.Array, type_: Type) -> tuple[pa.ChunkedArray, Failures]:
    """Return values as PostgreSQL writes them."""
    if not type_.is_symbol:
        text = pc.utf8_trim_whitespace(text)
    if type_.is_bool:
        lowered = pc.utf8_lower(text)
        for texts, value in ((TRUE_TEXTS, "true"), (FALSE_TEXTS, "false")):
            text = pc.if_else(pc.is_in(lowered, pa.array(sorted(texts))), value, text)
    elif type_.is_timestamp:
        text = _moments(text)
    elif type_.is_binary:
        text = pc.replace_substring_regex(text, r"^\\x", "")
    elif type_.is_float or type_.is_float32:
        text = pc.replace_substring(pc.utf8_lower(text), "infinity", "inf")
    return from_texts(pa.chunked_array([text]), type_)


def _moments(text: pa.Array) -> pa.Array:
    """Return times with their zones as times in UTC; without one, they are."""
    zoned = pc.binary_join_element_wise(text, "Z", "")
    text = pc.if_else(pc.match_substring_regex(text, _HAS_ZONE), text, zoned)
    text = pc.replace_substring_regex(text, r"[+-]00(:?00)?$", "Z")
    if pc.all(pc.ends_with(text, "Z"), min_count=0).as_py():
        return text
    try:
        completed = pc.replace_substring_regex(text, r"([+-]\d\d)$", r"\1:00")
        moments = completed.cast(pa.timestamp("us", "UTC"))
    except pa.ArrowInvalid:
        return text
    return pc.strftime(moments, format="%Y-%m-%dT%H:%M:%SZ")
