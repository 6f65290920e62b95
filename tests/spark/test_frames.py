"""Sources and sinks through Spark: what it reads is maintained, what is kept is a frame."""

from __future__ import annotations

import gc
import json
import math
import subprocess
import sys
import time
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import corollary
from corollary.core.arrow import empty_table, from_python, to_python
from corollary.core.engine import LocalTable
from corollary.core.program import Directive, Relation
from corollary.core.types import BOOL, DATE, FLOAT, NUMBER, SYMBOL, TIMESTAMP, UNSIGNED, Kind, Type
from corollary.core.values import decimal_value
from corollary.database.engines import SparkFrames, create_engine
from corollary.database.intake import evaluate_once, pipeline
from corollary.database.program.loaded_program import read_programs
from corollary.database.state import DatabaseState
from corollary.database.writing.inputs import FileLocations
from corollary.engines.spark import engine
from corollary.engines.spark.frame_pins import framed_handles, release_frames
from corollary.errors import InputError
from corollary.warehouse.sources.source import TableRows
from corollary.warehouse.sources.source_factory import SourceFactory
from support.selection import sampled
from support.source_model import canonical, parquet
from support.spark.in_process_partitions import RowsElsewhere
from support.warehouse_scenarios import store_of

FORMATS = ("parquet", "orc", "json")

EDGE = ".decl edge(x: number, y: symbol)\n"
PATH = ".decl path(y: symbol)\npath(y) :- edge(_, y).\n"


def parsed(directory: Path, text: str) -> Any:
    file = directory / "program.dl"
    file.write_text(text)
    return read_programs([file])


def run_on(spark: Any, program: Any, places: FileLocations) -> Any:
    state = DatabaseState(create_engine(), frames=SparkFrames(spark))
    return evaluate_once.run_once(state, program, places)


class Pipeline:
    """A warehouse that a program is run on again and again."""

    def __init__(self, directory: Path, text: str, spark: Any) -> None:
        self._program = parsed(directory, text)
        self._inputs = pipeline.Inputs(directory)
        self._where, self._spark = directory / "warehouse", spark

    def run(self) -> pipeline.PipelineRun:
        with corollary.open(self._where, spark=self._spark) as db:
            self.outcome = pipeline.run(db, self._program, self._inputs)
            self.edges = sorted(db.relation("edge").rows())
            is_there = "quarantine" in db._state.loaded.normal.relations
            self.bad = sorted(db.relation("quarantine").rows()) if is_there else []
        return self.outcome

    def counts(self) -> tuple[int, int]:
        transaction = self.run().transaction
        assert transaction is not None
        return transaction.changes["edge"].counts


def frame(spark: Any, rows: list[tuple[Any, ...]], schema: str = "x bigint, y string") -> Any:
    return spark.createDataFrame(rows, schema)


# --- sources in a warehouse -----------------------------------------------------------------------


@pytest.mark.parametrize("format_", sampled(["orc", "csv"], 2))
def test_a_second_run_finds_just_the_difference(tmp_path: Path, spark: Any, format_: str) -> None:
    said = f'.input edge(IO=spark, format="{format_}", filename="data", header=true)\n'
    runs = Pipeline(tmp_path, EDGE + said + PATH, spark)

    def write(*rows: tuple[Any, ...]) -> None:
        writer = frame(spark, list(rows)).coalesce(1).write.format(format_).mode("overwrite")
        writer.option("header", "true").save(str(tmp_path / "data"))

    write((1, "a"), (2, "b"), (2, "b"))
    assert runs.counts() == (2, 0)
    write((2, "b"), (3, "c"), (4, "d"))
    assert runs.counts() == (2, 1)
    assert runs.outcome.transaction is not None
    assert runs.outcome.transaction.changes["path"].counts == (2, 1)
    assert runs.edges == [(2, "b"), (3, "c"), (4, "d")]
    last = runs.outcome.commit
    assert runs.counts() == (0, 0)
    assert runs.outcome.commit == last


