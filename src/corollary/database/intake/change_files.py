"""Files that users pass for one transaction: files of changes, and files of rows.

A file of changes has JSON lines, each one operation:

| line                                                        | does                              |
|-------------------------------------------------------------|-----------------------------------|
| `{"op": "insert", "relation": "edge", "row": ["a", "b"]}`   | adds a tuple to a base relation   |
| `{"op": "delete", "relation": "edge", "row": ["a", "b"]}`   | removes one                       |
| `{"op": "add-rule", "rule": "link(x, y) :- edge(x, y)."}`   | adds a rule, or a fact of the text|
| `{"op": "remove-rule", "rule": "link(x, y) :- edge(x, y)."}`| removes one                       |

Operations apply in order: of several on one tuple the last one wins; in a relation with copies each
adds or removes one. Empty lines are ignored.
"""

import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from corollary.analysis.phrases import suggest_name
from corollary.core.arrow import empty_table, to_python
from corollary.core.logic import Value
from corollary.core.program import NormalProgram, Relation
from corollary.core.states import State
from corollary.data_class import dataclass
from corollary.database.program.names import writable_relation
from corollary.database.transaction import Transaction
from corollary.database.writing.bag_operations import check_counts, counted_table
from corollary.errors import Diagnostic, InputError, Severity
from corollary.warehouse.copies import net_counts
from corollary.warehouse.files import input_files
from corollary.warehouse.formats.delimited import first_findings
from corollary.warehouse.formats.file_extensions import input_of, is_delimited
from corollary.warehouse.formats.text_records import BLOCK_BYTES
from corollary.warehouse.formats.text_stream import TextStream
from corollary.warehouse.sources import json_line
from corollary.warehouse.sources.source import TableRows
from corollary.warehouse.sources.source_factory import SourceFactory

if TYPE_CHECKING:
    from datetime import date

    import pyarrow as pa

HEADERS_HINT = "if the first line names the columns, say `--headers`"
STDIN = "-"
SIGN_BY_OP = {"insert": State.ADDED, "delete": State.REMOVED}
KEYS_BY_OP = {
    "insert": ("relation", "row"),
    "delete": ("relation", "row"),
    "add-rule": ("rule",),
    "remove-rule": ("rule",),
}
"""The operations, and what each one needs beside `op`."""
KEY_TYPES: dict[str, tuple[type, str]] = {
    "relation": (str, "the name of a relation, as a text"),
    "row": (list, "an array of values in the order of the columns"),
    "rule": (str, "the text of a rule"),
}
EXAMPLES = {
    "row": '{"op": "%s", "relation": "edge", "row": ["a", "b"]}',
    "rule": '{"op": "%s", "rule": "link(x, y) :- edge(x, y)."}',
}
NAN = object()
DECODE = json_line.json_decoder(is_exact=True)


@dataclass(frozen=True, slots=True)
class RuleEdit:
    """A rule that is added or removed, and what messages call its text."""

    operation: str
    rule: str
    place: str


@dataclass(frozen=True, slots=True)
class ChangeFile:
    """The contents of a file of changes.

    Attributes:
        name: what messages call it.
        operations: for each relation the tuples that are deleted and those that are inserted.
        edits: the rules that are added and removed, in order.
    """

    name: str
    operations: list[tuple[State, str, list[tuple[Value, ...]]]]
    edits: list[RuleEdit]

    def apply_to(self, transaction: Transaction) -> None:
        """Add all changes to a transaction.

        Raises:
            InputError: a rule cannot be added or removed.
        """
        for sign, relation, rows in self.operations:
            if sign is State.ADDED:
                transaction.insert(relation, rows)
            else:
                transaction.delete(relation, rows)
        findings: list[list[Diagnostic]] = []
        for edit in self.edits:
            is_added = edit.operation == "add-rule"
            change = transaction.add_rule if is_added else transaction.remove_rule
            try:
                change(edit.rule, place=edit.place)
            except InputError as error:
                findings.append(list(error.diagnostics))
        if findings:
            raise InputError(first_findings(findings, self.name))


def digest_change(
    lines: ChangeFile | None, day: "date | None", tables: Iterable[tuple[str, str, "pa.Table"]] = ()
) -> str:
    """Return a digest of a change: of the same change it is the same, in whatever way it comes.

    Args:
        lines: of a file of changes, if there is one.
        day: that `today()` is set to, if it is.
        tables: rows that are inserted or deleted besides: the operation, the relation, the rows.
    """
    edits = [] if lines is None else [(each.operation, each.rule) for each in lines.edits]
    operations = [] if lines is None else lines.operations
    found = hashlib.sha256(repr((operations, edits, day)).encode())
    for operation, relation, rows in tables:
        import pyarrow as pa

        found.update(repr((operation, relation)).encode())
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_table(rows.combine_chunks())
        found.update(sink.getvalue())
    return found.hexdigest()


