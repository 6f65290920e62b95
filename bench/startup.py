"""How quickly the command answers, and what importing the package loads."""

import json
import subprocess
import sys
from collections.abc import Mapping

import pyarrow as pa

HEAVY = frozenset(
    {"pyspark", "sqlglot", "deltalake", "psycopg", "lxml", "starlette", "pandas", "duckdb"}
    | {"pyarrow", "numpy", "lark", "rich", "click", "re2"}
)
HELP = "--help"
HELP_BAR = 0.3
HELP_RUNS = 10

LOADED = """
import json, sys
before = set(sys.modules)
import corollary
print(json.dumps(sorted(set(sys.modules) - before)))
"""


class Help:
    """`corollary --help` in a process of its own."""

    name = "corollary"

    def __init__(self) -> None:
        self._printed = ""

    def ready(self) -> None:
        """Nothing to prepare."""

    def run(self) -> None:
        """Ask for help."""
        self._printed = _run("-m", "corollary", "--help")

    def answer(self) -> pa.Table:
        """Return what was printed, line by line."""
        return pa.table({"line": self._printed.splitlines()})

    def notes(self) -> Mapping[str, float]:
        """Nothing is worth saying."""
        return {}


def modules_loaded() -> list[str]:
    """Return the modules that `import corollary` brings into a fresh interpreter."""
    modules = json.loads(_run("-c", LOADED))
    return [str(name) for name in modules]


def heavy(modules: list[str]) -> list[str]:
    """Return the packages among them that importing Corollary should not load.

    >>> heavy(["corollary", "numpy", "numpy.linalg"])
    ['numpy']
    """
    return sorted({name.partition(".")[0] for name in modules} & HEAVY)


def _run(*arguments: str) -> str:
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout
