"""Changes that reach far: long chains and large closures (lines 30 and 31 of the checklist)."""

from __future__ import annotations

import pytest

from corollary.core.engine import Limits
from corollary.database.database import Database
from support.maintained_database import apply, closure, delete, insert, opened
from support.selection import sampled

LIVE = """
.decl root(x: number)
.decl edge(x: number, y: number)
.decl live(x: number)
live(x) :- root(x).
live(y) :- edge(x, y), live(x).
"""
UNBOUNDED = Limits()


def chain(length: int) -> list[tuple[int, int]]:
    return [(at, at + 1) for at in range(length)]


def rooted(algorithm: str, edges: list[tuple[int, int]], virtual: tuple[str, ...] = ()) -> Database:
    """A database in which 0 is the root."""
    db = opened(LIVE, algorithm, virtual, limits=UNBOUNDED)
    apply(db, ({"edge": edges, "root": [(0,)]}, {}))
    return db


LENGTHS = {
    "auto": 10_000,
    "ranked": 10_000,
    "dred": 10_000,
    "recompute": 10_000,
    "epf": 2_000,
    "pf": 150,
}
"""PF proves every tuple along the whole chain, one by one."""


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", sampled(LENGTHS, 5, ["auto"]))
def test_a_chain_is_cut_and_mended(algorithm: str) -> None:
    length = LENGTHS[algorithm]
    half = length // 2
    db = rooted(algorithm, chain(length))
    assert db._state.engine.size("live") == length + 1
    tx = delete(db, "edge", [(half, half + 1)])
    assert tx.changes["live"].counts == (0, half)
    assert min(tx.changes["live"].removed["x"].to_pylist()) == half + 1
    tx = insert(db, "edge", [(half, half + 1)])
    assert tx.changes["live"].counts == (half, 0)
    tx = apply(db, ({"edge": [(half, half + 2)]}, {"edge": [(half, half + 1)]}))
    assert tx.changes["live"].removed.to_pylist() == [{"x": half + 1}]
    assert tx.changes["live"].counts == (0, 1)


@pytest.mark.long
def test_a_virtual_chain_is_cut_and_mended() -> None:
    length = 2_000
    db = rooted("auto", chain(length), ("live",))
    tx = delete(db, "edge", [(length // 2, length // 2 + 1)])
    assert tx.changes["live"].counts == (0, length // 2)
    tx = insert(db, "edge", [(length // 2, length // 2 + 1)])
    assert tx.changes["live"].counts == (length // 2, 0)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", sampled(["auto", "ranked", "dred", "recompute", "epf"], 5))
@pytest.mark.parametrize("kind", ["left-linear", "right-linear", "non-linear"])
def test_the_closure_of_a_chain_is_cut_and_mended(kind: str, algorithm: str) -> None:
    length = 120 if algorithm == "epf" else 150 if kind == "non-linear" else 500
    half = length // 2
    db = opened(closure(kind, "number"), "auto", limits=UNBOUNDED)
    insert(db, "edge", chain(length))
    assert db._state.engine.size("reach") == length * (length + 1) // 2
    tx = delete(db, "edge", [(half, half + 1)], algorithm=algorithm)
    lost = (half + 1) * (length - half)
    assert tx.changes["reach"].counts == (0, lost)
    assert db._state.engine.size("reach") == length * (length + 1) // 2 - lost
    tx = insert(db, "edge", [(half, half + 1)], algorithm=algorithm)
    assert tx.changes["reach"].counts == (lost, 0)


def star_of_stars(branches: int) -> list[tuple[int, int]]:
    """0 → 1 … branches, each of which has as many leaves."""
    hubs = [(0, 1 + at) for at in range(branches)]
    leaves = [
        (1 + at, 1 + branches + at * branches + leaf)
        for at in range(branches)
        for leaf in range(branches)
    ]
    return hubs + leaves


@pytest.mark.slow
@pytest.mark.matrix(3)
@pytest.mark.parametrize("algorithm", ["auto", "ranked", "dred", "recompute", "epf", "pf"])
def test_the_root_of_everything_goes_and_comes_back(algorithm: str) -> None:
    branches = 316
    size = 1 + branches + branches**2
    assert size > 100_000
    db = rooted(algorithm, star_of_stars(branches))
    assert db._state.engine.size("live") == size
    tx = delete(db, "root", [(0,)])
    assert tx.changes["live"].counts == (0, size)
    tx = insert(db, "root", [(0,)])
    assert tx.changes["live"].counts == (size, 0)


@pytest.mark.matrix(3)
@pytest.mark.parametrize("algorithm", ["auto", "ranked", "dred", "recompute", "epf"])
def test_a_node_that_reaches_everything_loses_its_edges(algorithm: str) -> None:
    """The closure has 2 · branches² + branches tuples, more than half of them from the root."""
    branches = 230
    edges = star_of_stars(branches)
    size = branches + 2 * branches**2
    assert size > 100_000
    db = opened(closure("left-linear", "number"), "auto", limits=UNBOUNDED)
    insert(db, "edge", edges)
    assert db._state.engine.size("reach") == size
    tx = delete(db, "edge", edges[:branches], algorithm=algorithm)
    assert tx.changes["reach"].counts == (0, branches + branches**2)
    tx = insert(db, "edge", edges[:1], algorithm=algorithm)
    assert tx.changes["reach"].counts == (1 + branches, 0)
