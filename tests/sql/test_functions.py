"""Functions as real Spark has them (`functions.txt`), and what they refuse of rows."""

from __future__ import annotations

import pytest

import corollary
from corollary.errors import EvaluationError
from support.sql.corpus import FOLDER

ANSWERS = [
    tuple(line.split(" => ")) for line in (FOLDER / "functions.txt").read_text().splitlines()[1:]
]
TOGETHER = 100


@pytest.mark.parametrize("start", range(0, len(ANSWERS), TOGETHER))
def test_texts(start: int) -> None:
    answers = ANSWERS[start : start + TOGETHER]
    columns = ", ".join(f"CAST({each} AS STRING) AS c{at}" for at, (each, _) in enumerate(answers))
    with corollary.open(None, engine="local") as database:
        (found,) = database.sql(f"SELECT {columns}").rows()
    texts = ["None" if each is None else each for each in found]
    assert dict(zip(answers, texts, strict=True)) == {each: each[1] for each in answers}


@pytest.mark.parametrize(
    "expression", ["hmac(s, s)", "regexp_extract_all(concat(s, '😀'), 'a*', 0)"]
)
def test_rows_without_a_value(expression: str) -> None:
    with corollary.open(None, engine="local") as database:
        database.sql("CREATE TABLE t (s STRING)")
        database.sql("INSERT INTO t VALUES ('')")
        with pytest.raises(EvaluationError):
            database.sql(f"SELECT {expression} AS x FROM t").rows()
