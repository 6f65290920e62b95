"""Topics of Kafka as sources: offsets in the commit, exactly once, against librdkafka's broker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.errors import InputError
from corollary.warehouse.sources.events import kafka_topic
from support.command_line import COMMAND
from support.streaming.kafka_broker import KafkaBroker, kafka_broker

pytestmark = pytest.mark.integration

PROGRAM = """
.decl p(id: number, v: symbol) key(id)
.input p(IO=kafka, servers="{servers}", topic="{topic}", {more})
"""


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with kafka_broker() as made:
        yield made


class Topic:
    """A topic, and a warehouse that reads it."""

    def __init__(self, broker: KafkaBroker, place: Path, more: str = "format=json") -> None:
        self.broker, self.place, self.name = broker, place, place.name
        self.write(more)
        self.db = corollary.open(place / "w", engine="local")

    def write(self, more: str, servers: str = "", topic: str = "") -> None:
        servers, topic = servers or self.broker.servers, topic or self.name
        text = PROGRAM.format(servers=servers, topic=topic, more=more)
        (self.place / "p.dl").write_text(text)

    def send(self, *events: Any, partition: int | None = None) -> None:
        messages = [
            (str(key).encode(), None if value is None else json.dumps(value).encode())
            for key, value in events
        ]
        self.broker.send(self.name, messages, partition)

    def run(self) -> Any:
        return self.db.run(self.place / "p.dl")

    def rows(self) -> list[Any]:
        return sorted(self.db.relation("p").rows())


@pytest.fixture
def topic(broker: KafkaBroker, tmp_path: Path) -> Iterator[Topic]:
    made = Topic(broker, tmp_path)
    yield made
    made.db.close()


def row(number: int, v: str) -> tuple[int, dict[str, Any]]:
    return number, {"id": number, "v": v}


def test_messages_of_all_partitions_count_once(topic: Topic) -> None:
    topic.send(*(row(n, "a") for n in range(20)))
    topic.run()
    assert topic.rows() == [(n, "a") for n in range(20)]
    topic.send(*(row(n, "b") for n in range(0, 20, 2)), (1, None), (3, None))
    outcome = topic.run()
    assert len(outcome.changes["p"].added) == 10
    kept = [(n, "b" if n % 2 == 0 else "a") for n in range(20) if n not in (1, 3)]
    assert topic.rows() == kept
    assert topic.run().transaction is None


def test_a_commit_takes_at_most_some_messages(broker: KafkaBroker, tmp_path: Path) -> None:
    topic = Topic(broker, tmp_path, "max_events=7")
    topic.send(*(row(n, "a") for n in range(20)))
    topic.run()
    assert (len(topic.rows()), topic.db.commits) == (20, 3)
    topic.db.close()


def test_poison_has_its_partition_and_offset(topic: Topic) -> None:
    topic.send(row(1, "a"), partition=2)
    topic.broker.send(topic.name, [(b"x", b"nonsense"), (b"\xff", None)], 2)
    topic.run()
    found = [(each[2], each[3], each[4]) for each in topic.db.relation("quarantine").rows()]
    assert found == [(f"{topic.name}[2]", 1, "C1731"), (f"{topic.name}[2]", 2, "C1732")]


@pytest.mark.parametrize(
    ("start", "expected"), [("latest", [9]), ("0:2", [2, 9]), ("earliest", [0, 1, 2, 9])]
)
def test_where_reading_begins(
    broker: KafkaBroker, tmp_path: Path, start: str, expected: list[int]
) -> None:
    topic = Topic(broker, tmp_path, f'starting_offsets="{start}"')
    topic.send(*(row(n, "a") for n in range(3)), partition=0)
    topic.run()
    topic.send(row(9, "a"), partition=0)
    topic.run()
    assert [number for number, _ in topic.rows()] == expected
    topic.db.close()


def test_a_topic_that_was_made_anew_has_lost_messages(topic: Topic) -> None:
    topic.send(*(row(n, "a") for n in range(5)), partition=0)
    topic.run()
    with kafka_broker() as other:
        other.send(topic.name, [(b"7", b'{"id": 7, "v": "b"}')], 0)
        topic.write("format=json", other.servers)
        with pytest.raises(InputError, match="C1737"):
            topic.run()
        topic.write('fail_on_data_loss="false"', other.servers)
        topic.run()
    assert len(topic.rows()) == 6


def test_brokers_that_do_not_answer(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_topic, "ANSWER_SECONDS", 0.2)
    topic.write("format=json", "127.0.0.1:1")
    with pytest.raises(InputError, match="C1736"):
        topic.run()


def test_without_the_package(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(InputError, match="C1738"):
        topic.run()


def test_settings_may_be_in_a_file(topic: Topic) -> None:
    settings = f"# where\nbootstrap.servers = {topic.broker.servers}\n"
    (topic.place / "kafka.properties").write_text(settings)
    text = PROGRAM.format(servers="", topic=topic.name, more='properties="kafka.properties"')
    (topic.place / "p.dl").write_text(text.replace('servers="", ', ""))
    topic.send(row(1, "a"))
    topic.db.run(topic.place / "p.dl", facts=topic.place)
    assert topic.rows() == [(1, "a")]


def test_connections_are_in_the_environment(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COROLLARY_CONNECTION_EVENTS", f"kafka://{topic.broker.servers}")
    text = PROGRAM.format(servers="x", topic=topic.name, more="connection=events")
    (topic.place / "p.dl").write_text(text.replace('servers="x", ', ""))
    topic.send(row(1, "a"))
    topic.run()
    assert topic.rows() == [(1, "a")]


def test_a_process_that_dies_around_the_commit_has_read_all_or_nothing(topic: Topic) -> None:
    """A repeated delete and insert would show whether a message counts twice."""
    topic.send(row(9, "gone"), (9, None))
    topic.run()
    topic.send(row(1, "a"), (1, None), row(2, "b"))
    topic.db.close()
    command = [*COMMAND, "run", "p.dl", "--warehouse", "w"]
    for point in ("before_commit", "after_commit"):
        dying = {**os.environ, "COROLLARY_FAULT": point}
        assert subprocess.run(command, cwd=topic.place, env=dying, check=False).returncode != 0
        topic.db = corollary.open(topic.place / "w", engine="local")
        assert topic.rows() == ([] if point == "before_commit" else [(2, "b")])
        topic.db.close()
    topic.db = corollary.open(topic.place / "w", engine="local")
    assert topic.run().transaction is None


def test_watch_reads_what_comes(topic: Topic) -> None:
    topic.send(row(1, "a"))
    topic.db.close()
    command = [*COMMAND, "watch", "p.dl", "--warehouse", "w", "--interval", "0.1"]
    with subprocess.Popen(command, cwd=topic.place, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "p +1" in process.stdout.readline()
        topic.send(row(2, "b"))
        assert "p +1" in process.stdout.readline()
        process.terminate()
        assert process.wait(30) == 0
    topic.db = corollary.open(topic.place / "w", engine="local")
    assert topic.rows() == [(1, "a"), (2, "b")]
