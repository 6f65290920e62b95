"""What the Spark engine needs, what it leaves alone, and what it says if something is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.core.engine import Limits
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
    engine = SparkEngine(spark, placement="partitions", scratch=scratch)
    db = Database(DatabaseState(engine))
    db.load(text=closure(type_="number"))
    insert(db, "edge", [(1, 2), (2, 3)])
    assert list(scratch.glob("*/*"))
    engine.close()
    assert not scratch.exists()


def test_jobs_are_shown_with_their_relation(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    context = spark.sparkContext
    monkeypatch.setattr(type(context), "setJobDescription", lambda _, text: shown.append(text))
    db = corollary.open(None, spark=spark, placement="partitions")
    db.load(text=closure(type_="number"))
    insert(db, "edge", [(1, 2), (2, 3), (3, 4)])
    insert(db, "edge", [(4, 5)])
    assert any(text and "maintain reach" in text for text in shown)


def test_the_description_of_the_user_stays(spark: Any) -> None:
    context = spark.sparkContext
    for own in ("nightly", None):
        context.setJobDescription(own)
        with describe_jobs(spark, "outer"), describe_jobs(spark, "inner", "tag"):
            assert context.getLocalProperty("spark.job.description") == "inner"
        assert context.getLocalProperty("spark.job.description") == own


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
