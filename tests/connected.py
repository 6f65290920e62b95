"""What must hold on Spark Connect, run as a program: a process has one kind of session only.

`python tests/connected.py PLACEMENT` maintains views in a session of a local Connect server and
compares them with what the local engine gives; `python tests/connected.py cases` runs the selection
of `tests/cases` there that `make test` runs on Spark.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

import corollary
from corollary.engines.spark.engine import SparkEngine
from test_cases import WORKING, name_of
from test_spark_cases import FILES, QUICK, check

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


def main(what: str) -> None:
    """Do what is asked for in a session of a server of our own."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    if what == "cases":
        evaluate(spark)
    else:
        maintain(spark, what)
    spark.stop()
    print("right")


def evaluate(spark: SparkSession) -> None:
    """Evaluate cases, some of them with every result in files."""
    for folder in WORKING:
        for small, chosen in ((None, QUICK), (0, FILES)):
            if name_of(folder) in chosen:
                engine = SparkEngine(spark) if small is None else SparkEngine(spark, small=small)
                with tempfile.TemporaryDirectory() as directory:
                    check(folder, Path(directory), engine)
                engine.close()


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
                with database.transaction() as transaction:
                    transaction.insert("edge", sorted(added))
                    transaction.delete("edge", sorted(removed))
                changes.append(transaction.changes)
            for name in VIEWS:
                one, two = (sorted(each.relation(name).rows()) for each in (there, here))
                assert one == two, (number, name)
                assert changes[0][name].counts == changes[1][name].counts, (number, name)
        there.close()


if __name__ == "__main__":
    main(sys.argv[1])
