"""Bulk steps on Spark: views of partitioned relations by queries, their results in partitions."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

import corollary
from corollary.core.engine import TUPLE_BYTES
from corollary.database.database import state_of
from corollary.engines.spark.bulk import steps
from corollary.engines.spark.engine import SparkEngine
from corollary.engines.spark.relation import partitioning
from corollary.errors import CorollaryError, EvaluationError
from support.spark.in_process_partitions import forbid_collecting

if TYPE_CHECKING:
    from pathlib import Path

    from corollary.database.database import Database

BASE = """
.decl sale(id: number, product: number, amount: number?, price: decimal(12,2), weight: float,
    units: unsigned, long: decimal(38,2))
.decl product(id: number, category: symbol?)
.decl edge(x: number, y: number)
"""

VIEWS = {
    "joins": """
.decl line(id: number, category: symbol?, amount: number?, cost: decimal(14,2), day: symbol)
line(i, c, a, p * 1.19, cat("d", to_string(i))) :-
    sale(i, q, a, p, _, _, _), product(q, c), i % 7 != 3.
.decl rest(id: number, square: number)
rest(i, i ^ 2) :- sale(i, q, _, _, _, _, _), !product(q, "a"), upper("x") = "X".
""",
    "groups of a join": """
.decl total(category: symbol, amounts: number, mean: float)
total(c, s, m) :-
    product(_, c),
    s = sum a : { sale(_, p, a, _, _, _, _), product(p, c) },
    m = mean a : { sale(_, p, a, _, _, _, _), product(p, c) }.
""",
    "groups of a virtual view": """
.decl line(category: symbol?, id: number, amount: number?, weight: float) virtual
line(c, i, a, w) :- sale(i, p, a, _, w, _, _), product(p, c).
.decl sums(category: symbol?, amounts: number, weight: float, most: number, lines: number)
sums(c, s, w, m, n) :-
    line(c, _, _, _),
    s = sum a : { line(c, _, a, _) },
    w = sum x : { line(c, _, _, x) },
    m = max a : { line(c, _, a, _) },
    n = count : { line(c, _, _, _) }.
""",
    "groups": """
.decl other(product: number, weight: float, mean: float, units: unsigned, longs: decimal(38,2),
    least: number, lines: number)
other(q, w, v, u, l, m, n) :-
    product(q, _),
    w = sum x : { sale(_, q, _, _, x, _, _) },
    v = mean x : { sale(_, q, _, _, x, _, _) },
    u = sum y : { sale(_, q, _, _, _, y, _) },
    l = sum z : { sale(_, q, _, _, _, _, z) },
    m = min a : { sale(_, q, a, _, _, _, _) },
    n = count : { sale(_, q, _, _, _, _, _) }.
""",
    "recursion without a pivot": """
.decl pair(x: number, y: number)
pair(x, y) :- edge(x, y).
pair(x, z) :- pair(x, y), pair(y, z), !product(x, "b").
""",
}


def sales(count: int) -> list[tuple[Any, ...]]:
    return [
        (
            at,
            at % 9,
            None if at % 11 == 0 else at * 7 - 300,
            Decimal(at * 13 % 1000) / 100,
            (at % 10) / 3 + (1e16 if at % 5 == 0 else -1e16 if at % 5 == 1 else 0),
            2**62 // (at + 1),
            Decimal("9" * 30 + ".25") * (-1 if at % 2 else 1) + at,
        )
        for at in range(count)
    ]


FACTS = {
    "sale": sales(120),
    "product": [(at, ("a", "b", "c", None)[at % 4]) for at in range(8)],
    "edge": [(at % 6, at * 5 % 7) for at in range(1, 8)],
}


def computed(views: str, monkeypatch: pytest.MonkeyPatch, **options: Any) -> dict[str, list[str]]:
    """Return the views of facts that were there before."""
    db = corollary.open(None, **options)
    try:
        db.load(text=BASE)
        with db.transaction() as tx:
            for name, rows in FACTS.items():
                tx.insert(name, rows)
        with monkeypatch.context() as patched:
            forbid_collecting(patched)
            changes = db.load(text=BASE + views).changes
        return {name: sorted(map(repr, db.relation(name).rows())) for name in changes}
    finally:
        db.close()


@pytest.mark.matrix(4)
@pytest.mark.parametrize("placement", ["partitions", "auto"])
@pytest.mark.parametrize("kind", VIEWS)
def test_views_of_partitioned_relations(
    kind: str, placement: str, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are computed without reading a relation on the driver, where some are there, too.

    There, what a relation leads to is looked up in partitions, whatever the sizes.
    """
    expected = computed(VIEWS[kind], monkeypatch, engine="local")
    options = {"placement": placement, "driver_memory": 5 * TUPLE_BYTES, "bulk": "always"}
    if placement == "auto":
        monkeypatch.setattr(steps, "SEMI_JOIN_RATIO", 0)
    found = computed(VIEWS[kind], monkeypatch, spark=spark, **options)
    assert found == expected
    assert all(expected.values())


