"""Subscriptions: events as they are committed, resume by commit, resets, grants, slow clients."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.database.access.principals import OWNER, AccessRole, Principal
from corollary.database.database import Database, state_of
from corollary.serve.answers import Event, ServiceError
from corollary.serve.requests import EventsRequest
from corollary.serve.service import ServiceMetrics
from corollary.serve.subscriptions import feed, hub
from corollary.serve.subscriptions.hub import SubscriptionHub
from corollary.serve.subscriptions.watching import set_watched

PROGRAM = """
.decl edge(x: symbol, y: symbol)
.decl path(x: symbol, y: symbol)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl lonely(x: symbol) virtual
lonely(x) :- edge(x, _), !edge(_, x).
.decl any()
any() :- edge(_, _).
cut(x, y) :- -path(x, y).
.alert cut "no way from {x} to {y}"
"""
ALICE = Principal("alice", AccessRole.READ)
PATIENCE_SECONDS = 60.0

Rows = set[tuple[Any, ...]]


class Follower:
    """A client: applies events to what it has read, and reads anew where it is told to.

    Attributes:
        token: the commit after which it would resume.
        events: all that it has got.
    """

    def __init__(self, database: Database, *relations: str) -> None:
        self._database = database
        self.state: dict[str, Rows] = {name: self._read(name) for name in relations}
        self.token = database.commits
        self.events: list[Event] = []

    def _read(self, name: str) -> Rows:
        return set(self._database.relation(name).rows())

    def take(self, event: Event) -> None:
        self.events.append(event)
        if event.event == "change":
            document = event.json
            rows = self.state[document["relation"]]
            added, removed = (set(map(tuple, document[sign])) for sign in ("added", "removed"))
            assert document["counts"] == [len(added), len(removed)]
            # At least once: a commit may come again, and must not change anything then.
            rows -= removed
            rows |= added
        elif event.event == "reset":
            named = event.json["relation"]
            for name in self.state if named is None else [named]:
                self.state[name] = self._read(name)
        if event.id is not None:
            self.token = event.id


def run(
    place: Path, scenario: Callable[[Database, SubscriptionHub], Awaitable[None]]
) -> ServiceMetrics:
    """Run a scenario on a new warehouse and its subscriptions."""
    metrics = ServiceMetrics()

    async def whole() -> None:
        with corollary.open(place / "wh", engine="local") as database:
            database.load(text=PROGRAM)

            async def watch(names: frozenset[str]) -> None:
                set_watched(database, names)

            subscriptions = SubscriptionHub(str(place / "wh"), watch, metrics)
            try:
                async with asyncio.timeout(3 * PATIENCE_SECONDS):
                    await scenario(database, subscriptions)
            finally:
                await subscriptions.close()

    asyncio.run(whole())
    return metrics


def commit(database: Database, subscriptions: SubscriptionHub, *changes: str) -> None:
    """Make a transaction of texts such as `+ab` and `-ab`, and notify."""
    with database.transaction() as transaction:
        for each in changes:
            change = transaction.insert if each[0] == "+" else transaction.delete
            change("edge", [tuple(each[1:])])
    subscriptions.notify()


async def until(
    events: AsyncIterator[Event], follower: Follower, is_over: Callable[[], bool]
) -> None:
    """Take events until a condition holds."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not is_over():
            follower.take(await anext(events))


async def take(events: AsyncIterator[Event], count: int) -> list[Event]:
    """Return the next events, without signs of life, which come when the machine is slow."""
    found: list[Event] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(found) < count:
            event = await anext(events)
            found += [event] if event.event else []
    return found


def request(*relations: str, alerts: bool = False, since: int | None = None) -> EventsRequest:
    return EventsRequest(relations=relations, alerts=alerts, since=since)


