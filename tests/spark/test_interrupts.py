"""Limits and Ctrl-C end the queries of Spark SQL that run for a step, and leave a clean state."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import corollary
from corollary.errors import CorollaryError

if TYPE_CHECKING:
    from pathlib import Path

    from corollary.database.database import Database

pytestmark = pytest.mark.spark

BASE = ".decl number(x: number)\n"
ENDLESS = """
.decl pair(x: number, y: number)
pair(x, y) :- number(x), number(y), number(z), number(w), x + y + z + w < 0.
"""
"""Each of more combinations is tried than any machine can try while a test runs."""

NUMBERS = range(3_000)
SECONDS = 120
"""More than enough to end, and nothing to what the query would take."""


@pytest.fixture
def place(tmp_path: Path, spark: Any) -> Path:
    """Return a warehouse with numbers."""
    place = tmp_path / "warehouse"
    with opened(place, spark) as db:
        db.load(text=BASE)
        with db.transaction() as tx:
            tx.insert("number", [(each,) for each in NUMBERS])
    return place


def opened(place: Path, spark: Any, **options: Any) -> Database:
    return corollary.open(place, spark=spark, placement="partitions", bulk="always", **options)


def active_jobs(spark: Any) -> list[int]:
    return list(spark.sparkContext.statusTracker().getActiveJobsIds())


def has_jobs(spark: Any, wanted: bool) -> bool:
    """Wait until jobs run, or none does."""
    ends = time.monotonic() + SECONDS
    while bool(active_jobs(spark)) is not wanted:
        if time.monotonic() > ends:
            return not wanted
        time.sleep(0.05)
    return wanted


def check_clean(database: Database, spark: Any) -> None:
    """See that nothing runs, and nothing has changed."""
    assert not has_jobs(spark, False)
    assert not spark.sparkContext.getJobTags()
    assert len(database.relation("number")) == len(NUMBERS)


def check_goes_on(place: Path, spark: Any) -> None:
    with opened(place, spark) as db:
        with db.transaction() as tx:
            tx.insert("number", [(-1,)])
        assert len(db.relation("number")) == len(NUMBERS) + 1


def test_a_limit_of_seconds_cancels_a_query(place: Path, spark: Any) -> None:
    with opened(place, spark, limits=corollary.Limits(seconds=3)) as db:
        began = time.monotonic()
        with pytest.raises(CorollaryError, match="3 seconds"):
            db.load(text=BASE + ENDLESS)
        assert time.monotonic() - began < SECONDS
        check_clean(db, spark)
    check_goes_on(place, spark)


def test_an_interrupt_cancels_a_query(place: Path, spark: Any) -> None:
    """Also where Spark's own handler, which cancels all jobs, has been replaced."""

    def interrupt() -> None:
        if has_jobs(spark, True):
            os.kill(os.getpid(), signal.SIGINT)

    with opened(place, spark) as db:
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        thread = threading.Thread(target=interrupt)
        try:
            thread.start()
            with pytest.raises(KeyboardInterrupt):
                db.load(text=BASE + ENDLESS)
        finally:
            thread.join()
            signal.signal(signal.SIGINT, before)
        check_clean(db, spark)
    check_goes_on(place, spark)
