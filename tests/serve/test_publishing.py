"""When tables are published: with commits, once a second, by hand; answers never wait for it."""

from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.database.database import Database
from corollary.database.publishing import PUBLISH_SECONDS, PublishTime
from corollary.errors import InputError
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.processes.group_commit import GroupCommitter, Write
from corollary.serve.requests import SqlChangesRequest
from corollary.serve.service import ServiceLimits
from support.serve.services import WRITER

PROGRAM = ".decl edge(x: number) .decl big(x: number) big(x) :- edge(x), x > 5. .output big"


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("corollary.database.publishing.time", made)
    return made


def _opened(place: Path, publish: str | None) -> Database:
    database = corollary.open(place, engine="local", publish=publish)
    if not database.commits:
        database.load(text=PROGRAM)
    return database


def _insert(database: Database, number: int) -> Any:
    with database.transaction() as transaction:
        transaction.insert("edge", [(number,)])
    return transaction.published


def _behind(place: Path) -> bool:
    """Whether tables do not show the last commit."""
    with corollary.open(place, engine="local") as database:
        published = database.publish()
        assert published is not None
        return bool(published.published)


def test_every_commit_is_published(tmp_path: Path) -> None:
    with _opened(tmp_path, "commit") as database:
        assert all(_insert(database, number).published for number in (6, 7))


def test_at_most_one_commit_a_second_is_published_and_the_last_one(
    tmp_path: Path, clock: Clock
) -> None:
    with _opened(tmp_path, "1s") as database:  # `load` is the first one
        assert _insert(database, 6) is None
        clock.now += PUBLISH_SECONDS
        assert _insert(database, 7).published
        assert _insert(database, 8) is None
    assert not _behind(tmp_path)


def test_tables_are_published_by_hand(tmp_path: Path) -> None:
    with _opened(tmp_path, "manual") as database:
        assert _insert(database, 6) is None
        program = tmp_path / "p.dl"
        program.write_text(PROGRAM)
        assert database.run(program).published is None
    assert _behind(tmp_path)


def test_an_unknown_time_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the choices are commit, 1s, manual"):
        corollary.open(tmp_path, engine="local", publish="2s")


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        (PublishTime.COMMIT, [1, 2, 3]),
        (PublishTime.SECOND, [1, 1, 2]),
        (PublishTime.MANUAL, [0, 0, 0]),
    ],
)
def test_a_server_publishes_after_its_answers(
    when: PublishTime,
    expected: list[int],
    tmp_path: Path,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with _opened(tmp_path, "manual") as database:
        context = HandlerContext(database, ServiceLimits(), when)
        counted = {"publish": 0, "deliver": 0}
        for name in counted:
            monkeypatch.setattr(database, name, _counting(counted, name))
        committer = GroupCommitter(context, lambda _: None, lambda _: None)
        found = []
        for number in range(3):
            request = SqlChangesRequest((f"INSERT INTO edge VALUES ({number})",))
            before = counted["publish"]
            assert [at for at, _ in committer.run([Write(number, WRITER, request)])] == [number]
            assert counted["publish"] == before
            context.finish_commits()
            assert counted["deliver"] == number + 1  # alerts do not wait for tables
            found.append(counted["publish"])
            clock.now += PUBLISH_SECONDS / 2
        assert found == expected
        context.finish_commits(is_last=True)
        assert not context.publishing.is_behind or when is PublishTime.MANUAL


def _counting(counted: dict[str, int], name: str) -> Any:
    def call(*_: object) -> None:
        counted[name] += 1

    return call