def read_changes(file: str, program: NormalProgram) -> ChangeFile:
    """Return the changes in a file, or on standard input if it is `-`.

    Raises:
        InputError: `C0804`, it cannot be read; or lines do not fit the program.
    """
    return parse_changes(read_content(file), changes_name(file), program)


def changes_name(file: str) -> str:
    """Return what messages call a file of changes."""
    return "<stdin>" if file == STDIN else file


def parse_changes(content: bytes, name: str, program: NormalProgram) -> ChangeFile:
    """Return the changes of some lines, which messages call by a name.

    Raises:
        InputError: lines do not fit the program.
    """
    reader = _ChangeReader(name, program)
    for number, line in enumerate(content.split(b"\n"), 1):
        if line and not line.isspace():
            reader.read((number, line))
    operations = [each for rows in reader.rows.values() for each in reader.net_changes(rows)]
    if reader.findings:
        raise InputError(
            first_findings(sorted(reader.findings, key=json_line.first_line_number), name)
        )
    return ChangeFile(name, operations, reader.edits)


@dataclass(slots=True)
class _Rows:
    """The changes of one relation, line by line."""

    relation: Relation
    signs: list[State] = field(default_factory=list)
    values: list[list[Any]] = field(default_factory=list)
    lines: list[json_line.NumberedLine] = field(default_factory=list)


class _ChangeReader:
    """Reads lines, and collects findings."""

    def __init__(self, name: str, program: NormalProgram) -> None:
        self.name = name
        self.program = program
        self.rows: dict[str, _Rows] = {}
        self.edits: list[RuleEdit] = []
        self.findings: list[list[Diagnostic]] = []
        self.refused: set[str] = set()

    def read(self, place: json_line.NumberedLine) -> None:
        """Read one line."""
        try:
            change = _change(place[1])
            if change["op"] not in SIGN_BY_OP:
                where = f"{self.name}:{place[0]} rule"
                self.edits.append(RuleEdit(change["op"], change["rule"], where))
            elif change["relation"] not in self.refused:
                self.read_row(change, place)
        except json_line.BadLineError as bad:
            self.findings.append([json_line.line_finding(self.name, place, bad)])

    def read_row(self, change: dict[str, Any], place: json_line.NumberedLine) -> None:
        """Read a tuple that is inserted or deleted."""
        name = change["relation"]
        try:
            relation = writable_relation(self.program, name, json_line.line_span(self.name, place))
        except InputError as error:
            self.refused.add(name)  # one finding for a relation is enough
            self.findings.append(list(error.diagnostics))
            return
        if len(change["row"]) != relation.arity:
            columns = f"give a value for each of {', '.join(relation.columns) or 'no columns'}"
            message = (
                f"the row has {len(change['row'])} values, `{name}` has {relation.arity} columns"
            )
            raise json_line.BadLineError("C0971", message, 0, columns)
        rows = self.rows.setdefault(name, _Rows(relation))
        rows.signs.append(SIGN_BY_OP[change["op"]])
        rows.values.append(change["row"])
        rows.lines.append(place)

    def net_changes(self, given: _Rows) -> Iterator[tuple[State, str, list[tuple[Value, ...]]]]:
        """Yield the tuples of a relation whose last operation is a delete, then the inserts."""
        table, failures = json_line.convert_rows(given.values, given.relation)
        for row, reasons in failures.items():
            bad = [
                json_line.BadLineError("C0971", each, 0, json_line.DEFAULT_NOTES["C0801"])
                for each in reasons
            ]
            self.findings.append(
                [json_line.line_finding(self.name, given.lines[row], each) for each in bad]
            )
        if failures:
            return
        counts = self.program.bags.get(given.relation.name, given.relation.name)
        if counts in self.program.bags.values():
            yield from _net_copies(self.program, given, table, counts)
            return
        rows = to_python(table)
        last = {row_key(row): number for number, row in enumerate(rows)}
        for sign in (State.REMOVED, State.ADDED):
            found = [rows[number] for number in last.values() if given.signs[number] is sign]
            if found:
                yield sign, given.relation.name, found


def _net_copies(
    program: NormalProgram, given: _Rows, table: "pa.Table", counts: str
) -> Iterator[tuple[State, str, list[tuple[Value, ...]]]]:
    """Yield how many copies of which rows are deleted, then inserted."""
    name = given.relation.name
    counted = counted_table(program, name, table)
    if name == counts:
        check_counts(given.relation, counted)
    removed, added = net_counts(counted, np.array([each is State.ADDED for each in given.signs]))
    for sign, rows in ((State.REMOVED, removed), (State.ADDED, added)):
        if rows.num_rows:
            yield sign, counts, to_python(rows)