def test_a_temp_view_of_the_passed_session(tmp_path: Path, spark: Any) -> None:
    mine = spark.newSession()
    frame(mine, [(1, "a"), (2, "b")]).createOrReplaceTempView("edges_of_mine")
    runs = Pipeline(tmp_path, EDGE + '.input edge(IO=spark, table="edges_of_mine")\n', mine)
    assert runs.counts() == (2, 0)
    frame(mine, [(2, "b")]).createOrReplaceTempView("edges_of_mine")
    assert runs.counts() == (0, 1)
    with corollary.open(tmp_path / "warehouse", spark=mine) as db:
        with db.transaction() as tx:
            tx.insert("edge", [(9, "by hand")])
        frame(mine, [], "x bigint, y string").createOrReplaceTempView("edges_of_mine")
    assert runs.counts() == (0, 1)
    assert runs.edges == [(9, "by hand")]
    mine.catalog.dropTempView("edges_of_mine")
    with pytest.raises(InputError, match=r"C0988.*`edges_of_mine`(.|\n)*program.dl:2(.|\n)*spark="):
        runs.run()


def test_poison_rows_are_set_aside_until_they_are_mended(tmp_path: Path, spark: Any) -> None:
    text = EDGE + '.input edge(IO=spark, format="csv", filename="e.csv", header=true, sep=";")\n'
    runs = Pipeline(tmp_path, text, spark)
    (tmp_path / "e.csv").write_text("y;x\na;1\nb;two\nc;\nd;0x1f\n")
    assert runs.counts() == (2, 0)
    assert runs.edges == [(1, "a"), (31, "d")]
    found = [(row[2], row[3], json.loads(row[6])) for row in runs.bad]
    assert found == [
        ("e.csv", 0, {"x": "two", "y": "b"}),
        ("e.csv", 0, {"x": None, "y": "c"}),
    ]
    commit = runs.run().commit
    assert commit == runs.run().commit
    (tmp_path / "e.csv").write_text("y;x\na;1\nb;2\nd;31\n")
    assert runs.counts() == (1, 0)
    assert not runs.bad


def test_json_records_that_are_none(tmp_path: Path, spark: Any) -> None:
    text = EDGE + '.input edge(IO=spark, format="json", filename="*.json", max_bad="off")\n'
    runs = Pipeline(tmp_path, text, spark)
    assert runs.counts() == (0, 0)
    (tmp_path / "1.json").write_text('{"x": 1, "y": "a"}\n{oops\n{"x": 1.5, "y": "b", "z": [1]}\n')
    (tmp_path / "2.json").write_text('{"x": 9223372036854775807, "y": "c"}\n{"y": "d"}\n')
    assert runs.counts() == (2, 0)
    assert runs.edges == [(1, "a"), (2**63 - 1, "c")]
    assert sorted(row[6] for row in runs.bad) == [
        '{"x": "1.5", "y": "b"}',
        '{"x": null, "y": "d"}',
        "{oops",
    ]
    for each in tmp_path.glob("*.json"):
        each.write_text("")
    assert runs.counts() == (0, 2)


def test_typed_rows_that_do_not_fit(tmp_path: Path, spark: Any) -> None:
    frame(spark, [(1, "a"), (None, "b")]).write.orc(str(tmp_path / "data"))
    runs = Pipeline(tmp_path, EDGE + '.input edge(IO=spark, format=orc, filename="data")\n', spark)
    assert runs.counts() == (1, 0)
    assert [row[4] for row in runs.bad] == ["C0801"]
    frame(spark, [("1", "a")], "x string, y string").write.mode("overwrite").orc(
        str(tmp_path / "data")
    )
    with pytest.raises(InputError, match="C0950"):
        runs.run()


REFUSED = [
    ('format="nonsense", filename="data"', r"C0987.*nonsense(.|\n)*spark.jars.packages"),
    ('format="orc", filename="program.dl"', r"C0987.*program\.dl"),
    ('format="orc", filename="nowhere"', "C0804"),
    ('format="orc", filename="../x"', "C0805"),
    (
        'format="jdbc", url="jdbc:sqlite:/x", dbtable="t"',
        r"C0987.*`jdbc t of jdbc:sqlite:/x`.*No suitable driver(.|\n)*spark.jars",
    ),
    (
        'format="jdbc", url="jdbc:x:y", dbtable="t", driver="org.sqlite.JDBC"',
        r"C0987.*org\.sqlite\.JDBC(.|\n)*spark.jars",
    ),
    ('format="jdbc", dbtable="t"', r"C0987.*'url' is required"),
    ('table="parquet.`{place}/data`"', "C0988"),
    ('table="no name"', "C0987"),
]


