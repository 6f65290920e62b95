"""Replicas: how many changes a second each way out takes, and how late one alone is.

| figure | how it is taken |
|---|---|
| rows, updates | 100,000 rows that come, and half of them with other values, each at once |
| late | one row more, from before its commit until the replica shows it |

PostgreSQL is the tests' server, the broker librdkafka's own in this process, the catalog of Iceberg
SQLite. What the replica has at the end is compared with the relation; of a topic, the number of
messages.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, Producer, TopicPartition

import corollary
from bench.changes.postgresql import MissingError, postgresql
from bench.figure import Figure

NAME = "replicas"
ABOUT = "changes to PostgreSQL, Kafka, Iceberg and Delta"
ROWS = 100_000
LATE = 20
PROGRAM = """
.decl p(id: number, v: symbol) key(id)
.output p{where}
"""
Read = Callable[[], int]
"""Returns how many rows there are, or messages."""


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures, as they are taken."""
    rows = int(ROWS * scale)
    for place in (_delta, _postgresql, _kafka, _iceberg):
        with tempfile.TemporaryDirectory() as directory:
            try:
                with place(Path(directory)) as (where, read):
                    yield from _figures(
                        place.__name__.strip("_"), Path(directory), where, read, rows
                    )
            except MissingError:
                continue


def _figures(name: str, place: Path, where: str, read: Read, rows: int) -> Iterator[Figure]:
    db = corollary.open(place / "w", engine="local", publish="manual")
    db.load(text=PROGRAM.format(where=where))
    _publish(db)
    old, new = (_table(range(0, rows, 2), text) for text in ("a", "b"))
    steps = (((_table(range(rows), "a"),), ()), ((new,), (old,)))
    for what, (added, removed) in zip(("rows", "updates"), steps, strict=True):
        with db.transaction() as tx:
            for each in removed:
                tx.delete("p", each)
            for each in added:
                tx.insert("p", each)
        changes = sum(each.num_rows for each in (*added, *removed))
        seconds = _publish(db)
        about = f"{changes:,} changes in {seconds:.2f} s"
        yield Figure(f"{name}, {what}", changes / seconds, "/s", None, about)
    late = []
    for at in range(LATE):
        began = time.perf_counter()
        with db.transaction() as tx:
            tx.insert("p", [(rows + at, "late")])
        _publish(db)
        late.append(time.perf_counter() - began)
    expected = rows + LATE + (rows // 2 if name == "kafka" else 0)
    found = read()
    differences = () if found == expected else (f"there are {found}, and not {expected}",)
    about = f"one row, committed and shown; at most {max(late) * 1000:.0f} ms"
    middle = statistics.median(late) * 1000
    yield Figure(f"{name}, late", middle, "ms", None, about, differences=differences)
    db.close()


def _table(numbers: range, text: str) -> pa.Table:
    return pa.table({"id": list(numbers), "v": [f"{text}{each % 1000}" for each in numbers]})


def _publish(db: Any) -> float:
    began = time.perf_counter()
    result = db.publish()
    assert not result.problems, result.problems
    return time.perf_counter() - began


@contextmanager
def _delta(place: Path) -> Iterator[tuple[str, Read]]:
    from deltalake import DeltaTable

    yield "", lambda: DeltaTable(str(place / "w" / "tables" / "p")).to_pyarrow_table().num_rows


@contextmanager
def _postgresql(place: Path) -> Iterator[tuple[str, Read]]:
    import psycopg

    with postgresql() as server:
        url = server.place(place).partition("?")[0]
        os.environ["COROLLARY_CONNECTION_BENCH"] = url

        def read() -> int:
            with psycopg.connect(url) as connection:
                (count,) = connection.execute("select count(*) from p").fetchone() or (0,)
            return int(count)

        yield "(IO=postgresql, connection=bench)", read


@contextmanager
def _kafka(_: Path) -> Iterator[tuple[str, Read]]:
    broker = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
    (found,) = broker.list_topics(timeout=10).brokers.values()
    address = f"{found.host}:{found.port}"
    os.environ["COROLLARY_CONNECTION_BENCH"] = f"kafka://{address}"

    def read() -> int:
        reader = Consumer({"bootstrap.servers": address, "group.id": "bench", "log_level": 0})
        reader.assign([TopicPartition("p", number, 0) for number in range(4)])
        count = 0
        while messages := reader.consume(10_000, 2.0):
            count += len(messages)
        reader.close()
        return count

    yield "(IO=kafka, connection=bench)", read


@contextmanager
def _iceberg(place: Path) -> Iterator[tuple[str, Read]]:
    (place / "lake").mkdir()
    os.environ["PYICEBERG_CATALOG__BENCH__URI"] = f"sqlite:///{place}/lake.sqlite"
    os.environ["PYICEBERG_CATALOG__BENCH__WAREHOUSE"] = f"file://{place}/lake"
    from pyiceberg.catalog import load_catalog

    def read() -> int:
        found = load_catalog("bench").load_table("default.p").scan().to_arrow()
        return int(found.num_rows)

    yield "(IO=iceberg, catalog=bench)", read
