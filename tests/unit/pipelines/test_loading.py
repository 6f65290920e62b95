"""Loading and lowering of projects: what they define, and what is wrong with them, without Java."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import dedent

import pytest

from corollary.errors import InputError
from corollary.frontends.sql.query_tree import QueryColumn
from corollary.pipelines.dry_run import compile_dry
from corollary.pipelines.graph import (
    BinderQuery,
    DatasetKind,
    ExternalSource,
    LoweredProject,
    Project,
    SparkQuery,
)
from corollary.pipelines.lowering.lower import lower_project
from corollary.pipelines.project import columns_of_ddl, load_project

HEAD = """\
from pyspark import pipelines as dp
from pyspark.sql import SparkSession, Window, functions as F
spark = SparkSession.active()
"""
RAW = """\
@dp.materialized_view
def raw():
    return spark.createDataFrame([(1, "a", 2.5)], "id INT, name STRING, amount DOUBLE")
"""
SPEC = """\
name: shop
storage: file:///tmp/shop
configuration:
  region: west
libraries:
  - glob:
      include: code/**
"""
Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return a function that writes the files of a project, and returns its specification."""

    def write(spec: str = SPEC, **files: str) -> Path:
        (tmp_path / "code").mkdir(exist_ok=True)
        for name, text in files.items():
            path = tmp_path / "code" / name.replace("_py", ".py").replace("_sql", ".sql")
            path.write_text(dedent(text))
        place = tmp_path / "spark-pipeline.yml"
        place.write_text(spec)
        return place

    return write


def columns(source: ExternalSource, _: Project) -> Sequence[QueryColumn]:
    """Return the columns of a schema; a table is there if it is called `there`."""
    if source.schema is None and source.table != "there":
        raise InputError.of("C1724", f"no `{source.table}`", source.span)
    found = columns_of_ddl(source.schema or "id INT, city STRING", source.span)
    return [QueryColumn(each.name.text, each.type.type) for each in found]


def lowered(spec: Path) -> LoweredProject:
    return lower_project(load_project(spec), columns)


def text_of(spec: Path, name: str) -> str:
    query = lowered(spec).queries[name]
    assert isinstance(query, BinderQuery)
    return query.tree.sql("spark", normalize_functions=False)


# --- what is loaded ------------------------------------------------------------------------------


def test_datasets_and_flows(make: Make) -> None:
    spec = make(
        a_py=HEAD
        + """
@dp.table(name="bronze", partition_cols=["id"], table_properties={"a": "b"}, comment="all")
def read():
    return spark.readStream.format("csv").schema("id INT, city STRING").load("data/orders")

dp.create_streaming_table("every", schema="id INT NOT NULL, city STRING")

@dp.append_flow(target="every", name="one", spark_conf={"x": "1"})
def flow():
    return spark.readStream.table("bronze").filter("id > 1")

dp.create_streaming_table("now")
dp.create_auto_cdc_flow(
    target="now", source="bronze", keys=["id"], sequence_by=F.col("at") + 1,
    apply_as_deletes="city = 'x'", except_column_list=["city"], stored_as_scd_type="2",
)
dp.create_sink("out", "json", {"path": "/tmp/out"})

@dp.append_flow(target="out")
def to_sink():
    return spark.readStream.table("bronze")

@dp.temporary_view
def few():
    return spark.read.table("bronze").limit(3)
""",
        b_sql="""
CREATE OR REFRESH MATERIALIZED VIEW cities COMMENT 'names' TBLPROPERTIES (x = 'y')
  AS SELECT DISTINCT city FROM bronze;
CREATE STREAMING TABLE streamed (id INT) AS SELECT id FROM STREAM(bronze) b WHERE b.id > 1;
CREATE FLOW two AS INSERT INTO every BY NAME SELECT * FROM STREAM bronze;
CREATE STREAMING TABLE later FLOW AUTO CDC FROM STREAM(bronze) KEYS (id)
  APPLY AS DELETE WHEN city = 'x' SEQUENCE BY id COLUMNS (id, city) STORED AS SCD TYPE 1;
""",
    )
    project = load_project(spec)
    kinds = {each.name: each.kind for each in project.datasets}
    assert kinds == {
        **dict.fromkeys(("bronze", "every", "now"), DatasetKind.STREAMING_TABLE),
        "out": DatasetKind.SINK,
        "few": DatasetKind.TEMPORARY_VIEW,
        "cities": DatasetKind.MATERIALIZED_VIEW,
        **dict.fromkeys(("streamed", "later"), DatasetKind.STREAMING_TABLE),
    }
    bronze, every = project.datasets[:2]
    assert (bronze.partition_columns, bronze.properties, bronze.comment) == (
        ("id",),
        {"a": "b"},
        "all",
    )
    assert every.columns is not None
    assert [(c.name.text, c.type.written, c.type.type.nullable) for c in every.columns] == [
        ("id", "INT", False),
        ("city", "STRING", True),
    ]
    assert str(bronze.span) == "code/a.py:5:1"
    flows = {each.name: each for each in project.flows}
    assert [name for name, each in flows.items() if each.is_default] == [
        *("bronze", "few", "cities", "streamed")
    ]
    assert flows["one"].spark_conf == {"x": "1"}
    first, second = project.cdc_flows
    assert (first.keys, first.except_column_list, first.scd_type) == (("id",), ("city",), 2)
    assert first.sequence_by.sql("spark") == "`at` + 1"
    assert first.apply_as_deletes is not None
    assert first.apply_as_deletes.sql("spark") == "`city` = 'x'"
    assert (second.target, second.source, second.column_list) == ("later", "bronze", ("id", "city"))


@pytest.mark.oldest
def test_a_streamed_table_is_marked(make: Make) -> None:
    spec = make(
        a_sql="""
        CREATE STREAMING TABLE one AS SELECT * FROM STREAM(there);
        CREATE MATERIALIZED VIEW two AS
          SELECT a.id FROM STREAM there a JOIN there b ON a.id = b.id;
        """
    )
    found = lowered(spec)
    assert [found.queries[each].streams for each in ("one", "two")] == [("there",), ("there",)]
    assert [found.queries[each].reads for each in ("one", "two")] == [(), ("there",)]


@pytest.mark.oldest
def test_datasets_come_after_what_they_read(make: Make) -> None:
    spec = make(
        a_py=HEAD
        + """
@dp.materialized_view
def last():
    return spark.table("middle").select("id")

@dp.materialized_view
def middle():
    return spark.sql("SELECT * FROM raw")
"""
        + RAW
    )
    assert lowered(spec).order == ("raw", "middle", "last")


def test_names_of_the_default_schema_are_short(make: Make) -> None:
    spec = SPEC + "catalog: main\nschema: sales\n"
    found = lowered(
        make(
            spec,
            a_py=HEAD
            + """
@dp.materialized_view(name="sales.one")
def one():
    return spark.createDataFrame([(1,)], "id INT")

@dp.materialized_view(name="other.two")
def two():
    return spark.table("main.sales.one").select("one.id")

@dp.materialized_view
def three():
    return spark.table("other.two")
""",
        )
    )
    assert found.order == ("one", "other.two", "three")
    assert found.queries["other.two"].reads == ("one",)


@pytest.mark.oldest
def test_settings_are_answered(make: Make) -> None:
    spec = make(
        a_py=HEAD
        + """
REGION = spark.conf.get("region")
assert spark.conf.get("none", "x") == "x"
assert SparkSession.builder.getOrCreate() is spark

@dp.materialized_view
def here():
    return spark.createDataFrame([(1,)], ["id"]).withColumn("region", F.lit(REGION))
"""
    )
    assert "'west'" in text_of(spec, "here")


def test_nothing_stays_behind(make: Make) -> None:
    before = (Path.cwd(), dict(os.environ), list(sys.path))
    spec = make(a_py=HEAD + "import os\nraise ValueError\n")
    with pytest.raises(InputError):
        load_project(spec)
    assert (Path.cwd(), dict(os.environ), list(sys.path)) == before


# --- shapes --------------------------------------------------------------------------------------


def shape(make: Make, body: str) -> str:
    spec = make(a_py=HEAD + RAW + f"\n@dp.materialized_view\ndef v():\n    return {body}\n")
    return text_of(spec, "v")


def test_conditions_and_columns_are_one_block(make: Make) -> None:
    body = 'spark.table("raw").filter("id > 1").withColumn("b", F.col("id") * 2).filter("id < 9")'
    assert shape(make, body) == (
        "SELECT `t1`.`id` AS `id`, `t1`.`name` AS `name`, `t1`.`amount` AS `amount`, "
        "`t1`.`id` * 2 AS `b` FROM `raw` AS `t1` WHERE `t1`.`id` > 1 AND `t1`.`id` < 9"
    )


def test_a_computed_column_is_computed_once(make: Make) -> None:
    body = 'spark.table("raw").select((F.col("id") + 1).alias("n")).filter("n > 1 OR n < 0")'
    assert shape(make, body) == (
        "SELECT `t2`.`n` AS `n` FROM (SELECT `t1`.`id` + 1 AS `n` FROM `raw` AS `t1`) AS `t2` "
        "WHERE (`t2`.`n` > 1 OR `t2`.`n` < 0)"
    )


def test_operands_have_brackets(make: Make) -> None:
    body = 'spark.table("raw").select(((F.col("id") + 1) * 2).alias("n"))'
    assert "(`t1`.`id` + 1) * 2 AS `n`" in shape(make, body)


# --- mistakes ------------------------------------------------------------------------------------


MISTAKES = {
    "an unknown column": ('spark.table("raw").filter(F.col("nme") == "a")', "C1303", "`nme`"),
    "an unknown column of a text": ('spark.sql("SELECT nme FROM raw")', "C1303", "`nme`"),
    "an unknown table": ('spark.table("nowhere")', "C1724", "`nowhere`"),
    "types that do not fit": ('spark.table("raw").filter(F.col("id") + F.array())', "C1307", ""),
    "an ambiguous column": (
        'spark.table("raw").crossJoin(spark.table("raw").select("id")).select("id")',
        "C1304",
        "`id`",
    ),
    "unions of other widths": (
        'spark.table("raw").union(spark.table("raw").select("id"))',
        "C1315",
        "3 and 1",
    ),
    "a missing column of a union": (
        'spark.table("raw").unionByName(spark.table("raw").select("id"))',
        "C1303",
        "`name`",
    ),
    "a key that is not there": (
        'spark.table("raw").join(spark.table("raw").select("id"), "name")',
        "C1303",
        "right side",
    ),
    "two columns of one name": (
        'spark.table("raw").select("id", F.col("name").alias("ID"))',
        "C1304",
        "two columns `id`",
    ),
    "text that is not SQL": ('spark.sql("SELECT FROM raw WHERE")', "C1300", ""),
    "rows while it is loaded": ('spark.table("raw").collect()', "C1702", "asks for"),
    "a count while it is loaded": (
        'spark.table("raw").limit(spark.table("raw").count())',
        "C1702",
        "ATTEMPT",
    ),
    "columns in a query function": (
        'spark.table("raw").select(spark.table("raw").columns)',
        "C1702",
        "asks for",
    ),
    "no DataFrame": ("None", "C1701", "no DataFrame"),
    "an error of Python": ("spark.tabel('raw')", "C1701", "tabel"),
}  # fmt: skip


@pytest.mark.oldest
@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_have_their_line(make: Make, name: str) -> None:
    body, code, words = MISTAKES[name]
    spec = make(a_py=HEAD + RAW + f"\n@dp.materialized_view\ndef v():\n    return {body}\n")
    with pytest.raises(InputError) as caught:
        lowered(spec)
    (found,) = caught.value.diagnostics
    assert found.code == code, str(found)
    assert words in str(found)
    assert found.span is not None
    assert (found.span.file.name, found.span.line >= 8) == ("code/a.py", True), str(found)


TOP_LEVEL = {
    "rows at import": ('spark.table("x").show()', "C1702", 4),
    "a view of the session": ('spark.table("x").createTempView("y")', "C1701", 4),
    "a setting that is not there": ('spark.conf.get("nothing")', "C1702", 4),
    "an end": ("import sys\nsys.exit(1)", "C1701", 5),
    "syntax": ("def f(:", "C1701", 4),
    "a decorator of others": ("@dp.expect('a', 'b')\ndef f(): ...", "C1703", 4),
    "a module of others": ("import dlt", "C1703", 4),
    "a flow without a target": (
        '@dp.append_flow(target="t")\ndef f():\n    return spark.table("x")',
        "C1704",
        4,
    ),
    "a table without a flow": ('dp.create_streaming_table("t")', "C1704", 4),
    "a dataset twice": (
        RAW.replace("raw", "Raw") + RAW,
        "C1704",
        7,
    ),
}


@pytest.mark.parametrize("name", TOP_LEVEL)
def test_mistakes_of_files(make: Make, name: str) -> None:
    text, code, line = TOP_LEVEL[name]
    with pytest.raises(InputError) as caught:
        load_project(make(a_py=HEAD + text + "\n"))
    found = caught.value.diagnostics[0]
    assert found.code == code, str(found)
    assert found.span is not None
    assert found.span.line == line, str(found)
    assert found.note


@pytest.mark.oldest
def test_auto_cdc_in_python_is_not_of_an_old_spark(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark import pipelines

    monkeypatch.delattr(pipelines, "create_auto_cdc_flow", raising=False)
    of_sql = """
    CREATE STREAMING TABLE now FLOW AUTO CDC FROM STREAM(there) KEYS (id) SEQUENCE BY city;
    """
    assert [each.keys for each in load_project(make(a_sql=of_sql)).cdc_flows] == [("id",)]
    with pytest.raises(InputError) as caught:
        load_project(make(a_py=HEAD + "dp.create_auto_cdc_flow(target='a', source='b')\n"))
    (found,) = caught.value.diagnostics
    assert (found.code, found.span and found.span.line) == ("C1703", 4)
    assert "has no `create_auto_cdc_flow`" in found.message


@pytest.mark.oldest
def test_a_project_is_bound_as_a_whole(make: Make) -> None:
    text = """
@dp.materialized_view
def totals():
    return spark.table("raw").groupBy("name").agg(F.sum("amount").alias("total"))

dp.create_streaming_table("gained")

@dp.append_flow(target="gained")
def flow():
    schema = "id INT, at TIMESTAMP"
    return spark.readStream.format("json").schema(schema).load("input").where("id > 1")
"""
    spec = make(
        a_py=HEAD + RAW + text,
        b_sql="CREATE MATERIALIZED VIEW best AS SELECT max(total) AS total FROM totals;",
    )
    plans = {each.dataset.name: each.how for each in compile_dry(load_project(spec)).plans}
    assert plans == {
        **dict.fromkeys(("raw", "totals", "best"), "maintained"),
        "gained": "appended to by 1 flow",
    }


def test_all_mistakes_are_found_at_once(make: Make) -> None:
    spec = make(
        a_py=HEAD + "spark.table('x').collect()\n", b_py="import nothing\n", c_sql="SELECT 1"
    )
    with pytest.raises(InputError) as caught:
        load_project(spec)
    assert [each.code for each in caught.value.diagnostics] == ["C1702", "C1701", "C1706"]


SPECS = {
    "no YAML": ("name: [", 1, "YAML"),
    "an unknown field": (SPEC + "target: x\n", 8, "target"),
    "no storage": ("name: x\n", None, "storage"),
    "a pattern": (SPEC.replace("code/**", "code/**/*.py"), 7, "code/**/*.py"),
    "no files": (SPEC.replace("code", "other"), 5, "no file"),
    "a value that is no text": (SPEC.replace("west", "1"), 4, "region"),
}


