"""LISTEN and NOTIFY: alerts and messages of clients come when nothing is asked, too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import errors

import corollary
from corollary.database.access.principals import AccessRole
from corollary.serve.postgres.notifications import PAYLOAD_MAX_BYTES, alert_payload
from support.serve.pg_endpoint import Endpoint, running_endpoint

Connection = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def alerting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """A warehouse with two alerts, of which a reader may see one."""
    place = tmp_path_factory.mktemp("notifications") / "wh"
    with corollary.open(place, engine="local") as db:
        db.load(
            text=".decl stock(item: symbol, n: number) key(item)\n"
            "low(x) :- +stock(x, n), n < 5.\n"
            '.alert low "{x} is low"\n'
            "out(x) :- +stock(x, 0).\n"
            '.alert out "{x} is sold out"\n'
        )
        db.grant("reader", "low")
    users = {"alice": AccessRole.ADMIN, "reader": AccessRole.READ}
    with running_endpoint(place, users) as endpoint:
        yield endpoint


@pytest.fixture
def two(alerting: Endpoint) -> Iterator[tuple[Connection, Connection]]:
    """Who listens, and who writes."""
    arguments = alerting.arguments()
    with (
        psycopg.connect(**arguments, autocommit=True) as listening,
        psycopg.connect(**arguments, autocommit=True) as writing,
    ):
        yield listening, writing
        writing.execute("DELETE FROM stock")


def _heard(connection: Connection, count: int) -> list[tuple[str, str]]:
    """Return what comes: the channels, and the payloads."""
    timeout = 20 if count else 0.3
    found = connection.notifies(timeout=timeout, stop_after=count or None)
    return [(each.channel, each.payload) for each in found]


def test_alerts_come_by_themselves(two: tuple[Connection, Connection]) -> None:
    listening, writing = two
    listening.execute("LISTEN alerts")
    writing.execute("INSERT INTO stock VALUES ('bell', 9), ('wheel', 3)")
    ((channel, payload),) = _heard(listening, 1)
    found = json.loads(payload)
    assert (channel, found["event"], found["row"]) == ("alerts", "low", ["wheel"])
    assert found["message"] == "wheel is low"
    writing.execute("UPDATE stock SET n = 0 WHERE item = 'bell'")
    assert sorted(json.loads(payload)["event"] for _, payload in _heard(listening, 2)) == [
        "low",
        "out",
    ]


def test_one_alert(two: tuple[Connection, Connection]) -> None:
    listening, writing = two
    listening.execute("LISTEN out")
    writing.execute("INSERT INTO stock VALUES ('bell', 1), ('wheel', 0)")
    ((channel, payload),) = _heard(listening, 1)
    assert (channel, json.loads(payload)["message"]) == ("out", "wheel is sold out")
    listening.execute("UNLISTEN *")
    writing.execute("INSERT INTO stock VALUES ('lamp', 0)")
    assert _heard(listening, 0) == []


def test_readers_hear_what_was_granted(
    alerting: Endpoint, two: tuple[Connection, Connection]
) -> None:
    _, writing = two
    with psycopg.connect(**alerting.arguments("reader"), autocommit=True) as reader:
        reader.execute("LISTEN alerts")
        writing.execute("INSERT INTO stock VALUES ('wheel', 0)")
        ((_, payload),) = _heard(reader, 1)
        assert json.loads(payload)["event"] == "low"
        assert _heard(reader, 0) == []


def test_clients_tell_each_other(two: tuple[Connection, Connection]) -> None:
    listening, writing = two
    listening.execute("LISTEN chat")
    writing.execute("NOTIFY chat, 'it''s me'")
    writing.execute("NOTIFY other, 'x'")
    writing.execute("NOTIFY Chat")
    assert _heard(listening, 2) == [("chat", "it's me"), ("chat", "")]
    listening.execute("UNLISTEN chat")
    writing.execute("NOTIFY chat, 'x'")
    assert _heard(listening, 0) == []


def test_transactions(two: tuple[Connection, Connection]) -> None:
    listening, writing = two
    listening.execute("LISTEN chat")
    with writing.transaction():
        writing.execute("NOTIFY chat, 'kept'")
        assert _heard(listening, 0) == []
    with writing.transaction(force_rollback=True):
        writing.execute("NOTIFY chat, 'dropped'")
    assert _heard(listening, 1) == [("chat", "kept")]
    with listening.transaction():  # who is in a transaction hears it later
        writing.execute("NOTIFY chat, 'later'")
        assert _heard(listening, 0) == []
    assert _heard(listening, 1) == [("chat", "later")]


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("NOTIFY alerts, 'x'", errors.InsufficientPrivilege),
        ("NOTIFY chat, 5", errors.SyntaxError),
        ("LISTEN", errors.SyntaxError),
        (f"NOTIFY chat, '{'x' * PAYLOAD_MAX_BYTES}'", errors.InvalidParameterValue),
    ],
)
def test_refusals(two: tuple[Connection, Connection], query: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        two[1].execute(query)


@pytest.mark.parametrize("letter", ["x", "é", "\n", "\U0001f600"])
def test_long_alerts_are_cut(letter: str) -> None:
    alert = {"commit": 1, "event": "e", "row": [letter * 9000], "message": letter * 9000}
    payload = alert_payload(alert)
    assert len(payload.encode()) < PAYLOAD_MAX_BYTES
    assert json.loads(payload)["row"] is None
