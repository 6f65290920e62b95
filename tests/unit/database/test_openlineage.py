"""Events of OpenLineage: as its schema has them, after commits, never at their cost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import jsonschema
import pytest

import corollary
from corollary.database.alerts import openlineage
from corollary.database.database import Database
from corollary.errors import CorollaryError
from support.processes.alert_sequence import Listener, lines, listening

PROGRAM = """
.decl edge(x: symbol, y: symbol)
.decl link(a: symbol, b: symbol)
link(x, y) :- edge(x, y).
link(x, z) :- link(x, y), edge(y, z).
.decl starts(x: symbol, n: number)
starts(x, n) :- link(x, _), n = count : { link(x, _) }.
"""
TEXT = {"type": "string"}
URI = {"type": "string", "pattern": "^[a-z]+:"}
FIELD = {
    "type": "object",
    "required": ["namespace", "name", "field"],
    "properties": {
        "namespace": TEXT,
        "name": TEXT,
        "field": TEXT,
        "transformations": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type"],
                "additionalProperties": False,
                "properties": {
                    "type": {"enum": ["DIRECT", "INDIRECT"]},
                    "subtype": TEXT,
                    "description": TEXT,
                    "masking": {"type": "boolean"},
                },
            },
        },
    },
}
FACET: dict[str, Any] = {
    "type": "object",
    "required": ["_producer", "_schemaURL"],
    "properties": {"_producer": URI, "_schemaURL": URI},
}
DATASET: dict[str, Any] = {
    "type": "object",
    "required": ["namespace", "name"],
    "properties": {
        "namespace": TEXT,
        "name": TEXT,
        "facets": {
            "additionalProperties": FACET,
            "properties": {
                "schema": {
                    "properties": {
                        "fields": {"type": "array", "items": {"required": ["name"]}},
                    }
                },
                "columnLineage": {
                    "required": ["fields"],
                    "properties": {
                        "fields": {
                            "additionalProperties": {
                                "required": ["inputFields"],
                                "properties": {"inputFields": {"type": "array", "items": FIELD}},
                            }
                        },
                        "dataset": {"type": "array", "items": FIELD},
                    },
                },
            },
        },
        "outputFacets": {"additionalProperties": FACET},
    },
}
ESSENTIALS = {
    "type": "object",
    "required": ["eventTime", "producer", "schemaURL", "run", "job"],
    "properties": {
        "eventType": {"enum": ["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]},
        "eventTime": {"pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$"},
        "producer": URI,
        "schemaURL": URI,
        "run": {
            "required": ["runId"],
            "properties": {"facets": {"additionalProperties": FACET}},
        },
        "job": {"required": ["namespace", "name"]},
        "inputs": {"type": "array", "items": DATASET},
        "outputs": {"type": "array", "items": DATASET},
    },
}
"""What the specification demands of a run event (2-0-2) and its facets (columnLineage 1-2-0)."""


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening() as found:
        yield found


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "events.jsonl"
    monkeypatch.setenv("OPENLINEAGE_URL", path.as_uri())
    return path


def network(tmp_path: Path) -> Database:
    return corollary.open(tmp_path / "network", engine="local")


def insert(db: Database, *rows: tuple[str, str]) -> None:
    with db.transaction() as tx:
        tx.insert("edge", rows)


def test_each_commit_has_two_events_with_exact_lineage(tmp_path: Path, file: Path) -> None:
    with network(tmp_path) as db:
        db.load(text=PROGRAM)
        insert(db, ("a", "b"))
        assert db.deliver().problems == []
        insert(db, ("b", "c"))
        insert(db, ("c", "d"))
        db.deliver()
        db.deliver()
    events = lines(file)
    for each in events:
        jsonschema.validate(each, ESSENTIALS)
        assert UUID(each["run"]["runId"]).version == 5
    assert [each["eventType"] for each in events] == ["START", "COMPLETE"] * 3
    runs = [each["run"]["runId"] for each in events]
    assert runs[::2] == runs[1::2]
    assert len(set(runs)) == 3
    last = events[-1]
    assert last["job"] == {"namespace": "corollary", "name": "network"}
    assert [each["name"] for each in last["inputs"]] == ["network.edge"]
    assert last["inputs"][0]["facets"]["schema"]["fields"] == [
        {"name": "x", "type": "symbol"}, {"name": "y", "type": "symbol"},
    ]  # fmt: skip
    link, starts = last["outputs"]
    assert link["outputFacets"]["outputStatistics"]["rowCount"] == 3  # c-d, b-d, a-d
    lineage = link["facets"]["columnLineage"]
    assert "/1-2-0/" in lineage["_schemaURL"]

    def field(name: str, *transformations: tuple[str, str]) -> dict[str, Any]:
        listed = [
            {"type": kind, "subtype": subtype, "description": "", "masking": False}
            for kind, subtype in transformations
        ]
        where = {"namespace": "corollary", "name": "network.edge", "field": name}
        return {**where, "transformations": listed}

    identity = ("DIRECT", "IDENTITY")
    assert lineage["fields"] == {
        "a": {"inputFields": [field("x", identity)]},
        "b": {"inputFields": [field("y", identity)]},
    }
    joins = [field("x", ("INDIRECT", "JOIN")), field("y", ("INDIRECT", "JOIN"))]
    assert lineage["dataset"] == joins
    assert starts["facets"]["columnLineage"]["dataset"] == [
        field("x", ("INDIRECT", "GROUP_BY"), ("INDIRECT", "JOIN")), joins[1],
    ]  # fmt: skip


def test_the_first_event_has_all_views_later_ones_what_has_changed(
    tmp_path: Path, file: Path
) -> None:
    with network(tmp_path) as db:
        db.load(
            text=PROGRAM + ".decl lone(x: symbol)\n.decl same(x: symbol)\nsame(x) :- lone(x).\n"
        )
        insert(db, ("a", "b"))
        db.deliver()
        insert(db, ("b", "c"))
        db.deliver()
    first, second = lines(file)[1::2]
    assert [each["name"] for each in first["outputs"]] == [
        "network.link", "network.starts", "network.same",
    ]  # fmt: skip
    assert [each["name"] for each in second["outputs"]] == ["network.link", "network.starts"]


def test_a_receiver_that_is_down_catches_up_and_costs_no_commit(
    tmp_path: Path, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", f"{listener.origin}/")
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "prod")
    headers: list[Any] = []
    post = openlineage.webhook.post

    def posting(address: Any, body: bytes, given: Any) -> int:
        headers.append((address.target, given))
        return post(address, body, given)

    monkeypatch.setattr(openlineage.webhook, "post", posting)
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "geheim")
    with network(tmp_path) as db:
        db.load(text=PROGRAM)
        insert(db, ("a", "b"))
        assert db.deliver().problems == []
        assert headers[0] == ("/api/v1/lineage", {"Authorization": "Bearer geheim"})
        listener.status["/api/v1/lineage"] = 503
        insert(db, ("b", "c"))
        (problem,) = db.deliver().problems
        assert (problem.code, "503" in str(problem)) == ("C1015", True)
        assert "geheim" not in str(problem)
        tried = len(listener.heard)
        insert(db, ("c", "d"))
        assert db.deliver().problems == []  # it is left alone for a while
        assert len(listener.heard) == tried
        listener.status.clear()
        monkeypatch.setattr(openlineage.time, "time", lambda: 9e9)
        assert db.deliver().problems == []
    accepted = [body for _, body in listener.heard[tried:]]
    assert [each["eventType"] for each in accepted] == ["START", "COMPLETE"] * 2
    assert {each["job"]["namespace"] for each in accepted} == {"prod"}


@pytest.mark.parametrize("url", ["lineage.example", "file:///proc/none/events.jsonl"])
def test_what_cannot_be_sent_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", url)
    with network(tmp_path) as db:
        db.load(text=PROGRAM)
        insert(db, ("a", "b"))
        assert [each.code for each in db.deliver().problems] == ["C1015"]
        monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
        insert(db, ("b", "c"))
        assert db.deliver().problems == []


def test_a_run_that_fails_says_why(tmp_path: Path, file: Path) -> None:
    program = tmp_path / "sums.dl"
    program.write_text(
        '.decl n(x: number)\n.input n(filename="n.csv")\n'
        ".decl m(x: number)\nm(y) :- n(x), y = 10 / x.\n"
    )
    (tmp_path / "n.csv").write_text("0\n")
    with network(tmp_path) as db:
        with pytest.raises(CorollaryError) as error:
            db.run(program, facts=tmp_path)
        (tmp_path / "n.csv").write_text("5\n")
        db.run(program, facts=tmp_path)
    start, failed, *rest = lines(file)
    for each in (start, failed, *rest):
        jsonschema.validate(each, ESSENTIALS)
    assert [start["eventType"], failed["eventType"]] == ["START", "FAIL"]
    assert start["run"]["runId"] == failed["run"]["runId"]
    assert failed["run"]["facets"]["errorMessage"]["message"] == str(error.value)
    assert [each["eventType"] for each in rest] == ["START", "COMPLETE"]
    assert json.dumps(rest[1]["outputs"]).count("TRANSFORMATION") == 1
