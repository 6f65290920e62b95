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
