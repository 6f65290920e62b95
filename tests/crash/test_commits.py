"""Wherever in a transaction a process is killed, the database is as before it or as after it."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product

import pytest

from corollary import fault
from corollary.database.upkeep.retention import Retention, collect
from corollary.database.upkeep.verify import verify
from support.maintained_database import reopened
from support.processes.crash_check import demand_whole
from support.processes.crash_sequence import STEPS, Nursery
from support.selection import sampled
from support.warehouse_scenarios import loose_files, root_of, store_of

DRAWS = int(os.environ.get("DRAWS", "1"))
"""How often two points are drawn a pass each, at which the sequence dies."""


@pytest.fixture(scope="module")
def nursery(request: pytest.FixtureRequest) -> Iterator[Nursery]:
    """A process that has children to be killed."""
    if any("s3" in each.nodeid for each in request.session.items):
        request.getfixturevalue("object_store_server")  # its forks find the store by environment
    found = Nursery()
    yield found
    found.close()


@pytest.fixture(scope="module")
def passes(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Counter[str]:
    """How often the sequence passes each point."""
    return nursery.passes(str(tmp_path_factory.mktemp("counted") / "warehouse"))


def demand_end(nursery: Nursery, place: str) -> None:
    """Assert that the rest of the sequence goes through, and leaves nothing behind."""
    code, said = nursery.run(place)
    assert code == 0
    assert said == [str(number) for number in range(1, len(STEPS) + 1)]
    assert demand_whole(place, len(STEPS)) == len(STEPS)
    with reopened("", place=place) as db:
        house = store_of(db).warehouse
        collect(house, Retention(intents=0))
        assert loose_files(db) == set()
        assert all(any(each.iterdir()) for each in (root_of(db) / "data").iterdir())
        assert not list(root_of(db).glob("*/*/*.writing"))
        report = verify(house)
        assert report.findings == []
        assert report.has_recomputed
        assert report.tables == 2
    demand_whole(place, len(STEPS))


def test_the_sequence_passes_every_point(passes: Counter[str]) -> None:
    assert set(passes) == set(fault.TRANSACTION_POINTS)
    assert passes["after_commit"] == len(STEPS)
    assert passes["after_intent"] > passes["after_snapshot"] >= 2


@pytest.mark.parametrize("point", sampled(fault.TRANSACTION_POINTS, 8))
def test_a_crash(
    point: str,
    nursery: Nursery,
    passes: Counter[str],
    places: Callable[[], str],
    request: pytest.FixtureRequest,
) -> None:
    """At the first and the last pass of a point; on PostgreSQL at one in the middle."""
    numbers = {1, passes[point]}
    if request.node.callspec.params["places"] != "sqlite":
        numbers = {passes[point] // 2 + 1}
    for number in sorted(numbers):
        place = places()
        demand_whole(place, nursery.crash(place, f"{point}:{number}"), point)
        demand_end(nursery, place)


@pytest.mark.crash
@pytest.mark.parametrize("point", fault.TRANSACTION_POINTS)
@pytest.mark.parametrize("places", ["sqlite"], indirect=True)
def test_a_crash_at_any_pass(
    point: str, nursery: Nursery, passes: Counter[str], places: Callable[[], str]
) -> None:
    for number in range(1, passes[point] + 1):
        place = places()
        demand_whole(place, nursery.crash(place, f"{point}:{number}"), point)
        demand_end(nursery, place)


@pytest.mark.crash
@pytest.mark.parametrize("first", fault.TRANSACTION_POINTS)
@pytest.mark.parametrize("places", ["sqlite"], indirect=True)
def test_two_crashes(
    first: str, nursery: Nursery, passes: Counter[str], places: Callable[[], str]
) -> None:
    """After the first crash the sequence is begun again, and dies again."""
    chance = random.Random(first)
    died = 0
    for second, _ in product(fault.TRANSACTION_POINTS, range(DRAWS)):
        place = places()
        points = [f"{each}:{chance.randint(1, passes[each])}" for each in (first, second)]
        done = demand_whole(place, nursery.crash(place, points[0]), first)
        code, said = nursery.run(place, points[1])
        assert code in (0, -9), points
        died += code != 0
        told = max(map(int, said), default=0)
        assert demand_whole(place, max(done, told), second) >= done
        demand_end(nursery, place)
    assert died  # not every time: most points are passed less often the second time
