"""Functions of DataFrames: what they are lowered to has the rows and names that Spark gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import corollary
from cases.pipelines import dataframes
from support.sql.spark_values import comparable

TABLES = """
CREATE TABLE emp (id INT, name STRING, dept STRING, salary DECIMAL(10, 2), bonus DOUBLE,
                  hired DATE, boss INT);
CREATE TABLE dept (dept STRING, city STRING);
CREATE TABLE event (who INT, kind STRING, at TIMESTAMP, tags ARRAY<STRING>,
                    props MAP<STRING, INT>, place STRUCT<x: INT, y: STRING>);
"""
ROWS = {
    "emp": """
      (1, 'Ann', 'it', 90.50, 1.5, DATE '2020-01-31', NULL),
      (2, 'Bob', 'it', 50.25, NULL, DATE '2020-06-15', 1),
      (3, 'Cid', 'hr', 50.25, 2.25, DATE '2019-03-01', 1),
      (4, 'Dan', NULL, NULL, 0.0, NULL, 2),
      (5, 'Ann', 'xx', 20.00, 0.5, DATE '2021-12-31', 2),
      (6, NULL, 'hr', 70.00, CAST('NaN' AS DOUBLE), DATE '2020-02-29', NULL)""",
    "dept": "('it', 'Bern'), ('hr', 'Rome'), ('ad', NULL), (NULL, 'Oslo')",
    "event": """
      (1, 'a', TIMESTAMP '2024-05-01 10:15:00', array('a', 'b'), map('k', 1, 'l', 3),
       named_struct('x', 1, 'y', 'one')),
      (1, 'b', TIMESTAMP '2024-05-01 10:45:30', array('c', 'b', 'a'), map('l', 2),
       named_struct('x', 2, 'y', 'two')),
      (3, 'a', TIMESTAMP '2024-05-02 00:00:00', array('a', 'q'), map('k', 7),
       named_struct('x', NULL, 'y', 'none'))""",
}
FUNCTIONS = [
    each
    for name, each in inspect.getmembers(dataframes, inspect.isfunction)
    if each.__module__ == dataframes.__name__
]


@pytest.fixture(scope="module")
def both(spark: Any) -> Iterator[tuple[Any, Any]]:
    """A database and a session with the same tables."""
    database = corollary.open(None, engine="local")
    database.sql(TABLES)
    for name, rows in ROWS.items():
        database.sql(f"INSERT INTO {name} VALUES {rows}")
        types = database.sql(f"DESCRIBE {name}").rows()
        names = ", ".join(each[0] for each in types)
        casts = ", ".join(f"CAST({column} AS {type_}) AS {column}" for column, type_, *_ in types)
        frame = spark.sql(f"SELECT {casts} FROM VALUES {rows} AS t({names})")
        frame.createOrReplaceTempView(name)
    yield database, spark
    for name in ROWS:
        spark.catalog.dropTempView(name)
    database.close()


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_rows_are_those_of_spark(both: tuple[Any, Any], function: Callable[[Any], Any]) -> None:
    database, spark = both
    name = f"v_{function.__name__}"
    corollary.view(database, name=name)(function)
    answer = database.sql(f"SELECT * FROM {name}")
    theirs = function(spark)
    assert list(answer.columns) == theirs.columns
    assert sorted(map(shown, answer.rows())) == sorted(map(shown, theirs.collect()))


def shown(row: Sequence[Any]) -> str:
    """Return a row as a text by which rows are compared; a map as its entries."""
    entries = [sorted(each.items()) if isinstance(each, dict) else each for each in row]
    return str(comparable(entries))
