"""Intervals as text, as real Spark has them (`intervals.txt`), and as columns of views."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import corollary
from corollary.errors import CorollaryError
from support.sql.corpus import FOLDER

ANSWERS = [
    tuple(line.split(" =>")) for line in (FOLDER / "intervals.txt").read_text().splitlines()[1:]
]


@pytest.fixture
def database() -> Iterator[corollary.Database]:
    with corollary.open(None, engine="local") as opened:
        opened.sql("CREATE TABLE one (k INT)")
        opened.sql("INSERT INTO one VALUES (1)")
        yield opened


def test_texts(database: corollary.Database) -> None:
    known = [(each, text.strip()) for each, text in ANSWERS if text]
    columns = ", ".join(f"CAST({each} AS STRING) AS c{at}" for at, (each, _) in enumerate(known))
    found = database.sql(f"SELECT {columns} FROM one").rows()[0]
    texts = ["None" if each is None else each for each in found]
    assert dict(zip(known, texts, strict=True)) == {each: each[1] for each in known}


@pytest.mark.parametrize("expression", [each for each, text in ANSWERS if not text])
def test_errors(database: corollary.Database, expression: str) -> None:
    with pytest.raises(CorollaryError):
        database.sql(f"SELECT {expression} AS x FROM one").rows()


def test_columns(tmp_path: Path) -> None:
    with corollary.open(str(tmp_path / "w"), engine="local") as database:
        database.sql(
            "CREATE TABLE t (k INT, d INTERVAL DAY, s INTERVAL DAY TO SECOND, m INTERVAL MONTH)"
        )
        view = (
            "SELECT k, SUM(d) AS d, AVG(s) AS s, MAX(m) AS m, d + s AS e FROM t GROUP BY k, d + s"
        )
        database.sql(f"CREATE VIEW v AS {view}")
        database.sql(
            "INSERT INTO t VALUES (1, INTERVAL 2 DAYS, INTERVAL '1 01:00:00' DAY TO SECOND, NULL),"
            " (2, NULL, INTERVAL 1 SECOND, INTERVAL '1-2' YEAR TO MONTH)"
        )
        with database.transaction() as transaction:
            transaction.insert("t", [(1, timedelta(days=2), timedelta(hours=25), 7)])
        expected = [
            (1, timedelta(4), timedelta(hours=25), 7, timedelta(3, 3600)),
            (2, None, timedelta(seconds=1), 14, None),
        ]
        assert sorted(database.relation("v").rows()) == expected
        with pytest.raises(CorollaryError), database.transaction() as transaction:
            transaction.insert("t", [(1, timedelta(hours=1), None, None)])  # no whole day
    with corollary.open(str(tmp_path / "w"), engine="local") as database:
        texts = (
            "SELECT CAST(d AS STRING) AS d, CAST(s AS STRING) AS s, CAST(m AS STRING) AS m FROM v"
        )
        assert sorted(database.sql(texts).rows(), key=str) == [
            ("INTERVAL '4' DAY", "INTERVAL '1 01:00:00' DAY TO SECOND", "INTERVAL '7' MONTH"),
            (None, "INTERVAL '0 00:00:01' DAY TO SECOND", "INTERVAL '14' MONTH"),
        ]