def test_errors_have_a_place_and_a_cure(tmp_path: Path, spark: Any) -> None:
    (tmp_path / "data").write_bytes(parquet([(1, "a")]))
    for said, told in REFUSED:
        text = EDGE + f".input edge(IO=spark, {said.replace('{place}', str(tmp_path))})\n"
        with pytest.raises(InputError, match=told) as caught:
            Pipeline(tmp_path, text, spark).run()
        [finding] = caught.value.diagnostics
        assert finding.span is not None
        assert finding.span.line == 2
        assert not (tmp_path / "warehouse").exists()


def test_a_warehouse_refuses_to_write_through_spark(tmp_path: Path) -> None:
    text = EDGE + '.output edge(IO=spark, format="orc", filename="out")\n'
    with pytest.raises(InputError, match="C0990"):
        Pipeline(tmp_path, text, None).run()


def test_two_ways_to_read_one_table_are_refused(tmp_path: Path) -> None:
    said = '.input edge(IO=spark, table="t")\n.input edge(IO=spark, table="t", o=1)\n'
    with pytest.raises(InputError, match=r"C0956.*`table t` in two ways"):
        Pipeline(tmp_path, EDGE + said, None).run()


# --- one-shot runs ------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", sampled(FORMATS, 3))
def test_a_one_shot_run_reads_and_writes(tmp_path: Path, spark: Any, format_: str) -> None:
    frame(spark, [(1, "a"), (2, "b")]).createOrReplaceTempView("edges_at_once")
    text = (
        f'{EDGE}.input edge(IO=spark, table="edges_at_once")\n{PATH}'
        f'.output path(IO=spark, format={format_}, filename="out/path")\n.output edge\n'
    )
    program, places = parsed(tmp_path, text), FileLocations(tmp_path, tmp_path)
    outcome = run_on(spark, program, places)
    found = spark.read.format(format_).load(str(tmp_path / "out" / "path"))
    assert sorted(row.y for row in found.collect()) == ["a", "b"]
    assert [(each.relation, each.tuples) for each in outcome.written] == [("path", 2), ("edge", 2)]
    assert outcome.written[0].path == tmp_path / "out" / "path"
    with pytest.raises(InputError, match=r"C0989.*already exists(.|\n)*program.dl:5(.|\n)*mode="):
        run_on(spark, program, places)
    text = text.replace(f"format={format_}", f"format={format_}, mode=append")
    run_on(spark, parsed(tmp_path, text), places)
    assert spark.read.format(format_).load(str(tmp_path / "out" / "path")).count() == 4


def test_outputs_that_cannot_be_written(tmp_path: Path, spark: Any) -> None:
    def run(said: str) -> None:
        text = f'{EDGE}edge(1, "a").\n.output edge(IO=spark, {said})\n'
        run_on(spark, parsed(tmp_path, text), FileLocations(tmp_path, tmp_path))

    with pytest.raises(InputError, match=r"C0989.*delta(.|\n)*spark.jars.packages"):
        run('format="delta", filename="out"')
    with pytest.raises(InputError, match=r"C0989.*No suitable driver"):
        run('format="jdbc", url="jdbc:x:y", dbtable="t", password="secret"')
    with pytest.raises(InputError, match="C0805"):
        run('format="parquet", filename="../out"')
    with pytest.raises(InputError, match=r"C0805.*Spark would remove it"):
        run('format="parquet", filename=".", mode=overwrite')
    assert {each.name for each in tmp_path.iterdir()} == {"program.dl"}


def test_load_reads_through_the_passed_session(tmp_path: Path, spark: Any) -> None:
    frame(spark, [(1, "a")]).createOrReplaceTempView("edges_to_load")
    with corollary.open(None, spark=spark) as db:
        db.load(text=EDGE + '.input edge(IO=spark, table="edges_to_load")', facts=tmp_path)
        assert db.relation("edge").rows() == [(1, "a")]
    frame(spark, [(None, "a")]).createOrReplaceTempView("edges_to_load")
    with corollary.open(None, spark=spark) as db, pytest.raises(InputError, match="C0801"):
        db.load(text=EDGE + '.input edge(IO=spark, table="edges_to_load")', facts=tmp_path)


# --- frames -------------------------------------------------------------------------------------


