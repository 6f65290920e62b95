"""Tables of SQLite databases, in the layout of Soufflé: read in batches, written in a transaction.

| name in the database | holds, for a relation `p`                                               |
|----------------------|-------------------------------------------------------------------------|
| `_p`                 | its rows, columns `0`, `1` …; texts by their number in `__SymbolTable`  |
| `__SymbolTable`      | `id` and `symbol` of all texts of the database                          |
| `p`                  | a view of `_p` with its texts, and the names of the columns             |

Numbers are `INTEGER`, floats `REAL`, truth values 0 and 1, decimals, dates and times the text that
facts files have; so is an `unsigned` that 64 bits with a sign do not hold. What is read may be any
table or view.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from corollary.core.arrow import sort_rows, to_python
from corollary.core.program import Directive, Relation
from corollary.core.types import NUMBER_RANGE, Kind, Type
from corollary.core.values import format_value
from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.source import Span
from corollary.warehouse.files.input_files import file_error

BATCH_ROWS = 1 << 16
SYMBOL_TABLE = "__SymbolTable"


def table_name_of(directive: Directive) -> str:
    """Return the name of the table or view that a directive reads or writes."""
    return directive.parameter("name", directive.relation)


# --- reading --------------------------------------------------------------------------------------


class SqliteTable:
    """A table or view of a database that is open to be read.

    Attributes:
        columns: the names of its columns.
    """

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self._connection = connection
        self._name = name
        described = connection.execute(f"SELECT * FROM {_quoted(name)} LIMIT 0").description  # noqa: S608
        self.columns = tuple(str(each[0]) for each in described)

    def batches(self, positions: Sequence[int]) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows, with the columns at some positions, in batches."""
        wanted = ", ".join(_quoted(self.columns[at]) for at in positions)
        cursor = self._connection.execute(f"SELECT {wanted} FROM {_quoted(self._name)}")  # noqa: S608
        while rows := cursor.fetchmany(BATCH_ROWS):
            yield rows


@contextmanager
def open_table(path: Path, shown: str, name: str, span: Span | None) -> Iterator[SqliteTable]:
    """Open a table to read it as it is at this time.

    Args:
        path: the file of the database.
        shown: what messages call it.
        name: of the table or view.
        span: the directive.

    Raises:
        InputError: `C0804`, there is no such file; `C0991`, it is not a database, or has no such
            table.
    """
    if not path.is_file():
        raise file_error(shown, "read", FileNotFoundError(2, "No such file or directory"), span)
    try:
        with closing(_connect(path, "ro")) as connection:
            connection.execute("BEGIN")  # all reads see one state of the database
            names = [
                str(row[0])
                for row in connection.execute(
                    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
                )
            ]
            if name not in names:
                raise _no_table(shown, name, names, span)
            yield SqliteTable(connection, name)
    except sqlite3.Error as error:
        raise InputError.of(
            "C0991",
            f"`{shown}` cannot be read as an SQLite database: {error}.",
            span,
            "name the file of a database of SQLite 3 that nothing locks",
        ) from None


def _no_table(shown: str, name: str, names: Sequence[str], span: Span | None) -> InputError:
    own = [each for each in names if not each.startswith(("sqlite_", "_"))]
    known = ", ".join(f"`{each}`" for each in own[:10]) or "none"
    return InputError.of(
        "C0991",
        f"`{shown}` has no table or view `{name}`.",
        span,
        f'name one with `name="…"`; it has {known}',
    )


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    uri = f"file:{quote(str(path.absolute()))}?mode={mode}"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=30)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# --- writing --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SqliteOutput:
    """The rows of a relation, and the table that they are written to."""

    table: pa.Table
    path: Path
    relation: Relation
    directive: Directive


@contextmanager
def writing_tables(outputs: Iterable[SqliteOutput]) -> Iterator[None]:
    """Write tables, and commit them when the block ends; nothing has changed if it fails.

    Raises:
        InputError: `C0993`, a database cannot be written, or something else has the name.
    """
    by_file: dict[Path, list[SqliteOutput]] = {}
    for output in outputs:
        by_file.setdefault(output.path, []).append(output)
    opened: list[tuple[Path, sqlite3.Connection, bool]] = []
    is_done = False
    try:
        for path, tables in by_file.items():
            is_new = not path.exists()
            path.parent.mkdir(parents=True, exist_ok=True)
            with _reported(tables[0]):
                connection = _connect(path, "rwc")
                opened.append((path, connection, is_new))
                connection.execute("BEGIN IMMEDIATE")
            for output in tables:
                with _reported(output):
                    _write(connection, output)
        yield
        for (_, connection, _), tables in zip(opened, by_file.values(), strict=True):
            with _reported(tables[0]):
                connection.execute("COMMIT")
        is_done = True
    finally:
        for path, connection, is_new in opened:
            connection.close()  # rolls back what is not committed
            if is_new and not is_done:
                path.unlink(missing_ok=True)


