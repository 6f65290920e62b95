"""A project of 18 datasets: checking it, and a run after little has changed.

| figure | how it is taken |
|---|---|
| dry-run | `corollary pipelines dry-run` of 30 datasets, these and 12 more; no Java may start |
| second run | `corollary pipelines run` after 160 changed rows, against `spark-pipelines run` |

The catalog of `spark-pipelines` lasts as long as its run, and a second run refuses the files of the
first one: each of its runs computes all datasets, and it is run once, when the rows have changed.
Its tables are those that ours are compared with. Its time is that of all processes that it starts,
see `ProcessWatch`.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from deltalake import DeltaTable

from bench.data import SEED
from bench.figure import Figure
from bench.pipelines.project import FILES, MORE
from bench.process import ProcessWatch, run_corollary
from corollary.engines.spark.java import set_java_home

NAME = "pipelines"
ABOUT = "a project of Spark Declarative Pipelines with 18 datasets, processor time"
ORDERS, CUSTOMERS, PRODUCTS = 20_000, 1_000, 100
DATASETS = 18
CHANGED = (40, 80, 40)
"""New orders, their lines, and customers who move: 160 rows."""
DRY_RUN_BAR, RUN_BAR = 3.0, 0.1
CITIES = ("Bern", "Oslo", "Rome", "Turin", "Vienna")


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures, as they are taken."""
    set_java_home()
    with tempfile.TemporaryDirectory() as directory:
        ours, theirs = Path(directory, "ours"), Path(directory, "theirs")
        write_project(ours)
        _write_first(ours / "input", scale)
        more = ours / "transformations" / "more.sql"
        more.write_text("".join(MORE.format(number=each) for each in range(10, 22)))
        watch = ProcessWatch()
        checked = run_corollary("pipelines", "dry-run", "--spec", str(ours / "spark-pipeline.yml"))
        watch.stop()
        more.unlink()
        wrong = ["Java was started"] if watch.java else []
        about = f"{DATASETS + 12} datasets, without Java"
        yield Figure("dry-run", checked.processor, "s", DRY_RUN_BAR, about, differences=(*wrong,))
        command = ("pipelines", "run", "--spec", str(ours / "spark-pipeline.yml"))
        first = run_corollary(*command)
        _write_next(ours / "input", scale)
        shutil.copytree(ours, theirs, ignore=shutil.ignore_patterns("storage"))
        _name_storage(theirs)
        second, seconds = run_corollary(*command), _run_spark(theirs)
        about = (
            f"{second.processor:.1f} s against {seconds:.1f} s of `spark-pipelines run`; "
            f"the first run took {first.processor:.1f} s"
        )
        wrong = _differences(ours, theirs)
        ratio = second.processor / seconds
        yield Figure("second run", ratio, "×", RUN_BAR, about, differences=(*wrong,))


def _run_spark(project: Path) -> float:
    """Run a project by Spark's own runner; return the processor time of all that it starts."""
    folder = Path(sys.executable).parent
    path = os.pathsep.join((str(folder), os.environ.get("PATH", "")))
    environment = {**os.environ, "PATH": path, "PYSPARK_PYTHON": sys.executable, "TZ": "UTC"}
    watch, own = ProcessWatch(), time.process_time()
    ran = subprocess.run(
        [folder / "spark-pipelines", "run"],
        cwd=project,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    watch.stop()
    if ran.returncode:
        raise RuntimeError(f"spark-pipelines gave {ran.returncode}: {ran.stdout}{ran.stderr}")
    return watch.seconds - (time.process_time() - own)


def _differences(ours: Path, theirs: Path) -> list[str]:
    """Return which tables differ."""
    tables = sorted((theirs / "spark-warehouse").iterdir())
    found = [] if len(tables) == DATASETS else [f"Spark has {len(tables)} tables"]
    for each in tables:
        made = DeltaTable(ours / "storage/corollary/tables" / each.name).to_pyarrow_table()
        if _rows(made) != _rows(pq.read_table(each)):
            found.append(f"{each.name} has other rows than Spark's")
    return found


def _rows(table: pa.Table) -> list[str]:
    return sorted(str([row[name] for name in sorted(row)]) for row in table.to_pylist())


def write_project(folder: Path) -> None:
    """Write the files of the project."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _name_storage(project: Path) -> None:
    """Give the storage of a project as the address that Spark wants."""
    spec = project / "spark-pipeline.yml"
    named = FILES[spec.name].replace("storage: ", f"storage: {project.as_uri()}/")
    spec.write_text(named, encoding="utf-8")


# --- inputs --------------------------------------------------------------------------------------


def _write_first(folder: Path, scale: float) -> None:
    random = np.random.default_rng(SEED)
    orders = max(100, round(ORDERS * scale))
    _write_orders(folder, 0, 0, (orders, 2 * orders), random)
    _write_customers(folder, [str(each) for each in random.choice(CITIES, CUSTOMERS)])
    categories = [f"category {number % 12:02}" for number in range(PRODUCTS)]
    prices = [f"{each / 100:.2f}" for each in random.integers(100, 50_000, PRODUCTS)]
    products = pa.table({"product": range(PRODUCTS), "category": categories, "price": prices})
    _write_csv(folder / "products" / "all.csv", products)


def _write_next(folder: Path, scale: float) -> None:
    random = np.random.default_rng(SEED + 1)
    orders, lines, moved = CHANGED
    _write_orders(folder, 1, max(100, round(ORDERS * scale)), (orders, lines), random)
    held = pyarrow.csv.read_csv(folder / "customers" / "all.csv").column("city").to_pylist()
    for each in random.choice(CUSTOMERS, moved, replace=False):
        held[each] = CITIES[(CITIES.index(held[each]) + 1) % len(CITIES)]
    _write_customers(folder, held)


def _write_orders(
    folder: Path, part: int, begin: int, sizes: tuple[int, int], random: np.random.Generator
) -> None:
    orders, lines = sizes
    first = date(2026, 1, 1)
    table = pa.table(
        {
            "id": pa.array(range(begin, begin + orders), pa.int64()),
            "customer": pa.array(random.integers(0, CUSTOMERS + 50, orders), pa.int64()),
            "day": [first + timedelta(days=int(each)) for each in random.integers(0, 90, orders)],
            "status": [str(each) for each in random.choice(["open", "paid", "cancelled"], orders)],
        }
    )
    _write_parquet(folder / "orders" / f"{part}.parquet", table)
    table = pa.table(
        {
            "order_id": pa.array(random.integers(begin, begin + orders, lines), pa.int64()),
            "line": pa.array(range(lines), pa.int32()),
            "product": pa.array(random.integers(0, PRODUCTS, lines), pa.int64()),
            "quantity": pa.array(random.integers(1, 9, lines), pa.int32()),
        }
    )
    _write_parquet(folder / "lines" / f"{part}.parquet", table)


def _write_customers(folder: Path, cities: Sequence[str]) -> None:
    names = [f"customer {number}" for number in range(len(cities))]
    table = pa.table({"customer": range(len(cities)), "name": names, "city": cities})
    _write_csv(folder / "customers" / "all.csv", table)


def _write_parquet(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)


def _write_csv(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.csv.write_csv(table, path)
