"""What is imported when: nothing heavy with the package, and for a command what it uses."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import corollary

ENGINES = {"pyspark", "sqlglot", "duckdb", "deltalake", "lxml", "starlette", "pandas", "psycopg"}
ENGINES |= {"confluent_kafka", "pyiceberg"}
LIBRARIES = {"pyarrow", "numpy", "lark", "rich", "click"}
QUERY_MAX_MODULES = 660
"""How many modules a query may load, those of NumPy, Arrow and the standard library with ours."""

IMPORT = "import corollary"
COMMAND = """
from corollary.cli import main
sys.argv = ["corollary", *{arguments!r}]
try:
    main(prog_name="corollary")
except SystemExit as stop:
    assert not stop.code, stop.code
"""
PROGRAM = """
.decl edge(x: symbol, y: symbol)
.decl path(x: symbol, y: symbol)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


def run(code: str) -> tuple[str, set[str]]:
    """Runs code in a fresh interpreter; returns what it printed and which modules it loaded."""
    report = 'print("\\n" + json.dumps(sorted(sys.modules)))'
    finished = subprocess.run(
        [sys.executable, "-c", f"import json, sys\n{code}\n{report}"],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert "leaked" not in finished.stderr
    printed, _, modules = finished.stdout.rstrip("\n").rpartition("\n")
    return printed, set(json.loads(modules))


def run_command(*arguments: str) -> tuple[str, set[str]]:
    """Runs a command in a fresh interpreter, like `run`."""
    return run(COMMAND.format(arguments=arguments))


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small warehouse: two commits, an index, a published table, a grant."""
    path = tmp_path_factory.mktemp("imports") / "warehouse"
    with corollary.open(path) as database:
        database.load(text=PROGRAM)
        with database.transaction(publish=True) as transaction:
            transaction.insert("edge", [("a", "b"), ("b", "c")])
        database.grant("alice", "path")
    return path


def test_import_loads_nothing_heavy() -> None:
    _, modules = run(IMPORT)
    assert not modules & (ENGINES | LIBRARIES)


def test_help_is_quick() -> None:
    printed, modules = run_command("--help")
    assert printed.startswith("Usage: ")
    assert not modules & (ENGINES | {"pyarrow", "numpy", "lark"})


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["log"], "path +3"),
        (["log", "--as", "alice"], "path +3"),
        (["status"], "derived"),
        (["grants"], "alice"),
        (["changes", "--since", "2"], ""),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_the_catalog_alone_is_read(warehouse: Path, arguments: list[str], expected: str) -> None:
    name, *options = arguments
    printed, modules = run_command(name, str(warehouse), *options)
    assert expected in printed
    assert not modules & (ENGINES | {"pyarrow", "numpy", "rich"})


@pytest.mark.smoke
def test_rows_need_arrow_and_no_engine_of_others(warehouse: Path) -> None:
    """Where pandas is installed, pyarrow would import it."""
    for arguments in (["query", 'path("a", x)'], ["changes", "path"]):
        name, rest = arguments
        printed, modules = run_command(name, str(warehouse), rest)
        assert "c" in printed.split()
        assert not modules & (ENGINES | {"rich", "lark"})
        assert len(modules) <= QUERY_MAX_MODULES


DATABASE = """
import corollary
database = corollary.open(None)
database.load(text='''
.decl sale(day: date, shop: symbol, price: decimal(9, 2), weight: float)
.decl total(shop: symbol, name: symbol, price: decimal(9, 2))
total(s, cat(s, "!"), t) :- sale(_, s, _, _), t = sum p : { sale(_, s, p, _) }.
sale(to_date("2026-11-15"), "x", 1.50, 2.0).
''')
print(database.relation("total").rows(), database.relation("sale").arrow().num_rows)
"""


@pytest.mark.slow
def test_values_move_between_numpy_and_arrow_without_pandas() -> None:
    """Pyarrow's own ways import it where it is installed, and that takes longer than a query."""
    printed, modules = run(DATABASE)
    assert printed.strip() == "[('x', 'x!', Decimal('1.50'))] 1"
    assert "pyarrow" in modules
    assert "pandas" not in modules


def test_duckdb_reports_nothing_when_a_command_ends(warehouse: Path) -> None:
    """Its bindings would, if what it has made were not collected."""
    command = COMMAND.format(arguments=["status", str(warehouse)])
    printed, modules = run(f"import duckdb{command}")
    assert "derived" in printed
    assert "duckdb" in modules
