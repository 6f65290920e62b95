"""What the Spark engine needs, what it leaves alone, and what it says if something is missing."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any

import pytest

import corollary
from corollary.core.engine import Limits
from corollary.core.recorder import job_group
from corollary.database.database import Database
from corollary.database.state import DatabaseState
from corollary.engines.spark import session
from corollary.engines.spark.engine import SparkEngine
from corollary.engines.spark.session import describe_jobs
from corollary.errors import EvaluationError, InputError, LimitError
from support.maintained_database import closure, insert
from support.spark.in_process_partitions import share_out


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "find_spec", lambda name: None if name == "pyspark" else True)
    db = corollary.open(None, placement="partitions")  # nothing is missing so far
    with pytest.raises(InputError, match=r"C0980.*`pyspark`(.|\n)*corollary\[spark\]"):
        db.load(text=closure())


def test_other_engines_are_refused() -> None:
    with pytest.raises(InputError, match=r"C0918.*no engine `flink`"):
        corollary.open(None, engine="flink")


def test_the_session_that_is_passed_stays_as_it_is(spark: Any) -> None:
    before = (spark.conf.get("spark.sql.ansi.enabled"), spark.catalog.listTables())
    db = corollary.open(None, spark=spark, placement="partitions")
    db.load(text=closure(type_="number"))
    insert(db, "edge", [(1, 2), (2, 3)])
    assert sorted(db.relation("reach").rows()) == [(1, 2), (1, 3), (2, 3)]
    assert db.query("reach(1, y)").to_pydict() == {"y": [2, 3]}
    assert (spark.conf.get("spark.sql.ansi.enabled"), spark.catalog.listTables()) == before


def test_files_go_with_what_they_hold(spark: Any, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    engine = SparkEngine(spark, placement="partitions", scratch=str(scratch))
    db = Database(DatabaseState(engine))
    db.load(text=closure(type_="number"))
    insert(db, "edge", [(1, 2), (2, 3)])
    assert list(scratch.glob("*/*"))
    engine.close()
    assert not scratch.exists()


def test_jobs_are_shown_with_their_commit(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: dict[str, list[str]] = {}
    context = spark.sparkContext
    group = type(context).setJobGroup

    def note(self: Any, name: str, text: str) -> None:
        shown.setdefault(name, []).append(text)
        assert "corollary" in self.getJobTags()
        group(self, name, text)

    monkeypatch.setattr(type(context), "setJobGroup", note)
    db = corollary.open(None, spark=spark, placement="partitions")
    db.load(text=closure(type_="number"))
    for edges in ([(1, 2), (2, 3), (3, 4)], [(4, 5)]):
        insert(db, "edge", edges)
    name = f"corollary/in memory/{db.commits}"
    assert "maintain reach" in shown[name]
    assert context.statusTracker().getJobIdsForGroup(name)
    assert "corollary" not in context.getJobTags()


def test_what_the_user_says_of_jobs_stays(spark: Any) -> None:
    context = spark.sparkContext
    said = session.JOB_PROPERTIES
    for own in (("mine", "nightly"), None):
        if own is None:
            for name in said:
                context.setLocalProperty(name, None)
        else:
            context.setJobGroup(*own, interruptOnCancel=True)
            spark.addTag("corollary")
        before, tags = [context.getLocalProperty(name) for name in said], spark.getTags()
        with job_group("/data/sales", 3), describe_jobs(spark, "outer"):
            with describe_jobs(spark, "inner, too", "tag"):
                assert [context.getLocalProperty(name) for name in said[:2]] == [
                    "corollary/sales/3",
                    "inner, too",
                ]
                assert {"corollary", "tag"} <= spark.getTags()
            assert context.getLocalProperty(said[1]) == "outer"
            assert "corollary" in spark.getTags()
        assert [context.getLocalProperty(name) for name in said] == before
        assert spark.getTags() == tags
        spark.removeTag("corollary")


def test_jobs_that_do_not_end_are_left_behind(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "CANCEL_MAX_SECONDS", 0.3)
    stays = Event()
    try:
        with pytest.raises(TimeoutError):
            session.run_jobs(spark, "wait", stays.wait, seconds=0.01)
    finally:
        stays.set()


def test_a_failure_leaves_everything_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch)
    db = corollary.open(None, limits=Limits(rounds=4))
    db.load(
        text=""".decl n(x: number) .decl half(x: number, y: number)
.decl up(x: number)
half(x, y) :- n(x), y = 100 / x.
up(x) :- n(x). up(x + 1) :- up(x), x > 90."""
    )
    insert(db, "n", [(1,), (7,)])
    with pytest.raises(EvaluationError, match=r"division by zero in the rule `half.*for x = 0"):
        insert(db, "n", [(0,), (2,)])
    with pytest.raises(LimitError, match="4 rounds"):
        insert(db, "n", [(91,)])
    assert sorted(db.relation("half").rows()) == [(1, 100), (7, 14)]
    assert sorted(db.relation("up").rows()) == [(1,), (7,)]
