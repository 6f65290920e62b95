"""Example projects, by our runner and by Spark's own in a fresh catalog: the same tables."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyarrow import orc

from support.command_line import OK, cli, of_json
from support.pipelines.projects import SparkRunner, columns_of, copy_project, rows_of, write_round

HOUSE = "storage/corollary"
ROUNDS = 6
KEPT = ("materialized view", "streaming table")


def run(*arguments):
    result = cli("pipelines", "run", "--format", "json", *arguments)
    assert result.exit_code == OK, result.output
    return {each["dataset"]: each for each in of_json(result)["datasets"]}


def our_tables(names):
    tables = {each: DeltaTable(f"{HOUSE}/tables/{each}").to_pyarrow_table() for each in names}
    return {name: rows_of(table) for name, table in tables.items()}


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    found = SparkRunner(tmp_path_factory.mktemp("spark"))
    yield found
    found.stop()


@pytest.mark.slow
@pytest.mark.matrix(4)
@pytest.mark.parametrize("name", ["orders", "sensors", "customers", "regions"])
def test_tables_are_those_of_sparks_own_runner(name, runner, tmp_path, monkeypatch):
    if name == "customers" and not runner.can_merge:
        pytest.skip("AUTO CDC needs a catalog that can merge, which is compiled by javac")
    root = copy_project(name, tmp_path)
    monkeypatch.chdir(root)
    for number in range(ROUNDS):
        write_round(root, number)
        names = [key for key, each in run().items() if each["kind"] in KEPT]
        for table, expected in runner.tables(root, names).items():
            found = DeltaTable(f"{HOUSE}/tables/{table}").to_pyarrow_table()
            assert columns_of(found) == columns_of(expected), table
            assert rows_of(found) == rows_of(expected), f"{table} after round {number}"


FAR = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.active()


@dp.materialized_view
def cities():
    far = spark.read.format("orc").schema("id BIGINT, city STRING").load("input/far")
    return far.groupBy("city").count()


@dp.table
def gained():
    return spark.readStream.format("orc").schema("id BIGINT, city STRING").load("input/far")


@dp.materialized_view
def lines():
    return spark.read.format("text").load("input/notes").where("value LIKE '%a%'")


@dp.materialized_view
def quoted():
    options = {"quote": "'", "header": "true"}
    return spark.read.format("csv").options(**options).schema("a STRING, b INT").load("input/csv")


@dp.materialized_view
def days():
    return spark.read.parquet("input/days").groupBy("day").agg(F.sum("n").alias("n"))


@dp.materialized_view
def long_lines():
    return spark.read.table("lines").where(F.length("value") > 2)
"""


def test_what_only_spark_reads(tmp_path, monkeypatch):
    """Through `IO=spark` with a schema, else by Spark itself; paths begin at the project."""
    root = copy_project("orders", tmp_path)
    (root / "transformations/far.py").write_text(FAR)
    write_round(root, 0)
    for name in ("far", "notes", "csv"):
        (root / "input" / name).mkdir()
    (root / "input/notes/one.txt").write_text("a\nb\nabc\n")
    for day in (1, 2):
        (root / f"input/days/day={day}").mkdir(parents=True)
        pq.write_table(pa.table({"n": [day, 5]}), root / f"input/days/day={day}/0.parquet")
    (root / "input/csv/one.csv").write_text("a,b\n'x,y',1\n")

    def write(number, *cities):
        table = pa.table({"id": range(len(cities)), "city": cities})
        orc.write_table(table, root / f"input/far/{number}.orc")

    write(0, "Bern", "Rome", "Rome")
    monkeypatch.chdir(tmp_path)
    spec = ("--spec", "orders/spark-pipeline.yml")
    first = run(*spec)
    assert first["lines"]["refreshed"] == first["quoted"]["refreshed"] == "Spark"
    monkeypatch.chdir(root)
    found = our_tables([each for each in first if first[each]["kind"] in KEPT])
    assert found["cities"] == [("Bern", 1), ("Rome", 2)]
    assert len(found["gained"]) == 3
    assert found["lines"] == [("a",), ("abc",)]
    assert found["quoted"] == [("x,y", 1)]
    assert found["long_lines"] == [("abc",)]
    assert found["days"] == [(1, 6), (2, 7)]
    write(1, "Bern", "Oslo")
    (root / "input/notes/two.txt").write_text("data\n")
    second = run()
    assert second["cities"]["refreshed"] == second["long_lines"]["refreshed"] == "incremental"
    found = our_tables(["cities", "gained", "long_lines"])
    assert found["cities"] == [("Bern", 2), ("Oslo", 1), ("Rome", 2)]
    assert len(found["gained"]) == 5
    assert found["long_lines"] == [("abc",), ("data",)]
