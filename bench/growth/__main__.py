"""`python -m bench.growth DIRECTORY …`: load files into a warehouse, change it, print JSON.

One size in a process of its own, so that the peak of the driver's memory is that of this size. The
driver is this Python process; its Java process is counted apart, for on one machine the tasks of
Spark SQL run in it.
"""

import argparse
import json
import shutil
import statistics
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

import corollary
from bench.growth import sales_files
from bench.jobs import Session, session
from bench.process import ProcessWatch
from corollary.database.database import Database
from corollary.engines.spark.relation import partitioning

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CHANGED = 1_000
DRIVER_MEMORY = "32M"
"""So that of a million sales none is on the driver, and of products and stores all are."""
TURNS = 3


def main() -> None:
    """Measure one size, and print what was measured."""
    parser = argparse.ArgumentParser("bench.growth", description=__doc__)
    parser.add_argument("directory", type=Path, help="files and warehouse")
    parser.add_argument("--rows", type=int, required=True, help="of the files")
    parser.add_argument("--placement", default="auto")
    parser.add_argument("--driver-memory", default=DRIVER_MEMORY, help="for relations")
    parser.add_argument("--partitions", type=int, help="of each relation")
    options = parser.parse_args()
    if options.partitions:
        partitioning.PARTITION_TUPLES = -(-options.rows // options.partitions)
    with session() as counted:
        found = Growth(counted, options).measure()
    print(json.dumps(found))


class Growth:
    """The measurements of one size."""

    def __init__(self, counted: Session, options: argparse.Namespace) -> None:
        self.counted, self.options = counted, options
        self.found: dict[str, Any] = {"rows": options.rows}

    def measure(self) -> dict[str, Any]:
        """Let Spark write the sums, load, change, recompute, and ask Spark SQL."""
        place: Path = self.options.directory
        more = sales_files.sales(self.options.rows, CHANGED)
        self.step("idle", lambda: self.counted.spark.range(1).collect())
        for _ in range(TURNS):  # the last one counts: code is compiled, files are cached
            self.step("write", lambda: self.write(place))
        for name in ("first", "warehouse"):  # the same for a load
            with self.opened(name) as database:
                self.step("load", lambda: database.run(place / "sales.dl", facts=place))
            self.found.setdefault("first load", self.found["load"])
        shutil.rmtree(place / "first")
        with self.opened() as database:
            self.step("reopen", lambda: database.relation("answer").arrow())
            for turn in range(1 + TURNS):
                self.step(f"insert-{turn}", lambda: insert(database, more))
                self.step(f"delete-{turn}", lambda: delete(database, more))
            self.step("recompute", lambda: insert(database, more, is_anew=True))
            answer = database.relation("answer").arrow()
        queried = self.step("query", lambda: self.query(place))
        self.found["differs"] = in_order(answer) != in_order(queried)
        names = [f"{each}-{at}" for each in ("insert", "delete") for at in range(1, 1 + TURNS)]
        turns = [self.found[each] for each in names]  # without the first, which opens files
        self.found["change"] = {
            name: statistics.median(each[name] for each in turns) for name in turns[0]
        }
        steps = [each for each in self.found.values() if isinstance(each, dict)]
        for name in ("memory", "java"):
            self.found[name] = max(each[name] for each in steps)
        return self.found

    def opened(self, name: str = "warehouse") -> Database:
        """Open a warehouse."""
        place = self.options.directory / name
        options = self.options
        return corollary.open(
            place,
            spark=self.counted.spark,
            placement=options.placement,
            driver_memory=options.driver_memory,
        )

    def step(self, name: str, work: Callable[[], Any]) -> Any:
        """Do something, and note what it took."""
        watch = ProcessWatch()
        taken = self.counted.timed(work)
        watch.stop()
        self.found[name] = {
            "wall": taken.seconds,
            "processor": watch.seconds,
            "memory": watch.peak,
            "java": watch.java,
            **asdict(taken.cost),
        }
        print(f"{name}: {self.found[name]}", file=sys.stderr, flush=True)
        return taken.result

    def query(self, place: Path) -> pa.Table:
        """Let Spark answer the query from the files."""
        return self._frame(place).toArrow()

    def write(self, place: Path) -> None:
        """Let Spark write the answer to the query from the files."""
        self._frame(place).write.mode("overwrite").parquet((place / "sums").as_uri())

    def _frame(self, place: Path) -> "DataFrame":
        spark = self.counted.spark
        for name in ("sale", "product", "store"):
            path = place / (name if name == "sale" else f"{name}.parquet")
            spark.read.parquet(path.as_uri()).createOrReplaceTempView(name)
        return spark.sql(sales_files.QUERY)


def insert(database: Database, rows: pa.Table, *, is_anew: bool = False) -> None:
    """Insert sales, or find out what that would do if the sums were computed anew."""
    algorithms = dict.fromkeys(sales_files.STORED, "recompute") if is_anew else None
    with database.transaction(algorithm=algorithms, is_dry=is_anew) as transaction:
        transaction.insert("sale", rows)


def delete(database: Database, rows: pa.Table) -> None:
    """Delete sales."""
    with database.transaction() as transaction:
        transaction.delete("sale", rows)


def in_order(table: pa.Table) -> list[tuple[int, ...]]:
    """Return rows as a sorted list."""
    names = ("category", "region", "total")
    columns = (pc.cast(table[name], pa.int64()).to_pylist() for name in names)
    return sorted(zip(*columns, strict=True))


if __name__ == "__main__":
    main()
