"""Functions of JSON: what real Spark gives (`json.txt`), and texts at the limits of its reader."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

import corollary
from corollary.errors import EvaluationError
from support.sql.corpus import FOLDER

ANSWERS = list(map(json.loads, (FOLDER / "json.txt").read_text("utf-8").splitlines()[1:]))
CALLS = "get_json_object(j, p), json_array_length(j), json_object_keys(j)"


def answers(rows: list[tuple[str, str]], calls: str = CALLS) -> list[tuple[Any, ...]]:
    with corollary.open(None, engine="local") as db:
        db.sql("CREATE TABLE t (id INT, j STRING, p STRING)")
        texts, paths = zip(*rows, strict=True)
        with db.transaction() as transaction:
            transaction.insert("t", pa.table([range(len(rows)), texts, paths], ["id", "j", "p"]))
        found: list[tuple[Any, ...]] = db.sql(f"SELECT {calls} FROM t ORDER BY id").rows()
        return found


def test_answers_of_spark() -> None:
    found = answers([(text, path) for text, path, *_ in ANSWERS])
    assert [(*row[:2], row[2] and [*row[2]]) for row in found] == [
        tuple(each[2:]) for each in ANSWERS
    ]


@pytest.mark.parametrize(
    ("text", "is_json"),
    [
        ("[" * 1000 + "]" * 1000, True),
        ("[" * 1001 + "]" * 1001, False),
        ("[" * 100_000 + "]" * 100_000, False),
        ("[" * 999 + "{'a':1}" + "]" * 999, True),
        ("[" * 1000 + "{'a':1}" + "]" * 1000, False),
        ("-" + "1" * 1000, True),
        ("1" * 1001, False),
        ("0." + "1" * 997 + "e10", True),
        ("0." + "1" * 998 + "e10", False),
        ("{'" + "x" * 50_000 + "':1}", True),
        ("{'" + "x" * 50_001 + "':1}", False),
    ],
    ids=lambda each: f"{str(each)[:4]} {len(str(each))}",
)
def test_limits(text: str, is_json: bool) -> None:
    ((found,),) = answers([(text, "$")], "get_json_object(j, p) IS NOT NULL")
    assert found is is_json


def test_what_is_no_text_here() -> None:
    """Spark has texts with the character 0."""
    escaped = '["\\u0000"]'
    assert answers([(escaped, "$")], "get_json_object(j, p)") == [(escaped,)]
    with pytest.raises(EvaluationError):
        answers([(escaped, "$[0]")])