def test_events_come_in_the_form_of_the_specification(tmp_path: Path) -> None:
    async def scenario(database: Database, subscriptions: SubscriptionHub) -> None:
        asked = request("path", "edge", "any", alerts=True)
        async with aclosing(subscriptions.subscribe(OWNER, asked)) as events:
            assert (await anext(events)).lines == b"id: 1\n\n"
            commit(database, subscriptions, "+ab", "+bc")
            commit(database, subscriptions, "-ab")
            text = b"".join([each.lines for each in await take(events, 6)]).decode()
        assert text == (
            'event: change\ndata: {"commit": 2, "relation": "any", "added": [[]], "removed": [], '
            '"counts": [1, 0]}\n\n'
            'event: change\ndata: {"commit": 2, "relation": "edge", "added": [["a", "b"], '
            '["b", "c"]], "removed": [], "counts": [2, 0]}\n\n'
            'id: 2\nevent: change\ndata: {"commit": 2, "relation": "path", "added": [["a", "b"], '
            '["a", "c"], ["b", "c"]], "removed": [], "counts": [3, 0]}\n\n'
            'event: change\ndata: {"commit": 3, "relation": "edge", "added": [], "removed": '
            '[["a", "b"]], "counts": [0, 1]}\n\n'
            'event: change\ndata: {"commit": 3, "relation": "path", "added": [], "removed": '
            '[["a", "b"], ["a", "c"]], "counts": [0, 2]}\n\n'
            'event: alert\ndata: {"commit": 3, "event": "cut", "row": ["a", "b"], "message": '
            '"no way from a to b"}\n\n'
        )

    run(tmp_path, scenario)


def test_who_resumes_misses_nothing_and_repeats_at_most_a_commit(tmp_path: Path) -> None:
    async def scenario(database: Database, subscriptions: SubscriptionHub) -> None:
        follower = Follower(database, "path", "edge")
        chance = random.Random(7)
        for _ in range(12):
            for _ in range(chance.randrange(4)):  # while nobody listens
                commit(database, subscriptions, f"{chance.choice('+-')}{chance.choice('abcd')}b")
            asked = request("path", "edge", since=follower.token)
            async with aclosing(subscriptions.subscribe(OWNER, asked)) as events:
                for _ in range(chance.randrange(1, 5)):
                    pair = f"{chance.choice('abcd')}{chance.choice('abcd')}"
                    commit(database, subscriptions, f"{chance.choice('+-')}{pair}")
                for _ in range(chance.randrange(4)):  # breaks in the middle of a commit, too
                    with_time = asyncio.timeout(2.0)
                    try:
                        async with with_time:
                            follower.take(await anext(events))
                    except TimeoutError:
                        break
        commit(database, subscriptions, "+xy")
        asked = request("path", "edge", since=follower.token)
        async with aclosing(subscriptions.subscribe(OWNER, asked)) as events:
            await until(events, follower, lambda: follower.token == database.commits)
        assert follower.state["path"] == set(database.relation("path").rows())
        assert follower.state["edge"] == set(database.relation("edge").rows())
        numbers = [each.json["commit"] for each in follower.events if each.event == "change"]
        assert all(after >= before - 1 for before, after in pairwise(numbers))

    run(tmp_path, scenario)


def test_a_virtual_relation_is_watched_while_somebody_subscribes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "LINGER_SECONDS", 0.0)

    async def scenario(database: Database, subscriptions: SubscriptionHub) -> None:
        follower = Follower(database, "lonely")
        assert not state_of(database).watched
        async with aclosing(subscriptions.subscribe(OWNER, request("lonely"))) as events:
            follower.take(await anext(events))
            assert set(state_of(database).watched) == {"lonely"} == subscriptions.watched
            commit(database, subscriptions, "+ab")
            commit(database, subscriptions, "+ca")
            await until(events, follower, lambda: follower.token == 3)
            assert follower.state["lonely"] == {("c",)}
            assert all(each.event != "reset" for each in follower.events)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while state_of(database).watched:
                await asyncio.sleep(0.01)
        commit(database, subscriptions, "+dc")  # nobody watches: a gap
        asked = request("lonely", since=follower.token)
        async with aclosing(subscriptions.subscribe(OWNER, asked)) as events:
            await until(events, follower, lambda: follower.token == 4)
            reset = follower.events[-1]
            assert (reset.event, reset.json["relation"]) == ("reset", "lonely")
            assert "not watched" in reset.json["reason"]
            assert follower.state["lonely"] == {("d",)}

    run(tmp_path, scenario)


