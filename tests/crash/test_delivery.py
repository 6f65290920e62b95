"""Wherever a process is killed between a commit and the delivery of its alerts, they arrive.

Exactly once in a file of JSON lines and in a relation; at least once, with the same id, at a
webhook and in a callback.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from corollary import fault
from corollary.database.upkeep.verify import verify
from support.figures import FIGURES, WHOLE
from support.processes import alert_sequence
from support.processes.alert_sequence import LEASE, ROWS, Listener, lines, listening, opened
from support.processes.crash_sequence import Nursery

PASSES = {
    "after_commit": (2,),
    "before_claim": range(1, 9),
    "after_claim": range(1, 5),
    "after_append": range(1, 7),
    "before_mark": range(1, 7),
}
"""How often the process passes each point; a webhook is posted to once for each alert."""
QUICK = (
    "after_commit:2",
    *(f"{name}:{at}" for name in ("after_claim", "after_append") for at in range(1, 5)),
)
"""Those of which `make test-integration` tries some; `make crash` tries the others."""


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    """A process that has children to be killed."""
    found = Nursery(alert_sequence.__file__)
    yield found
    found.close()


@dataclass(frozen=True)
class Scene:
    """A warehouse, and those who are told of its alerts."""

    nursery: Nursery
    place: str
    listener: Listener
    heard: Path

    def run(self, point: str = "") -> tuple[int, list[str]]:
        """Run the sequence; return its exit code, and what it has said."""
        job = json.dumps([self.place, self.listener.origin, str(self.heard)])
        code, said = self.nursery.run(job, point)
        assert code in (0, -9), point
        return code, said


@pytest.fixture
def scenes(nursery: Nursery, tmp_path: Path) -> Iterator[Callable[[str], Scene]]:
    with ExitStack() as stack:
        yield lambda place: Scene(
            nursery, place, stack.enter_context(listening()), tmp_path / f"{Path(place).name}.heard"
        )


def demand_all(scene: Scene) -> None:
    """Assert that every alert has arrived as it was promised."""
    with opened(scene.place) as db:
        assert db._store.outbox.state().queued == 0
        alarms = db.relation("alarm").rows()
        warehouse = db._store.warehouse  # type: ignore[union-attr]
        assert verify(warehouse).findings == []
        written = lines(warehouse.root / "alerts" / "alerts.jsonl")
    assert sorted(row[1] for row in alarms) == [1, 2, 3]
    assert [line["row"] for line in written] == [*map(list, ROWS)]
    posted = {(key, body["row"][0]) for key, body in scene.listener.heard}
    assert sorted(x for _, x in posted) == [1, 2, 3]  # a second id would make a second pair
    called = {tuple(line.split()) for line in scene.heard.read_text().splitlines()}
    assert sorted(x for _, x in called) == ["1", "2", "3"]
    FIGURES[WHOLE] += 1


def is_early(point: str) -> bool:
    """Whether the process dies while the transaction calls back."""
    name, _, number = point.partition(":")
    callbacks = 2 if name == "before_claim" else 1
    return name == "after_commit" or int(number) <= callbacks


def test_the_points_are_passed_as_often_as_it_says(
    scenes: Callable[[str], Scene], tmp_path: Path
) -> None:
    assert set(PASSES) == {"after_commit", *fault.DELIVERY_POINTS}
    for name in fault.DELIVERY_POINTS:
        last = len(PASSES[name])
        assert scenes(str(tmp_path / f"{name} last")).run(f"{name}:{last}")[0] == -9
        assert scenes(str(tmp_path / f"{name} beyond")).run(f"{name}:{last + 1}")[0] == 0


@pytest.mark.parametrize(
    "point",
    [
        pytest.param(each, marks=pytest.mark.matrix(3) if each in QUICK else pytest.mark.crash)
        for each in (f"{name}:{at}" for name in PASSES for at in PASSES[name])
    ],
)
def test_a_crash(point: str, scenes: Callable[[str], Scene], tmp_path: Path) -> None:
    scene = scenes(str(tmp_path / "w"))
    assert scene.run(point) == (-9, [] if is_early(point) else ["2"])
    time.sleep(LEASE)
    assert scene.run() == (0, ["2"])
    demand_all(scene)


@pytest.mark.crash
@pytest.mark.parametrize("first", [f"{name}:{at}" for name in PASSES for at in PASSES[name]])
def test_two_crashes(first: str, scenes: Callable[[str], Scene], tmp_path: Path) -> None:
    """After the first crash the delivery is begun again, and dies again."""
    for second in fault.DELIVERY_POINTS:
        scene = scenes(str(tmp_path / second))
        scene.run(first)
        time.sleep(LEASE)
        scene.run(f"{second}:1")
        time.sleep(LEASE)
        scene.run()
        demand_all(scene)


@pytest.mark.parametrize("places", ["sqlite", "postgresql"], indirect=True)
def test_any_catalog(places: Callable[[], str], scenes: Callable[[str], Scene]) -> None:
    """Between the file and the mark, on SQLite and PostgreSQL alike."""
    scene = scenes(places())
    assert scene.run("before_mark:2") == (-9, ["2"])
    time.sleep(LEASE)
    assert scene.run() == (0, ["2"])
    demand_all(scene)
