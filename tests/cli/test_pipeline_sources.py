"""What projects read, and under which names: Delta tables, tables of a catalog, files of SQL."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import corollary
from support.command_line import INPUT, OK, cli, of_json, put

pytestmark = pytest.mark.integration

HOUSE = "storage/corollary"
SPEC = """
name: sources
storage: storage
{}
libraries:
  - glob:
      include: code/**
"""
HEAD = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.active()
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    put("spark-pipeline.yml", SPEC.format(""))


def run(*arguments):
    result = cli("pipelines", "run", "--format", "json", *arguments)
    assert result.exit_code == OK, result.output
    return {each["dataset"]: each for each in of_json(result)["datasets"]}


def rows(relation):
    with corollary.open(HOUSE, engine="local") as database:
        return Counter(database.relation(relation).rows())


def sales(*given):
    names = ("id", "city", "amount")
    columns = zip(*given, strict=True) if given else ((), (), ())
    types = (pa.int64(), pa.string(), pa.int32())
    return pa.table({n: pa.array(c, t) for n, c, t in zip(names, columns, types, strict=True)})


DELTA = (
    HEAD
    + """

@dp.table
def gained():
    return spark.readStream.format("delta").load("lake/sales")


@dp.materialized_view
def cities():
    frame = spark.read.format("delta").load("lake/sales")
    return frame.groupBy("city").agg(F.count("*").alias("n"), F.sum("amount").alias("amount"))
"""
)


def test_a_delta_table_is_read_by_its_log():
    put("code/all.py", DELTA)
    write_deltalake("lake/sales", sales((1, "Bern", 2), (2, "Rome", 3), (2, "Rome", 3)))
    assert run()["gained"]["added"] == 3
    assert rows("cities") == Counter([("Bern", 1, 2), ("Rome", 2, 6)])
    write_deltalake("lake/sales", sales((3, "Bern", 5)), mode="append")
    report = run()
    assert (report["gained"]["added"], report["gained"]["removed"]) == (1, 0)
    assert report["cities"]["refreshed"] == "incremental"
    assert rows("cities") == Counter([("Bern", 2, 7), ("Rome", 2, 6)])
    DeltaTable("lake/sales").delete("id = 2")
    report = run()
    assert (report["gained"]["refreshed"], report["cities"]["removed"]) == ("unchanged", 1)
    assert rows("cities") == Counter([("Bern", 2, 7)])
    assert sum(rows("gained").values()) == 4
    DeltaTable("lake/sales").optimize.compact()
    assert {each["refreshed"] for each in run().values()} == {"unchanged"}
    write_deltalake("lake/sales", sales((9, "Oslo", 1)), mode="overwrite")
    run()
    assert rows("cities") == Counter([("Oslo", 1, 1)])
    assert sum(rows("gained").values()) == 5
    run("--full-refresh", "gained")
    assert rows("gained") == Counter([(9, "Oslo", 1)])


NAMED = (
    HEAD
    + """

@dp.materialized_view
def one():
    return spark.read.table("spark_catalog.shop.sales").select("id", "city")


@dp.materialized_view(name="spark_catalog.shop.two")
def second():
    return spark.read.table("shop.one").where("id > 1")


@dp.materialized_view(name="other.three")
def third():
    return spark.read.table("spark_catalog.shop.two").union(spark.read.table("one"))
"""
)
OF_SQL = """
CREATE STREAMING TABLE four AS SELECT id, upper(city) AS city FROM STREAM spark_catalog.shop.sales;
CREATE MATERIALIZED VIEW other.five (id BIGINT, n BIGINT COMMENT 'how often')
  COMMENT 'by three' AS SELECT id, count(*) AS n FROM spark_catalog.other.three GROUP BY id;
"""


def test_names_have_schemas_and_catalogs():
    put("spark-pipeline.yml", SPEC.format("catalog: spark_catalog\nschema: shop"))
    put("code/all.py", NAMED)
    put("code/more.sql", OF_SQL)
    for _ in range(2):
        Path("spark-warehouse").mkdir(exist_ok=True)
        mode = "append" if Path("spark-warehouse/shop.db").exists() else "error"
        place = "spark-warehouse/shop.db/sales"
        write_deltalake(place, sales((1, "Bern", 2), (2, "Rome", 3)), mode=mode)
        report = run()
    assert [*report] == ["one", "two", "other.three", "four", "other.five"]
    assert rows("two") == Counter({(2, "Rome"): 2})
    assert rows("four") == Counter({(1, "BERN"): 2, (2, "ROME"): 2})
    assert rows("other.five") == Counter([(1, 2), (2, 4)])
    assert DeltaTable(f"{HOUSE}/tables/other-2e-five").to_pyarrow_table().num_rows == 2
    report = run("--refresh", "other.five,TWO")
    assert report["four"]["refreshed"] == "not asked for"
    result = cli("pipelines", "run", "--refresh", "three")
    assert (result.exit_code, "C1726" in result.output) == (INPUT, True)


def test_a_table_of_a_catalog_is_where_the_configuration_says():
    put("code/all.sql", "CREATE MATERIALIZED VIEW v AS SELECT city FROM raw.crm.sales;")
    result = cli("pipelines", "run")
    assert (result.exit_code, "C1724" in result.output) == (INPUT, True)
    put("spark-pipeline.yml", SPEC.format("configuration:\n  corollary.source.raw.crm.sales: lake"))
    write_deltalake("lake", sales((1, "Bern", 2)))
    run()
    assert rows("v") == Counter([("Bern",)])


FLOWS = """
CREATE STREAMING TABLE every;
CREATE FLOW east AS INSERT INTO every BY NAME SELECT id, city FROM STREAM(there);
CREATE FLOW west AS INSERT INTO every BY NAME SELECT city, id FROM STREAM(other.there);
CREATE TEMPORARY VIEW few AS SELECT * FROM every WHERE id < 9;
CREATE MATERIALIZED VIEW cities AS SELECT city, count(*) AS n FROM few GROUP BY city;
"""


def test_flows_of_sql_write_to_one_table():
    put("code/all.sql", FLOWS)
    put("code/notes.sql", "-- nothing but a comment\n;\n")
    for each in ("there", "other.db/there"):
        write_deltalake(f"spark-warehouse/{each}", sales((1, each, 2), (9, "far", 3)))
    run()
    assert rows("cities") == Counter([("there", 1), ("other.db/there", 1)])
    write_deltalake("spark-warehouse/there", sales((2, "there", 2)), mode="append")
    report = run("--refresh", "cities")
    assert (report["every"]["refreshed"], report["cities"]["refreshed"]) == (
        "not asked for",
        "unchanged",
    )
    assert run()["every"]["added"] == 1
    assert rows("cities") == Counter([("there", 2), ("other.db/there", 1)])
    DeltaTable("spark-warehouse/there").delete()
    run("--full-refresh-all")
    assert rows("cities") == Counter([("other.db/there", 1)])


def test_a_new_dataset_and_one_that_is_gone():
    put("code/all.sql", "CREATE MATERIALIZED VIEW a AS SELECT city FROM there;")
    write_deltalake("spark-warehouse/there", sales((1, "Bern", 2)))
    run()
    put("code/all.sql", "CREATE STREAMING TABLE b AS SELECT city FROM STREAM there;")
    assert [*run()] == ["b"]
    assert rows("b") == Counter([("Bern",)])
    with corollary.open(HOUSE, engine="local") as database:
        assert [each.name for each in database.program.declarations if each.name == "a"] == []


LAYOUTS = {
    "directories of columns": 'spark.read.parquet("in/days")',
    "several paths": 'spark.read.schema("a INT").parquet("in/one", "in/two")',
    "a pattern of directories": 'spark.read.parquet("in/o*")',
    "records over several lines": 'spark.read.option("multiLine", True).schema("a INT").json("j")',
    "schemas that are merged": 'spark.read.option("mergeSchema", True).parquet("in/one")',
    "quotes of its own": """spark.read.option("quote", "'").schema("a INT").csv("in/c")""",
}


def test_what_only_spark_reads_is_left_to_it():
    parts = [HEAD]
    for number, body in enumerate(LAYOUTS.values()):
        parts.append(f"\n\n@dp.materialized_view\ndef v{number}():\n    return {body}\n")
    put("code/all.py", "".join(parts))
    for each in ("in/days/day=1", "in/one", "in/two"):
        Path(each).mkdir(parents=True)
        pq.write_table(pa.table({"a": [1]}), f"{each}/0.parquet")
    result = cli("pipelines", "dry-run", "--format", "json")
    assert result.exit_code == OK, result.output
    reasons = [each["reason"] for each in of_json(result)["datasets"]]
    words = (
        "`column=value`",
        "several paths",
        "a pattern",
        "`multiLine`",
        "`mergeSchema`",
        "`quote`",
    )
    assert all(word in reason for word, reason in zip(words, reasons, strict=True)), reasons
