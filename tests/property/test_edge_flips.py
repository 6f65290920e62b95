"""Every graph on three nodes and every edge flip; the four nodes are for `make fuzz`."""

from __future__ import annotations

import pytest

from support.edge_flips import circuit, edges_on, walk
from support.selection import sampled


def test_the_walk_makes_every_flip_once_and_comes_back() -> None:
    flips, corner, seen = list(circuit(4)), 0, []
    for dimension in flips:
        seen.append((corner, dimension))
        corner ^= 1 << dimension
    assert corner == 0
    assert len(set(seen)) == len(seen) == 4 * 2**4
    assert len(edges_on(3)) == 6
    assert len(edges_on(3, loops=True)) == 9


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", sampled(["auto", "ranked", "dred", "recompute", "epf"], 5))
def test_every_flip_on_three_nodes(algorithm: str) -> None:
    changed = list(walk(3, algorithm))
    assert len(changed) == 6 * 2**6
    assert sum(changed) > 3 * 2**6


def test_a_walk_may_begin_and_end_anywhere() -> None:
    some = list(walk(3, "recompute", limit=60))
    assert list(walk(3, "recompute", first=40, limit=20)) == some[40:]
    assert len(list(walk(3, "recompute", loops=True, first=4_600))) == 9 * 2**9 - 4_600
