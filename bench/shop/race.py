"""The shop by the command line, against DuckDB with the same files, keys and views.

| figure | what runs |
|---|---|
| first load | `corollary run shop.dl --warehouse W`: committed and published |
| memory | anonymous memory of that at its peak, by looking at `/proc` |
| one more day | the same command again, when a day's changes have come |
| one row | `corollary apply W --insert item=one.csv` |

DuckDB reads all files into a new database file each time, checks keys, makes every view a table.

Figures are ratios of processor time: user and system time of a process and its children, so that
two threads count twice. Every process starts Python and imports what it needs, which counts.
"""

import cProfile
import pstats
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa
from deltalake import DeltaTable

from bench.contenders import THREADS
from bench.figure import Figure
from bench.measure import difference, in_order
from bench.process import MEGABYTE, Spent, middle, run_corollary, run_duckdb
from bench.shop.data import first_tables, next_tables, write

NAME = "shop"
ABOUT = "290,000 orders, 971,000 items, 7 views: a warehouse against DuckDB, processor time (clock)"
RUNS = 3
FIRST_BAR, NEXT_BAR = 3.0, 1.0
HERE = Path(__file__).parent
PROGRAM = HERE / "shop.dl"
SQL = (HERE / "shop.sql").read_text(encoding="utf-8")
VIEWS = ("customer_total", "revenue", "product_sales", "idle", "complaint", "made_of", "needs")
ONE_ROW = "{order},99,P-100001,2,10.00,0.05\n"


class Race(NamedTuple):
    """What both have spent on one task, and where their answers differ."""

    ours: Spent
    rival: Spent
    differences: tuple[str, ...]

    def figure(self, name: str, bar: float | None) -> Figure:
        """Return the ratio of processor times."""
        ratio = self.ours.processor / self.rival.processor
        about = f"{self.ours} against {self.rival}"
        return Figure(name, ratio, "×", bar, about, differences=self.differences)


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures, as they are taken."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        data = place / "data"
        tables = first_tables(scale)
        write(data, tables)
        first = _load(place, data)
        has_bars = scale == 1
        yield first.figure("first load", FIRST_BAR if has_bars else None)
        ours, rival = (each.memory / MEGABYTE for each in (first.ours, first.rival))
        about = f"anonymous, at the peak of the first load; DuckDB {rival:.0f} MB"
        yield Figure("memory", ours, "MB", None, about)
        write(data, next_tables(tables))
        yield _next_day(place, data).figure("one more day", NEXT_BAR if has_bars else None)
        yield _one_row(place, data, len(tables["orders"])).figure("one row", None)


def _load(place: Path, data: Path) -> Race:
    """Let both read everything, in turns; what the last run has made stays."""
    ours, rival = [], []
    for _ in range(RUNS):
        shutil.rmtree(place / "warehouse", ignore_errors=True)
        ours.append(_run(place / "warehouse", data))
        rival.append(_rebuild(place, data))
    return Race(middle(ours), middle(rival), tuple(_differences(place)))


def _next_day(place: Path, data: Path) -> Race:
    """Let ours follow what has changed, each time from a copy of the same warehouse."""
    kept = place / "kept"
    (place / "warehouse").rename(kept)
    ours, rival = [], []
    for _ in range(RUNS):
        shutil.rmtree(place / "warehouse", ignore_errors=True)
        shutil.copytree(kept, place / "warehouse")
        ours.append(_run(place / "warehouse", data))
        rival.append(_rebuild(place, data))
    return Race(middle(ours), middle(rival), tuple(_differences(place)))


def _one_row(place: Path, data: Path, order: int) -> Race:
    """Let ours take single items of an order, one after the other; the first of them prepares."""
    ours, rival = [], []
    folder = data / "item"
    for number in range(RUNS):
        row = ONE_ROW.format(order=order - number)
        file = place / "one.csv"
        file.write_text(row, encoding="utf-8")
        ours.append(run_corollary("apply", str(place / "warehouse"), "--insert", f"item={file}"))
        _append_item(folder / f"one-{number}.parquet", folder, order - number)
        rival.append(_rebuild(place, data))
    return Race(middle(ours), middle(rival), tuple(_differences(place)))


def _append_item(file: Path, folder: Path, order: int) -> None:
    """Write a file with the item that `ONE_ROW` is, for DuckDB to find."""
    schema = min(folder.glob("*.parquet"))
    duckdb.execute(
        f"COPY (SELECT * REPLACE ({order} AS \"order\", 99 AS line, 'P-100001' AS product, "
        "2 AS quantity, 10.00::DECIMAL(10, 2) AS price, 0.05::DECIMAL(4, 2) AS discount) "
        f"FROM '{schema}' LIMIT 1) TO '{file}'"
    )


def _run(warehouse: Path, data: Path) -> Spent:
    return run_corollary(*_arguments(warehouse, data))


def _arguments(warehouse: Path, data: Path) -> list[str]:
    return ["run", str(PROGRAM), "-F", str(data), "--warehouse", str(warehouse)]


def _rebuild(place: Path, data: Path) -> Spent:
    return run_duckdb(SQL, place / "rival.duckdb", data, THREADS)


def _differences(place: Path) -> Iterator[str]:
    """Say how the published tables differ from DuckDB's."""
    for name, (ours, rival) in answers(place / "warehouse", place / "rival.duckdb").items():
        for text in difference("corollary", in_order(ours), "duckdb", rival):
            yield f"{name}: {text}"


def answers(warehouse: Path, database: Path) -> dict[str, tuple[pa.Table, pa.Table]]:
    """Return the published table and DuckDB's for every view."""
    with duckdb.connect(str(database), read_only=True) as connection:
        return {
            name: (
                DeltaTable(warehouse / "tables" / name).to_pyarrow_table(),
                connection.sql(f"FROM {name}").to_arrow_table(),
            )
            for name in VIEWS
        }


def profile(scale: float, top: int, *, is_next: bool) -> None:
    """Print where the time of the first load goes, or of one more day, in this process."""
    from corollary.cli.main import main

    with tempfile.TemporaryDirectory() as directory:
        data, warehouse = Path(directory) / "data", Path(directory) / "warehouse"
        tables = first_tables(scale)
        write(data, tables)
        if is_next:
            _run(warehouse, data)
            write(data, next_tables(tables))
        profiler = cProfile.Profile()
        profiler.runcall(main, args=_arguments(warehouse, data), standalone_mode=False)
    sys.stdout.flush()
    for order in ("cumulative", "tottime"):
        pstats.Stats(profiler).sort_stats(order).print_stats(top)
