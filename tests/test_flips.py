"""Every graph on three nodes and every edge flip; the four nodes are for `make fuzz`."""

from __future__ import annotations

from itertools import pairwise

import pytest

from flips import circuit, edges_on, walk


def test_the_walk_makes_every_flip_once_and_comes_back() -> None:
    flips, corner, seen = list(circuit(4)), 0, []
    for dimension in flips:
        seen.append((corner, dimension))
        corner ^= 1 << dimension
    assert corner == 0
    assert len(set(seen)) == len(seen) == 4 * 2**4
    assert len(edges_on(3)) == 6
    assert all(one != other for one, other in pairwise(seen))


@pytest.mark.parametrize("algorithm", ["ranked", "dred", "auto", "epf"])
def test_every_flip_on_three_nodes(algorithm: str) -> None:
    assert walk(3, algorithm) == 6 * 2**6
