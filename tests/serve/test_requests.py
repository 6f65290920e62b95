"""Requests of JSON objects, cursors and conditions: what is accepted, and what is refused."""

from typing import Any

import pytest

from corollary.errors import InputError, UnknownOutcomeError, WarehouseError
from corollary.serve.handlers.cursors import Cursor, parse_cursor
from corollary.serve.handlers.failures import service_error
from corollary.serve.requests import (
    ApplyRequest,
    EventsRequest,
    QueryRequest,
    SqlRequest,
    parse_request,
    request_as_json,
    request_kinds,
)


@pytest.mark.parametrize(
    "request_",
    [
        QueryRequest("p(x)", at=3, limit=5, order=("x desc",), min_commit=4),
        SqlRequest("SELECT :a", {"a": 1}, at="2026-11-15"),
        ApplyRequest("{}", alone=True, idempotency_key="k"),
        EventsRequest(("p", "q"), alerts=True, since=0),
    ],
)
def test_requests_travel_as_json(request_: Any) -> None:
    assert parse_request(type(request_), request_as_json(request_)) == request_


def test_every_kind_of_request_has_a_handler() -> None:
    from corollary.serve.handlers.dispatch import HANDLERS

    kinds = request_kinds()
    assert {kinds[name].__name__ for name in kinds} - {each.__name__ for each in HANDLERS} == {
        "EventsRequest"
    }


@pytest.mark.parametrize(
    ("fields", "cure"),
    [
        ({}, "needs the field `goal`"),
        ({"goal": 1}, "has to be a text"),
        ({"goal": "p(x)", "gaol": 1}, "did you mean `goal`"),
        ({"goal": "p(x)", "limit": "3"}, "has to be a number or null"),
        ({"goal": "p(x)", "limit": True}, "has to be a number or null"),
        ({"goal": "p(x)", "order": "x"}, "has to be a list of texts"),
        ({"goal": "p(x)", "order": [1]}, "has to be a list of texts"),
        ({"goal": "p(x)", "arrow": 1}, "has to be true or false"),
    ],
)
def test_fields_that_do_not_fit_are_refused(fields: dict[str, Any], cure: str) -> None:
    with pytest.raises(InputError, match="C1600") as found:
        parse_request(QueryRequest, fields)
    assert cure in str(found.value)


def test_a_cursor_belongs_to_its_question() -> None:
    asked = QueryRequest("p(x)", limit=10)
    text = Cursor(7, 10).encode(asked)
    assert parse_cursor(text, QueryRequest("p(x)", limit=20)) == Cursor(7, 10)
    for cursor, question in (
        (text, QueryRequest("q(x)")),
        (text[:-2], asked),
        ("", asked),
        ("é", asked),
        ("bnVsbA", asked),
    ):
        with pytest.raises(InputError, match="C1603"):
            parse_cursor(cursor, question)


def test_files_of_the_warehouse_concern_the_operator_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    error = WarehouseError.of("C0931", "The file `/srv/secret/data/4.parquet` is damaged.")
    told = service_error(error)
    assert (told.status, told.diagnostics[0]["code"]) == (500, "C0931")
    assert "/srv" not in told.message
    assert "/srv" not in str(told.as_json())
    assert "/srv/secret/data/4.parquet" in caplog.text
    assert "/srv" in str(service_error(error, is_for_operator=True).as_json())


def test_an_outcome_that_is_not_known_says_so() -> None:
    told = service_error(UnknownOutcomeError.of_commit("postgresql://db.internal/w", 7, None))
    assert told.status == 503
    assert "not known" in told.message
    assert "db.internal" not in str(told.as_json())
