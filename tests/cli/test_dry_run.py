"""`corollary pipelines dry-run`: all of a project is checked, quickly and without Java."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from pathlib import Path

import pytest

from support.command_line import COMMAND

pytestmark = pytest.mark.integration

SECONDS_MAX = 6.0
"""Of the processor; 3 on a machine that does nothing else."""
SPEC = "name: big\nstorage: storage\nlibraries:\n  - glob:\n      include: code/**\n"
BEGIN = """\
from pyspark import pipelines as dp
from pyspark.sql import SparkSession, Window, functions as F

spark = SparkSession.active()


@dp.table
def bronze():
    schema = "id INT, city STRING, amount DECIMAL(10, 2), day DATE"
    return spark.readStream.format("csv").schema(schema).load("data/orders")
"""
VIEW = """

@dp.materialized_view
def view{number}():
    df = spark.read.table("{source}").filter(F.col("amount") > {number})
    window = Window.partitionBy("city").orderBy(F.desc("amount"), "id")
    totals = df.groupBy("city").agg(F.sum("amount").alias("total"), F.count("*").alias("n"))
    df = df.join(totals, "city", "left").withColumn("place", F.row_number().over(window))
    return df.filter("place <= 3").select("id", "city", "amount", "day")
"""


def project(place: Path, text: str) -> Path:
    (place / "code").mkdir()
    (place / "data" / "orders").mkdir(parents=True)
    (place / "spark-pipeline.yml").write_text(SPEC)
    (place / "code" / "all.py").write_text(text)
    return place


def dry_run(place: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the command where no Java can be found."""
    environment = {**os.environ, "JAVA_HOME": str(place / "nowhere"), "PATH": str(place)}
    return subprocess.run(
        [*COMMAND, "pipelines", "dry-run", *options],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_thirty_datasets_in_seconds_without_java(tmp_path: Path) -> None:
    sources = ["bronze"] * 5 + [f"view{number}" for number in range(24)]
    views = [VIEW.format(number=n, source=each) for n, each in enumerate(sources)]
    place = project(tmp_path, BEGIN + "".join(views))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = dry_run(place, "--format", "json")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    datasets = json.loads(done.stdout)["datasets"]
    assert len(datasets) == 30
    assert {each["refreshed"] for each in datasets[1:]} == {"maintained"}
    assert not (place / "storage").exists()
    assert after.ru_utime - before.ru_utime < SECONDS_MAX


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    mistakes = """

@dp.materialized_view
def one():
    return spark.table("bronze").select("nothing")


@dp.materialized_view
def two():
    return spark.table("bronze").groupBy("city").agg(F.sum("totl"))


@dp.materialized_view
def three():
    return spark.table("one")
"""
    done = dry_run(project(tmp_path, BEGIN + mistakes))
    assert done.returncode == 1
    assert done.stderr.count("error[C1303]") == 2
    assert "code/all.py:15:12" in done.stderr
    assert "code/all.py:20:54" in done.stderr


def test_what_is_left_to_spark_is_listed(tmp_path: Path) -> None:
    left = """

@dp.materialized_view
def some():
    return spark.table("bronze").sample(0.5)
"""
    done = dry_run(project(tmp_path, BEGIN + left), "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["datasets"][1]
    assert (found["dataset"], found["reason"]) == ("some", "A sample is computed by Spark.")