def test_it_is_watched_a_while_longer_for_those_who_come_back(tmp_path: Path) -> None:
    async def scenario(database: Database, subscriptions: SubscriptionHub) -> None:
        follower = Follower(database, "lonely")
        async with aclosing(subscriptions.subscribe(OWNER, request("lonely"))) as events:
            follower.take(await anext(events))
        commit(database, subscriptions, "+ab")
        asked = request("lonely", since=follower.token)
        async with aclosing(subscriptions.subscribe(OWNER, asked)) as events:
            await until(events, follower, lambda: follower.token == 2)
        assert [each.event for each in follower.events if each.event] == ["change"]
        assert follower.state["lonely"] == {("a",)}

    run(tmp_path, scenario)


def test_commits_that_cannot_be_are_an_error(tmp_path: Path) -> None:
    async def scenario(_: Database, subscriptions: SubscriptionHub) -> None:
        with pytest.raises(ServiceError, match="C1606") as found:
            await anext(subscriptions.subscribe(OWNER, request("edge", since=-1)))
        assert found.value.status == 400

    run(tmp_path, scenario)


def test_commits_that_are_not_kept_are_a_reset(tmp_path: Path) -> None:
    async def scenario(database: Database, subscriptions: SubscriptionHub) -> None:
        from corollary.database.database import warehouse_of
        from corollary.database.upkeep.retention import Retention, collect

        for at in range(6):
            commit(database, subscriptions, f"+{at}b")
        warehouse = warehouse_of(database)
        assert warehouse is not None
        collect(warehouse, Retention(commits=2))
        follower = Follower(database, "edge", "path")
        for since, reason in ((1, "no longer kept"), (999, "commit 999 does not exist")):
            asked = request("edge", "path", since=since)
            async with aclosing(subscriptions.subscribe(OWNER, asked)) as events:
                found = await take(events, 2)
            assert [each.event for each in found] == ["reset", "reset"]
            assert [each.id for each in found] == [None, 7]
            assert [each.json["relation"] for each in found] == ["edge", "path"]
            assert all(reason in each.json["reason"] for each in found)
            for each in found:
                follower.take(each)
        assert follower.state["edge"] == set(database.relation("edge").rows())

    run(tmp_path, scenario)


def test_a_slow_subscriber_reads_the_feed_at_its_own_pace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "RECENT_MAX_COMMITS", 3)
    monkeypatch.setattr(feed, "READ_MAX_COMMITS", 4)

    async def scenario(database: Database, subscriptions: SubscriptionHub) -> None:
        slow, quick = Follower(database, "edge"), Follower(database, "edge")
        async with (
            aclosing(subscriptions.subscribe(OWNER, request("edge"))) as slow_events,
            aclosing(subscriptions.subscribe(OWNER, request("edge"))) as quick_events,
        ):
            slow.take(await anext(slow_events))
            quick.take(await anext(quick_events))
            for at in range(20):
                commit(database, subscriptions, f"+{chr(65 + at)}b")
                await until(quick_events, quick, lambda: quick.token == database.commits)
            assert subscriptions._metrics.subscriber_lag >= 19
            await until(slow_events, slow, lambda: slow.token == database.commits)
        numbers = list(dict.fromkeys(each.id for each in slow.events))
        assert numbers == list(range(1, 22))
        assert slow.state == quick.state

    run(tmp_path, scenario)


def test_a_large_commit_is_a_reset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "CHANGE_MAX_ROWS", 10)

    async def scenario(database: Database, subscriptions: SubscriptionHub) -> None:
        async with aclosing(subscriptions.subscribe(OWNER, request("edge"))) as events:
            await anext(events)
            commit(database, subscriptions, *(f"+{chr(65 + at)}b" for at in range(11)))
            (found,) = await take(events, 1)
            assert (found.event, found.id) == ("reset", 2)
            assert found.json["reason"] == "the commit has changed 11 tuples"

    run(tmp_path, scenario)


