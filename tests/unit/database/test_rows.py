"""Rows that users pass: checked column by column as one by one, and inserted in parts."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corollary
from corollary.core.program import Relation
from corollary.core.types import (
    BOOL,
    DATE,
    FLOAT,
    NUMBER,
    SYMBOL,
    TIMESTAMP,
    UNSIGNED,
    Type,
    decimal,
)
from corollary.database.intake import operations, rows
from support.selection import examples

TYPES = (SYMBOL, NUMBER, UNSIGNED, FLOAT, decimal(5, 2), decimal(38, 2), BOOL, DATE, TIMESTAMP)
VALUES: tuple[Any, ...] = (
    *(None, "a", "é", "\ud800", 1, -1, 2**63, 2**64, 1.5, float("nan"), True, b"a", (1,)),
    *(Decimal("1.50"), Decimal("1.505"), Decimal("NaN"), Decimal(10**35), Decimal(10**37)),
    *(date(2026, 1, 2), datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 2)),  # noqa: DTZ001
)


@given(
    st.tuples(st.sampled_from(TYPES), st.booleans()),
    st.lists(st.sampled_from(VALUES), min_size=1, max_size=3),
)
@settings(max_examples=examples(300, 2000))
def test_columns_are_checked_like_rows(kind: tuple[Type, bool], values: list[Any]) -> None:
    type_ = kind[0].with_null(kind[1])
    relation = Relation("p", ("x",), (type_,), is_derived=False)
    given_rows = [(value,) for value in values]
    fits = all(rows._fits(value, type_) for value in values)
    if rows._fit_by_column(given_rows, relation):
        assert fits
    if fits:
        assert rows.check_rows(given_rows, relation) == given_rows
    else:
        with pytest.raises(corollary.InputError):
            rows.check_rows(given_rows, relation)


def test_many_rows_are_inserted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "ENCODED_MAX_ROWS", 3)
    text = ".decl p(x: number, y: symbol)\n.decl q(x: number)\nq(x) :- p(x, _).\n.output q\n"
    database = corollary.open(None, engine="local")
    database.load(text=text)
    table = pa.table({"x": [*range(10), 9], "y": ["a", "b"] * 5 + ["b"]})
    with database.transaction() as tx:
        tx.insert("p", table)
    assert len(database.relation("p")) == 10
    with database.transaction() as tx:
        tx.delete("p", table.slice(0, 7))
    assert sorted(database.relation("q").rows()) == [(7,), (8,), (9,)]
