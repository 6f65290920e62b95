"""What lasting costs: commits, folds, reopening and disk, on a stored closure.

| figure | how it is taken |
|---|---|
| commit overhead | the same one-row transactions in turns on a warehouse and in memory |
| reopen | a fresh process opens the warehouse; the time of opening, with and without imports |
| first change | the first one-row transaction of that process, against later ones of its kind |
| disk | the directory after `gc`, against Parquet files of the same relations |
| successive | the time of one-row transactions, the last tenth against the first; the files then |
"""

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import corollary
from bench.data import random_graph
from bench.figure import Figure
from corollary.core.arrow import to_python
from corollary.database.database import Database, state_of, warehouse_store_of
from corollary.database.upkeep.retention import Retention, collect

NAME = "warehouse"
ABOUT = "stored closure of a random graph, 1,500 nodes, 3,000 edges"
PROGRAM = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
EDGES = 30
SUCCESSIVE = 5_000

REOPEN = """
import json, sys, time
began = time.perf_counter()
import corollary
import corollary.database.durable
imported = time.perf_counter()
database = corollary.open(sys.argv[1], engine="local")
opened = time.perf_counter()
times = []
for edge in json.loads(sys.argv[2]):
    for verb in ("delete", "insert"):
        start = time.perf_counter()
        with database.transaction() as transaction:
            getattr(transaction, verb)("edge", [tuple(edge)])
        times.append(time.perf_counter() - start)
print(json.dumps([imported - began, opened - imported, times]))
"""


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures, as they are taken."""
    edges = to_python(random_graph(int(1_500 * scale), int(3_000 * scale))["edge"])
    chosen = random.Random(1).sample(edges, EDGES)
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "warehouse"
        lasting, passing = (corollary.open(each, engine="local") for each in (place, None))
        for database in (lasting, passing):
            database.load(text=PROGRAM)
            _write(database, "insert", edges)
        yield _overhead(lasting, passing, chosen)
        yield _disk(lasting, place)
        yield from _reopen(place, chosen)
        yield from _flat(lasting, place, chosen)


def _write(database: Database, verb: str, rows: list[Any]) -> float:
    start = time.perf_counter()
    with database.transaction() as transaction:
        getattr(transaction, verb)("edge", rows)
    return time.perf_counter() - start


def _overhead(lasting: Database, passing: Database, edges: list[Any]) -> Figure:
    differences, totals = [], []
    for edge in edges:
        for verb in ("delete", "insert"):
            total = _write(lasting, verb, [edge])
            totals.append(total)
            differences.append(total - _write(passing, verb, [edge]))
    about = f"median of {len(totals)}; a whole transaction {_ms(statistics.median(totals))}"
    value = 1_000 * statistics.median(differences)
    return Figure("commit overhead", value, "ms", 15.0, about)


def _disk(database: Database, place: Path) -> Figure:
    store = warehouse_store_of(database)
    assert store is not None
    store.fold(state_of(database))
    collect(store.warehouse, Retention(commits=1))
    plain = 0
    with tempfile.TemporaryDirectory() as directory:
        for name in ("edge", "path"):
            file = Path(directory) / name
            pq.write_table(database.relation(name).arrow(), file, compression="zstd")
            plain += file.stat().st_size
    held = _bytes(place)
    about = f"{held:,} bytes against {plain:,}"
    return Figure("disk after gc", held / plain, "x", 3.0, about)


def _bytes(place: Path) -> int:
    return sum(file.stat().st_size for file in place.rglob("*") if file.is_file())


def _reopen(place: Path, edges: list[Any]) -> Iterator[Figure]:
    command = [sys.executable, "-c", REOPEN, str(place), json.dumps(edges[:10])]
    runs = [
        json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        for _ in range(5)
    ]
    imports = statistics.median(each[0] for each in runs)
    opening = statistics.median(each[1] for each in runs)
    yield Figure("reopen", opening, "s", 0.5, f"and {imports:.2f} s of imports before it")
    first = statistics.median(each[2][0] for each in runs)
    later = statistics.median(time for each in runs for time in each[2][2::2])
    about = f"{_ms(first)} against {_ms(later)}, both deletions"
    yield Figure("first change", first / later, "x", 2.0, about)


def _flat(database: Database, place: Path, edges: list[Any]) -> Iterator[Figure]:
    times = []
    for turn in range(SUCCESSIVE // 2):
        edge = edges[turn % len(edges)]
        times += [_write(database, verb, [edge]) for verb in ("delete", "insert")]
    tenth = len(times) // 10
    early, late = statistics.median(times[:tenth]), statistics.median(times[-tenth:])
    about = f"{len(times):,} transactions; {_ms(early)} at first, {_ms(late)} at last"
    yield Figure("successive", late / early, "x", 1.5, about)
    files = sum(1 for file in place.rglob("*") if file.is_file())
    yield Figure("files", files, "", None, f"{_bytes(place):,} bytes before gc")


def _ms(seconds: float) -> str:
    return f"{1_000 * seconds:.1f} ms"
