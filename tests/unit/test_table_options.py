"""Options of published tables: in `.output` and SQL, and what `watch` and `status` make of them."""

from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable

import corollary
from corollary.cli.commands.upkeep.status import _lines
from corollary.cli.main import group
from corollary.core.table_options import TableOptions, table_options
from corollary.database.database import store_of
from corollary.database.intake.pipeline import Inputs, PipelineRun
from corollary.database.program.loaded_program import load_program, read_programs
from corollary.database.upkeep.status import status
from corollary.database.warehouse_store import WarehouseStore
from corollary.errors import InputError
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile
from corollary.streaming.watch_loop import SourceSchedule, WatchOptions, source_periods, watch

FAST_AND_SLOW = """
.decl fast(x: number) .input fast
.decl slow(x: number) .input slow
.decl other(x: number) .input other
.decl both(x: number) both(x) :- fast(x), slow(x).
.decl late(x: number) late(x) :- both(x). late(x) :- slow(x).
.output both(target_lag="5 seconds")
.output late(target_lag="10 minutes")
"""


def test_options_of_an_output() -> None:
    program = parse(
        SourceFile(
            "p",
            '.decl p(a: number, b: number) key(b)\n.output p(change_data_feed="true", '
            'log_retention="30 days")\n.output p(file_retention="interval 7 days")\n',
        )
    )
    day = 86_400
    options = TableOptions(True, 30 * day, 7 * day, None, (1,))
    assert table_options(program) == {"p": options}
    assert options.configuration == {
        "delta.logRetentionDuration": "interval 30 days",
        "delta.deletedFileRetentionDuration": "interval 1 weeks",
        "delta.enableChangeDataFeed": "true",
    }


def test_options_in_sql(tmp_path: Path) -> None:
    with corollary.open(str(tmp_path / "w"), engine="local") as db:
        db.sql(
            "CREATE TABLE t (k INT, v INT); CREATE MATERIALIZED VIEW m TARGET LAG '5 minutes' "
            "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'other' = 'x') "
            "AS SELECT k, SUM(v) AS s FROM t GROUP BY k;"
            "CREATE MATERIALIZED VIEW n REFRESH EVERY 2 HOURS AS SELECT k FROM t"
        )
        options = table_options(db.program)
        assert (options["m"].target_lag, options["m"].change_data_feed) == (300, True)
        assert options["n"].target_lag == 7200
        db.sql("ALTER VIEW m AS SELECT k, MAX(v) AS s FROM t GROUP BY k")
        assert table_options(db.program) == options
        db.sql("INSERT INTO t VALUES (1, 2), (1, 3)")
        db.publish()
        db.sql("INSERT INTO t VALUES (1, 7), (2, 1)")
        db.publish()
        delta = DeltaTable(str(tmp_path / "w" / "tables" / "m"))
        feed = pa.RecordBatchReader.from_stream(delta.load_cdf(starting_version=1)).read_all()
        rows = feed.select(["k", "s", "_change_type"]).to_pylist()
        found = sorted((each["k"], each["s"], each["_change_type"]) for each in rows)
        assert found == [(1, 3, "delete"), (1, 7, "insert"), (2, 1, "insert")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CREATE VIEW v TARGET LAG '1 minute' AS SELECT 1 AS x", "C1363"),
        ("CREATE MATERIALIZED VIEW v TARGET LAG 'soon' AS SELECT 1 AS x", "C1366.*`soon`"),
        ("CREATE MATERIALIZED VIEW v REFRESH EVERY 0 DAYS AS SELECT 1 AS x", "C1366.*`0 days`"),
    ],
)
def test_options_that_say_nothing(text: str, said: str) -> None:
    with corollary.open(None, engine="local") as db, pytest.raises(InputError, match=said):
        db.sql(text)


def test_sources_have_the_least_target_of_their_outputs() -> None:
    program = parse(SourceFile("p", FAST_AND_SLOW))
    normal = load_program(program).normal
    assert source_periods(program, normal, 2.0) == {"fast": 5, "slow": 5, "other": 2}
    more = parse(SourceFile("p", f"{FAST_AND_SLOW}.output slow\n"))
    assert source_periods(more, normal, 2.0) == {"fast": 5, "slow": 2, "other": 2}


