"""`corollary pipelines run` and `explain` on the example projects, without Spark."""

from __future__ import annotations

import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

import corollary
from support.command_line import INPUT, OK, cli, of_json, put, tree
from support.pipelines.projects import copy_project, write_round

pytestmark = pytest.mark.integration

HOUSE = "storage/corollary"


@pytest.fixture
def project(tmp_path, monkeypatch):
    def enter(name):
        root = copy_project(name, tmp_path)
        monkeypatch.chdir(root)
        return root

    return enter


def run(*arguments):
    result = cli("pipelines", "run", "--format", "json", *arguments)
    assert result.exit_code == OK, result.output
    return {"commit": (found := of_json(result))["commit"], "changed": found["changed"]} | {
        each["dataset"]: each for each in found["datasets"]
    }


def rows(relation, place=HOUSE):
    with corollary.open(place, engine="local") as database:
        return Counter(database.relation(relation).rows())


def orders_of(root):
    """The orders of all files, and the city of each customer, read by the standard library."""
    import json

    lines = [
        json.loads(line)
        for file in sorted((root / "input/orders").iterdir())
        for line in file.read_text().splitlines()
    ]
    towns = dict(
        line.split(",") for line in (root / "input/customers/all.csv").read_text().split("\n")[1:-1]
    )
    return lines, towns


def test_orders_round_by_round(project):
    root = project("orders")
    for number in range(6):
        write_round(root, number)
        report = run()
        assert report["commit"] == number + 1
        lines, towns = orders_of(root)
        good = [each for each in lines if each["customer"] and each["quantity"] > 0]
        assert rows("orders_silver") == Counter(
            (
                *(each[name] for name in ("order_id", "customer", "item", "quantity")),
                each["quantity"] * each["price"],
            )
            for each in good
        )
        assert sum(rows("orders_rejected").values()) == len(lines) - len(good)
        found = {}
        for each in good:
            city = towns.get(each["customer"], "Unknown").upper()
            count, items, money = found.get(city, (0, 0, 0.0))
            money += each["quantity"] * each["price"]
            found[city] = (count + 1, items + each["quantity"], money)
        assert rows("revenue_by_city") == Counter(
            (city, count, items, round(money, 2)) for city, (count, items, money) in found.items()
        )
        latest = {}
        for each in good:
            latest[each["customer"]] = max(
                latest.get(each["customer"], (0, "")), (each["order_id"], each["item"])
            )
        assert rows("latest_orders") == Counter((who, *last) for who, last in latest.items())
        assert (report["orders_bronze"]["added"], report["orders_bronze"]["removed"]) == (12, 0)
    assert not run()["changed"]
    assert report["revenue_by_city"]["refreshed"] == "incremental"


def test_flows_keep_their_place_when_others_run(project):
    root = project("orders")
    write_round(root, 0)
    run()
    write_round(root, 1)
    report = run("--refresh", "orders_bronze")
    assert report["orders_bronze"]["added"] == 12
    assert report["orders_silver"]["refreshed"] == "not asked for"
    before = rows("orders_silver")
    report = run()
    assert report["orders_bronze"]["refreshed"] == "unchanged"
    assert rows("orders_silver") > before
    found = rows("orders_silver")
    report = run("--full-refresh", "orders_silver")
    assert report["orders_silver"]["refreshed"] == "recomputed"
    assert rows("orders_silver") == found
    run("--full-refresh-all")
    assert rows("orders_silver") == found


def test_rows_of_streaming_tables_stay_when_files_go_and_code_changes(project):
    root = project("orders")
    write_round(root, 0)
    run()
    before = rows("orders_silver")
    (root / "input/orders/0.json").unlink()
    write_round(root, 1)
    silver = root / "transformations/silver.py"
    silver.write_text(silver.read_text().replace('"quantity") * F', '"quantity") * -1 * F'))
    run()
    found = rows("orders_silver")
    assert before <= found
    assert all(row[-1] <= 0 for row in found - before)
    run("--full-refresh-all")
    assert all(row[-1] <= 0 for row in rows("orders_silver"))


