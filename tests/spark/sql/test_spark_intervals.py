"""Intervals print as in real Spark, and are columns of relations on Spark."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

import corollary
from support.sql.corpus import FOLDER
from support.sql.spark_values import edge_session

pytestmark = [pytest.mark.spark, pytest.mark.long]

ANSWERS = [
    tuple(line.split(" =>")) for line in (FOLDER / "intervals.txt").read_text().splitlines()[1:]
]


def test_texts_are_those_of_spark(spark: Any) -> None:
    session = edge_session(spark)
    known = [(each, text.strip()) for each, text in ANSWERS if text]
    found = session.sql(f"SELECT {', '.join(f'CAST({each} AS STRING)' for each, _ in known)}")
    texts = list(map(str, found.collect()[0]))
    assert dict(zip(known, texts, strict=True)) == {each: each[1] for each in known}
    for expression in (each for each, text in ANSWERS if not text):
        with pytest.raises((PySparkException, Py4JError)):
            session.sql(f"SELECT {expression}").collect()


@pytest.mark.parametrize("placement", ["driver", "partitions"])
def test_columns_on_spark(spark: Any, placement: str) -> None:
    with corollary.open(None, engine="spark", spark=spark, placement=placement) as database:
        database.sql("CREATE TABLE t (k INT, d INTERVAL DAY, m INTERVAL YEAR TO MONTH)")
        view = "SELECT d, SUM(m) AS m, AVG(d) AS a, COUNT(*) AS c FROM t GROUP BY d"
        database.sql(f"CREATE MATERIALIZED VIEW v AS {view}")
        with database.transaction() as transaction:
            transaction.insert("t", [(k, timedelta(k % 3), k) for k in range(9)])
            transaction.insert("t", [(9, None, None)])
        assert sorted(database.relation("v").rows(), key=str) == sorted(
            [
                *((timedelta(at), 9 + 3 * at, timedelta(at), 3) for at in range(3)),
                (None, None, None, 1),
            ],
            key=str,
        )
        texts = "SELECT CAST(d AS STRING) AS d, CAST(m AS STRING) AS m FROM t WHERE k = 7"
        expected = [("INTERVAL '1' DAY", "INTERVAL '0-7' YEAR TO MONTH")]
        assert database.sql(texts).rows() == expected
