"""A driver that is killed, with all relations in partitions: nothing is lost, nothing doubled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from corollary import fault
from support.paths import TESTS
from support.processes.crash_check import demand_whole
from support.processes.crash_sequence import STEPS, Nursery

JOBS = 1_000_000
"""The sequence says how many jobs it had by a number above this one."""


@pytest.fixture(scope="module")
def partitioned() -> Iterator[Nursery]:
    """A process that has children to be killed, whose relations are in partitions."""
    script = TESTS / "support" / "processes" / "partitioned_sequence.py"
    found = Nursery(str(script))
    yield found
    found.close()


@pytest.fixture(scope="module")
def jobs(partitioned: Nursery, tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many jobs the sequence has."""
    code, said = partitioned.run(str(tmp_path_factory.mktemp("counted") / "warehouse"))
    assert code == 0
    assert said[:-1] == [str(number) for number in range(1, len(STEPS) + 1)]
    return int(said[-1]) - JOBS


def check(partitioned: Nursery, place: Path, point: str = "", job: int = 0) -> None:
    """Let the sequence die once; then what is there is whole, and the rest can be done."""
    code, said = partitioned.run(str(place), point, job=job)
    assert code == -9
    acknowledged = max(map(int, said), default=0)
    demand_whole(str(place), acknowledged, point)
    code, said = partitioned.run(str(place))
    assert code == 0
    assert said[:-1] == [str(number) for number in range(1, len(STEPS) + 1)]
    demand_whole(str(place), len(STEPS))


def test_a_driver_that_is_killed(partitioned: Nursery, tmp_path: Path) -> None:
    """When tasks have done their work, before it hears of it."""
    check(partitioned, tmp_path / "warehouse", job=25)


@pytest.mark.crash
@pytest.mark.parametrize("point", fault.TRANSACTION_POINTS)
def test_a_driver_that_is_killed_at_every_point(
    point: str, partitioned: Nursery, tmp_path: Path
) -> None:
    check(partitioned, tmp_path / "warehouse", f"{point}:1")


@pytest.mark.crash
def test_a_driver_that_is_killed_after_every_job(
    partitioned: Nursery, jobs: int, tmp_path: Path
) -> None:
    for job in range(1, jobs + 1):
        check(partitioned, tmp_path / f"job-{job}", job=job)
