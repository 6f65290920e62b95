"""Change events that clients push to a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.database.access.principals import AccessRole
from corollary.database.intake.pipeline import push_events
from corollary.errors import InputError
from corollary.serve.http.application import application
from corollary.serve.http.settings import ServerSettings
from corollary.serve.processes.local_service import LocalService
from corollary.serve.tokens import TokenStore
from corollary.warehouse.warehouse_catalog import WarehouseCatalog
from support.serve.asgi_client import AsgiClient, LoopThread

PROGRAM = """
.decl p(id: number, v: symbol?) key(id)
.input p(IO=push, sequence_by="ts", apply_as_deletes="gone")
.decl q(v: symbol?)
q(v) :- p(_, v).
"""
PATH = "/v1/sources/p/events"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[AsgiClient]:
    """A client of a server whose program takes events."""
    place = tmp_path / "w"
    (tmp_path / "p.dl").write_text(PROGRAM)
    with corollary.open(place, engine="local") as db:
        db.run(tmp_path / "p.dl")
    loop = LoopThread()
    with closing(WarehouseCatalog.open(place, create=False)) as catalog, closing(loop):
        tokens = TokenStore(catalog.catalog)
        opening = LocalService.open(lambda: corollary.open(place, engine="local"))
        service = loop.run(opening)
        app = application(service, ServerSettings(warehouse_name="w"), tokens)
        token = tokens.add("writer", AccessRole.WRITE)
        yield AsgiClient(app, loop, {"Authorization": f"Bearer {token}"})
        loop.run(service.close())


def push(client: AsgiClient, *events: Any, key: str = "", path: str = PATH) -> Any:
    lines = "\n".join(each if isinstance(each, str) else json.dumps(each) for each in events)
    headers = {"Idempotency-Key": key} if key else {}
    return client.post(path, content=lines, headers=headers)


def rows(client: AsgiClient) -> list[list[Any]]:
    found: list[list[Any]] = client.get("/v1/relations/p").json()["rows"]
    return sorted(found)


def test_pushed_events_count_by_their_sequence(client: AsgiClient) -> None:
    answer = push(client, {"id": 1, "v": "a", "ts": 5}, {"id": 2, "v": "b", "ts": 1}, "nonsense")
    assert answer.status_code == 200, answer.text
    assert answer.json()["changes"]["q"]["added"] == [["a"], ["b"]]
    assert answer.json()["quarantined"] == 1
    late = [{"id": 1, "v": "late", "ts": 4}, {"id": 2, "gone": True, "ts": 2}]
    answer = client.post(PATH, json=late)
    assert answer.json()["changes"]["q"] == {"added": [], "removed": [["b"]]}
    assert rows(client) == [[1, "a"]]


def test_lag_is_told(client: AsgiClient) -> None:
    push(client, {"id": 1, "v": "a", "ts": 5}, {"id": 2, "v": "b", "ts": 5})
    source = client.get("/v1/status").json()["sources"]["p < push"]
    assert (source["events"], source["lag"]) == (2, 0)
    told = client.get("/metrics").text
    assert 'corollary_source_events{source="p < push"} 2' in told
    assert 'corollary_source_lag{source="p < push"} 0' in told


def test_a_repeated_push_does_nothing(client: AsgiClient) -> None:
    first = push(client, {"id": 1, "v": "a", "ts": 5}, key="one")
    again = push(client, {"id": 1, "v": "a", "ts": 5}, key="one")
    assert again.json()["commit"] == first.json()["commit"]
    assert again.json()["changes"] == first.json()["changes"]
    other = push(client, {"id": 1, "v": "b", "ts": 6}, key="one")
    assert "C0929" in other.text
    assert rows(client) == [[1, "a"]]


def test_a_program_that_was_not_run_keeps_no_events(tmp_path: Path) -> None:
    with corollary.open(None, engine="local") as db:
        db.load(text=PROGRAM)
        with pytest.raises(InputError, match="C1739"):
            push_events(db, "p", b"")


def test_relations_that_take_no_events(client: AsgiClient) -> None:
    refused = push(client, {"v": "a"}, path="/v1/sources/q/events")
    assert refused.status_code == 400
    assert "C1739" in refused.text


def test_other_keys_do_not_lose_what_was_pushed(client: AsgiClient, tmp_path: Path) -> None:
    push(client, {"id": 1, "v": "a", "ts": 5})
    (tmp_path / "p.dl").write_text(PROGRAM.replace('"ts"', '"at"'))
    with (
        corollary.open(tmp_path / "w", engine="local") as db,
        pytest.raises(InputError, match="C1745"),
    ):
        db.run(tmp_path / "p.dl")
    assert rows(client) == [[1, "a"]]


def test_a_run_leaves_what_was_pushed(client: AsgiClient, tmp_path: Path) -> None:
    push(client, {"id": 1, "v": "a", "ts": 5})
    with corollary.open(tmp_path / "w", engine="local") as db:
        db.run(tmp_path / "p.dl")
    push(client, {"id": 1, "v": "late", "ts": 4}, {"id": 3, "v": "c", "ts": 1})
    assert rows(client) == [[1, "a"], [3, "c"]]
