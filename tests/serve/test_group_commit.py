"""Group commit: order, what may not be together, halves, keys, own changes."""

import asyncio
import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.database.access.principals import OWNER, AccessRole, Principal
from corollary.database.upkeep.backup import copy
from corollary.serve.answers import Answer, ServiceError
from corollary.serve.processes.local_service import LocalService
from corollary.serve.requests import (
    ApplyRequest,
    CommitRequest,
    CommitsRequest,
    PutProgramRequest,
    QueryRequest,
)
from corollary.warehouse.warehouse import Warehouse
from support.serve.services import (
    PROGRAM,
    WRITER,
    ask_all,
    delete,
    insert,
    line,
    make_warehouse,
    run_local,
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return make_warehouse(tmp_path / "w")


def documents(found: list[Answer | ServiceError]) -> list[dict[str, Any]]:
    assert [each for each in found if isinstance(each, ServiceError)] == []
    return [each.json for each in found if isinstance(each, Answer)]


def test_writes_that_wait_share_a_commit(place: Path) -> None:
    async def test(service: LocalService) -> None:
        found = documents(await ask_all(service, [insert("edge", f"n{n}", "m") for n in range(9)]))
        assert {each["commit"] for each in found} == {2}
        for number, each in enumerate(found):
            assert each["grouped"] == 9
            assert each["changes"]["edge"] == {"added": [[f"n{number}", "m"]], "removed": []}
            assert len(each["changes"]["path"]["added"]) == 9
        answer = await service.call(OWNER, CommitRequest(2))
        assert answer.json["grouped"] == 9
        assert sum(answer.json["phases"].values()) > 0
        assert service.metrics.grouped_requests == 9
        assert service.metrics.rows_changed["edge", "+"] == 9

    run_local(place, test)


def test_opposite_signs_are_never_together(place: Path) -> None:
    async def test(service: LocalService) -> None:
        writes = [
            insert("edge", "a", "b"),
            delete("edge", "a", "b"),
            insert("edge", "a", "b"),
            insert("edge", "c", "d"),
        ]
        found = documents(await ask_all(service, writes))  # type: ignore[arg-type]
        commits = [each["commit"] for each in found]
        assert commits == [2, 3, 4, 4]
        assert found[0]["changes"]["edge"]["added"] == [["a", "b"]]
        assert found[1]["changes"]["edge"]["removed"] == [["a", "b"]]

    run_local(place, test)


def test_alone_means_alone(place: Path) -> None:
    async def test(service: LocalService) -> None:
        writes = [
            insert("edge", "a", "b"),
            insert("edge", "a", "c", alone=True),
            insert("edge", "a", "d"),
            ApplyRequest('{"op": "add-rule", "rule": "path(y, x) :- path(x, y)."}'),
            insert("edge", "a", "e"),
        ]
        found = documents(await ask_all(service, writes))  # type: ignore[arg-type]
        commits = [each["commit"] for each in found]
        assert commits == [2, 3, 4, 5, 6]
        assert all("grouped" not in each for each in found)

    run_local(place, test)


def test_keys_of_a_group(place: Path) -> None:
    """Two tokens may use one key; of one token, another change under it is refused."""

    async def test(service: LocalService) -> None:
        carol = Principal("carol", AccessRole.WRITE)
        sent = [(WRITER, "a"), (carol, "b"), (OWNER, "c"), (WRITER, "d"), (WRITER, "a")]
        calls = [
            service.call(who, insert("edge", row, "m", idempotency_key="k")) for who, row in sent
        ]
        found = await asyncio.gather(*calls, return_exceptions=True)
        refused = found.pop(3)
        assert isinstance(refused, ServiceError)
        assert (refused.status, refused.has_code("C0929")) == (422, True)
        assert {each.commit for each in found if isinstance(each, Answer)} == {2}
        own = [each.json["changes"]["edge"]["added"] for each in found if isinstance(each, Answer)]
        assert own == [[["a", "m"]], [["b", "m"]], [["c", "m"]], [["a", "m"]]]
        late = await asyncio.gather(
            service.call(carol, insert("edge", "z", "m", idempotency_key="k")),
            service.call(carol, insert("edge", "b", "m", idempotency_key="k")),
            return_exceptions=True,
        )
        assert isinstance(late[0], ServiceError)
        assert isinstance(late[1], Answer)
        assert late[1].json["commit"] == 2
        assert service.metrics.commit == 2

    run_local(place, test)
    with closing(Warehouse.open(place)) as warehouse:
        copy(warehouse, str(place.parent / "copy"))

    async def again(service: LocalService) -> None:
        with pytest.raises(ServiceError, match="C0929"):
            await service.call(WRITER, insert("edge", "z", "m", idempotency_key="k"))

    run_local(place.parent / "copy", again)


@pytest.mark.parametrize("bad", range(8))
def test_an_error_reaches_its_sender_only(place: Path, bad: int) -> None:
    async def test(service: LocalService) -> None:
        writes = [insert("stock", f"i{n}", -1 if n == bad else n) for n in range(8)]
        found = await ask_all(service, list(writes))
        for number, each in enumerate(found):
            if number == bad:
                assert isinstance(each, ServiceError)
                assert (each.status, each.exit_code) == (422, 3)
            else:
                assert isinstance(each, Answer)
                assert each.json["changes"]["stock"]["added"] == [[f"i{number}", number]]
        rows = await service.call(OWNER, QueryRequest("stock(x, n)"))
        assert [n for _, n in rows.json["rows"]] == [n for n in range(8) if n != bad]

    run_local(place, test)


def test_lines_that_do_not_fit_harm_nobody_else(place: Path) -> None:
    async def test(service: LocalService) -> None:
        writes = [
            insert("edge", "a", "b"),
            insert("nosuch", 1),
            ApplyRequest("{"),
            insert("edge", "a"),
            insert("edge", "b", "c"),
        ]
        found = await ask_all(service, writes)  # type: ignore[arg-type]
        assert [each.status if isinstance(each, ServiceError) else 200 for each in found] == [
            200,
            400,
            400,
            400,
            200,
        ]
        good = [each.json for each in found if isinstance(each, Answer)]
        assert good[0]["commit"] == good[1]["commit"]

    run_local(place, test)


def test_eight_writers_of_which_one_is_always_refused(place: Path) -> None:
    """Each writer sends one change after the other; the last state is that of all accepted ones."""

    async def test(service: LocalService) -> None:
        async def write(number: int) -> int:
            refused = 0
            for at in range(12):
                amount = -1 if number == 3 else at
                (found,) = await ask_all(service, [insert("stock", f"w{number}-{at}", amount)])
                refused += isinstance(found, ServiceError) and found.exit_code == 3
            return refused

        refused = await asyncio.gather(*map(write, range(8)))
        assert refused == [0, 0, 0, 12, 0, 0, 0, 0]
        rows = (await service.call(OWNER, QueryRequest("stock(x, n)"))).json["rows"]
        expected = {(f"w{w}-{at}", at) for w in range(8) for at in range(12) if w != 3}
        assert {tuple(each) for each in rows} == expected

    run_local(place, test)


def test_keys_of_a_group_are_remembered(place: Path) -> None:
    writes = [insert("edge", f"n{n}", "m", idempotency_key=f"k{n}") for n in range(4)]

    async def first(service: LocalService) -> list[dict[str, Any]]:
        return documents(await ask_all(service, list(writes)))

    async def again(service: LocalService) -> list[dict[str, Any]]:
        before = service.metrics.commit
        found = documents(await ask_all(service, list(writes)))
        assert service.metrics.commit == before
        return found

    done = run_local(place, first)
    for repeated in (run_local(place, again), run_local(place, again)):
        for one, other in zip(done, repeated, strict=True):
            assert other["commit"] == one["commit"]
            assert other["changes"]["edge"] == one["changes"]["edge"]
    with corollary.open(place, engine="local") as database:
        assert database.transaction(idempotency="k3").is_repeated
        assert not database.transaction(idempotency="k4").is_repeated


def test_one_key_twice_at_once(place: Path) -> None:
    async def test(service: LocalService) -> None:
        writes = [insert("edge", "a", "b", idempotency_key="k") for _ in range(5)]
        found = documents(await ask_all(service, list(writes)))
        assert len({each["commit"] for each in found}) == 1
        assert all(each["changes"]["edge"]["added"] == [["a", "b"]] for each in found)

    run_local(place, test)


def test_keys_are_copied(place: Path, tmp_path: Path) -> None:
    async def test(service: LocalService) -> None:
        writes = [insert("edge", f"n{n}", "m", idempotency_key=f"k{n}") for n in range(3)]
        documents(await ask_all(service, list(writes)))

    run_local(place, test)
    with closing(Warehouse.open(place, create=False)) as warehouse:
        copy(warehouse, tmp_path / "other")
    with corollary.open(tmp_path / "other", engine="local") as database:
        assert database.transaction(idempotency="k2").is_repeated


def test_a_write_that_changes_nothing_has_a_commit(place: Path) -> None:
    async def test(service: LocalService) -> None:
        first = await service.call(OWNER, insert("edge", "a", "b"))
        again = await service.call(OWNER, insert("edge", "a", "b"))
        assert again.json["commit"] == first.json["commit"]
        assert again.json["changes"] == {}

    run_local(place, test)


def test_a_dry_run_changes_nothing(place: Path) -> None:
    async def test(service: LocalService) -> None:
        before = service.metrics.commit
        found = await service.call(OWNER, insert("stock", "i", -1, dry_run=True))
        assert found.json["commit"] is None
        assert [each["code"] for each in found.json["plan"]["constraints"]] == ["C1051"]
        assert service.metrics.commit == before

    run_local(place, test)


def test_rules_are_for_admins(place: Path) -> None:
    async def test(service: LocalService) -> None:
        rule = ApplyRequest('{"op": "add-rule", "rule": "path(y, x) :- path(x, y)."}')
        with pytest.raises(ServiceError, match="C1601") as found:
            await service.call(WRITER, rule)
        assert found.value.status == 403
        with pytest.raises(ServiceError, match="C1601"):
            await service.call(WRITER, PutProgramRequest(PROGRAM))
        await service.call(WRITER, insert("edge", "a", "b"))
        await service.call(OWNER, rule)
        rows = await service.call(OWNER, QueryRequest('path("b", y)'))
        assert ["a"] in rows.json["rows"]

    run_local(place, test)


@pytest.mark.slow
def test_groups_do_what_single_writes_do(tmp_path: Path) -> None:
    """Random writes, in groups and one by one: the same answers about base tuples, and state."""
    chance = random.Random(22)
    names = "abcde"
    writes = [
        ApplyRequest(
            "\n".join(
                line(
                    chance.choice(["insert", "insert", "delete"]),
                    "edge",
                    *chance.choices(names, k=2),
                )
                for _ in range(chance.randint(1, 3))
            )
        )
        for _ in range(60)
    ]

    async def at_once(service: LocalService) -> Any:
        found = []
        for start in range(0, 60, 15):
            found += documents(await ask_all(service, list(writes[start : start + 15])))
        rows = await service.call(OWNER, QueryRequest("path(x, y)"))
        log = await service.call(OWNER, CommitsRequest())
        return rows.json["rows"], len(log.json["commits"]), found

    async def one_by_one(service: LocalService) -> Any:
        found = [(await service.call(OWNER, each)).json for each in writes]
        rows = await service.call(OWNER, QueryRequest("path(x, y)"))
        log = await service.call(OWNER, CommitsRequest())
        return rows.json["rows"], len(log.json["commits"]), found

    rows, commits, _ = run_local(make_warehouse(tmp_path / "a"), at_once)
    expected, single, _ = run_local(make_warehouse(tmp_path / "b"), one_by_one)
    assert rows == expected
    assert commits < single
