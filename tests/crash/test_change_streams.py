"""However often processes are killed, every change event counts exactly once, by each way in.

The events are random, late, repeated and out of order; what they describe is computed from them at
once. Each way has CHANGES of them, and KILLS kills at any moment.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.database.access.principals import AccessRole
from corollary.database.upkeep.verify import verify
from corollary.serve.tokens import TokenStore
from corollary.warehouse.warehouse_catalog import WarehouseCatalog
from support.command_line import COMMAND
from support.figures import FIGURES, KILLED
from support.maintained_database import reopened
from support.serve.server_process import server_process
from support.streaming.kafka_broker import kafka_broker
from support.warehouse_scenarios import store_of

pytestmark = pytest.mark.crash

CHANGES = int(os.environ.get("CHANGES", "100000"))
KILLS = int(os.environ.get("KILLS", "8"))
PORTIONS = 20
LONGEST = 3.0
"""Seconds at most until a process is killed."""
PROGRAM = """
.decl p(id: number, v: number) key(id)
.input p({source}, sequence_by="ts", apply_as_deletes="gone", max_events={most})
.decl total(n: number, s: number)
total(n, s) :- n = count : {{ p(_, _) }}, s = sum v : {{ p(_, v) }}.
"""


def random_events(chance: random.Random) -> list[dict[str, Any]]:
    """Events whose sequences differ, but where they are repeated; out of their order."""
    events: list[dict[str, Any]] = []
    for ts in range(CHANGES):
        event: dict[str, Any] = {"id": chance.randrange(CHANGES // 10), "ts": ts}
        event |= {"gone": True} if chance.random() < 0.2 else {"v": chance.randrange(1000)}
        events.append(event)
    order = sorted(range(CHANGES), key=lambda at: at + chance.randrange(CHANGES // 5))
    return [events[at] for at in order] + chance.choices(events, k=CHANGES // 20)


def described(events: list[dict[str, Any]]) -> list[tuple[int, int]]:
    last: dict[int, dict[str, Any]] = {}
    for each in events:
        if each["ts"] >= last.get(each["id"], each)["ts"]:
            last[each["id"]] = each
    return sorted((key, each["v"]) for key, each in last.items() if "gone" not in each)


def lines_of(events: list[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(each).encode() for each in events]


def write_program(place: Path, source: str) -> None:
    text = PROGRAM.format(source=source, most=CHANGES // PORTIONS)
    text = text.replace(f", max_events={CHANGES // PORTIONS}", "") if "push" in source else text
    (place / "p.dl").write_text(text)


def run_and_kill(place: Path, chance: random.Random, meanwhile: Callable[[int], None]) -> int:
    """Let a process read, again and again, kill it, and let a last one finish."""
    command = [*COMMAND, "watch", "p.dl", "--warehouse", "w", "--engine", "local", "--once"]
    killed = 0
    for number in range(KILLS):
        meanwhile(number)
        with subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL) as process:
            try:
                process.wait(1.0 + chance.random() * LONGEST)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                killed += 1
        assert process.returncode in (0, -signal.SIGKILL)
    meanwhile(KILLS)
    subprocess.run(command, cwd=place, stdout=subprocess.DEVNULL, check=True)
    return killed


def demand(place: Path, events: list[dict[str, Any]], killed: int, began: float, way: str) -> None:
    """Assert that the relation has what the events describe, and that the warehouse is sound."""
    expected, took = described(events), time.monotonic() - began
    with reopened("", place=str(place / "w")) as db:
        assert sorted(db.relation("p").rows()) == expected
        assert db.relation("total").rows() == [(len(expected), sum(v for _, v in expected))]
        assert verify(store_of(db).warehouse).findings == []
        FIGURES[KILLED] += killed
        FIGURES[f"change events by {way}"] += len(events)
        print(f"{way}: {len(events)} events, {db.commits} commits, {killed} kills, {took:.1f} s")
    assert killed


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    return random.Random(request.node.name)


def test_files(tmp_path: Path, chance: random.Random) -> None:
    began, events = time.monotonic(), random_events(chance)
    write_program(tmp_path, 'IO=events, filename="in"')
    (tmp_path / "in").mkdir()
    lines = lines_of(events)

    def add(number: int) -> None:
        share = len(lines) // KILLS
        part = lines[number * share :] if number == KILLS else lines[number * share :][:share]
        with (tmp_path / "in" / f"{number // 2}.jsonl").open("ab") as file:
            file.write(b"".join(line + b"\n" for line in part))

    killed = run_and_kill(tmp_path, chance, add)
    demand(tmp_path, events, killed, began, "files")


def test_kafka(tmp_path: Path, chance: random.Random) -> None:
    began, events = time.monotonic(), random_events(chance)
    messages = [
        (str(each["id"]).encode(), line)
        for each, line in zip(events, lines_of(events), strict=True)
    ]
    with kafka_broker() as broker:
        write_program(tmp_path, f'IO=kafka, topic="changes", servers="{broker.servers}"')

        def send(number: int) -> None:
            share = len(messages) // KILLS
            end = None if number == KILLS else (number + 1) * share
            broker.send("changes", messages[number * share : end])

        killed = run_and_kill(tmp_path, chance, send)
    demand(tmp_path, events, killed, began, "Kafka")


def test_push(tmp_path: Path, chance: random.Random) -> None:
    """The server dies while it commits; clients do not know, and send with the same key again."""
    began, events = time.monotonic(), random_events(chance)
    write_program(tmp_path, "IO=push")
    with corollary.open(tmp_path / "w", engine="local") as db:
        db.run(tmp_path / "p.dl")
    with closing(WarehouseCatalog.open(tmp_path / "w", create=False)) as catalog:
        token = TokenStore(catalog.catalog).add("client", AccessRole.WRITE)
    lines, share = lines_of(events), len(events) // PORTIONS
    portions = [lines[at : at + share] for at in range(0, len(lines), share)]
    waiting, killed = list(enumerate(portions)), 0
    while waiting:
        is_killed = killed < KILLS
        with server_process(tmp_path / "w") as server:
            dies_at = time.monotonic() + chance.random() * LONGEST / 3
            while waiting:
                if is_killed and time.monotonic() > dies_at:
                    break
                number, part = waiting[0]
                request = urllib.request.Request(
                    f"{server.url}/v1/sources/p/events",
                    b"\n".join(part),
                    {"Authorization": f"Bearer {token}", "Idempotency-Key": f"{number}"},
                )
                try:
                    timeout = max(0.05, dies_at - time.monotonic()) if is_killed else 60
                    urllib.request.urlopen(request, timeout=timeout).read()
                except (urllib.error.URLError, TimeoutError, ConnectionError):
                    if not is_killed:
                        raise
                    break
                waiting.pop(0)
            if is_killed:
                server.stop(signal.SIGKILL)
                killed += 1
    demand(tmp_path, events, killed, began, "push")