def test_sources_are_due_after_their_period() -> None:
    schedule = SourceSchedule({"a": 5.0, "b": 60.0}, 2.0, 100.0)
    assert schedule.next(100.0) == 105.0
    assert schedule.take(104.0) == set()
    assert schedule.take(105.0) == {"a"}
    assert schedule.take(160.5) == {"a", "b"}
    schedule.retry({"b"}, 161.0)
    assert schedule.next(161.0) == 163.0
    assert SourceSchedule({}, 2.0, 0.0).next(7.0) == 9.0


class Clock:
    """A clock that runs while somebody sleeps; at times something happens."""

    def __init__(self, events: dict[int, object]) -> None:
        self.now = 0.0
        self.events = sorted(events.items())

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float, /) -> None:
        self.now += seconds
        while self.events and self.events[0][0] <= self.now:
            action = self.events.pop(0)[1]
            if not callable(action):
                raise KeyboardInterrupt
            action()


def test_watch_reads_sources_when_their_outputs_want_them(tmp_path: Path) -> None:
    def write(name: str, text: str) -> None:
        (tmp_path / f"{name}.facts").write_text(text)

    for name in ("fast", "slow", "other"):
        write(name, "1\n")
    text = FAST_AND_SLOW.replace(".output both(", ".output fast(")
    (tmp_path / "p.dl").write_text(text.replace("10 minutes", "12 seconds"))
    seen: list[tuple[float, set[str]]] = []

    def note(outcome: PipelineRun) -> None:
        seen.append((clock.now, set(outcome.changes)))
        for name in ("fast", "late"):
            if name in outcome.changes:
                table = DeltaTable(str(tmp_path / "w" / "tables" / name))
                assert table.count() == db.relation(name).arrow().num_rows

    clock = Clock(
        {
            1: lambda: [write(name, "1\n2\n") for name in ("fast", "slow", "other")],
            13: "interrupt",
        }
    )
    options = WatchOptions(
        read_programs([tmp_path / "p.dl"]), Inputs(tmp_path), 2.0, False, note, note, pytest.fail
    )  # type: ignore[arg-type]
    with (
        corollary.open(str(tmp_path / "w"), engine="local") as db,
        pytest.raises(KeyboardInterrupt),
    ):
        watch(db, options, clock)
    assert [at for at, _ in seen] == [0.0, 2.0, 5.0, 12.0]
    assert [{"fast", "slow", "other"} & names for _, names in seen[1:]] == [
        {"other"},
        {"fast"},
        {"slow"},
    ]


def test_explain_shows_the_options(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(FAST_AND_SLOW)
    printed = CliRunner().invoke(group, ["explain", str(tmp_path / "p.dl")]).output
    assert printed.endswith(
        "tables\n    both: target lag 5 seconds\n    late: target lag 10 minutes\n"
    )


def test_status_compares_the_lag_with_its_target(tmp_path: Path) -> None:
    text = '.decl p(x: number)\n.output p(target_lag="5 minutes")\n'
    with corollary.open(str(tmp_path / "w"), engine="local", publish="manual") as db:
        db.load(text=f"{text}p(1).\n")
        db.publish()
        store = store_of(db)
        assert isinstance(store, WarehouseStore)
        (told,) = status(store.warehouse).tables
        assert (told.lag, told.seconds, told.is_late) == (0, None, False)
        db.load(text=f"{text}p(1). p(2).\n")
        db.load(text=f"{text}p(1). p(2). p(3).\n")
        made = store.warehouse.catalog.find_commit(2)
        assert made is not None
        for later, is_late in ((299, False), (301, True)):
            found = status(store.warehouse, made.created + later)
            assert (found.tables[0].seconds, found.tables[0].is_late) == (later, is_late)
        (line,) = (each for each in _lines(found) if each.startswith("p ") and "commit" in each)
        assert line.split("  ")[-1] == "target lag 5 minutes"
        assert "2 commits, 301 s, late" in line
        assert found.as_json()["published"]["p"] == {
            "commit": 1,
            "lag": 2,
            "is_output": True,
            "options": {"target_lag": "5 minutes"},
            "seconds": 301,
        }
