"""Errors count where a row counts: a second row of a scalar subquery, a division by zero."""

import pytest

import corollary
from corollary.database.database import Database
from corollary.errors import EvaluationError
from support.sql_views import DECLARATIONS, lowered_view, rules_of

SCALAR = "SELECT k, (SELECT b FROM u WHERE u.a = t.a) AS b FROM t"


def opened(query: str) -> Database:
    db = corollary.open(None, engine="local")
    db.load(text=DECLARATIONS + rules_of(lowered_view(query)))
    with db.transaction() as tx:
        tx.insert("t", [(1, 1, "x"), (2, 2, "y"), (3, None, None)])
        tx.insert("u", [(1, 10)])
    return db


def insert(db: Database, *rows: tuple[int | None, int | None]) -> None:
    with db.transaction() as tx:
        tx.insert("u", list(rows))


def test_a_scalar_subquery_has_one_row_or_none() -> None:
    db = opened(SCALAR)
    assert sorted(db.relation("v").rows()) == [(1, 10), (2, None), (3, None)]
    insert(db, (None, 5), (None, 6))
    assert sorted(db.relation("v").rows()) == [(1, 10), (2, None), (3, None)]


@pytest.mark.parametrize("row", [(1, 10), (1, 11), (1, None)])
def test_a_second_row_or_copy_is_an_error(row: tuple[int, int | None]) -> None:
    db = opened(SCALAR)
    with pytest.raises(EvaluationError, match="more than one row"):
        insert(db, row)
    assert sorted(db.relation("v").rows()) == [(1, 10), (2, None), (3, None)]


def test_a_second_row_counts_only_where_the_row_counts() -> None:
    db = opened(SCALAR + " WHERE k > 1")
    insert(db, (1, 10), (1, 11))
    assert sorted(db.relation("v").rows()) == [(2, None), (3, None)]
    with pytest.raises(EvaluationError, match="more than one row"):
        insert(db, (2, 1), (2, 2))


def test_a_second_row_counts_only_in_the_arm_that_is_chosen() -> None:
    db = opened("SELECT k, CASE WHEN k > 1 THEN (SELECT b FROM u WHERE u.a = t.a) END AS b FROM t")
    insert(db, (1, 11), (2, 7))
    assert sorted(db.relation("v").rows()) == [(1, None), (2, 7), (3, None)]
    with pytest.raises(EvaluationError, match="more than one row"):
        insert(db, (2, 8))


def test_a_condition_protects_an_expression() -> None:
    db = opened("SELECT k, 10 DIV (k - 1) AS q FROM t WHERE k > 1")
    assert sorted(db.relation("v").rows()) == [(2, 10), (3, 5)]
    with pytest.raises(EvaluationError, match="division by zero"):
        opened("SELECT k, 10 DIV (k - 1) AS q FROM t")