@pytest.mark.oldest
def test_relations_and_changes_as_frames(tmp_path: Path, spark: Any) -> None:
    mine = spark.newSession()
    with corollary.open(tmp_path / "warehouse", spark=mine) as db:
        db.load(text=EDGE + PATH + ".decl any() virtual\nany() :- edge(_, _).\n")
        with db.transaction() as tx:
            tx.insert("edge", [(1, "a"), (2, "b")])
        with db.transaction() as tx:
            tx.insert("edge", [(3, "c")])
            tx.delete("edge", [(1, "a")])
        found = db.relation("edge").spark(view="edges_shown")
        assert found.sparkSession is mine
        assert sorted(map(tuple, found.collect())) == [(2, "b"), (3, "c")]
        assert mine.sql("select count(*) from edges_shown where x > 2").first()[0] == 1
        assert [tuple(row) for row in db.relation("any").spark().collect()] == [(True,)]
        expected = [("a", "delete"), ("c", "insert")]
        for changes in (tx.changes, db.changes(3)):
            rows = changes["path"].spark()
            assert rows.columns == ["y", "_change_type"]
            assert sorted(map(tuple, rows.collect())) == expected
        tx.changes["path"].spark(view="paths_changed")
        assert mine.table("paths_changed").count() == 2
        assert db.at(2).relation("path").spark().sparkSession is mine
        (feed,) = db.feed("path", since=1)
        told = feed.spark(view="paths_fed").drop("_commit_timestamp")
        assert told.columns == ["y", "_change_type", "_commit_version"]
        assert sorted(map(tuple, told.collect())) == [
            *(("a", "delete", 3), ("a", "insert", 2)),
            *(("b", "insert", 2), ("c", "insert", 3)),
        ]
        assert mine.table("paths_fed").toArrow().num_rows == feed.arrow().num_rows == 4
        with pytest.raises(InputError, match="C0989"):
            db.relation("edge").spark(view="no name")


DECIMAL = Type(Kind.DECIMAL, precision=38, scale=4)
SHORT = Type(Kind.DECIMAL, precision=5, scale=2)
EVERY = (SYMBOL, NUMBER, UNSIGNED, FLOAT, DECIMAL, SHORT, BOOL, DATE, TIMESTAMP)
ALL = Relation(
    "p", tuple(f"c{at}" for at in range(9)), tuple(t.with_null(True) for t in EVERY), False
)
FIXED = Relation("p", ALL.columns, EVERY, False)
# ORC has no days that the change of calendars skipped, 1582-10-05 to 1582-10-14.
DAYS = st.dates(date(1583, 1, 1), date.max) | st.sampled_from([date(1, 1, 1), date(1500, 2, 28)])
VALUES = (
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-(2**63), 2**63 - 1]),
    st.integers(0, 2**64 - 1) | st.just(2**64 - 1),
    st.floats(),
    st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: decimal_value(n, 4)),
    st.integers(-99999, 99999).map(lambda n: Decimal(n).scaleb(-2)),
    st.booleans(),
    DAYS,
    st.datetimes(datetime.fromisoformat("1900-01-01"), timezones=st.just(UTC))
    | st.sampled_from([datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)]),
)
ROW = st.tuples(*VALUES)
ROW_WITH_NULLS = st.tuples(*(st.none() | each for each in VALUES))
EDGES = [
    (
        *(
            "\x01é😀",
            -(2**63),
            2**64 - 1,
            math.nan,
            Decimal("-9999999999999999999999999999999999.9999"),
        ),
        *(Decimal("0.01"), True, date.max, datetime(2026, 11, 1, 6, 30, 0, 1, UTC)),
    ),
    (
        *("", 2**63 - 1, 0, -0.0, Decimal("0.0001")),
        *(Decimal("-999.99"), False, date(1, 1, 1), datetime.max.replace(tzinfo=UTC)),
    ),
]
numbers = count(1)


def keys(rows: Any) -> set[Any]:
    return {canonical(row) for row in rows}


def read_back(spark: Any, relation: Relation, base: Path, **said: str) -> set[Any]:
    directive = Directive("input", "p", (("IO", "spark"), *said.items()))
    source = SourceFactory(base, fetch=SparkFrames(spark).read).source(directive, relation)
    return keys(to_python(source.change_since(None, TableRows(empty_table(relation))).added))


