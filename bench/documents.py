"""What tree patterns over documents cost: for each node of document and query, and for updates.

| figure | how it is taken |
|---|---|
| star, path | documents of 1,000 to 1,000,000 nodes: what a node more costs, worst against best |
| update | one tree that arrives: in the largest document against the smallest, the median |
| useful | which functions matter for a join: what a node costs, largest against smallest |
| once | three functions that answer once, joined with the labels of a document: the time |
| typed | an update of a document with a type, which is checked: largest against smallest |
| advance | time passes, and nothing leaves a window: largest against smallest |
| orders | payments and deliveries joined on the order, collected when done: a second, and left |

A star is one level; a path is as deep as it has nodes, and the branches of its patterns are behind
`//`. Planning takes the same time for small documents and large ones: so the cost of a node, for
each node of the query, is taken from one size to the next, tenfold, and what a few nodes take is
told beside. Times are those of the processor, the best of some runs, so that others on the machine
do not count.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import pyarrow as pa

from bench.figure import Figure
from corollary.documents.collection import Storage, WriteBatch
from corollary.documents.document import ActiveDocument
from corollary.documents.queries.joins import build_shape
from corollary.documents.queries.parse import parse_query
from corollary.documents.queries.program import compile_query, query_node_name
from corollary.documents.queries.shape import QueryShape
from corollary.documents.saved_document import SavedDocument, StreamRow
from corollary.documents.stream_state import StreamProcessor

NAME = "documents"
ABOUT = "tree patterns over documents that streams write into"
FEW = 50
SIZES = (1_000, 10_000, 100_000, 1_000_000)
RUNS = (9, 7, 3, 1)
"""For each size."""
PATTERNS = (2, 5, 20)
LABELS = 25
FLAT = 2.0
UPDATES = 9
USEFUL_SIZES = (10_000, 100_000)
ONCE_LABELS = 1_000
TYPED_SIZES = (10_000, 100_000)
ADVANCE_SIZES = (2_000, 20_000)
ORDERS = 20_000
ORDERS_AT_ONCE = 2_000


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures, as they are taken."""
    for shape in ("star", "path"):
        for nodes in PATTERNS:
            yield from _scaling(shape, [int(each * scale) for each in SIZES], nodes)
    yield from _useful([int(each * scale) for each in USEFUL_SIZES])
    yield from _once(int(ONCE_LABELS * scale))
    yield from _typed([int(each * scale) for each in TYPED_SIZES])
    yield from _advance([int(each * scale) for each in ADVANCE_SIZES])
    yield from _orders(int(ORDERS * scale))


def _query(shape: str, nodes: int) -> str:
    """Return a pattern of so many nodes: a root, and branches, the last of which is not there."""
    axis = "" if shape == "star" else ".//"
    labels = [*(f"l{at}" for at in range(nodes - 2)), "b"]
    return "/a" + "".join(f"[{axis}{each}]" for each in labels)


def _document(shape: str, size: int) -> dict[str, pa.Table]:
    """Return the facts of a document: one level below the root, or one node on each level."""
    numbers = range(size)
    parents = [0] * (size - 1) if shape == "star" else list(range(size - 1))
    call = 0 if shape == "star" else size - 1
    return {
        "root": pa.table({"n": [0]}),
        "par": pa.table({"n": [*parents, call], "m": [*range(1, size), size]}),
        "lab": pa.table(
            {"n": list(numbers), "a": ["a", *(f"l{at % LABELS}" for at in numbers[1:])]}
        ),
        "data": pa.table({"n": list(numbers)}),
        "call": pa.table({"n": [size], "f": [0]}),
        "live": pa.table({"f": [0], "k": [0]}),
    }


def _scaling(shape: str, sizes: list[int], nodes: int) -> Iterator[Figure]:
    """Yield how flat the cost of a document's nodes is, and that of an update."""
    pattern = build_shape(parse_query(_query(shape, nodes)))
    least = min(_evaluated(shape, FEW, pattern)[1] for _ in range(RUNS[0]))
    times, updates = [], []
    for size, runs in zip(sizes, RUNS, strict=True):
        evaluated = [_evaluated(shape, size, pattern) for _ in range(runs)]
        times.append((size, min(seconds for _, seconds in evaluated)))
        updates.append(_update(evaluated[-1][0], size))
    costs = [
        (more - less) / (large - small) / nodes * 1e6
        for (small, less), (large, more) in pairwise(times)
    ]
    told = ", ".join(
        f"{size:,}: {cost:.2f} µs" for size, cost in zip(sizes[1:], costs, strict=True)
    )
    about = f"{nodes} query nodes; for each node of both, up to {told}"
    about += f"; {FEW} nodes take {1000 * least:.0f} ms, {sizes[-1]:,} take {times[-1][1]:.1f} s"
    yield Figure(f"{shape} {nodes}", max(costs) / min(costs), "×", FLAT, about)
    about = ", ".join(f"{1000 * each:.1f} ms" for each in updates)
    ratio = updates[-1] / updates[0]
    yield Figure(f"{shape} {nodes} update", ratio, "×", FLAT, f"largest against smallest: {about}")


def _evaluated(shape: str, size: int, pattern: QueryShape) -> tuple[Storage, float]:
    """Return a document with its view, and the processor's time of the first evaluation."""
    storage = Storage()
    rules = WriteBatch()
    rules.add("can", [(0, query_node_name("v", node)) for node in pattern.nodes()])
    storage.add_rules(compile_query("v", pattern), rules)
    document = _document(shape, size)
    start = time.process_time()
    with storage.database.transaction() as transaction:
        for relation, table in document.items():
            transaction.insert(relation, table)
    return storage, time.process_time() - start


