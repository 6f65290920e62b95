"""Payments and deliveries through Spark: the monitor of the paper's introduction, at length.

| figure | how it is taken |
|---|---|
| orders | shops, each a document; files of payments and deliveries go through `watch` |
| growth | the largest state that Spark keeps of a shop, against that behind the first batch |
| workers | memory of the Python processes that keep documents open, against that behind batch 3 |
| driver | memory of the process with the warehouse, which holds all answers, the same way |

Payments and deliveries are joined on the order, with their times; every order has one of each, as
`key $o` says. A delivery comes a batch after its payment, a slow one two; a rule of the warehouse
selects the slow ones. Finished orders are collected, so state must not grow.
"""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import corollary
from bench.figure import Figure
from corollary.database.database import Database
from corollary.documents.spark import ARRIVALS, wait, watch
from corollary.engines.spark.session import local_session

NAME = "orders"
ABOUT = "100,000 orders of 8 shops through Spark: joined, slow ones selected, collected when done"
ORDERS = 100_000
BATCHES = 10
"""Of payments; the last deliveries come in two more."""
SHOPS = 8
HOUR = 3600
QUERY = (
    "/shop[payment[@order/*$o][@at/*$p]][delivery[@order/*$o][@at/*$d]] return $o, $p, $d key $o"
)
PROGRAM = f"""
.decl document_label(doc: symbol, view: symbol, answer: symbol, place: number, label: symbol)
.decl slow(shop: symbol, order: symbol, seconds: number)
slow(s, o, to_number(d) - to_number(p)) :-
    document_label(s, "done", a, 0, o), document_label(s, "done", a, 1, p),
    document_label(s, "done", a, 2, d), to_number(d) - to_number(p) > {HOUR}.
.output slow
"""
TYPES = {"bank": ["payment"], "carrier": ["delivery"]}
GROWTH = 2.5
"""A document is collected when it has twice the nodes that it needed last."""
EARLY = 3
"""The batch behind which memory is taken first: by then, everything has been in use."""
MEMORY = 1.5
"""A worker may take so much more at the end: it remembers labels until it begins anew."""


class Order(NamedTuple):
    """An order: where it was made, and when it was paid and delivered, in seconds."""

    shop: str
    name: str
    paid: int
    delivered: int

    @property
    def is_slow(self) -> bool:
        """Whether it took more than an hour."""
        return self.delivered - self.paid > HOUR


class Memory(NamedTuple):
    """Megabytes that processes take: this one, and the Python ones that it has started."""

    driver: float
    workers: float


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures, as they are taken."""
    each = int(ORDERS * scale) // BATCHES
    batches = [[_order(number, at) for at in range(each)] for number in range(BATCHES)]
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        _write(place / "arrivals", batches)
        memory: list[Memory] = []
        start = time.perf_counter()
        with corollary.open(place / "warehouse", engine="local") as database:
            _follow(database, place, memory)
            seconds = time.perf_counter() - start
            orders = [order for batch in batches for order in batch]
            wrong = tuple(_differences(database, orders))
        about = f"{len(orders):,} orders in {len(memory)} batches, {seconds:.0f} s"
        yield Figure("orders", len(orders) / seconds, "/s", None, about, differences=wrong)
        sizes = [_largest_state(place / "checkpoint", number) for number in range(len(memory))]
        about = f"of the largest state: {sizes[0]:,} bytes at first, {sizes[-1]:,} at last"
        yield Figure("growth", max(sizes[1:]) / sizes[0], "×", GROWTH, about)
        for name, bar in (("workers", MEMORY), ("driver", None)):
            early, late = (getattr(memory[at], name) for at in (EARLY, -1))
            about = f"of memory: {early:.0f} MB behind batch {EARLY}, {late:.0f} MB at last"
            yield Figure(name, late / early, "×", bar, about)


def _order(number: int, at: int) -> Order:
    """Return an order that is paid in a batch; every fiftieth is slow, by a second or more."""
    paid = 10_000 * number + at
    took = HOUR + 1 + at if at % 50 == 7 else HOUR - at % 40
    return Order(f"shop{at % SHOPS}", f"o{number}.{at}", paid, paid + took)


def _follow(database: Database, place: Path, memory: list[Memory]) -> None:
    """Let all files come, one in a batch; note how much memory is taken behind each."""
    database.load(text=PROGRAM)
    reader = local_session().readStream.schema(ARRIVALS).option("maxFilesPerTrigger", 1)
    query = watch(
        database,
        reader.json(str(place / "arrivals")),
        {"done": QUERY},
        template="shop[!bank !carrier]",
        types=TYPES,
        checkpoint=place / "checkpoint",
        trigger={"availableNow": True},
        on_batch=lambda *_: memory.append(_memory()),
    )
    wait(query)


def _differences(database: Database, orders: list[Order]) -> Iterator[str]:
    """Say how answers and slow orders differ from what was sent; nothing if they do not."""
    done = {
        (each.shop, "done", json.dumps([each.name, str(each.paid), str(each.delivered)]))
        for each in orders
    }
    slow = {(each.shop, each.name, each.delivered - each.paid) for each in orders if each.is_slow}
    for name, expected in (("document_answer", done), ("slow", slow)):
        found = set(database.relation(name).rows())
        if found != expected:
            missing, further = len(expected - found), len(found - expected)
            yield f"{name}: of {len(expected):,}, {missing:,} are missing, {further:,} are wrong"


def _write(folder: Path, batches: list[list[Order]]) -> None:
    """Write a file for each batch: payments, and deliveries of earlier ones, last first."""
    folder.mkdir()
    numbers: dict[tuple[str, str], int] = {}
    for number in range(len(batches) + 2):
        sent = [("payment", each) for each in batches[number]] if number < len(batches) else []
        for ago in (1, 2):
            if 0 <= number - ago < len(batches):
                earlier = reversed(batches[number - ago])
                sent += [("delivery", each) for each in earlier if each.is_slow is (ago == 2)]
        lines = [_line(kind, order, numbers) for kind, order in sent]
        (folder / f"{number:03}.json").write_text("\n".join(lines), "utf-8")


def _line(kind: str, order: Order, numbers: dict[tuple[str, str], int]) -> str:
    function, at = ("bank", order.paid) if kind == "payment" else ("carrier", order.delivered)
    seq = numbers[order.shop, function] = numbers.get((order.shop, function), 0) + 1
    xml = f"<{kind} order='{order.name}' at='{at}'/>"
    return json.dumps({"doc": order.shop, "fn": function, "seq": seq, "xml": xml, "eos": False})


def _largest_state(checkpoint: Path, batch: int) -> int:
    """Return how many bytes the largest state of a document had behind a batch."""
    reader = local_session().read.format("statestore").option("batchId", batch)
    state: Any = reader.load(str(checkpoint))
    column = state.schema["value"].dataType.names[0]
    return max(len(str(row[0])) for row in state.select(f"value.{column}").collect())


def _memory() -> Memory:
    """Return what is resident of this process, and of all Python processes that descend from it."""
    command = ["ps", "-A", "-o", "pid=,ppid=,rss=,comm="]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = [line.split(None, 3) for line in listed.splitlines()]
    below: dict[int, list[list[str]]] = {}
    for row in rows:
        below.setdefault(int(row[1]), []).append(row)
    workers, waiting = 0, [os.getpid()]
    while waiting:
        for row in below.get(waiting.pop(), ()):
            waiting.append(int(row[0]))
            workers += int(row[2]) if "python" in row[3] else 0
    own = next(int(row[2]) for row in rows if int(row[0]) == os.getpid())
    return Memory(own / 1024, workers / 1024)
