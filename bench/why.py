"""What a proof costs: tuples of a stored closure of a million tuples, in an open process.

| figure | how it is taken |
|---|---|
| fresh | a left-linear closure, its ranks least heights: tuples of height 20, each asked once |
| after changes | the same after 20 transactions: ranks are upper bounds only |
| without ranks | the same with the mark of the ranks cleared: the cone alone |
| non-linear | `tc(x, z) :- tc(x, y), tc(y, z)`: hundreds of instances a tuple |

A figure is the median of all questions, in seconds of the processor (all of this runs in one
thread); the slowest one is in its text. The heights of proofs of the linear closure have to be the
lengths of shortest paths, which a search through the edges finds.
"""

import random
import statistics
import time
from collections import deque
from collections.abc import Iterable, Iterator

import corollary
from bench.data import random_graph
from bench.figure import Figure
from corollary.database.database import Database, state_of
from corollary.provenance.proof import Proof
from corollary.provenance.why import why

NAME = "why"
ABOUT = "proofs of tuples of a stored closure of a million tuples"
NODES = 1_640
EDGES_PER_NODE = 1.6
NONLINEAR_SHARE = 0.3
"""The non-linear closure has this part of the nodes: its first evaluation takes long."""
HEIGHT = 20
QUESTIONS = 20
CHANGES = 20
BAR_SECONDS = 0.2

Edge = tuple[int, int]

CLOSURE = """
.decl edge(x: number, y: number)
.decl tc(x: number, y: number)
tc(x, y) :- edge(x, y).
"""
LINEAR = "tc(x, z) :- tc(x, y), edge(y, z)."
NONLINEAR = "tc(x, z) :- tc(x, y), tc(y, z)."


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures, as they are taken."""
    nodes = int(NODES * scale**0.5)
    database, edges = _load(nodes, LINEAR)
    with database:
        size = f"closure of {len(database.relation('tc')):,} tuples"
        yield _figure("fresh", database, _far_pairs(edges), f"{size}, ranks exact", BAR_SECONDS)
        edges = _change(database, edges, nodes)
        pairs = _far_pairs(edges)
        yield _figure("after changes", database, pairs, f"after {CHANGES} transactions")
        state_of(database).invalidate_payload(["tc"])
        yield _figure("without ranks", database, pairs, "no ranks")
    database, edges = _load(int(nodes * NONLINEAR_SHARE), NONLINEAR)
    with database:
        size = f"closure of {len(database.relation('tc')):,} tuples"
        yield _figure(
            "non-linear", database, _far_pairs(edges), f"{size}, ranks exact", is_linear=False
        )


def _load(nodes: int, rule: str) -> tuple[Database, set[Edge]]:
    table = random_graph(nodes, int(nodes * EDGES_PER_NODE))["edge"]
    edges: set[Edge] = set(zip(*(column.to_pylist() for column in table.columns), strict=True))
    database = corollary.open(None)
    database.load(text=CLOSURE + rule)
    with database.transaction() as transaction:
        transaction.insert("edge", sorted(edges))
    return database, edges


def _change(database: Database, edges: set[Edge], nodes: int) -> set[Edge]:
    """Replace some edges, a few in each transaction; return the edges there are."""
    source, edges = random.Random(7), set(edges)
    for _ in range(CHANGES):
        gone = source.choice(sorted(edges))
        come = source.randrange(nodes), source.randrange(nodes)
        with database.transaction() as transaction:
            transaction.delete("edge", [gone])
            transaction.insert("edge", [come])
        edges = edges - {gone} | {come}
    return edges


def _far_pairs(edges: Iterable[Edge]) -> dict[Edge, int]:
    """Return pairs of nodes about HEIGHT edges apart, with the lengths of shortest paths."""
    after: dict[int, list[int]] = {}
    for one, other in edges:
        after.setdefault(one, []).append(other)
    found: dict[Edge, int] = {}
    for start in sorted(after):
        lengths = _lengths(start, after)
        far = [each for each, length in lengths.items() if length <= HEIGHT]
        if far:
            end = max(far, key=lambda each: (lengths[each], -each))
            found[start, end] = lengths[end]
    # The highest ones, each with another first node.
    highest = sorted(found, key=lambda pair: (-found[pair], pair))
    return {pair: found[pair] for pair in highest[:QUESTIONS]}


def _lengths(start: int, after: dict[int, list[int]]) -> dict[int, int]:
    """Return the lengths of shortest paths from a node, those of one edge and more."""
    lengths: dict[int, int] = {}
    work = deque([(start, 0)])
    while work:
        node, length = work.popleft()
        for other in after.get(node, ()):
            if other not in lengths:
                lengths[other] = length + 1
                work.append((other, length + 1))
    return lengths


def _figure(
    name: str,
    database: Database,
    pairs: dict[Edge, int],
    about: str,
    bar: float | None = None,
    *,
    is_linear: bool = True,
) -> Figure:
    state = state_of(database)
    seconds: list[float] = []
    proofs: dict[Edge, Proof] = {}
    for x, y in pairs:
        start = time.process_time()
        proofs[x, y] = why(state, f"tc({x}, {y})")
        seconds.append(time.process_time() - start)
    median = statistics.median(seconds)
    heights = [proof.height or 0 for proof in proofs.values()]
    canonical = sum(proof.canonical for proof in proofs.values())
    text = (
        f"{about}; heights {min(heights)} to {max(heights)}, "
        f"{canonical} of {len(pairs)} canonical, slowest {max(seconds):.3f} s"
    )
    wrong = tuple(_differences(proofs, pairs)) if is_linear else ()
    return Figure(name, median, "s", bar, text, differences=wrong)


def _differences(proofs: dict[Edge, Proof], pairs: dict[Edge, int]) -> Iterator[str]:
    """Say which proofs are not as low as they have to be."""
    for pair, proof in proofs.items():
        if not proof.holds or not proof.canonical or proof.height != pairs[pair]:
            yield f"tc{pair}: height {proof.height}, a shortest path has {pairs[pair]} edges"
