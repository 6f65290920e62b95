"""Generated texts as values, parameters, and names of columns and views come back unharmed."""

from __future__ import annotations

import pytest

import corollary
from support.selection import examples, seed_of_run
from support.sql.nasty_text import identifier, literal, nasty_texts

COUNT = examples(500, 10_000)
NAMES = examples(30, 3_000)
ASKED = examples(10, 500)
BATCH = 250
WIDTH = 30
"""Columns of a table."""

TEXTS = nasty_texts(seed_of_run(), COUNT)


@pytest.fixture
def database() -> corollary.Database:
    with corollary.open(None, engine="local") as opened:
        opened.sql("CREATE TABLE x (k INT PRIMARY KEY, s STRING);")
        yield opened


def fill(database: corollary.Database) -> None:
    with database.transaction() as transaction:
        transaction.insert("x", list(enumerate(TEXTS)))


def test_values_come_back_through_a_view(database: corollary.Database) -> None:
    database.sql("CREATE MATERIALIZED VIEW v AS SELECT s, COUNT(*) AS c FROM x GROUP BY s;")
    fill(database)
    assert sorted(database.relation("v").rows()) == sorted((text, 1) for text in TEXTS)


def test_literals_are_the_texts_they_say(database: corollary.Database) -> None:
    for first in range(0, COUNT, BATCH):
        rows = [
            f"({first + at}, {literal(text)})"
            for at, text in enumerate(TEXTS[first : first + BATCH])
        ]
        database.sql(f"INSERT INTO x VALUES {', '.join(rows)}")
    assert sorted(database.relation("x").rows()) == list(enumerate(TEXTS))


def test_literals_in_views_are_the_texts_they_say(database: corollary.Database) -> None:
    fill(database)
    for first in range(0, min(COUNT, 4 * BATCH), BATCH):
        chosen = TEXTS[first : first + BATCH]
        listed = ", ".join(literal(text) for text in chosen)
        name = f"v{first}"
        database.sql(f"CREATE VIEW {name} AS SELECT k FROM x WHERE s IN ({listed});")
        found = sorted(database.relation(name).rows())
        assert found == [(first + at,) for at in range(len(chosen))]


def test_parameters_are_values_and_nothing_else(database: corollary.Database) -> None:
    fill(database)
    for at, text in list(enumerate(TEXTS))[:ASKED]:
        assert list(database.sql("SELECT k FROM x WHERE s = :s", s=text).rows()) == [(at,)], text


def test_columns_keep_their_names() -> None:
    names = nasty_texts(seed_of_run() + 1, NAMES, is_name=True)
    for first in range(0, NAMES, WIDTH):
        chosen = names[first : first + WIDTH]
        columns = ", ".join(f"{identifier(name)} INT" for name in chosen)
        listed = ", ".join(identifier(name) for name in reversed(chosen))
        with corollary.open(None, engine="local") as database:
            database.sql(f"CREATE TABLE x ({columns}, PRIMARY KEY ({identifier(chosen[0])}));")
            database.sql(f"CREATE MATERIALIZED VIEW v AS SELECT {listed} FROM x;")
            with database.transaction() as transaction:
                transaction.insert("x", [tuple(range(len(chosen)))])
            found = database.relation("v").arrow()
            assert found.column_names == chosen[::-1]
            assert found.to_pylist() == [{name: at for at, name in enumerate(chosen)}]
            asked = database.sql(f"SELECT {listed} FROM v")
            assert list(asked.columns) == chosen[::-1]


@pytest.mark.slow
def test_views_keep_their_names() -> None:
    names = nasty_texts(seed_of_run() + 2, NAMES, is_name=True)
    for first in range(0, NAMES, WIDTH):
        chosen = [name for name in names[first : first + WIDTH] if name.casefold() != "x"]
        with corollary.open(None, engine="local") as database:
            database.sql("CREATE TABLE x (k INT, s STRING);")
            kinds = ("VIEW", "MATERIALIZED VIEW")
            database.sql(
                "\n".join(
                    f"CREATE {kinds[at % 2]} {identifier(name)} AS SELECT k + {at} AS k FROM x;"
                    for at, name in enumerate(chosen)
                )
            )
            with database.transaction() as transaction:
                transaction.insert("x", [(1, "a"), (1, "b")])
            for at, name in enumerate(chosen):
                assert list(database.relation(name).rows()) == [(1 + at,)] * 2, name
                asked = database.sql(f"SELECT k FROM {identifier(name)}")
                assert list(asked.rows()) == [(1 + at,)] * 2, name
