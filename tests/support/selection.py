"""What `make test` runs of a matrix, and how many random examples; `make test-all` runs everything.

A test in a matrix carries the mark `matrix(n)`: `make test` runs one in n of them, the same ones in
every run; `--seed` chooses others.
"""

from __future__ import annotations

import os
import random
from collections.abc import Collection, Iterable
from typing import Any, TypeVar
from zlib import crc32

import pytest

T = TypeVar("T")
SEED = "COROLLARY_TEST_SEED"
WHOLE = "COROLLARY_TEST_ALL"


def seed_of_run() -> int:
    """Return the seed that the environment names, or else 1."""
    return int(os.environ.get(SEED, "1"))


def examples(quick: T, whole: T) -> T:
    """Return the random examples, or their number: the first for `make test`, or else for all."""
    return whole if os.environ.get(WHOLE) else quick


def sampled(values: Iterable[Any], one_in: int, always: Collection[Any] = ()) -> list[Any]:
    """Return parameters of a test, of which `make test` runs a sample.

    Args:
        values: The parameters; a tuple stands for several.
        one_in: `make test` runs one in so many of the tests.
        always: Those that it always runs.
    """
    return [
        pytest.param(
            *(each if isinstance(each, tuple) else (each,)),
            marks=() if each in always else pytest.mark.matrix(one_in),
        )
        for each in values
    ]


def selection(items: Collection[pytest.Item], seed: int) -> set[pytest.Item]:
    """Return the tests that `make test` runs under a seed: of each matrix at least one.

    A matrix is made of the tests of one function, or of those that name the same group; integration
    tests are another matrix.
    """
    chosen = {item for item in items if not item.get_closest_marker("long")}
    matrices: dict[tuple[str, int, bool], dict[pytest.Item, None]] = {}
    for item in items:
        for mark in item.iter_markers("matrix"):
            name = mark.kwargs.get("group", item.nodeid.partition("[")[0])
            is_integration = item.get_closest_marker("integration") is not None
            matrices.setdefault((name, mark.args[0], is_integration), {})[item] = None
    for (name, one_in, _), found in matrices.items():
        count = max(1, round(len(found) / one_in))
        sample = random.Random(f"{seed} {name}").sample(list(found), count)
        chosen -= found.keys() - {*sample}
    return chosen


def is_in_shard(item: pytest.Item, shard: str) -> bool:
    """Return whether a test belongs to a shard: `2/8` is the second of eight."""
    number, _, count = shard.partition("/")
    return crc32(item.nodeid.encode()) % int(count) == int(number) - 1