def _update(storage: Storage, size: int) -> float:
    """Return how long a tree of two nodes below the root takes, in the median."""
    times = []
    for at in range(UPDATES):
        one, other = size + 10 + 2 * at, size + 11 + 2 * at
        batch = WriteBatch()
        batch.add("par", [(0, one), (one, other)])
        batch.add("lab", [(one, "l1"), (other, "x")])
        batch.add("data", [(one,), (other,)])
        start = time.process_time()
        storage.write(batch)
        times.append(time.process_time() - start)
    return statistics.median(times[2:])


def _useful(sizes: list[int]) -> Iterator[Figure]:
    """Yield how the cost of usefulness grows with a document whose orders are joined."""
    times, wrong = [], []
    for size in sizes:
        half = size // 8
        pairs = ((f"pay[o{at}]", f"ship[o{at + half}]") for at in range(size // 4))
        orders = " ".join(each for pair in pairs for each in pair)
        view = ActiveDocument.from_terms(f"shop[{orders} !f !g]").view("/shop[pay/*$o][ship/*$o]")
        start = time.process_time()
        found = view.usefulness()
        times.append(time.process_time() - start)
        if not found.is_exact or found.functions != {"f", "g"}:
            wrong.append(f"{size:,} nodes: {found}")
    about = ", ".join(
        f"{size:,} nodes: {each:.2f} s" for size, each in zip(sizes, times, strict=True)
    )
    ratio = times[-1] / times[0] * sizes[0] / sizes[-1]
    yield Figure("useful", ratio, "×", FLAT, about, differences=tuple(wrong))


def _once(labels: int) -> Iterator[Figure]:
    """Yield how long it takes to find what three functions that answer once can do together."""
    names = ("f", "g", "h")
    others = " ".join(f"l{at}" for at in range(labels))
    tree = f"r[p[!f] q[!g] s[!h] t[u v w] {others}]"
    view = ActiveDocument.from_terms(tree, once=names).view(
        "/r[p/*$x][q/*$y][s/*$z][t[*$x][*$y][*$z]]"
    )
    start = time.process_time()
    found = len(view.possible())
    seconds = time.process_time() - start
    wrong = () if found == 27 and view.is_exact else (f"{found} possible answers",)
    about = f"three functions, {labels:,} labels in the document"
    yield Figure("once", seconds, "s", None, about, differences=wrong)


def _typed(sizes: list[int]) -> Iterator[Figure]:
    """Yield what it costs to check an update against the type of the whole document."""
    times, first = [], []
    for size in sizes:
        orders = " ".join(["order[number item]"] * (size // 3))
        type_ = "shop[order[number, item+, paid?]*]"
        document = ActiveDocument.from_terms(f"shop[{orders} !f]", document_type=type_)
        taken = [_seconds(document.add, "f", "order[number item]") for _ in range(UPDATES)]
        first.append(taken[0])
        times.append(statistics.median(taken[1:]))
    about = ", ".join(f"{1000 * each:.1f} ms" for each in times)
    about += f"; the first update looks at all nodes: {first[-1]:.1f} s"
    yield Figure("typed update", times[-1] / times[0], "×", FLAT, about)


def _advance(sizes: list[int]) -> Iterator[Figure]:
    """Yield what it costs that time passes, in a document with a window from which nothing goes."""
    times = []
    for size in sizes:
        document = ActiveDocument.from_terms("shop[!f]")
        document.view("/shop/pay arrived $p [*$o] where now - $p <= 10min return $o")
        document.add("f", " ".join(f"pay[o{at}]" for at in range(size)), at=1)
        taken = [_seconds(document.advance, at) for at in range(2, 2 + UPDATES)]
        times.append(statistics.median(taken[1:]))
    about = ", ".join(f"{1000 * each:.1f} ms" for each in times)
    yield Figure("advance", times[-1] / times[0], "×", FLAT, f"largest against smallest: {about}")


def _seconds(work: Callable[..., object], *arguments: object) -> float:
    """Return the processor's time that some work takes."""
    start = time.process_time()
    work(*arguments)
    return time.process_time() - start


def _orders(number: int) -> Iterator[Figure]:
    """Yield how quickly orders come and go, and how much is kept when all are done."""
    keeper = StreamProcessor({"shipped": "/shop[pay/*$o][ship/*$o]"}, "shop[!pay !ship]")
    kept, found = SavedDocument(), 0
    start = time.perf_counter()
    for first in range(0, number, ORDERS_AT_ONCE):
        orders = range(first, first + ORDERS_AT_ONCE)
        rows = [StreamRow("pay", at, f"pay[o{at}]", is_end=False) for at in orders]
        rows += [StreamRow("ship", at, f"ship[o{at}]", is_end=False) for at in orders]
        found += sum(event.op == "sure" for event in keeper.process_rows("shop", kept, rows))
    seconds = time.perf_counter() - start
    wrong = () if found == number else (f"{found:,} of {number:,} orders were found",)
    yield Figure("orders", number / seconds, "/s", None, f"{number:,} orders", differences=wrong)
    yield Figure("orders kept", kept.needed, "", 10, "nodes of the document in the end")