def test_grants_are_looked_up_for_every_event(tmp_path: Path) -> None:
    async def scenario(database: Database, subscriptions: SubscriptionHub) -> None:
        with pytest.raises(ServiceError, match="may not see `edge`") as refused:
            await anext(subscriptions.subscribe(ALICE, request("edge")))
        assert refused.value.status == 403
        database.grant("alice", "edge", "path")
        asked = request("edge", "path", alerts=True)
        async with (
            aclosing(subscriptions.subscribe(ALICE, asked)) as events,
            aclosing(subscriptions.subscribe(ALICE, request())) as everything,
        ):
            await anext(events)
            await anext(everything)
            commit(database, subscriptions, "+ab", "+bc")
            found = await take(events, 2)
            assert [each.json["relation"] for each in found] == ["edge", "path"]
            database.revoke("alice", "edge")
            commit(database, subscriptions, "-ab")
            found = await take(events, 2)
            assert [(each.event, each.json["relation"]) for each in found] == [
                ("reset", "edge"),
                ("change", "path"),
            ]
            assert "not granted any more" in found[0].json["reason"]
            assert '"a", "b"' not in found[0].data  # and no alert: `cut` was never granted
            database.grant("alice", "edge", "cut")
            commit(database, subscriptions, "-bc")
            found = await take(events, 4)
            assert [each.event for each in found] == ["reset", "change", "change", "alert"]
            # Who reads late gets what is granted then.
            seen = await take(everything, 6)
            assert [each.json["relation"] for each in seen] == ["edge", "path"] * 3

    run(tmp_path, scenario)


def test_what_does_not_exist_is_an_error_before_any_event(tmp_path: Path) -> None:
    async def scenario(database: Database, subscriptions: SubscriptionHub) -> None:
        with pytest.raises(ServiceError, match="There is no relation `pth`") as refused:
            await anext(subscriptions.subscribe(OWNER, request("pth")))
        assert refused.value.status in {400, 404}

    metrics = run(tmp_path, scenario)
    assert metrics.subscribers == 0


def test_everybody_hears_when_the_server_stops(tmp_path: Path) -> None:
    async def scenario(database: Database, subscriptions: SubscriptionHub) -> None:
        every = [subscriptions.subscribe(OWNER, request()) for _ in range(5)]
        for each in every:
            await anext(each)
        commit(database, subscriptions, "+ab")
        ends = [asyncio.ensure_future(_last(each)) for each in every]
        await asyncio.sleep(0)
        await subscriptions.close()
        assert {(each.event, each.data) for each in await asyncio.gather(*ends)} <= {
            ("bye", '{"commit": 1}'),
            ("bye", '{"commit": 2}'),
        }

    async def _last(events: AsyncIterator[Event]) -> Event:
        found = None
        async for each in events:
            found = each
        assert found is not None
        return found

    run(tmp_path, scenario)


def test_commits_of_other_processes_and_other_programs_are_seen(tmp_path: Path) -> None:
    async def scenario(database: Database, subscriptions: SubscriptionHub) -> None:
        follower = Follower(database, "path")
        async with aclosing(subscriptions.subscribe(OWNER, request("path"))) as events:
            follower.take(await anext(events))
            with corollary.open(tmp_path / "wh", engine="local") as other:
                with other.transaction() as transaction:
                    transaction.insert("edge", [("o", "p")])
                other.load(
                    text=".decl edge(x: symbol, y: symbol) .decl path(x: symbol) "
                    "path(x) :- edge(x, _)."
                )
            await until(events, follower, lambda: follower.token == 3)
        assert [each.event for each in follower.events if each.event] == ["change", "reset"]
        assert follower.events[-1].json["reason"] == "it has other columns"
        assert follower.state["path"] == {("o",)}

    run(tmp_path, scenario)