@pytest.mark.long
def test_results_with_heavy_values(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Computed, computed again, and subtracted, while inputs and results are spread."""
    monkeypatch.setattr(partitioning, "PARTITION_TUPLES", 16)
    text = """
.decl edge(x: number, y: number)
.decl pair(x: number, y: number)
pair(x, y) :- edge(x, y).
pair(x, z) :- pair(x, y), pair(y, z).
.decl most(x: number, n: number)
most(x, n) :- edge(x, _), n = count : { pair(x, _) }.
"""
    edges = [*((1, at) for at in range(2, 40)), (39, 50), (61, 62)]
    found = []
    for options in (
        {"engine": "local"},
        {"spark": spark, "placement": "partitions", "bulk": "always", "algorithm": "recompute"},
    ):
        with corollary.open(None, **options) as db:
            db.load(text=text)
            states = []
            for added, removed in ((edges, []), ([(62, 63), (1, 90)], edges[5:9])):
                with db.transaction() as tx:
                    tx.delete("edge", removed)
                    tx.insert("edge", added)
                states += [sorted(db.relation(name).rows()) for name in ("pair", "most")]
            engine = state_of(db).engine
            if isinstance(engine, SparkEngine):
                for name in ("edge", "pair"):
                    files = engine.partitioned_files(name)
                    assert files is not None
                    assert files.sets[0].heavy is not None, name
            found.append(states)
    assert found[0] == found[1]


MISSING = {
    "a relation": "q(i, 10 / (i - 5)) :- edge(i, _).",
    "a join": "q(i, 10 / (y - 8)) :- edge(i, y), product(y, _), i != 4.",
    "a group": "q(i, s) :- product(i, _), s = sum 10 / (y - 8) : { edge(i, y) }.",
}


@pytest.mark.parametrize("rule", MISSING.values(), ids=MISSING.keys())
def test_a_missing_value_is_the_error_that_the_local_engine_raises(
    spark: Any, monkeypatch: pytest.MonkeyPatch, rule: str
) -> None:
    """It is found among the rows that lack one: no relation is read on the driver."""
    text = f"{BASE}.decl q(i: number, r: number)\n{rule}"
    edges = [(at, at * 7 % 13 + 1) for at in range(40)]
    messages = []
    for options in ({"engine": "local"}, {"placement": "partitions", "bulk": "always"}):
        if "bulk" in options:
            forbid_collecting(monkeypatch)
        with corollary.open(None, spark=spark, **options) as db:  # type: ignore[call-overload]
            db.load(text=BASE)
            with db.transaction() as tx:
                tx.insert("edge", edges)
                tx.insert("product", [(at, None if at % 3 else "a") for at in range(20)])
            with pytest.raises(EvaluationError) as raised:
                db.load(text=text)
            messages.append(str(raised.value))
            assert len(db.relation("edge")) == len(edges)
    assert messages[0] == messages[1]


# --- limits and interrupts -----------------------------------------------------------------------

NUMBER = ".decl number(x: number)\n"
LENGTHY = """
.decl pair(x: number, y: number)
pair(x, y) :- number(x), number(y), number(z), number(w), x + y + z + w < 0.
"""
"""So many combinations that the query takes a while, and not more than that.

Spark cancels the job at once, but a task that multiplies rows does not look before it has ended,
and holds its core until then.
"""

NUMBERS = range(120)
SECONDS = 120
"""More than enough to end."""


@pytest.fixture
def place(tmp_path: Path, spark: Any) -> Path:
    """Return a warehouse with numbers."""
    place = tmp_path / "warehouse"
    with opened(place, spark) as db:
        db.load(text=NUMBER)
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


@pytest.mark.long
def test_a_limit_of_seconds_cancels_a_query(place: Path, spark: Any) -> None:
    with opened(place, spark, limits=corollary.Limits(seconds=2)) as db:
        began = time.monotonic()
        with pytest.raises(CorollaryError, match="2 seconds"):
            db.load(text=NUMBER + LENGTHY)
        assert time.monotonic() - began < SECONDS
        check_clean(db, spark)
    check_goes_on(place, spark)


@pytest.mark.long
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
                db.load(text=NUMBER + LENGTHY)
        finally:
            thread.join()
            signal.signal(signal.SIGINT, before)
        check_clean(db, spark)
    check_goes_on(place, spark)


def test_views_move_to_partitions_when_they_grow(spark: Any) -> None:
    """A view that fits the budget at first takes what a query adds, and stays right."""
    rules = """
.decl edge(x: number, y: number)
.decl two(x: number, z: number)
two(x, z) :- edge(x, y), edge(y, z).
.decl ends(x: number) virtual
ends(x) :- two(x, _), !edge(x, x).
"""
    chance = random.Random(5)
    edges = [(chance.randrange(60), chance.randrange(60)) for _ in range(400)]
    options = {"spark": spark, "driver_memory": 300 * TUPLE_BYTES, "bulk": "always"}
    with (
        corollary.open(None, engine="local") as here,
        corollary.open(None, **options) as there,  # type: ignore[call-overload]
    ):
        for db in (here, there):
            db.load(text=rules)
        for first, last in ((0, 10), (10, 400)):
            changes = []
            for db in (here, there):
                with db.transaction() as tx:
                    tx.insert("edge", edges[first:last])
                    tx.delete("edge", edges[:first:7])
                changes.append(tx.changes["two"].counts)
            assert changes[0] == changes[1]
            for name in ("two", "ends"):
                assert sorted(there.relation(name).rows()) == sorted(here.relation(name).rows())
        assert state_of(there).engine.residency("two").place == "partitions"
