"""The query log: what is counted, when it is noted, and that it never makes a query fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import corollary
from corollary.database.database import Database
from corollary.database.upkeep.backup import copy
from corollary.errors import ConflictError
from corollary.warehouse.catalog import query_log
from corollary.warehouse.catalog.query_log import QueryCount, logged_queries
from corollary.warehouse.warehouse import Warehouse

PROGRAM = """
.decl e(x: number, y: number)
.decl p(x: number, y: number) virtual
p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z).
"""


def opened(place: str, *, log_queries: bool = True) -> Database:
    return corollary.open(place, engine="local", log_queries=log_queries)


def counts(place: str) -> dict[str, int]:
    with opened(place, log_queries=False) as database:
        assert database._store is not None
        asked = logged_queries(database._store.warehouse.catalog)
        return {each.form: each.count for each in asked}


@pytest.fixture
def place(places: Callable[[], str]) -> str:
    found = places()
    with opened(found) as database:
        database.load(text=PROGRAM)
        with database.transaction() as transaction:
            transaction.insert("e", [(1, 2), (2, 3)])
    return found


def test_goals_are_counted_without_their_values(place: str) -> None:
    assert counts(place) == {}
    with opened(place) as database:
        for goal in ("p(1, y)", "p(2, y)", "p(x, 3)", "p(x, y)", "p(1, 2)", "e(1, _)"):
            database.query(goal)
        assert counts(place) == {}  # noted later
    assert counts(place) == {"p^bf": 2, "p^fb": 1, "p^ff": 1, "p^bb": 1, "e^bf": 1}
    with opened(place) as database:
        database.query("p(2, y)")
    assert counts(place)["p^bf"] == 3


def test_nothing_is_counted_if_asked_so(place: str) -> None:
    with opened(place, log_queries=False) as database:
        database.query("p(1, y)")
    assert counts(place) == {}


def test_it_is_noted_now_and_then(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_log, "QUERY_LOG_SECONDS", -1.0)
    with opened(place) as database:
        database.query("p(1, y)")
        assert counts(place) == {"p^bf": 1}


def test_a_log_that_cannot_be_written_is_no_matter(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object, counts: Mapping[str, int]) -> None:
        raise ConflictError(f"{len(counts)} forms")

    monkeypatch.setattr(query_log, "record_queries", fails)
    monkeypatch.setattr(query_log, "QUERY_LOG_SECONDS", -1.0)
    with opened(place) as database:
        assert database.query("p(1, y)").num_rows == 2
    assert counts(place) == {}


def test_two_processes_count_together(place: str) -> None:
    with opened(place) as one, opened(place) as other:
        one.query("p(1, y)")
        other.query("p(1, y)")
    assert counts(place) == {"p^bf": 2}


def test_a_backup_has_the_log(place: str, places: Callable[[], str], tmp_path: Path) -> None:
    """There and back, on a server as well; a log that is not there yet is none in the copy."""
    backups, restored = [tmp_path / "empty", tmp_path / "full"], places()
    for backup in backups:
        source = Warehouse.open(place, create=False)
        copy(source, backup)
        source.close()
        with opened(place) as database:
            database.query("p(1, y)")
    assert [counts(str(backup)) for backup in backups] == [{}, {"p^bf": 1}]
    source = Warehouse.open(backups[1], create=False)
    copy(source, restored)
    assert logged_queries(source.catalog)
    source.close()
    with opened(restored) as database:
        database.query("p(1, y)")
    assert counts(restored) == {"p^bf": 2}


def test_rates_begin_at_an_hour() -> None:
    assert QueryCount("p^bf", 6, 0.0, 60.0).per_hour == 6
    assert QueryCount("p^bf", 6, 0.0, 7200.0).per_hour == 3
