"""What must hold on Spark Connect, run as a program: a process has one kind of session only.

`PYTHONPATH=tests python -m support.processes.spark_connect PLACEMENT` maintains views in a session
of a local Connect server and compares them with the local engine's; `cases` runs the selection of
`tests/cases` that always runs on Spark; `documents` follows documents, in two runs; `source` reads
and writes a warehouse by `format("corollary")`.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from pyspark.sql import SparkSession

import corollary
from corollary.engines.spark.java import set_java_home
from corollary.engines.spark.session import LOCAL_SETTINGS
from support.cases.evaluation import WORKING, name_of
from support.cases.spark_evaluation import QUICK, QueryEngine, check
from support.spark.source_matrix import check_matrix
from support.streaming.spark_documents import arrive
from support.streaming.spark_documents import follow as follow_documents

PROGRAM = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl degree(x: number, n: number)
degree(x, n) :- edge(x, _), n = count : { edge(x, _) }.
.decl far(x: number, y: number)
far(x, y) :- path(x, y), !edge(x, y), x != y.
"""
VIEWS = ("path", "degree", "far")
Result = TypeVar("Result")


def main(what: str) -> None:
    """Do what is asked for in a session of a server of our own."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_TESTING"] = "1"  # any free port, since others may test at the same time
    set_java_home()
    builder = SparkSession.builder.remote("local[2]")
    for name, value in LOCAL_SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if what == "cases":
        evaluate(spark)
    elif what == "documents":
        follow(spark)
    elif what == "source":
        read_and_write(spark)
    else:
        maintain(spark, what)
    spark.stop()
    print("right")


def evaluate(spark: SparkSession) -> None:
    """Evaluate cases by queries."""
    for folder in WORKING:
        if name_of(folder) in QUICK:
            engine = QueryEngine(spark)
            with tempfile.TemporaryDirectory() as directory:
                check(folder, Path(directory), engine)
            engine.close()


def follow(spark: SparkSession) -> None:
    """Follow payments and deliveries of shops; the second run goes on where the first was."""
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        answers = [set(), {("d1", "shipped", '["o1"]')}]
        batches = (("pay", 1, ("d1", "o1")), ("ship", 1, ("d1", "o1"), ("d2", "o2")))
        for number, (function, seq, *orders) in enumerate(batches):
            rows = [
                (doc, function, seq, f"<{function}>{order}</{function}>", False)
                for doc, order in orders
            ]
            arrive(place / "arrivals", f"{number}.json", *rows)
            arrivals, warehouse = place / "arrivals", place / "warehouse"
            found = patiently(partial(follow_documents, spark, arrivals, warehouse))
            assert found["answer"] == answers[number], found
        assert found["refused"] == set()


def patiently(work: Callable[[], Result]) -> Result:
    """Do something; try again if a busy machine has kept a worker of the server from starting.

    Spark waits ten seconds for the process that receives batches, and nobody can change that.
    """
    for _ in range(4):
        try:
            return work()
        except SparkConnectGrpcException as error:
            if "failed to connect back" not in str(error):
                raise
    raise AssertionError("The worker has not started.")


def read_and_write(spark: SparkSession) -> None:
    """Write frames and streams into a warehouse, and read them there."""
    with tempfile.TemporaryDirectory() as directory:
        check_matrix(spark, Path(directory), patiently)
        path = f"{directory}/w"
        assert "t_known" in corollary.spark.attach(spark, path, "t_")
        assert spark.sql("SELECT COUNT(*) AS n FROM t_known").collect() == [(2,)]
        asked = f"SELECT * FROM corollary_query('{path}', 'edge(3, y)')"
        assert spark.sql(asked).collect() == [("c",)]


def maintain(spark: SparkSession, placement: str) -> None:
    """Maintain views while edges come and go."""
    chance = random.Random(5)
    pairs = [(chance.randrange(12), chance.randrange(12)) for _ in range(40)]
    with tempfile.TemporaryDirectory() as directory:
        there = corollary.open(f"{directory}/w", spark=spark, placement=placement)
        here = corollary.open(None, engine="local")
        for database in (there, here):
            database.load(text=PROGRAM)
        for number in range(4):
            added = set(pairs[number * 8 : number * 8 + 12])
            removed = set(chance.sample(pairs, 4)) - added
            changes = []
            for database in (there, here):
                rows: list[Any] = [sorted(added), sorted(removed)]
                if database is there:
                    rows = [spark.createDataFrame(each, "x long, y long") for each in rows]
                with database.transaction() as transaction:
                    transaction.insert("edge", rows[0])
                    transaction.delete("edge", rows[1])
                changes.append(transaction.changes)
            for name in VIEWS:
                one, two = (sorted(each.relation(name).rows()) for each in (there, here))
                assert one == two, (number, name)
                assert changes[0][name].counts == changes[1][name].counts, (number, name)
        there.close()


if __name__ == "__main__":
    main(sys.argv[1])