def read_content(file: str) -> bytes:
    """Return the lines of a file of changes, or of standard input if it is `-`.

    Raises:
        InputError: `C0804`, it cannot be read.
    """
    name = changes_name(file)
    try:
        if file == STDIN:
            data = sys.stdin.buffer.read()
        else:
            with input_files.open_file(Path(file), name, None) as stream:
                data = stream.read()
    except OSError as error:
        raise input_files.file_error(name, "read", error, None) from None
    text = TextStream(BytesIO(data), name, None)
    return b"".join(iter(lambda: text.read(BLOCK_BYTES), b""))


def _change(line: bytes) -> dict[str, Any]:
    """Return the change on a line.

    Raises:
        BadLineError: `C0970`, the line is not a change.
    """
    try:
        value = json_line.parse_line(line, DECODE)
    except json_line.BadLineError as bad:
        code = "C0970" if bad.code == "C0957" else bad.code
        raise json_line.BadLineError(code, bad.message, bad.offset, _example("insert")) from None
    if not isinstance(value, dict):
        raise json_line.BadLineError(
            "C0970", "the line is not a JSON object", 0, _example("insert")
        )
    operation = value.get("op")
    if not isinstance(operation, str) or operation not in KEYS_BY_OP:
        listed = ", ".join(f'"{each}"' for each in KEYS_BY_OP)
        message = "the line has no `op`" if operation is None else f"there is no `op` {operation!r}"
        near = suggest_name(operation, KEYS_BY_OP) if isinstance(operation, str) else None
        raise json_line.BadLineError("C0970", message, 0, near or f"`op` is one of {listed}")
    article = "an" if operation[0] in "ai" else "a"
    for key in KEYS_BY_OP[operation]:
        kind, described = KEY_TYPES[key]
        if key not in value:
            message = f"{article} `{operation}` needs `{key}`, {described}"
            raise json_line.BadLineError("C0970", message, 0, _example(operation))
        if not isinstance(value[key], kind):
            message = f"`{key}` is {described}"
            raise json_line.BadLineError("C0970", message, 0, _example(operation))
    for key in value.keys() - {"op", *KEYS_BY_OP[operation]}:
        message = f"{article} `{operation}` has no `{key}`"
        raise json_line.BadLineError("C0970", message, 0, _example(operation))
    return value


def _example(operation: str) -> str:
    return f"write a line such as `{EXAMPLES[KEYS_BY_OP[operation][-1]] % operation}`"


def row_key(row: Sequence[Any]) -> tuple[Any, ...]:
    """Return a key that is equal for equal rows; NaN equals itself here."""
    return tuple(NAN if value != value else value for value in row)  # noqa: PLR0124 - only NaN


# --- files of rows --------------------------------------------------------------------------------


def read_rows(
    file: str, relation: Relation, *, has_headers: bool = False
) -> "tuple[pa.Table, list[Diagnostic]]":
    """Return the rows of a file, in the format of its extension, and warnings.

    Args:
        file: a file, a pattern of files or a Delta table.
        relation: the relation that the rows are for.
        has_headers: whether the first line of delimited text names the columns.

    Raises:
        InputError: it cannot be read, its format is not known, or a row does not fit.
    """
    directive = input_of(relation, file, has_headers=has_headers)
    source = SourceFactory(Path(), Path(Path.cwd().anchor)).source(directive, relation)
    may_have_headers = is_delimited(file) and not has_headers
    try:
        change = source.change_since(None, TableRows(empty_table(relation)))
    except InputError as error:
        if not may_have_headers:
            raise
        raise InputError(map(_with_hint, error.diagnostics)) from None
    warnings = list(change.warnings)
    if may_have_headers and _has_row_of_names(change.added, relation):
        message = f"A row of `{file}` holds just the names of the columns of `{relation.name}`."
        warnings.append(Diagnostic("C0974", message, None, HEADERS_HINT, severity=Severity.WARNING))
    return change.added, warnings


def _has_row_of_names(rows: "pa.Table", relation: Relation) -> bool:
    """Return whether a row holds just the names of the columns."""
    import pyarrow.compute as pc

    if not relation.arity or any(not type_.is_symbol for type_ in relation.types):
        return False
    for name in relation.columns:
        rows = rows.filter(pc.equal(rows.column(name), name))
    return bool(rows.num_rows)


def _with_hint(finding: Diagnostic) -> Diagnostic:
    """Return a finding, with a hint if it is about the first line."""
    is_first = finding.span is not None and finding.span.line == 1
    note = f"{finding.note}; {HEADERS_HINT}" if finding.note else HEADERS_HINT
    return replace(finding, note=note) if is_first else finding
