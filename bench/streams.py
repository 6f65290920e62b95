"""Change events: how many a second each way in takes, and how late one alone is.

| figure | how it is taken |
|---|---|
| files, Kafka, push | 100,000 events by key, a fifth of them deletes, in one commit |
| envelopes | the same as envelopes of Debezium, from files |
| late | one event more, from when it is sent until what it changed is committed and published |

The broker is librdkafka's own, in this process, so that its work is counted, too. What the relation
has at the end is compared with what the events describe.
"""

import json
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

import corollary
from bench.figure import Figure
from corollary.database.database import Database
from corollary.database.intake.pipeline import push_events

NAME = "streams"
ABOUT = "change events of files, Kafka and clients"
EVENTS = 100_000
LATE = 20
PROGRAM = """
.decl p(id: number, v: symbol?) key(id)
.input p({source}, sequence_by="{sequence}"{more})
.decl q(v: symbol?, n: number)
q(v, n) :- p(_, v), n = count : {{ p(_, v) }}.
.output q
"""
DELETES = ', apply_as_deletes="gone"'


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures, as they are taken."""
    events = _events(int(EVENTS * scale))
    rows = [json.dumps(each) for each in events]
    envelopes = [json.dumps(_envelope(each)) for each in events]
    keys = [str(each["id"]) for each in events]
    expected = _described(events)
    yield from _files("files", rows, expected, "ts", DELETES)
    yield from _files("envelopes", envelopes, expected, "source.lsn", ", format=debezium")
    yield from _kafka(keys, rows, expected)
    yield from _push(rows, expected)


def _events(number: int) -> list[dict[str, Any]]:
    chance = random.Random(1)
    found: list[dict[str, Any]] = []
    for ts in range(number):
        event: dict[str, Any] = {"id": chance.randrange(number // 4), "ts": ts}
        event |= {"gone": True} if chance.random() < 0.2 else {"v": f"v{chance.randrange(100)}"}
        found.append(event)
    return found


def _envelope(event: dict[str, Any]) -> dict[str, Any]:
    row = {"id": event["id"], "v": event.get("v")}
    is_gone = "gone" in event
    sides = {"before": row if is_gone else None, "after": None if is_gone else row}
    return {**sides, "op": "d" if is_gone else "u", "source": {"lsn": event["ts"]}}


def _late_events(number: int) -> list[dict[str, Any]]:
    """Return events that come after all others, each of which changes a row."""
    return [{"id": 1, "v": f"late{at}", "ts": number + at} for at in range(LATE)]


def _described(events: list[dict[str, Any]]) -> list[tuple[int, str]]:
    last = {each["id"]: each for each in events}
    return sorted((key, each["v"]) for key, each in last.items() if "gone" not in each)


class _Warehouse:
    """A warehouse that reads a stream."""

    def __init__(self, place: Path, source: str, sequence: str = "ts", more: str = DELETES) -> None:
        self.place = place
        (place / "in").mkdir()
        text = PROGRAM.format(source=source, sequence=sequence, more=more)
        (place / "p.dl").write_text(text)
        self.db: Database = corollary.open(place / "w", engine="local")

    def run(self) -> float:
        began = time.perf_counter()
        self.db.run(self.place / "p.dl", facts=self.place)
        return time.perf_counter() - began

    def figure(self, name: str, events: int, seconds: float, expected: Any) -> Figure:
        is_right = sorted(self.db.relation("p").rows()) == expected
        differences = () if is_right else ("the relation is not what the events describe",)
        about = f"{events:,} events in {seconds:.2f} s"
        return Figure(name, events / seconds, "/s", None, about, differences=differences)


def _late(name: str, seconds: list[float]) -> Figure:
    about = f"one event, committed and published; at most {max(seconds) * 1000:.0f} ms"
    return Figure(f"{name}, late", statistics.median(seconds) * 1000, "ms", None, about)


def _files(
    name: str, lines: list[str], expected: Any, sequence: str, more: str
) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        made = _Warehouse(Path(directory), 'IO=events, filename="in"', sequence, more)
        (made.place / "in" / "1.jsonl").write_text("\n".join(lines) + "\n")
        yield made.figure(name, len(lines), made.run(), expected)
        seconds = []
        for event in _late_events(len(lines)):
            written = event if sequence == "ts" else _envelope(event)
            with (made.place / "in" / "1.jsonl").open("a") as file:
                file.write(json.dumps(written) + "\n")
            seconds.append(made.run())
        yield _late(name, seconds)
        made.db.close()


def _kafka(keys: list[str], lines: list[str], expected: Any) -> Iterator[Figure]:
    settings = {"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0}
    broker = Producer(settings)
    (found,) = broker.list_topics(timeout=10).brokers.values()
    with tempfile.TemporaryDirectory() as directory:
        source = f'IO=kafka, topic="t", servers="{found.host}:{found.port}"'
        made = _Warehouse(Path(directory), source)
        for key, line in zip(keys, lines, strict=True):
            broker.produce("t", line, key)
            broker.poll(0)
        broker.flush(60)
        yield made.figure("Kafka", len(lines), made.run(), expected)
        seconds = []
        for event in _late_events(len(lines)):
            broker.produce("t", json.dumps(event), str(event["id"]))
            broker.flush(60)
            seconds.append(made.run())
        yield _late("Kafka", seconds)
        made.db.close()


def _push(lines: list[str], expected: Any) -> Iterator[Figure]:
    """Push events as a server does that has got them."""
    with tempfile.TemporaryDirectory() as directory:
        made = _Warehouse(Path(directory), "IO=push")
        made.run()
        body = "\n".join(lines).encode()
        began = time.perf_counter()
        push_events(made.db, "p", body)
        yield made.figure("push", len(lines), time.perf_counter() - began, expected)
        seconds = []
        for event in _late_events(len(lines)):
            began = time.perf_counter()
            push_events(made.db, "p", json.dumps(event).encode())
            seconds.append(time.perf_counter() - began)
        yield _late("push", seconds)
        made.db.close()
