"""`make soak`: many transactions of one row, one after another, on one warehouse.

make soak ARGS="--transactions 70000 --catalog postgresql"

Time and disk for each transaction have to stay flat. `gc` runs between, and now and then the
database is closed, opened and compared with a recomputation.

| column | holds |
|---|---|
| transactions | so many were made up to here |
| ms | the median time of one since the line before |
| p99 | of 100 of them, 99 took at most so long |
| open | seconds to open the warehouse |
| gc | seconds that `gc` took |
| files | data files, after `gc` |
| data, catalog | MiB on disk, after `gc` |
| memory | MiB of this process |
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import corollary
from corollary.core.arrow import to_python
from corollary.database.database import Database
from corollary.database.upkeep.retention import Retention, collect
from support.postgresql_server import postgresql

TEXT = """
.decl item(id: number, owner: number, amount: number) key(id)
.decl total(owner: number, amount: number)
total(o, a) :- item(_, o, _), a = sum b : { item(_, o, b) }.
.decl above(child: number, parent: number) key(child)
.decl chain(child: number, parent: number)
chain(x, y) :- above(x, y).
chain(x, z) :- chain(x, y), above(y, z).
.decl idle(owner: number)
idle(o) :- total(o, a), a < 50, !chain(o, 0).
"""
ITEMS, OWNERS, NODES = 5_000, 200, 300
KEPT = 500
"""So many commits `gc` leaves."""
LONGEST_OPEN = 5.0
"""Seconds; how long it takes depends on how many commits there were since the last fold."""
WORST = 3.0
"""The last line may be so many times worse than the second."""


class Soak:
    """A database, and what it should hold."""

    def __init__(self, place: str, seed: int) -> None:
        self.place = place
        self.chance = random.Random(seed)
        self.items = {at: (at % OWNERS, at % 97) for at in range(ITEMS)}
        self.above = {at: self.chance.randrange(at) for at in range(1, NODES)}
        self.db: Database = corollary.open(place)
        self.db.load(text=TEXT)
        with self.db.transaction() as tx:
            tx.insert("item", [(at, *rest) for at, rest in self.items.items()])
            tx.insert("above", list(self.above.items()))

    def step(self) -> float:
        """Replace one row; return the seconds that took."""
        with self.db.transaction() as tx:
            if self.chance.random() < 0.5:
                at = self.chance.randrange(ITEMS)
                tx.delete("item", [(at, *self.items[at])])
                self.items[at] = self.chance.randrange(OWNERS), self.chance.randrange(10**9)
                tx.insert("item", [(at, *self.items[at])])
            else:
                at = self.chance.randrange(1, NODES)
                tx.delete("above", [(at, self.above[at])])
                self.above[at] = self.chance.randrange(at)
                tx.insert("above", [(at, self.above[at])])
            began = time.perf_counter()
            tx.commit()
            return time.perf_counter() - began

    def reopen(self) -> float:
        """Close and open; compare what is there with what should be; return the seconds."""
        self.db.close()
        began = time.perf_counter()
        self.db = corollary.open(self.place)
        took = time.perf_counter() - began
        with corollary.open(None) as fresh:
            fresh.load(text=TEXT)
            with fresh.transaction(algorithm="recompute") as tx:
                tx.insert("item", [(at, *rest) for at, rest in self.items.items()])
                tx.insert("above", list(self.above.items()))
            for name in ("item", "above", "total", "chain", "idle"):
                found, wanted = (
                    sorted(to_python(db._state.engine.read(name))) for db in (self.db, fresh)
                )
                assert found == wanted, name
        return took

    def collect(self) -> float:
        """Let go what is old; return the seconds."""
        assert self.db._store is not None
        began = time.perf_counter()
        collect(self.db._store.warehouse, Retention(commits=KEPT))
        return time.perf_counter() - began

    def sizes(self) -> tuple[int, float, float]:
        """Return the data files, their MiB, and those of the catalog."""
        assert self.db._store is not None
        root = self.db._store.warehouse.root
        sizes = [each.stat().st_size for each in (root / "data").rglob("*") if each.is_file()]
        catalog = sum(each.stat().st_size for each in root.glob("catalog.sqlite*"))
        return len(sizes), sum(sizes) / 2**20, catalog / 2**20


def memory() -> float:
    """Return the MiB of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


@contextmanager
def placed(catalog: str) -> Iterator[str]:
    """Give the place of a new warehouse."""
    with tempfile.TemporaryDirectory() as directory:
        if catalog == "sqlite":
            yield str(Path(directory) / "warehouse")
        else:
            with postgresql() as server:
                yield server.place(Path(directory) / "warehouse")


def main() -> None:
    """Make transactions and print how they go."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--transactions", type=int, default=5_000, help="so many (70000 takes an hour)")
    add("--lines", type=int, default=10, help="lines of the table")
    add("--catalog", choices=("sqlite", "postgresql"), default="sqlite")
    add("--seed", type=int, default=0)
    options = parser.parse_args()
    columns = ("transactions", "ms", "p99", "open", "gc", "files", "data", "catalog", "memory")
    print(" ".join(f"{name:>12}" for name in columns))
    lines: list[tuple[Any, ...]] = []
    with placed(options.catalog) as place:
        soak = Soak(place, options.seed)
        for line in range(1, options.lines + 1):
            took = sorted(soak.step() for _ in range(options.transactions // options.lines))
            rest = (soak.reopen(), soak.collect(), *soak.sizes(), memory())
            median, worst = statistics.median(took), took[len(took) * 99 // 100]
            made = line * len(took)
            lines.append((made, median * 1e3, worst * 1e3, *rest))
            told = (each if isinstance(each, int) else f"{each:.2f}" for each in lines[-1])
            print(" ".join(f"{each:>12}" for each in told), flush=True)
        soak.db.close()
    for at, name in enumerate(columns):
        if name in {"ms", "files", "data", "catalog", "memory"} and len(lines) > 2:
            first, last = lines[1][at], lines[-1][at]
            if last > WORST * max(first, 0.01):
                sys.exit(f"{name} has grown from {first:.2f} to {last:.2f}")
    slowest = max(line[columns.index("open")] for line in lines)
    if slowest > LONGEST_OPEN:
        sys.exit(f"to open it took {slowest:.2f} s once")
    median, (made, *_) = statistics.median(line[1] for line in lines), lines[-1]
    print(
        f"{made:,} transactions of {median:.1f} ms, {len(lines)} times closed, opened within "
        f"{slowest:.2f} s and compared: nothing lost, flat"
    )


if __name__ == "__main__":
    main()
