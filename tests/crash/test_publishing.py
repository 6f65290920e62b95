"""Publications that are cut short are done again, and publishers take turns."""

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corollary import fault
from corollary.core.table_options import TableOptions
from corollary.warehouse.publishing.publisher import Publisher
from support.published_table import EDGE, House, publish_and_die


@pytest.fixture(params=[False, True], ids=["plain", "feed"])
def feed(request: pytest.FixtureRequest) -> bool:
    """Whether the table has a change data feed."""
    return bool(request.param)


@pytest.fixture
def house(tmp_path: Path, feed: bool) -> House:
    return House(tmp_path / "warehouse", options=TableOptions(change_data_feed=feed))


def demand_feed(house: House, feed: bool, first: int = 0) -> None:
    """Demand that the change data of all versions add up to the rows of the table."""
    if not feed:
        return
    rows: Counter[str] = Counter()
    for _, kinds in sorted(house.change_data(first).items()):
        rows.update(kinds.get("insert", ()))
        rows.subtract(kinds.get("delete", ()))
        assert min(rows.values()) >= 0
    assert +rows == Counter(repr(row) for row in house.rows.values())


class Killed(BaseException):
    """What a test raises where a process would be killed."""


@pytest.fixture
def die(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], object]], None]:
    """Return a function that does something until it passes a point, and no further."""

    def die(point: str, act: Callable[[], object]) -> None:
        name, _, count = point.partition(":")
        left = [int(count or 1)]

        def hit(passed: str) -> None:
            left[0] -= passed == name
            if not left[0]:
                raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(fault, "hit", hit)
            with pytest.raises(Killed):
                act()

    return die


def test_a_process_that_is_killed(house: House, feed: bool) -> None:
    house.change([(at, "a") for at in range(10)])
    publish_and_die(house.root, "before_publish", "feed" * feed)
    assert house.publisher.lag([EDGE]) == {"edge": 1}
    house.publish()
    house.demand_good()
    house.change([(10, "b")], [(1, "a"), (2, "a")])
    publish_and_die(house.root, "after_publish", "feed" * feed)
    house.demand_truth()
    assert house.publisher.lag([EDGE]) == {"edge": 1}
    assert house.publish() is None
    house.demand_good()
    demand_feed(house, feed)


@pytest.mark.parametrize("point", ["before_publish", "after_publish"])
def test_what_is_cut_short_is_done_again(house: House, die: Any, point: str, feed: bool) -> None:
    house.change([(at, "a") for at in range(10)])
    die(point, house.publish)
    house.publish()
    house.demand_good()
    house.change([(10, "b")], [(1, "a"), (2, "a")])
    die(point, house.publish)
    house.change([(11, "b")], [(3, "a")])
    house.publish()
    house.demand_good()
    demand_feed(house, feed)
    assert len(house.publisher.clean()) == (3 + feed if point == "before_publish" else 0)
    demand_feed(house, feed)
    die(point, house.republish)
    house.publish()
    house.demand_good()
    demand_feed(house, feed)
    house.entry(0).write_bytes(b"")
    die(point, house.republish)
    house.republish()
    house.demand_good()
    house.publisher.clean(0)
    assert house.data_files() == house.referenced()
    assert sorted(each.name for each in house.path.parent.iterdir()) == ["edge", "edge.lock"]
    house.demand_good()


@pytest.mark.parametrize(
    ("point", "files_left"), [("before_publish:2", 17), ("after_publish:2", 1)]
)
def test_a_merge_that_is_cut_short(
    house: House, die: Any, point: str, files_left: int, feed: bool
) -> None:
    for at in range(16):
        house.change([(at, "a")])
        house.publish()
    house.change([(16, "a")])
    die(point, house.publish)
    house.demand_truth()
    assert len(house.referenced()) == files_left
    house.change([(17, "a")], [(0, "a")])
    house.publish()
    house.demand_good()
    assert len(house.referenced()) <= 2
    demand_feed(house, feed)


def test_clean_waits_for_readers(house: House, feed: bool) -> None:
    house.change([(1, "a"), (2, "b")])
    house.publish()
    reader = house.delta()
    house.change((), [(1, "a")])
    house.publish()
    orphan = house.path / f"{house.warehouse.catalog.meta('id')}-left-0.parquet.writing"
    orphan.touch()
    foreign = house.path / "notes.txt"
    foreign.touch()
    aside = house.path.with_name("edge.0123")
    aside.mkdir()
    assert house.publisher.clean() == [orphan, aside]
    assert reader.to_pyarrow_dataset().count_rows() == 2
    assert len(house.publisher.clean(0)) == 1 + feed
    assert foreign.exists()
    house.demand_good()


def test_publishers_take_turns(house: House, feed: bool) -> None:
    house.change([(at, "a") for at in range(100)])
    for at in range(5):
        house.change([(at, "b")], [(at, "a")])
    results: list[Any] = []

    def work() -> None:
        options = {"edge": TableOptions(change_data_feed=feed)}
        publisher = Publisher(house.root, house.warehouse.catalog, options=options)
        results.append([publisher.publish(EDGE, commit, house.history) for commit in range(1, 7)])

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = [each for result in results for each in result if each is not None]
    assert sorted(each.commit for each in made) == [1, 2, 3, 4, 5, 6]
    house.demand_good()
    demand_feed(house, feed)