@pytest.fixture(scope="module")
def elsewhere(spark: Any) -> Any:
    """A session of somebody who lives in another zone."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    return session


@pytest.mark.parametrize("kind", [LocalTable, RowsElsewhere])
@given(st.lists(ROW_WITH_NULLS, max_size=6))
@settings(max_examples=6, suppress_health_check=list(HealthCheck))
@pytest.mark.oldest
def test_every_type_there_and_back(
    elsewhere: Any, tmp_path: Path, kind: type[LocalTable], rows: list[Any]
) -> None:
    rows = [*rows, *EDGES, (None,) * 9]
    table = from_python(rows, ALL)
    shown = SparkFrames(elsewhere).create_frame([(kind(table), {})], ALL, view="every_type")
    assert [kind for _, kind in shown.dtypes] == [
        *("string", "bigint", "decimal(20,0)", "double", "decimal(38,4)", "decimal(5,2)"),
        *("boolean", "date", "timestamp"),
    ]
    assert read_back(elsewhere, ALL, tmp_path, table="every_type") == keys(to_python(table))


@pytest.mark.parametrize("format_", sampled(FORMATS, 3))
@given(st.lists(ROW, max_size=6))
@settings(max_examples=4, suppress_health_check=list(HealthCheck))
def test_every_type_through_files(
    elsewhere: Any, tmp_path: Path, format_: str, rows: list[Any]
) -> None:
    said = {"format": format_, "filename": f"out{next(numbers)}"}
    table = from_python([*rows, *EDGES], FIXED)
    output = Directive("output", "p", (("IO", "spark"), *said.items()))
    SparkFrames(elsewhere).write(LocalTable(table), FIXED, output, tmp_path / said["filename"])
    assert read_back(elsewhere, FIXED, tmp_path, **said) == keys(to_python(table))


def test_a_frame_shows_its_commit_as_long_as_it_is_there(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "SWEEP_MIN_FILES", 0)
    others = set(map(id, framed_handles()))
    with corollary.open(tmp_path / "w", spark=spark, placement="partitions") as db:
        db.load(text=EDGE + PATH)
        with db.transaction() as tx:
            tx.insert("edge", [(n, f"t{n}") for n in range(50)])
        few = db.relation("edge").spark(view="few_edges").filter("x < 5")
        added = tx.changes["edge"].spark()
        for n in range(3):
            with db.transaction() as tx:
                tx.delete("edge", [(n, f"t{n}")])
            store_of(db).fold(db._state)
        then = db.at(2).relation("path").spark()
        now = db.relation("edge").spark()
        assert (few.count(), added.count(), then.count(), now.count()) == (5, 50, 50, 47)
    del db, tx
    assert (few.count(), added.count(), then.count(), now.count()) == (5, 50, 50, 47)
    assert spark.sql("SELECT count(*) FROM few_edges").first()[0] == 50
    spark.catalog.dropTempView("few_edges")
    del few, added, then, now
    for _ in range(50):
        gc.collect()
        spark._jvm.System.gc()
        release_frames()
        if not {*map(id, framed_handles())} - others:
            break
        time.sleep(0.1)
    assert not {*map(id, framed_handles())} - others
    assert not list(tmp_path.glob("**/corollary-partitions-*"))


def test_a_frame_without_rows(spark: Any) -> None:
    empty, frames = LocalTable(from_python([], ALL)), SparkFrames(spark)
    found = frames.create_frame([(empty, {})], ALL)
    assert found.count() == 0
    assert len(found.columns) == 9
    split = LocalTable(pa.concat_tables([empty.rows, from_python([EDGES[0]], ALL)]))
    assert frames.create_frame([(split, {})], ALL).count() == 1
    both = [(RowsElsewhere(split.rows), {}), (split, {}), (empty, {})]
    assert frames.create_frame(both, ALL).count() == 2
    assert frames.create_frame(both, ALL).schema == found.schema


def test_spark_stays_off_where_nothing_is_read_through_it(tmp_path: Path) -> None:
    (tmp_path / "edge.facts").write_text("1\ta\n")
    (tmp_path / "p.dl").write_text(f"{EDGE}.input edge\n{PATH}.output path\n")
    code = (
        "import sys; from corollary.cli.main import main\n"
        "try: main(args=sys.argv[1:])\n"
        "finally: assert 'pyspark' not in sys.modules"
    )
    for more in (["--warehouse", "w"], ["--warehouse", "w"]):
        command = [sys.executable, "-c", code, "run", "p.dl", *more]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
