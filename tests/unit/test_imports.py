"""Importing the package, or asking for help, loads nothing heavy."""

import json
import subprocess
import sys

ENGINES = {"pyspark", "sqlglot", "duckdb", "deltalake", "sqlalchemy", "lxml", "starlette", "pandas"}
LIBRARIES = {"pyarrow", "numpy", "lark", "rich", "click"}

IMPORT = "import corollary"
HELP = """
import runpy
sys.argv = ["corollary", "--help"]
try:
    runpy.run_module("corollary", run_name="__main__", alter_sys=True)
except SystemExit as stop:
    assert not stop.code, stop.code
"""


def run(code: str) -> tuple[str, set[str]]:
    """Runs code in a fresh interpreter; returns what it printed and which packages it loaded."""
    report = 'print("\\n" + json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))'
    finished = subprocess.run(
        [sys.executable, "-c", f"import json, sys\n{code}\n{report}"],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    printed, _, modules = finished.stdout.rstrip("\n").rpartition("\n")
    return printed, set(json.loads(modules))


def test_import_loads_nothing_heavy() -> None:
    _, modules = run(IMPORT)
    assert not modules & (ENGINES | LIBRARIES)


def test_help_is_quick() -> None:
    printed, modules = run(HELP)
    assert printed.startswith("Usage: ")
    assert not modules & (ENGINES | {"pyarrow", "numpy", "lark"})


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


def test_values_move_between_numpy_and_arrow_without_pandas() -> None:
    """Pyarrow's own ways import it where it is installed, and that takes longer than a query."""
    printed, modules = run(DATABASE)
    assert printed.strip() == "[('x', 'x!', Decimal('1.50'))] 1"
    assert "pyarrow" in modules
    assert "pandas" not in modules