def changes_of(root):
    import json

    return [
        [json.loads(line) for line in file.read_text().splitlines()]
        for file in sorted((root / "input/changes").iterdir())
    ]


def test_customers_follow_a_feed_of_changes(project):
    root = project("customers")
    for number in range(6):
        write_round(root, number)
        run()
        held = {}
        for event in (each for batch in changes_of(root) for each in batch):
            held[event["id"], event["version"]] = event
        now, history = {}, []
        for key, version in sorted(held):
            event = held[key, version]
            is_gone = event["operation"] == "DELETE"
            last = now.get(key)
            goes_on = last and not is_gone and last[2] == event["city"]
            if last and not goes_on:
                history.append((*last, version))
            now[key] = None if is_gone else (key, event["name"], event["city"], version)
            if goes_on:
                now[key] = (*now[key][:3], last[3])
        current = [each for each in now.values() if each]
        assert rows("customers") == Counter(each[:3] for each in current)
        assert rows("customer_history") == Counter([*history, *((*each, None) for each in current)])
    assert not run()["changed"]


def test_a_sink_gets_a_file_for_each_run(project):
    root = project("orders")
    put(
        "transformations/sink.py",
        """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

dp.create_sink("export", "json", {"path": "exported"})


@dp.append_flow(target="export")
def exported():
    return SparkSession.active().readStream.table("orders_silver").select("order_id")
""",
    )
    for number in range(2):
        write_round(root, number)
        run()
    run()
    files = sorted(Path("exported").iterdir())
    assert [each.name for each in files] == ["part-00000001.jsonl", "part-00000002.jsonl"]
    lines = [line for each in files for line in each.read_text().splitlines()]
    assert len(lines) == sum(rows("orders_silver").values())


CLOCK = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.active()


@dp.table
def stamped():
    orders = spark.readStream.table("orders_bronze").withColumn("read_at", F.current_timestamp())
    is_later = F.now() > F.col("read_at")
    return orders.select("order_id", "read_at", F.current_date().alias("day"), is_later)
"""
CLOCK_SQL = """
CREATE STREAMING TABLE dated AS
SELECT order_id, current_timestamp() AS at, current_date AS day FROM STREAM orders_bronze
WHERE current_date() > DATE '2020-01-01';
"""


def test_the_time_of_a_flow_is_that_of_its_run(project):
    root = project("orders")
    put("transformations/clock.py", CLOCK)
    put("transformations/clock.sql", CLOCK_SQL)
    times = []
    for number in range(2):
        write_round(root, number)
        before = datetime.now(UTC)
        run()
        times.append((before, datetime.now(UTC)))
    for name in ("stamped", "dated"):
        found = {}
        for order, at, day, *more in rows(name):
            assert day == at.date()
            assert more in ([], [False])
            found.setdefault(order // 100, set()).add(at)
        for number, (before, after) in enumerate(times):
            (at,) = found[number]
            assert before <= at <= after
    assert not run()["changed"]


def test_explain_says_how(project):
    root = project("customers")
    write_round(root, 0)
    result = cli("pipelines", "explain", "--format", "json")
    found = {each["dataset"]: each["refreshed"] for each in of_json(result)["datasets"]}
    assert found["customers"] == "AUTO CDC of type 1"
    assert found["customer_history"] == "AUTO CDC of type 2"
    assert found["moves"] == "maintained"
    assert found["customer_changes"] == "appended to by 1 flow"


HEAD = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.active()


@dp.materialized_view
def wrong():
    return """
