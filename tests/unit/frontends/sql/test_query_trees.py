"""Queries and their trees: `tests/cases/sql_trees/*.sql`, and `.tree` with a paragraph for each.

With `COROLLARY_ACCEPT=1` the `.tree` files are written anew; read their difference before use.
"""

import os
from pathlib import Path

import pytest

from support.paths import REPOSITORY
from support.query_text import bind_text, query_text

CASES = sorted((REPOSITORY / "tests" / "cases" / "sql_trees").glob("*.sql"))
PARAMETERS = {"k": 5}


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_trees(path: Path) -> None:
    queries = path.read_text("utf-8").strip().split("\n\n")
    found = [f"{query}\n=> {query_text(bind_text(query, PARAMETERS))}\n" for query in queries]
    said = "\n".join(found)
    expected = path.with_suffix(".tree")
    if os.environ.get("COROLLARY_ACCEPT"):
        expected.write_text(said, "utf-8")
    assert said == expected.read_text("utf-8")