@pytest.mark.parametrize("name", SPECS)
def test_mistakes_of_specifications(make: Make, name: str) -> None:
    text, line, words = SPECS[name]
    with pytest.raises(InputError) as caught:
        load_project(make(text, a_py=""))
    (found,) = caught.value.diagnostics
    assert (found.code, found.span and found.span.line) == ("C1700", line), str(found)
    assert words in found.message


# --- what is left to Spark -----------------------------------------------------------------------


LEFT = {
    "a Python function": (
        'spark.table("raw").select(F.udf(lambda x: x)("id").alias("u"))',
        "Python function",
    ),
    "a sample": ('spark.table("raw").sample(0.5)', "sample"),
    "a limit": ('spark.table("raw").limit(3)', "without an order"),
    "some duplicates": ('spark.table("raw").dropDuplicates(["id"])', "dropDuplicates"),
    "a random number": ('spark.table("raw").withColumn("r", F.rand())', "rand"),
    "a pivot without values": ('spark.table("raw").groupBy("id").pivot("name").count()', "pivot"),
    "the time of now": (
        'spark.table("raw").withColumn("t", F.current_timestamp())',
        "current_time",
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left_to_spark_says_why(make: Make, name: str) -> None:
    body, words = LEFT[name]
    spec = make(
        a_py=HEAD
        + RAW
        + f"""
@dp.materialized_view
def v():
    return {body}

@dp.materialized_view
def w():
    return spark.table("v").select("id")

@dp.materialized_view
def other():
    return spark.table("raw").select("id")
"""
    )
    found = lowered(spec)
    query = found.queries["v"]
    assert isinstance(query, SparkQuery)
    assert words in query.reason.message
    assert query.reason.span is not None
    assert query.reason.span.line == 10
    assert query.reads == ("raw",)
    reader = found.queries["w"]
    assert isinstance(reader, SparkQuery)
    assert reader.reason.code == "C1711"
    assert isinstance(found.queries["other"], BinderQuery)


def test_a_declared_schema_lets_others_be_maintained(make: Make) -> None:
    spec = make(
        a_py=HEAD
        + """
@dp.materialized_view(schema="id BIGINT")
def v():
    return spark.range(9).sample(0.5)

@dp.materialized_view
def w():
    return spark.table("v").filter("id > 1")
"""
    )
    assert [type(each) for each in lowered(spec).queries.values()] == [SparkQuery, BinderQuery]


def test_settings_that_change_meanings_leave_all_to_spark(make: Make) -> None:
    spec = SPEC.replace("region: west", 'spark.sql.ansi.enabled: "false"')
    (query,) = lowered(make(spec, a_py=HEAD + RAW)).queries.values()
    assert isinstance(query, SparkQuery)
    assert query.reason.code == "C1712"


def test_a_circle_needs_its_columns(make: Make) -> None:
    text = """
@dp.materialized_view({})
def one():
    return spark.table("two").select("id").union(spark.table("two").select("id")).distinct()

@dp.materialized_view
def two():
    return spark.table("one").union(spark.range(3)).distinct()
"""
    with pytest.raises(InputError) as caught:
        lowered(make(a_py=HEAD + text.format("")))
    (found,) = caught.value.diagnostics
    assert (found.code, "one → two → one" in found.message) == ("C1705", True), str(found)
    found_queries = lowered(make(a_py=HEAD + text.format('schema="id BIGINT"'))).queries
    assert [type(each) for each in found_queries.values()] == [BinderQuery, BinderQuery]
