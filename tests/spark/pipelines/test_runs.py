"""Runs of example projects in which Spark computes some datasets."""

import math
import os
import signal
import subprocess
import time
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corollary
from corollary.errors import InputError
from corollary.pipelines.fallback import SparkFallback
from support.command_line import COMMAND, INTERRUPTED, OK, cli, of_json, put
from support.pipelines.projects import copy_project, rows_of, write_round

HOUSE = "storage/corollary"


def run(*arguments):
    result = cli("pipelines", "run", "--format", "json", *arguments)
    assert result.exit_code == OK, result.output
    return {each["dataset"]: each for each in of_json(result)["datasets"]}


def our_tables(names):
    with corollary.open(HOUSE, engine="local") as database:
        return {name: rows_of(database.relation(name).arrow()) for name in names}


def test_what_is_left_to_spark_is_computed_when_it_has_to_be(tmp_path, monkeypatch):
    root = copy_project("sensors", tmp_path)
    monkeypatch.chdir(root)
    write_round(root, 0)
    first = run()
    assert first["labels"]["refreshed"] == "Spark"
    found = our_tables(["labels", "labelled", "daily"])
    sensors = {row[-1] for row in found["daily"]}
    assert found["labels"] == sorted((f"<{each}>", each) for each in sensors)
    assert len(found["labelled"]) == len(sensors)
    assert run()["labels"]["refreshed"] == "unchanged"
    write_round(root, 1)
    second = run()
    assert (second["labels"]["refreshed"], second["labelled"]["refreshed"]) == (
        "Spark",
        "incremental",
    )
    code = root / "transformations/readings.py"
    code.write_text(code.read_text().replace('f"<{', 'f"[{'))
    assert run()["labels"]["refreshed"] == "Spark"
    assert our_tables(["labels"])["labels"][0][0].startswith("[")
    code.write_text(code.read_text().replace("name[::-1]", "name[7]"))
    result = cli("pipelines", "run")
    assert "C1728" in result.output
    assert our_tables(["labels"])["labels"][0][0].startswith("[")


def test_a_strict_dataset_is_not_left_to_spark(tmp_path, monkeypatch):
    root = copy_project("sensors", tmp_path)
    monkeypatch.chdir(root)
    write_round(root, 0)
    code = root / "transformations/readings.py"
    policy = (
        '@dp.materialized_view(table_properties={"corollary.refresh_policy": "INCREMENTAL STRICT"})'
    )
    code.write_text(
        code.read_text().replace("@dp.materialized_view\ndef labels", f"{policy}\ndef labels")
    )
    assert cli("pipelines", "run").exit_code == InputError.exit_code


VALUES = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.active()


@dp.materialized_view
def copied():
    label = F.udf(lambda name: name, "string")
    return spark.read.format("parquet").load("input/values").withColumn("label", label("name"))
