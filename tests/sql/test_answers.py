"""Questions with known answers, asked as questions and stored as views, with and without bulk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.errors import CorollaryError
from support.generators.sql_queries import BULK_MODES

FOLDER = Path(__file__).parent
ROWS = """
INSERT INTO t VALUES (1, 1, 5, 'a'), (2, 2, NULL, 'b'), (3, NULL, 5, NULL);
INSERT INTO u VALUES (1, 5), (1, 6), (3, 5);
INSERT INTO item (id, price, qty) VALUES (1, 10.00, 3);
INSERT INTO sale (item, amount) VALUES (1, 4.00), (1, 6.00);
"""


def read_cases() -> Iterator[tuple[str, list[str]]]:
    """Yield queries, each with the rows or the error that are expected."""
    for block in (FOLDER / "answers.sql").read_text("utf-8").split("\n\n"):
        lines = block.strip().splitlines()
        query = "\n".join(line for line in lines if not line.startswith("--"))
        expected = [
            line.removeprefix("-- ").removeprefix("= ")
            for line in lines
            if line.startswith(("-- = ", "-- error "))
        ]
        if query:
            yield query, expected


@contextmanager
def opened(bulk: str) -> Iterator[corollary.Database]:
    with corollary.open(None, engine="local", bulk=bulk) as database:
        database.sql((FOLDER / "tables.sql").read_text("utf-8") + ROWS)
        yield database


def answer(database: corollary.Database, query: str, view: str | None = None) -> Counter[str]:
    """Return the rows of a query, or of a view that has it, as text; or its error."""
    try:
        if view is not None:
            database.sql(f"CREATE MATERIALIZED VIEW {view} AS {query}")
        rows = database.sql(query if view is None else f"SELECT * FROM {view}").rows()
    except CorollaryError as error:
        return Counter([f"error {error.diagnostics[0].code}"])
    return Counter(" | ".join(map(_shown, row)) for row in rows)


def _shown(value: Any) -> str:
    return "NULL" if value is None else str(value)


@pytest.mark.slow
@pytest.mark.parametrize("bulk", BULK_MODES)
def test_answers(bulk: str) -> None:
    with opened(bulk) as database:
        for number, (query, expected) in enumerate(read_cases()):
            assert answer(database, query) == Counter(expected), query
            assert answer(database, query, f"v{number}") == Counter(expected), query