@contextmanager
def _reported(output: SqliteOutput) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise InputError.of(
            "C0993",
            f"`{output.relation.name}` cannot be written to `{output.path.name}`: {error}.",
            output.directive.span,
            "name a database of SQLite 3 that can be written and nothing locks, and a table that "
            "is free",
        ) from None


def _write(connection: sqlite3.Connection, output: SqliteOutput) -> None:
    relation, name = output.relation, table_name_of(output.directive)
    table = f"_{name}"
    _check_free(connection, name, output)
    rows = to_python(sort_rows(output.table))
    columns = list(zip(*rows, strict=True)) if rows else [()] * relation.arity
    stored = [
        _stored_values(connection, column, type_)
        for column, type_ in zip(columns, relation.types, strict=True)
    ]
    declared = ", ".join(
        f"{_quoted(str(at))} {_column_type(type_, column)}"
        for at, (type_, column) in enumerate(zip(relation.types, stored, strict=True))
    )
    connection.execute(f"DROP VIEW IF EXISTS {_quoted(name)}")
    connection.execute(f"DROP TABLE IF EXISTS {_quoted(table)}")
    connection.execute(f"CREATE TABLE {_quoted(table)} ({declared})")
    marks = ", ".join("?" * relation.arity)
    connection.executemany(
        f"INSERT INTO {_quoted(table)} VALUES ({marks})",  # noqa: S608 - a quoted name
        zip(*stored, strict=True),
    )
    connection.execute(f"CREATE VIEW {_quoted(name)} AS {_view(relation, table)}")


def _check_free(connection: sqlite3.Connection, name: str, output: SqliteOutput) -> None:
    """Raise where something that is not an earlier output has the name of the view or table."""
    kinds = {"view": name, "table": f"_{name}"}
    for kind, own in kinds.items():
        found = connection.execute("SELECT type FROM sqlite_master WHERE name = ?", (own,))
        for (other,) in found:
            if other != kind:
                raise InputError.of(
                    "C0993",
                    f"`{output.path.name}` has a {other} `{own}`, which is not an output.",
                    output.directive.span,
                    'write to a table of another name, with `name="…"`',
                )
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {_quoted(SYMBOL_TABLE)} "
        "(id INTEGER PRIMARY KEY, symbol TEXT UNIQUE)"
    )


def _stored_values(
    connection: sqlite3.Connection, column: Sequence[Any], type_: Type
) -> Sequence[Any]:
    match type_.logical_kind:
        case Kind.SYMBOL:
            numbers = _symbol_numbers(connection, {each for each in column if each is not None})
            return [None if each is None else numbers[each] for each in column]
        case Kind.BOOL:
            return [None if each is None else int(each) for each in column]
        case Kind.NUMBER | Kind.FLOAT | Kind.FLOAT32 | Kind.BINARY:
            return column
        case Kind.UNSIGNED:
            fits = all(each is None or each <= NUMBER_RANGE[1] for each in column)
            return column if fits else [None if each is None else str(each) for each in column]
        case _:
            return [None if each is None else format_value(each, type_) for each in column]


def _symbol_numbers(connection: sqlite3.Connection, texts: set[str]) -> Mapping[str, int]:
    symbols = _quoted(SYMBOL_TABLE)
    connection.executemany(
        f"INSERT OR IGNORE INTO {symbols} (symbol) VALUES (?)",  # noqa: S608 - a name of ours
        ((each,) for each in sorted(texts)),
    )
    known = connection.execute(f"SELECT symbol, id FROM {symbols}")  # noqa: S608 - a name of ours
    return {text: number for text, number in known if text in texts}


def _column_type(type_: Type, stored: Sequence[Any]) -> str:
    if type_.is_unsigned and any(isinstance(each, str) for each in stored):
        return "TEXT"
    return type_.spec.sqlite


def _view(relation: Relation, table: str) -> str:
    """Return the query that gives texts for their numbers, and names to the columns."""
    shown, joined = [], [_quoted(table)]
    for at, (name, type_) in enumerate(zip(relation.columns, relation.types, strict=True)):
        own = f"{_quoted(table)}.{_quoted(str(at))}"
        if type_.is_symbol:
            symbols = _quoted(f"_symtab_{at}")
            # A null has no text: the row stays.
            joined.append(f"LEFT JOIN {_quoted(SYMBOL_TABLE)} AS {symbols} ON {own} = {symbols}.id")
            own = f"{symbols}.symbol"
        shown.append(f"{own} AS {_quoted(name)}")
    return f"SELECT {', '.join(shown)} FROM {' '.join(joined)}"  # noqa: S608 - quoted names