ORDERS = 'spark.read.table("orders_silver")'
STREAM = 'spark.readStream.table("orders_silver")'
STREAMED = HEAD.replace("materialized_view", "table") + STREAM
CIRCLE_OF_SUMS = """
CREATE MATERIALIZED VIEW one {} AS
  SELECT item, sum(quantity) AS quantity FROM two GROUP BY item;
CREATE MATERIALIZED VIEW two {} AS
  SELECT item, quantity FROM orders_silver UNION SELECT item, quantity FROM one;
"""
FUNCTION = 'F.udf(lambda x: x, "string")("item")'
STRICT = 'table_properties={"corollary.refresh_policy": "incremental strict"}'
COLUMNS = "(item STRING, quantity BIGINT)"
CHANGES = """
from pyspark import pipelines as dp

dp.create_streaming_table("wrong")
dp.create_auto_cdc_flow(
    target="wrong", source="orders_bronze", keys=["id"], sequence_by="order_id")
"""
SINK = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

dp.create_sink("far", "kafka", {"topic": "t"})


@dp.append_flow(target="far")
def sent():
    return SparkSession.active().readStream.table("orders_silver")
"""
WRONG = {
    "a missing table": (HEAD + 'spark.read.table("nowhere")', "C1724", "10:12"),
    "a missing table of SQL": (
        "CREATE MATERIALIZED VIEW wrong AS\nSELECT * FROM\n  nowhere;", "C1724", "3:3",
    ),
    "a missing column": (HEAD + f'{ORDERS}.select("itm")', "C1303", "10:12"),
    "types that do not fit": (
        HEAD + f'{ORDERS}.where(F.col("item") > F.col("quantity") + F.array())', "C1307", "10:68",
    ),
    "types of SQL": (
        "CREATE VIEW wrong AS\nSELECT quantity + array(1) AS n FROM orders_silver;", "C1307", "2:8",
    ),
    "collect() at import": (f"{HEAD}{ORDERS}\n\nrows = {ORDERS}.collect()", "C1702", "12:8"),
    "collect() in a function": (
        HEAD + f"{ORDERS}.limit(len({ORDERS}.collect()))", "C1702", "10:56",
    ),
    "an endless wait": (
        HEAD + f"{ORDERS}.writeStream.start().awaitTermination()", "C1702", "10:12",
    ),
    "a circle through sums": (CIRCLE_OF_SUMS.format(COLUMNS, COLUMNS), "C1351", "3:47"),
    "a circle without columns": (CIRCLE_OF_SUMS.format("", ""), "C1705", "2:26"),
    "a function in Python for a stream": (
        STREAMED + f".select({FUNCTION})", "C1710", "10:59",
    ),
    "a function in Python where none may be": (
        HEAD.replace("_view", f"_view({STRICT})") + f"{ORDERS}.select({FUNCTION})",
        "C1710",
        "10:53",
    ),
    "a stream that is grouped": (STREAMED + '.groupBy("item").count()', "C1721", "8:1"),
    "a flow without a stream": (
        "CREATE STREAMING TABLE wrong AS SELECT * FROM orders_silver", "C1721", "1:24",
    ),
    "a column that the schema lacks": (
        "CREATE MATERIALIZED VIEW wrong (n INT) AS SELECT quantity FROM orders_silver",
        "C1721",
        "1:26",
    ),
    "a view as a stream": (
        STREAMED.replace("orders_silver", "best_items"), "C1721", "8:1",
    ),
    "the file of a row that is streamed": (
        STREAMED.replace("silver", "bronze") + '.withColumn("file", F.input_file_name())',
        "C1721",
        "",
    ),
    "the path of a row that is streamed": (
        STREAMED.replace("silver", "bronze") + '.withColumn("file", F.col("_metadata.file_path"))',
        "C1721",
        "",
    ),
    "a key that is not there": (CHANGES, "C1722", "5:1"),
    "a far sink": (SINK, "C1727", "5:1"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_project_changes_nothing(project, name):
    text, code, position = WRONG[name]
    root = project("orders")
    write_round(root, 0)
    run()
    before = tree(HOUSE)
    write_round(root, 1)
    kind = "sql" if text.lstrip().startswith("CREATE ") else "py"
    file = put(f"transformations/more.{kind}", text)
    result = cli("pipelines", "run")
    assert result.exit_code == INPUT, result.output
    assert f"error[{code}" in result.output
    assert f"--> transformations/more.{kind}:{position}" in result.output
    assert tree(HOUSE) == before
    file.unlink()
    assert run()["commit"] == 2


def test_wrong_names_and_events_without_keys(project):
    root = project("customers")
    write_round(root, 0)
    result = cli("pipelines", "run", "--refresh", "custmers")
    assert result.exit_code == INPUT
    assert "C1726" in result.output
    assert "`customers`" in result.output
    put("input/changes/9.json", '{"id": null, "version": 1, "operation": "UPSERT"}\n')
    result = cli("pipelines", "run")
    assert result.exit_code == INPUT
    assert "C1720" in result.output
    Path("input/changes/9.json").unlink()
    assert run()["commit"] == 1


def test_a_flow_whose_commits_are_gone_has_to_begin_anew(project):
    root = project("orders")
    for number in range(3):
        write_round(root, number)
        run("--refresh", "orders_bronze,orders_silver" if not number else "orders_bronze")
    result = cli("gc", HOUSE, "--keep-commits", "1")
    assert result.exit_code == OK, result.output
    result = cli("pipelines", "run")
    assert result.exit_code == INPUT
    assert "C1723" in result.output
    run("--full-refresh", "orders_silver,orders_rejected")


def test_the_tables_are_published(project):
    from deltalake import DeltaTable

    root = project("orders")
    write_round(root, 0)
    run()
    table = DeltaTable(f"{HOUSE}/tables/orders_silver").to_pyarrow_table()
    assert table.num_rows == sum(rows("orders_silver").values())
    shutil.rmtree(HOUSE)


def test_the_report_is_kept_with_its_commit(project):
    from corollary.database.database import warehouse_of
    from corollary.database.history import pipeline_report

    root = project("orders")
    write_round(root, 0)
    report = run()
    with corollary.open(HOUSE, engine="local") as database:
        warehouse = warehouse_of(database)
        kept = {each["dataset"]: each for each in pipeline_report(warehouse, 1)}
        assert kept == {name: report[name] for name in kept}
        assert pipeline_report(warehouse, 2) == []


CIRCLE = """
CREATE MATERIALIZED VIEW steps AS SELECT * FROM VALUES (1, 2), (2, 3), (5, 6) AS t(a, b);
"""
VIEWS = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()


@dp.materialized_view(schema="a INT, b INT")
def reached():
    return spark.sql(
        "SELECT a, b FROM steps UNION SELECT f.a, s.b FROM further f JOIN steps s ON f.b = s.a"
    )


@dp.materialized_view(schema="a INT, b INT")
def further():
    return spark.sql("SELECT b AS a, b FROM steps UNION SELECT a, b FROM reached")
"""


def test_a_circle_of_views_is_a_fixpoint(project):
    root = project("orders")
    write_round(root, 0)
    put("transformations/circle.sql", CIRCLE)
    put("transformations/circle.py", VIEWS)
    result = cli("pipelines", "explain")
    assert "maintained, as the least fixpoint with further" in " ".join(result.output.split())
    run()
    assert set(rows("reached")) == {(1, 2), (2, 3), (5, 6), (1, 3)}
    assert set(rows("further")) == {*rows("reached"), (2, 2), (3, 3), (6, 6)}
    file = put("transformations/circle.sql", CIRCLE.replace("(5, 6)", "(3, 4)"))
    assert file.exists()
    run()
    assert set(rows("reached")) == {(1, 2), (2, 3), (3, 4), (1, 3), (2, 4), (1, 4)}


ORC = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

@dp.materialized_view(table_properties={"corollary.refresh_policy": "incremental strict"})
def far():
    return SparkSession.active().read.format("orc").load("input/far")
"""


def test_only_spark_knows_the_columns_of_some_sources(project):
    root = project("orders")
    write_round(root, 0)
    put("transformations/far.py", ORC)
    result = cli("pipelines", "run")
    assert result.exit_code == INPUT
    assert "C1711" in result.output
