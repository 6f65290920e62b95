"""How quickly commands answer, and what importing the package loads.

| figure | how it is taken |
|---|---|
| `query`, `log`, `status`, … | the least processor time of the command on a small warehouse |
| first change | one row in an open process, against the fifth; what is imported by then is there |
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

import corollary
from bench.figure import Figure
from bench.process import byte_compile

NAME = "start"
ABOUT = "commands on a small warehouse, and the first change of a process"
HEAVY = frozenset(
    {"pyspark", "sqlglot", "deltalake", "psycopg", "lxml", "starlette", "pandas", "duckdb"}
    | {"pyarrow", "numpy", "lark", "rich", "click", "re2"}
)
HELP = "--help"
HELP_BAR = 0.3
HELP_RUNS = 10

BARS = {"query": 0.4, "log": 0.5, "status": 0.5, "changes": None, "grants": 0.5}
"""Seconds of processor time for each command."""
COMMAND_RUNS = 5
FIRST_CHANGE_BAR = 3.0

PROGRAM = """
.decl edge(x: symbol, y: symbol)
.decl path(x: symbol, y: symbol)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
CHANGES = """
import gc, json, sys, time
import corollary

seconds = []
with corollary.open(sys.argv[1], engine="local") as database:
    gc.collect()  # what opening has left would else be collected in one of the changes
    gc.freeze()
    for number in range(5):
        start = time.process_time()
        with database.transaction() as transaction:
            transaction.insert("edge", [(f"n{number}", "a")])
        seconds.append(time.process_time() - start)
print(json.dumps(seconds))
"""

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


def run(_: float) -> Iterator[Figure]:
    """Yield the figures, as they are taken."""
    byte_compile()
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "warehouse"
        with corollary.open(place, engine="local") as database:
            database.load(text=PROGRAM)
            for row in (("a", "b"), ("b", "c"), ("c", "d")):
                with database.transaction(publish=True) as transaction:
                    transaction.insert("edge", [row])
        for name, bar in BARS.items():
            goal = ['path("a", x)'] if name == "query" else []
            seconds = min(_processor(name, str(place), *goal) for _ in range(COMMAND_RUNS))
            yield Figure(name, seconds, "s", bar, f"processor time, the least of {COMMAND_RUNS}")
        first, *_, last = json.loads(_run("-c", CHANGES, str(place)))
        about = f"first change {first * 1e3:.1f} ms, fifth {last * 1e3:.1f} ms, processor time"
        yield Figure("first change", first / last, "×", FIRST_CHANGE_BAR, about)


def _processor(*arguments: str) -> float:
    """Return the processor time of a command."""
    command = [sys.executable, "-m", "corollary", *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return usage.ru_utime + usage.ru_stime


def _run(*arguments: str) -> str:
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout
