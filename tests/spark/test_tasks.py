"""Whole strata in the tasks of Spark: one job each, whatever goes wrong in it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import corollary
from corollary.core.arrow import to_python
from corollary.core.engine import Limits
from corollary.database.upkeep.verify import verify
from corollary.engines.spark import resources, stratum
from corollary.engines.spark.engine import SparkEngine
from corollary.engines.spark.relation import handle
from corollary.engines.spark.relation.source import PartitionSource
from corollary.errors import InputError, LimitError
from oracles.evaluation import evaluate
from support.spark.in_process_partitions import share_out
from support.warehouse_scenarios import store_of

CLOSURE = """
.decl e(x: number, y: number)
.decl p(x: number, y: number)
p(x, y) :- e(x, y).
p(x, z) :- p(x, y), e(y, z).
"""
PROGRAM = f"""{CLOSURE}
.decl q(x: number, n: number)
q(x, n) :- e(x, _), n = count : {{ p(x, _) }}.
"""
EDGES = [(n, n + 1) for n in range(20)] + [(7, 3), (15, 11)]


def closure(edges: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """The pairs of nodes with a path between them."""
    found = set(edges)
    while more := {(x, z) for x, y in found for w, z in edges if w == y} - found:
        found |= more
    return found


def jobs(spark: Any, warehouse: Path, commit: int) -> list[tuple[str, int]]:
    """The jobs that the session has run for a commit of a warehouse: title, number of tasks.

    Other tests share the session, and queries of theirs may still end.
    """
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()  # who counts hears of them late
    found = context.statusStore().jobsList(None)
    every = [found.apply(at) for at in range(found.size())]
    group = f"corollary/{warehouse.name}/{commit}"
    own = [each for each in every if each.jobGroup().isDefined() and each.jobGroup().get() == group]
    return [
        (each.description().get(), each.numTasks())
        for each in sorted(own, key=lambda job: job.jobId())
    ]


@pytest.mark.parametrize("most", [resources.REQUEST_MAX_BYTES, 0])
@pytest.mark.oldest
def test_each_task_gets_its_request(spark: Any, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It travels with the task, or with the function if it is very large."""

    def first_and_size(request: bytes) -> bytes:
        return b"%s %d" % (request[:1], len(request))

    monkeypatch.setattr(resources, "REQUEST_MAX_BYTES", most)
    runner = resources.TaskRunner(spark)
    for numbers in ((5, 0, 9), (33,), (1,)):
        requests = {number: bytes([65 + number]) * (1 << number % 20) for number in numbers}
        expected = [first_and_size(each) for each in requests.values()]
        assert runner.run(first_and_size, requests, "measure") == expected
    runner.close()


@pytest.mark.oldest
def test_one_job_maintains_a_stratum(spark: Any, tmp_path: Path) -> None:
    place = tmp_path / "one-job"
    with corollary.open(place, spark=spark, placement="partitions") as db:
        db.load(text=CLOSURE)
        with db.transaction() as tx:
            tx.insert("e", EDGES)
        assert len(jobs(spark, place, db.commits)) == 1
        assert tx.stats["p"].placement == "tasks"
        assert set(db.relation("p").rows()) == closure(EDGES)
        with db.transaction() as tx:
            tx.delete("e", [(7, 8)])
        assert (
            len(jobs(spark, place, db.commits)) == 2
        )  # whether the edge is there, and the stratum
        left = set(EDGES) - {(7, 8)}
        assert set(db.relation("p").rows()) == closure(left)
        assert tx.changes["p"].counts == (0, len(closure(EDGES) - closure(left)))
    with corollary.open(place, spark=spark, placement="partitions") as db:
        assert set(db.relation("p").rows()) == closure(left)
        with db.transaction() as tx:
            tx.insert("e", [(7, 8)])
        assert set(db.relation("p").rows()) == closure(EDGES)


def test_what_one_task_has_stored_is_shared_out_among_more(spark: Any, tmp_path: Path) -> None:
    place = tmp_path / "shared-out"
    with pytest.MonkeyPatch.context() as patch:
        share_out(patch, "partitions", 1)
        with corollary.open(place) as db:
            db.load(text=CLOSURE)
            with db.transaction() as tx:
                tx.insert("e", EDGES)
            store_of(db).fold(db._state)
    with corollary.open(place, spark=spark, placement="partitions") as db:
        with db.transaction() as tx:
            tx.delete("e", [(7, 8)])
        assert tx.stats["p"].placement == "tasks"
        assert ("maintain p", spark.sparkContext.defaultParallelism) in jobs(
            spark, place, db.commits
        )
        assert set(db.relation("p").rows()) == closure({*EDGES} - {(7, 8)})


def test_tasks_write_what_lasts(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        pytest.fail("the view was brought to the driver")

    place = tmp_path / "what-lasts"
    with corollary.open(place, spark=spark, placement="partitions") as db:
        db.load(text=f"{CLOSURE}.output p")
        with monkeypatch.context() as patch:
            patch.setattr(handle, "DISTRIBUTED_MIN_TUPLES", 1)
            patch.setattr(PartitionSource, "read", refused)
            patch.setattr(stratum, "INLINE_MAX_TUPLES", 0)
            with db.transaction() as tx:
                tx.insert("e", EDGES)
            # The stratum; the files of its change, and of ranks.
            assert len(jobs(spark, place, db.commits)) == 3
            db.publish(tx)
            assert len(jobs(spark, place, db.commits)) == 4
            store_of(db).fold(db._state)
    lists = sorted(each.name for each in place.glob("data/*/*.parts"))
    assert lists == ["1.parts", "2.parts", "snapshot-0.parts"]  # the last one is that of the edges
    shown = to_python(DeltaTable(str(place / "tables/p")).to_pyarrow_table())
    assert sorted(shown) == sorted(closure(EDGES))
    with corollary.open(place, engine="local") as db:
        assert not verify(store_of(db).warehouse).findings
    for file in place.glob("data/*/index-*"):
        file.unlink()
    with corollary.open(place, engine="local") as db:
        assert set(db.relation("p").rows()) == closure(EDGES)


def test_nothing_to_share_out_never_starts_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        pytest.fail("a session was asked for")

    monkeypatch.setattr("corollary.engines.spark.resources.private_session", refused)
    with corollary.open(None) as db:
        assert isinstance(db._state.engine, SparkEngine)
        db.load(text=PROGRAM)
        with db.transaction() as tx:
            tx.insert("e", EDGES)
        assert set(db.relation("p").rows()) == closure(EDGES)


def test_errors_of_tasks_are_errors_of_the_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch)
    text = """
.decl e(x: number, y: number)
.decl p(x: number, y: number)
p(x, y) :- e(x, y).
p(x, 10 / z) :- p(x, y), e(y, z).
"""
    with corollary.open(None) as db:
        db.load(text=text)
        with db.transaction() as tx:
            tx.insert("e", [(1, 2), (2, 5)])
        before = set(db.relation("p").rows())
        with pytest.raises(InputError, match="division by zero"), db.transaction() as tx:
            tx.insert("e", [(2, 0)])
        assert set(db.relation("p").rows()) == before
        with db.transaction() as tx:
            tx.insert("e", [(2, 2)])
        assert set(db.relation("p").rows()) > before


def test_limits_hold_in_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch)
    with corollary.open(None, limits=Limits(rounds=5)) as db:
        db.load(text=PROGRAM)
        with pytest.raises(LimitError, match="5 rounds"), db.transaction() as tx:
            tx.insert("e", EDGES)
        assert not db.relation("p").rows()


# --- best tuples of a recursion, groups, rounds --------------------------------------------------

BEST = """
.decl edge(x: number, y: number, w: number)
.decl sp(x: number, y: number, d: number)
sp(x, y, w) :- edge(x, y, w).
sp(x, z, d + w) :- sp(x, y, d), edge(y, z, w).
sp(x, y, d1) <= sp(x, y, d2) :- d2 <= d1.
.decl label(x: number, l: number)
label(x, x) :- edge(x, _, _).
label(y, l) :- label(x, l), edge(x, y, _).
label(x, l1) <= label(x, l2) :- l2 <= l1.
.decl paths(x: number, n: number)
paths(x, n) :- edge(x, _, _), x < 6, n = count : { edge(x, y, _), x < y, y < 6, paths(y, _) }.
.decl last(x: number)
last(0).
last(y) :- last(x), edge(x, y, _), y < 9.
last(x) <= last(y) :- edge(x, y, _), x < y.
"""
PRAGMA = '.pragma "subsumption" "rounds"\n'
MAINTAINED = ("sp", "label", "paths", "last")
WEIGHTED = [(n, n + 1, 3 + n % 4) for n in range(10)] + [(0, 5, 9), (6, 2, 1), (3, 7, 2), (7, 3, 1)]


def test_best_tuples_groups_and_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch)
    text = PRAGMA + BEST
    with corollary.open(None) as db:
        db.load(text=text)
        edges = set(WEIGHTED)
        with db.transaction() as tx:
            tx.insert("edge", WEIGHTED)
        # The source of a path is a key that rules hand on; labels have no such column.
        assert tx.stats["sp"].placement == "tasks"
        assert {tx.stats[name].placement for name in MAINTAINED[1:]} == {"partitions"}
        gone, back = {(3, 7, 2), (0, 1, 3)}, {(2, 9, 1)}
        for inserts, deletes in ((back, gone), (gone, back)):
            with db.transaction() as tx:
                tx.delete("edge", deletes & edges)
                tx.insert("edge", inserts)
            edges = (edges - deletes) | inserts
            expected = evaluate(PRAGMA + BEST, {"edge": edges})
            for name in MAINTAINED:
                assert set(db.relation(name).rows()) == expected[name], name
