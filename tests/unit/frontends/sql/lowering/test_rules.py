"""Queries and their rules: `tests/cases/sql_rules/*.sql`, and `.dl` with a paragraph for each.

With `COROLLARY_ACCEPT=1` the `.dl` files are written anew; read their difference before use.
"""

import os
from pathlib import Path

import pytest

from support.paths import REPOSITORY
from support.sql_views import lowered_view, rules_of

CASES = sorted((REPOSITORY / "tests" / "cases" / "sql_rules").glob("*.sql"))


def _paragraph(query: str) -> str:
    view = lowered_view(query)
    keys = " ".join(f"({', '.join(map(str, sorted(key)))})" for key in view.keys)
    return f"// {query}\n// {'a bag' if view.is_bag else 'a set, keys ' + keys}\n{rules_of(view)}"


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_rules(path: Path) -> None:
    queries = path.read_text("utf-8").strip().split("\n\n")
    said = "\n".join(_paragraph(query) for query in queries)
    expected = path.with_suffix(".dl")
    if os.environ.get("COROLLARY_ACCEPT"):
        expected.write_text(said, "utf-8")
    assert said == expected.read_text("utf-8")
