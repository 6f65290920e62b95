"""One endpoint for all tests of PostgreSQL clients."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pytest

import corollary
from corollary.database.access.principals import AccessRole
from support.serve.pg_endpoint import Endpoint, running_endpoint

PROGRAM = """
.decl edge(x: symbol, y: symbol)
.decl path(x: symbol, y: symbol)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl person(id: number, name: symbol, born: date?) key(id)
.decl adult(name: symbol) virtual
adult(name) :- person(_, name, born), born < d"2008-01-01".
.decl sample(
    n: number, m: decimal(12, 2)?, f: float?, b: bool?, s: symbol?, d: date?, t: timestamp?,
    u: unsigned?)
.decl scratch(n: number)
.decl negative(n: number)
negative(n) :- scratch(n), n < 0.
.abort negative "no negative numbers: {n}"
.decl raised()
raised() :- edge("a", "b").
"""
SAMPLES = [
    (1, Decimal("2.50"), 1.5, True, "it's", date(2020, 2, 29), None, 2**64 - 1),
    (-2, Decimal("-0.01"), float("inf"), False, 'a\t"b",\\', date(1969, 7, 20), None, 0),
    (3, None, None, None, None, None, None, None),
    (4, Decimal("9999999999.99"), 0.1, True, "", date(9999, 12, 31), None, 1),
]
MOMENT = datetime(2026, 11, 16, 17, 20, 24, 250_000, tzinfo=UTC)


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """A warehouse with some relations, and its users."""
    place = tmp_path_factory.mktemp("pg") / "wh"
    with corollary.open(place, engine="local") as db:
        db.load(text=PROGRAM)
        with db.transaction() as tx:
            tx.insert("edge", [("a", "b"), ("b", "c")])
            tx.insert("person", [(1, "Ann", date(1980, 5, 1)), (2, "Bob", None)])
            tx.insert("sample", [(*row[:6], MOMENT, row[7]) for row in SAMPLES])
        db.grant("reader", "path", "person")
    users = {
        "alice": AccessRole.ADMIN,
        "writer": AccessRole.WRITE,
        "reader": AccessRole.READ,
        "passing": AccessRole.READ,
    }
    with running_endpoint(place, users) as endpoint:
        yield endpoint


@pytest.fixture
def connection(endpoint: Endpoint) -> Iterator[psycopg.Connection[Any]]:
    """A connection of the owner, which commits each statement."""
    with psycopg.connect(**endpoint.arguments(), autocommit=True) as connection:
        yield connection
