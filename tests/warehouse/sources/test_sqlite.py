"""Tables of SQLite databases as sources and outputs."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from corollary.database.engines import create_engine
from corollary.database.intake.evaluate_once import run_once
from corollary.database.state import DatabaseState
from corollary.database.writing.inputs import FileLocations
from corollary.errors import InputError
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile
from support.command_line import OK, cli

COPY = """
.decl edge(x: symbol, y: number)
.input edge(IO=sqlite, filename="in.db")
.decl out(y: number, x: symbol)
out(y, x) :- edge(x, y).
.output out(IO=sqlite, filename="out.db")
"""


def database(path: Path, *statements: str, rows: Sequence[tuple[Any, ...]] = ()) -> None:
    with closing(sqlite3.connect(path)) as made:
        for each in statements:
            made.execute(each)
        if rows:
            made.executemany(f"INSERT INTO edge VALUES ({', '.join('?' * len(rows[0]))})", rows)
        made.commit()


def asked(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as opened:
        return sorted(opened.execute(query).fetchall())


def run(directory: Path, text: str = COPY) -> None:
    program, places = parse(SourceFile("p.dl", text)), FileLocations(directory, directory)
    run_once(DatabaseState(create_engine()), program, places)


def test_rows_go_from_a_table_to_one_in_the_layout_of_souffle(tmp_path: Path) -> None:
    rows = [("a", 1), ("it's", -(2**63)), ("ä\n", 2**63 - 1), ("a", 2)]
    database(tmp_path / "in.db", "CREATE TABLE edge (x TEXT, y INTEGER)", rows=rows)
    run(tmp_path)
    assert asked(tmp_path / "out.db", "SELECT y, x FROM out") == sorted((y, x) for x, y in rows)
    assert asked(tmp_path / "out.db", 'SELECT symbol FROM "__SymbolTable"') == [
        *(("a",), ("it's",), ("ä\n",))
    ]
    joined = 'SELECT "0", symbol FROM "_out" JOIN "__SymbolTable" ON "1" = id'
    assert asked(tmp_path / "out.db", joined) == asked(tmp_path / "out.db", "SELECT * FROM out")
    # What was written is read again, and an output replaces its earlier one, not other tables.
    with closing(sqlite3.connect(tmp_path / "out.db")) as made:
        made.execute("CREATE TABLE own (x)")
        made.commit()
    run(tmp_path, COPY.replace(":- edge(x, y)", ":- edge(x, y), y = 1"))
    assert asked(tmp_path / "out.db", "SELECT * FROM out") == [(1, "a")]
    assert asked(tmp_path / "out.db", "SELECT * FROM own") == []


def test_columns_are_found_by_name_or_by_position(tmp_path: Path) -> None:
    database(tmp_path / "in.db", "CREATE TABLE edge (y INTEGER, z, x TEXT)", rows=[(1, 5, "a")])
    run(tmp_path)
    assert asked(tmp_path / "out.db", "SELECT * FROM out") == [(1, "a")]
    (tmp_path / "in.db").unlink()
    database(tmp_path / "in.db", "CREATE TABLE edge (a TEXT, b INTEGER)", rows=[("c", 3)])
    run(tmp_path)
    assert asked(tmp_path / "out.db", "SELECT * FROM out") == [(3, "c")]


@pytest.mark.parametrize(
    ("statements", "text", "code", "said"),
    [
        ((), COPY, "C0804", "in.db"),
        (("CREATE TABLE other (x)",), COPY, "C0991", "it has `other`"),
        (("CREATE TABLE edge (x TEXT)",), COPY, "C0992", "1 columns"),
        (
            ("CREATE TABLE edge (x TEXT, y)", "INSERT INTO edge VALUES ('a', NULL)"),
            COPY,
            "C0801",
            "",
        ),
        (
            ("CREATE TABLE edge (x TEXT, y)", "INSERT INTO edge VALUES ('a', 'b')"),
            COPY,
            "C0801",
            "",
        ),
        (
            ("CREATE TABLE edge (x TEXT, y INTEGER)", "CREATE TABLE out (x)"),
            COPY.replace("out.db", "in.db"),
            "C0993",
            "table `out`",
        ),
    ],
)
def test_errors_leave_everything_as_it_was(
    tmp_path: Path, statements: Sequence[str], text: str, code: str, said: str
) -> None:
    if statements:
        database(tmp_path / "in.db", *statements)
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    with pytest.raises(InputError) as raised:
        run(tmp_path, text)
    assert raised.value.diagnostics[0].code == code
    assert said in str(raised.value)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "in.db").write_text("a\tb\n" * 500)
    with pytest.raises(InputError, match="C0991"):
        run(tmp_path)


def test_a_warehouse_finds_what_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.dl").write_text(
        COPY.replace('.output out(IO=sqlite, filename="out.db")', ".output out")
    )
    rows = [(f"n{n}", n) for n in range(50)]
    database(tmp_path / "in.db", "CREATE TABLE edge (x TEXT, y INTEGER)", rows=rows)
    command = ("run", "p.dl", "--warehouse", "w", "--engine", "local")
    assert "out +50" in " ".join(cli(*command).stdout.split())
    assert "nothing has changed" in cli(*command).stdout
    database(tmp_path / "in.db", "DELETE FROM edge WHERE y < 3", rows=[("new", 7), ("n9", 9)])
    result = cli(*command)
    assert result.exit_code == OK
    assert "out +1 −3" in " ".join(result.stdout.split())
    Path("q.dl").write_text(COPY)
    assert "C0990" in cli("run", "q.dl", "--warehouse", "w", "--engine", "local").stderr
