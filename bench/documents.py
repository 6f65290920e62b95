"""What tree patterns over documents cost: for each node of document and query, and for updates.

| figure | how it is taken |
|---|---|
| star, path | growing documents: seconds over nodes times query nodes, worst size against best |
| update | one tree that arrives: in the largest document against the smallest, the median |
| orders | payments and deliveries joined on the order, collected when done: a second, and left |

A path is as deep as it has nodes, so each level is a round of the recursion behind `//`; a star is
one round. Planning costs the same for small documents and large ones, and is not taken off: so
stars begin where it is a small part, and what a few nodes take is told beside. Times are those of
the processor, the best of some runs, so that others on the machine do not count.
"""

import statistics
import time
from collections.abc import Iterator

import pyarrow as pa

from bench.figure import Figure
from corollary.documents.joins import shape_of
from corollary.documents.keeping import Arrival, Keeper, Kept
from corollary.documents.parse import parse_query
from corollary.documents.program import compiled, part
from corollary.documents.shape import Shape
from corollary.documents.storage import Batch, Storage

NAME = "documents"
ABOUT = "tree patterns over documents that streams write into"
FEW = 50
RUNS = 2
STARS = (100_000, 300_000, 1_000_000)
PATHS = (1_000, 3_000, 10_000)
PATTERNS = (2, 5, 20)
FLAT = 2.0
UPDATES = 9
ORDERS = 20_000
ORDERS_AT_ONCE = 2_000


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures, as they are taken."""
    for size in PATTERNS:
        yield from _scaling("star", [int(each * scale) for each in STARS], _bushy(size))
    yield from _scaling("path", [int(each * scale) for each in PATHS], "/a[.//b]")
    yield from _orders(int(ORDERS * scale))


def _bushy(size: int) -> str:
    """Return a pattern of so many nodes: a root, and children that all have to be there."""
    return "/a" + "".join(f"[l{at}]" for at in range(size - 1))


def _document(shape: str, size: int) -> dict[str, pa.Table]:
    """Return the facts of a document: one level below the root, or one node on each level."""
    numbers = range(size)
    parents = [0] * (size - 1) if shape == "star" else list(range(size - 1))
    labels = [f"l{at % 25}" for at in numbers] if shape == "star" else ["a"] * size
    labels[0] = "a"
    return {
        "root": pa.table({"n": [0]}),
        "par": pa.table({"n": parents, "m": list(range(1, size))}),
        "lab": pa.table({"n": list(numbers), "a": labels}),
        "data": pa.table({"n": list(numbers)}),
        "call": pa.table({"n": [size], "f": [0]}),
        "live": pa.table({"f": [0], "k": [0]}),
    }


def _scaling(shape: str, sizes: list[int], query: str) -> Iterator[Figure]:
    """Yield how flat the cost of a document's nodes is, and that of an update."""
    pattern = shape_of(parse_query(query))
    number = len(list(pattern.nodes()))
    least = min(_evaluated(shape, FEW, pattern)[1] for _ in range(RUNS))
    costs, updates = [], []
    for size in sizes:
        runs = [_evaluated(shape, size, pattern) for _ in range(RUNS)]
        seconds = min(each for _, each in runs)
        costs.append(seconds / size / number * 1e6)
        updates.append(_update(runs[-1][0], size))
    listed = ", ".join(f"{size:,}: {cost:.2f} µs" for size, cost in zip(sizes, costs, strict=True))
    about = f"{number} query nodes, worst against best; for each node of both, {listed}"
    about += f"; {FEW} nodes take {1000 * least:.0f} ms"
    yield Figure(f"{shape} {number}", max(costs) / min(costs), "×", FLAT, about)
    times = ", ".join(f"{1000 * each:.1f} ms" for each in updates)
    yield Figure(
        f"{shape} {number} update",
        updates[-1] / updates[0],
        "×",
        None if shape == "path" else FLAT,
        f"largest against smallest: {times}",
    )


def _evaluated(shape: str, size: int, pattern: Shape) -> tuple[Storage, float]:
    """Return a document with its view, and the processor's time of the first evaluation."""
    storage = Storage()
    rules = Batch()
    rules.add("can", [(0, part("v", node)) for node in pattern.nodes()])
    storage.define(compiled("v", pattern), rules)
    document = _document(shape, size)
    start = time.process_time()
    with storage.database.transaction() as transaction:
        for relation, table in document.items():
            transaction.insert(relation, table)
        transaction.insert("par", [(size - 1, size)])
    return storage, time.process_time() - start


def _update(storage: Storage, size: int) -> float:
    """Return how long a tree of two nodes below the root takes, in the median."""
    times = []
    for at in range(UPDATES):
        one, other = size + 10 + 2 * at, size + 11 + 2 * at
        batch = Batch()
        batch.add("par", [(0, one), (one, other)])
        batch.add("lab", [(one, "l1"), (other, "x")])
        batch.add("data", [(one,), (other,)])
        start = time.process_time()
        storage.write(batch)
        times.append(time.process_time() - start)
    return statistics.median(times[2:])


def _orders(number: int) -> Iterator[Figure]:
    """Yield how quickly orders come and go, and how much is kept when all are done."""
    keeper = Keeper({"shipped": "/shop[pay/*$o][ship/*$o]"}, "shop[!pay !ship]")
    kept, found = Kept(), 0
    start = time.perf_counter()
    for first in range(0, number, ORDERS_AT_ONCE):
        orders = range(first, first + ORDERS_AT_ONCE)
        rows = [Arrival("pay", at, f"pay[o{at}]", is_end=False) for at in orders]
        rows += [Arrival("ship", at, f"ship[o{at}]", is_end=False) for at in orders]
        found += sum(event.op == "sure" for event in keeper.take("shop", kept, rows))
    seconds = time.perf_counter() - start
    wrong = () if found == number else (f"{found:,} of {number:,} orders were found",)
    yield Figure("orders", number / seconds, "/s", None, f"{number:,} orders", differences=wrong)
    yield Figure("orders kept", kept.needed, "", 10, "nodes of the document in the end")
