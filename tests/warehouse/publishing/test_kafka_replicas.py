"""Replicas on the mock broker of librdkafka: messages, their order and ids, transactions, kills."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

import corollary
from corollary.database.database import Database
from corollary.warehouse.publishing.kafka_replica import KafkaSession
from support.processes.replica_writer import start_replica_writer
from support.streaming.replica_topics import PARTITIONS, Broker, broker

pytestmark = pytest.mark.integration

ITEMS = """
.decl item(id: number, name: symbol?) key(id)
.output item(IO=kafka, connection=events, topic="items", envelope={})
"""
EDGES = """
.decl edge(x: number, y: symbol)
.decl done(number: number)
.decl shown(x: number, y: symbol)
shown(x, y) :- edge(x, y).
.output shown(IO=kafka, connection=events)
"""
BATCHES, ROWS = 12, 6000
"""12 batches of 6,000 rows that come, and half of which go: 105,000 changes."""


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    with broker() as found:
        monkeypatch.setenv("COROLLARY_CONNECTION_EVENTS", f"kafka://{found.address}")
        yield found


def opened(tmp_path: Path, program: str) -> Database:
    db = corollary.open(tmp_path / "w", engine="local", publish="commit")
    db.load(text=program)
    return db


def write(db: Database, relation: str, added: Any = (), removed: Any = ()) -> int:
    with db.transaction() as tx:
        tx.delete(relation, list(removed))
        tx.insert(relation, list(added))
    assert tx.published is not None
    assert tx.published.problems == ()
    assert tx.commit_number is not None
    return tx.commit_number


def by_id(messages: list[Any]) -> dict[tuple[int, int], tuple[Any, Any]]:
    """Return keys and values by the ids in the headers."""
    found = {}
    for each in messages:
        headers = dict(each.headers())
        key = None if each.key() is None else json.loads(each.key())
        id_ = int(headers["commit"]), int(headers["ordinal"])
        new = key, json.loads(each.value())
        assert found.setdefault(id_, new) == new  # one that was repeated is the same
    return found


@pytest.mark.smoke
def test_rows_come_go_and_change(events: Broker, tmp_path: Path) -> None:
    with opened(tmp_path, ITEMS.format("changes")) as db:
        first = write(db, "item", [(1, 'a"'), (2, None)])
        second = write(db, "item", [(1, "b"), (3, "c")], [(1, 'a"'), (2, None)])
    found = by_id(events.read("items"))
    said = [
        (each[0], key, value.pop("_change_type"), value.pop("_commit_version"), value)
        for each, (key, value) in found.items()
    ]
    assert sorted(said, key=repr) == [
        (first, {"id": 1}, "insert", first, {"id": 1, "name": 'a"'}),
        (first, {"id": 2}, "insert", first, {"id": 2, "name": None}),
        (second, {"id": 1}, "update_postimage", second, {"id": 1, "name": "b"}),
        (second, {"id": 2}, "delete", second, {"id": 2, "name": None}),
        (second, {"id": 3}, "insert", second, {"id": 3, "name": "c"}),
    ]
    assert sorted(each for each in found) == [(first, 0), (first, 1)] + [
        (second, number) for number in range(3)
    ]


def test_debezium_messages(events: Broker, tmp_path: Path) -> None:
    with opened(tmp_path, ITEMS.format("debezium").partition(".output")[0]) as db:
        with db.transaction() as tx:
            tx.insert("item", [(7, "was there")])
        db.load(text=ITEMS.format("debezium"))
        first = db.commits
        second = write(db, "item", [(1, "a")])
        third = write(db, "item", [(1, "b")], [(1, "a"), (7, "was there")])
    found = by_id(events.read("items"))
    seven, one, other = (
        {"id": 7, "name": "was there"},
        {"id": 1, "name": "a"},
        {"id": 1, "name": "b"},
    )
    assert {
        id_: (key, value["op"], value["before"], value["after"])
        for id_, (key, value) in found.items()
    } == {
        (first, 0): ({"id": 7}, "r", None, seven),
        (second, 0): ({"id": 1}, "c", None, one),
        (third, 0): ({"id": 7}, "d", seven, None),
        (third, 1): ({"id": 1}, "u", one, other),
    }
    source = found[third, 1][1]["source"]
    assert (source["table"], source["commit"], source["ordinal"]) == ("item", third, 1)
    assert isinstance(source["ts_ms"], int)


def test_other_columns_begin_with_a_truncate(events: Broker, tmp_path: Path) -> None:
    """Each partition says that all rows are gone."""
    with opened(tmp_path, EDGES) as db:
        write(db, "edge", [(1, "a")])
        new = EDGES.replace("shown(x: number, y: symbol)", "shown(x: number)")
        db.load(text=new.replace("shown(x, y) :-", "shown(x) :-"))
        commit = db.commits
    found = by_id(events.read("shown"))
    said = [value for (number, _), (_, value) in sorted(found.items()) if number == commit]
    assert said[-1] == {"x": 1, "_change_type": "insert", "_commit_version": commit}
    assert said[:-1] == [{"_change_type": "truncate", "_commit_version": commit}] * PARTITIONS
    assert len(found) == len(said) + 1


def test_a_topic_that_was_emptied_goes_on(events: Broker, tmp_path: Path) -> None:
    """Messages expire: then the position is the one that the catalog has."""
    with opened(tmp_path, EDGES) as db:
        write(db, "edge", [(1, "a")])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(KafkaSession, "_last_messages", lambda *_: [])
            write(db, "edge", [(2, "b")])
    assert len(events.read("shown")) == 2


def test_messages_of_others_are_told(events: Broker, tmp_path: Path) -> None:
    with opened(tmp_path, EDGES) as db:
        write(db, "edge", [(1, "a")])
        other = confluent_kafka.Producer({"bootstrap.servers": events.address})
        for number in range(PARTITIONS):
            other.produce("shown", value="mine", partition=number)
        assert not other.flush(20)
        with db.transaction() as tx:
            tx.insert("edge", [(2, "b")])
        assert tx.published is not None
        assert [each.code for each in tx.published.problems] == ["C0979"]


def test_100_000_changes_with_kills(events: Broker, tmp_path: Path) -> None:
    """Our process dies twice; who reads what is committed sees each change once."""
    opened(tmp_path, EDGES).close()
    faults = ["after_publish:3", ""]
    for number, fault in enumerate([*faults, ""]):
        process = start_replica_writer(tmp_path / "w", BATCHES, ROWS, fault)
        assert process.stdout is not None
        if not fault and number < len(faults):
            process.stdout.readline()
            process.send_signal(signal.SIGKILL)
        process.communicate(timeout=120)
        assert process.returncode == (0 if number == len(faults) else -signal.SIGKILL)
    with corollary.open(tmp_path / "w", engine="local") as db:
        result = db.publish()
        assert result is not None
        assert result.problems == ()
        expected = Counter(db.relation("shown").rows())
    rows: Counter[tuple[int, str]] = Counter()
    changes = by_id(events.read("shown")).values()
    for _, value in changes:
        rows[value["x"], value["y"]] += {"insert": 1, "delete": -1}[value["_change_type"]]
    assert +rows == expected
    assert not -rows
