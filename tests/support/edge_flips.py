"""Every graph on a few nodes, every edge flipped: closures maintained along one walk.

The graphs are the corners of a cube with one dimension for each possible edge, and a flip is an
edge of the cube, in one direction. An Eulerian circuit of the cube makes every flip exactly once,
each as one transaction on a live database. The closures are checked after each by brute force.

| nodes | without loops | with loops |
|---|---|---|
| 3 | 64 graphs × 6 flips | 512 × 9 |
| 4 | 4,096 × 12 | 65,536 × 16 |
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice, product

from corollary.core.arrow import to_python
from support.maintained_database import opened
from support.payload_check import check_payload

PROGRAM = """
.decl node(x: number)
.decl edge(x: number, y: number)
.decl left(x: number, y: number)
left(x, y) :- edge(x, y).
left(x, z) :- left(x, y), edge(y, z).
.decl right(x: number, y: number)
right(x, y) :- edge(x, y).
right(x, z) :- edge(x, y), right(y, z).
.decl double(x: number, y: number)
double(x, y) :- edge(x, y).
double(x, z) :- double(x, y), double(y, z).
.decl apart(x: number, y: number)
apart(x, y) :- node(x), node(y), !left(x, y).
"""

CHECKED = 97
"""Ranks and counts are looked at after every so many flips."""


def edges_on(nodes: int, loops: bool = False) -> list[tuple[int, int]]:
    """Return all possible edges on so many nodes."""
    return [(x, y) for x, y in product(range(nodes), repeat=2) if loops or x != y]


def circuit(dimensions: int) -> Iterator[int]:
    """Yield the dimensions to flip, from corner 0, so that every flip is made once (Hierholzer)."""
    rest = [list(range(dimensions)) for _ in range(1 << dimensions)]
    corners, flips, found = [0], [-1], []
    while corners:
        corner = corners[-1]
        if rest[corner]:
            dimension = rest[corner].pop()
            corners.append(corner ^ (1 << dimension))
            flips.append(dimension)
        else:
            corners.pop()
            found.append(flips.pop())
    return iter(found[-2::-1])


def walk(
    nodes: int, algorithm: str, loops: bool = False, first: int = 0, limit: int | None = None
) -> Iterator[bool]:
    """Make every flip of an edge on so many nodes; yield for each whether it changed a closure.

    Args:
        nodes: of the graphs.
        algorithm: that maintains the closures.
        loops: whether there are edges from a node to itself.
        first: the place in the circuit where the walk begins.
        limit: after so many flips it ends.
    """
    edges = edges_on(nodes, loops)
    every = frozenset(product(range(nodes), repeat=2))

    @cache
    def closure(graph: int) -> frozenset[tuple[int, int]]:
        reached = {edge for at, edge in enumerate(edges) if graph >> at & 1}
        for middle, x, y in product(range(nodes), repeat=3):
            if (x, middle) in reached and (middle, y) in reached:
                reached.add((x, y))
        return frozenset(reached)

    flips = circuit(len(edges))
    graph = 0
    for at in islice(flips, first):
        graph ^= 1 << at
    db = opened(PROGRAM, algorithm)
    with db.transaction() as tx:
        tx.insert("node", [(node,) for node in range(nodes)])
        tx.insert("edge", [edge for at, edge in enumerate(edges) if graph >> at & 1])
    for number, at in enumerate(islice(flips, limit)):
        before = closure(graph)
        is_there = graph >> at & 1
        graph ^= 1 << at
        with db.transaction() as tx:
            (tx.delete if is_there else tx.insert)("edge", [edges[at]])
        now = closure(graph)
        for name in ("left", "right", "double", "apart"):
            wanted, was = (every - now, every - before) if name == "apart" else (now, before)
            change = tx.changes[name]
            found = set(to_python(change.added)), set(to_python(change.removed))
            assert found == (wanted - was, was - wanted), (algorithm, name, graph, edges[at])
            assert db._state.engine.size(name) == len(wanted), (algorithm, name, graph, edges[at])
        if number % CHECKED == 0:
            check_payload(db)
        yield before != now
