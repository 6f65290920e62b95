"""The least cause, for made-up predicates on sets of changes."""

from collections.abc import Callable
from itertools import combinations
from random import Random

import pytest

from corollary.core.types import NUMBER
from corollary.provenance.changes.causes import LeastCauseSearch
from corollary.provenance.nodes import BaseChange


def change(number: int) -> BaseChange:
    return BaseChange("+", "p", (number,), (NUMBER,))


def numbers(changes: tuple[BaseChange, ...]) -> set[object]:
    return {each.row[0] for each in changes}


def contains(*sets: set[int]) -> Callable[[frozenset[BaseChange]], bool]:
    return lambda chosen: any(each <= numbers(tuple(chosen)) for each in sets)


def test_the_smallest_set_is_found() -> None:
    every = [change(at) for at in range(6)]
    found = LeastCauseSearch(contains({0, 1, 2}, {4, 5}), every, every, 64).run()
    assert numbers(found.changes) == {4, 5}
    assert found.is_minimal
    assert found.is_smallest


def test_a_set_outside_of_the_likely_ones_is_found() -> None:
    every = [change(at) for at in range(6)]
    found = LeastCauseSearch(contains({0, 1, 2}, {5}), every, every[:3], 64).run()
    assert numbers(found.changes) == {5}
    assert found.is_smallest


def test_many_changes_are_halved() -> None:
    every = [change(at) for at in range(4000)]
    found = LeastCauseSearch(contains({17, 3001}), None, every, 64).run()
    assert numbers(found.changes) == {17, 3001}
    assert found.is_minimal
    assert not found.is_smallest


def test_too_few_tries_are_said() -> None:
    every = [change(at) for at in range(40)]
    found = LeastCauseSearch(contains(set(range(30))), None, every, 10).run()
    assert set(range(30)) <= numbers(found.changes)
    assert not found.is_minimal
    assert not found.is_smallest


@pytest.mark.parametrize("seed", range(40))
def test_claims_are_true(seed: int) -> None:
    random = Random(seed)
    count = random.randint(1, 7)
    every = [change(at) for at in range(count)]
    # Any predicate that all changes satisfy, monotone or not.
    truth = {
        frozenset(chosen): random.random() < 0.15
        for size in range(1, count + 1)
        for chosen in combinations(every, size)
    }
    truth[frozenset(every)] = True
    found = LeastCauseSearch(truth.__getitem__, every, every, random.choice((8, 20, 200))).run()
    assert truth[frozenset(found.changes)]
    size = len(found.changes)
    if found.is_minimal and size > 1:
        assert not any(truth[frozenset(less)] for less in combinations(found.changes, size - 1))
    if found.is_smallest:
        assert not any(value and len(key) < size for key, value in truth.items())