"""
SCHEMA = pa.schema(
    {
        "name": pa.string(),
        "small": pa.int16(),
        "size": pa.float64(),
        "narrow": pa.float32(),
        "price": pa.decimal128(12, 2),
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "data": pa.binary(),
        "tags": pa.list_(pa.string()),
        "props": pa.map_(pa.string(), pa.int32()),
        "place": pa.struct({"x": pa.float64(), "y": pa.string()}),
        "deep": pa.list_(pa.struct({"m": pa.map_(pa.int32(), pa.map_(pa.string(), pa.int32()))})),
    }
)
NOTHING = (None,) * len(SCHEMA)
ONE = (
    "ann", 7, 0.1, 0.25, Decimal("12.50"), date(2024, 2, 29), datetime(2024, 5, 1, 10, tzinfo=UTC),
    b"\x00\xff", ["a", None], [("k", 1), ("j", None)], {"x": 1.5, "y": None},
    [{"m": [(1, [("k", None)]), (2, None)]}, None],
)  # fmt: skip


def changed(row, **values):
    return tuple(values.get(name, each) for name, each in zip(SCHEMA.names, row, strict=True))


def equal_as(row):
    """Return a row by which equal ones are equal: one NaN, no -0.0, entries of maps in order."""

    def plain(value):
        if isinstance(value, float):
            return "NaN" if math.isnan(value) else value + 0.0
        if isinstance(value, dict):
            return tuple((key, plain(each)) for key, each in sorted(value.items()))
        return tuple(map(plain, value)) if isinstance(value, list | tuple) else value

    named = dict(zip(SCHEMA.names, row, strict=True))
    named["props"] = named["props"] and sorted(named["props"])
    return plain(tuple(named.values()))


def test_only_what_changes_comes_back_from_spark(tmp_path, monkeypatch):
    root = copy_project("sensors", tmp_path)
    monkeypatch.chdir(root)
    (root / "transformations/readings.py").unlink()
    put("transformations/values.py", VALUES)
    came = []
    rows = SparkFallback._rows

    def counted(self, frame, dataset):
        came.append(found := rows(self, frame, dataset))
        return found

    monkeypatch.setattr(SparkFallback, "_rows", counted)
    nan, zero = changed(ONE, size=math.nan), changed(ONE, size=0.0, narrow=0.0)
    many = [changed(ONE, small=each) for each in range(100)]
    before = [*many, ONE, NOTHING, NOTHING, NOTHING, nan, zero]
    after = [
        *many[1:], ONE, ONE, NOTHING, changed(nan, narrow=math.nan), nan,
        changed(zero, size=-0.0, narrow=-0.0), changed(ONE, tags=[]),
        changed(ONE, place={"x": math.nan, "y": "n"}), changed(ONE, props=[("j", None), ("k", 1)]),
        changed(ONE, props=[("j", 0), ("k", 1)]), changed(ONE, deep=[{"m": [(1, [("k", 0)])]}]),
    ]  # fmt: skip
    for number, given in enumerate((before, after)):
        folder = root / "input/values"
        folder.mkdir(parents=True, exist_ok=True)
        columns = zip(*given, strict=True)
        arrays = [pa.array(each, f.type) for each, f in zip(columns, SCHEMA, strict=True)]
        pq.write_table(pa.table(arrays, schema=SCHEMA), folder / "all.parquet")
        report = run()["copied"]
        with corollary.open(HOUSE, engine="local") as database:
            table = database.relation("copied").arrow()
        assert table.column("label").equals(table.column("name"))
        found = [tuple(each.values()) for each in table.select(SCHEMA.names).to_pylist()]
        expected = Counter(map(equal_as, given))
        assert Counter(map(equal_as, found)) == expected
        if number:
            was = Counter(map(equal_as, before))
            more, less = expected - was, was - expected
            assert (report["added"], report["removed"]) == (more.total(), less.total())
            assert came[-1].num_rows == len(more) + len(less)


def below(number):
    """Return the processes that a process has started, and those that these have."""
    parents = {}
    for each in Path("/proc").iterdir():
        if each.name.isdigit() and is_there(int(each.name)):
            parents[int(each.name)] = int((each / "stat").read_text().rpartition(")")[2].split()[1])
    found = [number]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found[1:]


def is_there(number):
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(is_so, seconds):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.1)


SLOW = """lambda _: __import__("pathlib").Path("MARKER").touch() or __import__("time").sleep(900)"""


@pytest.mark.parametrize("moment", ["while Spark computes", "while Spark starts"])
def test_an_interrupt_changes_nothing_and_leaves_no_java(moment, tmp_path, monkeypatch):
    root = copy_project("sensors", tmp_path)
    monkeypatch.chdir(root)
    write_round(root, 0)
    code, marker = root / "transformations/readings.py", tmp_path / "computes"
    text = code.read_text()
    slow = SLOW.replace("MARKER", str(marker))
    code.write_text(text.replace('lambda name: f"<{name[::-1]}>"', slow))
    assert slow in code.read_text()
    command = [*COMMAND, "pipelines", "run"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: below(process.pid) or process.poll() is not None, 300)
        if moment == "while Spark computes":
            wait_until(lambda: marker.exists() or process.poll() is not None, 300)
        else:
            wait_until(lambda: len(below(process.pid)) > 1, 100)  # Java, too
        started = below(process.pid)
        assert len(started) > 1
        os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=100)
    assert process.returncode == INTERRUPTED
    assert "nothing was changed" in said
    assert "Traceback" not in said
    wait_until(lambda: not any(map(is_there, started)), 30)
    if moment == "while Spark computes":
        with corollary.open(HOUSE, engine="local") as database:
            assert database.commits == 0
        code.write_text(text)
        assert run()["labels"]["refreshed"] == "Spark"
        assert our_tables(["labels"])["labels"]
