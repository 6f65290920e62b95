"""Strata that are maintained in tasks, partition by partition; the rest by probes."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corollary.core.arrow import arrow_type, to_python
from corollary.core.program import Relation
from corollary.core.types import Kind, Type
from corollary.engines.spark import engine, placer, stratum
from corollary.engines.spark.jobs import partitions_of
from corollary.engines.spark.relation import files as partition_files
from corollary.engines.spark.relation import handle, partitioning
from support.cases.change_runs import CASES, VARIANTS, name_of, run_case
from support.cases.changes import ChangeCase
from support.generators.scenarios import Scenario, judge, scenarios, unhurried
from support.maintained_database import (
    CLOSURES,
    MIXED,
    Judged,
    closure,
    delete,
    flips,
    insert,
    opened,
    pairs,
)
from support.selection import examples, sampled
from support.spark.in_process_partitions import SHARES, InProcess, share_out
from support.warehouse_scenarios import keep, store_of

EXAMPLES = examples(4, 20)
KINDS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "stored": (("auto", "ranked", "dred", "recompute", "pf", "epf", MIXED), {}),
    "rules": (("auto", "ranked", "epf", "dred", MIXED), {"with_rules": True}),
    "rules, virtual": (("auto", "epf", "pf", MIXED), {"with_rules": True, "with_virtual": True}),
}


@pytest.mark.smoke
@pytest.mark.matrix(3)
@pytest.mark.parametrize("kind", KINDS)
def test_maintained_is_recomputed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    algorithms, options = KINDS[kind]
    counts: Counter[str] = Counter()
    share_out(monkeypatch)
    before = InProcess.strata

    @unhurried(EXAMPLES)
    @given(scenarios(algorithms, **options))
    def run(scenario: Scenario) -> None:
        counts.update(judge(scenario))

    run()
    assert counts["steps"] >= EXAMPLES
    assert counts["changed"] >= EXAMPLES // 2
    assert InProcess.strata > before


@pytest.mark.slow
@pytest.mark.matrix(3)
@pytest.mark.parametrize("apart", [handle.DISTRIBUTED_MIN_TUPLES, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_it_lasts(kind: str, apart: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    algorithms, options = KINDS[kind]
    counts: Counter[str] = Counter()
    share_out(monkeypatch)
    monkeypatch.setattr(handle, "DISTRIBUTED_MIN_TUPLES", apart)
    before = InProcess.strata

    @unhurried(EXAMPLES // 2)
    @given(scenarios(algorithms, **options), st.integers(0, 999))
    def run(scenario: Scenario, seed: int) -> None:
        counts.update(keep(scenario, str(tmp_path / "w"), seed))

    run()
    assert counts["steps"] >= EXAMPLES // 2
    assert InProcess.strata > before


@pytest.mark.parametrize("is_copied", [True, False])
@pytest.mark.parametrize("variant", sampled(VARIANTS, 80))
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_cases(
    case: ChangeCase, variant: str, is_copied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    share_out(monkeypatch)
    if not is_copied:  # recursion by rounds of probes
        monkeypatch.setattr(placer, "WORKER_MEMORY", -1)
    run_case(case, "as written", variant)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLOSURES)
def test_flips(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch)
    judged = Judged(closure(kind, "number"), "auto")
    before = InProcess.strata
    for step in flips(3, 6, examples(15, 40)):
        judged.step(step)
    has_pivot = kind != "non-linear"
    assert (InProcess.strata > before) == has_pivot


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [1, 3, 8])
def test_partitions_outlast_the_number_of_tasks(
    tasks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [*flips(3, 9, 20)]
    share_out(monkeypatch, shares=2)
    judged = Judged(closure(type_="number"), "auto", place=str(tmp_path / "w"))
    for step in steps[:12]:
        judged.step(step)
    store_of(judged.db).fold(judged.db._state)
    share_out(monkeypatch, shares=tasks)
    judged.reopen()
    before = InProcess.strata
    for step in steps[12:]:
        judged.step(step)
    assert InProcess.strata > before


def test_tasks_are_as_many_as_run_at_once_now(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch)
    monkeypatch.setattr(partitioning, "LEAST_PARTITIONS", 8)
    run, tasks = InProcess._run_tasks, list[int]()

    def count_tasks(self: InProcess, task: Any, requests: Any, title: str) -> list[bytes]:
        if title.startswith("maintain "):
            tasks.append(len(requests))
        return run(self, task, requests, title)

    monkeypatch.setattr(InProcess, "_run_tasks", count_tasks)
    judged = Judged(closure(type_="number"), "auto")
    engine = judged.db._state.engine
    for slots, step in zip((1, 2, 8, 1000, 3), flips(3, 6, 5), strict=True):
        engine._given_count = slots
        judged.step(step)
    assert tasks == [SHARES, 1, 2, 8, 8, 3]  # eight partitions are the tasks' to share
    assert {len(each.partitions) for each in engine.partitioned_files("reach").sets} == {8}


def test_a_column_that_is_not_the_first_is_the_pivot(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch)
    monkeypatch.setattr(handle, "DISTRIBUTED_MIN_TUPLES", 1)
    monkeypatch.setattr(stratum, "INLINE_MAX_TUPLES", 0)
    judged = Judged(closure("right-linear", "number"), "auto")
    before = InProcess.strata
    for step in flips(3, 6, 15):
        judged.step(step)
    assert InProcess.strata > before


def test_a_value_of_many_partitions_is_no_pivot(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch)
    monkeypatch.setattr(partitioning, "PARTITION_TUPLES", 2)
    judged = Judged(closure(type_="number"), "auto")
    star = [(0, n) for n in range(1, 20)]
    for edges in (star, [(0, 30)], [(30, 31)]):
        judged.step(({"edge": {*edges}}, {}))
    sets = judged.db._state.engine.partitioned_files("reach").sets
    assert any(each.heavy for each in sets)


@pytest.mark.slow
def test_files_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch)
    db = opened(closure(type_="number"))
    root = Path(db._state.engine.partition_place.root)
    counts = []
    for added, removed in flips(5, 8, 100):
        with db.transaction() as tx:
            for name, rows in removed.items():
                tx.delete(name, sorted(rows))
            for name, rows in added.items():
                tx.insert(name, sorted(rows))
        counts.append(sum(1 for _ in root.rglob("*")))
    # Edges by either column, paths, ranks, and what is swept away when there is enough of it.
    bound = 4 * SHARES * partition_files.MERGE_MIN_FILES + engine.SWEEP_MIN_FILES
    assert max(counts) <= bound
    for number in range(engine.SWEEP_MIN_FILES):
        with db.transaction(is_dry=True) as tx:
            tx.insert("edge", [(90, number)])
    insert(db, "edge", [(90, 91)])
    assert sum(1 for _ in root.rglob("*")) <= bound
    db.close()
    assert not root.exists()


def test_what_was_empty_is_read_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch)
    db = opened(closure())
    tx = insert(db, "edge", pairs("ab bc cd"))
    change = tx.changes["reach"]
    assert change.counts == (6, 0)
    delete(db, "edge", pairs("bc"))
    assert sorted(to_python(change.added)) == pairs("ab ac ad bc bd cd")
    assert sorted(db.relation("reach").rows()) == pairs("ab cd")


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (Type(Kind.SYMBOL, nullable=True), ["a", None, "b"]),
        (Type(Kind.NUMBER, nullable=True), [1, None, 2]),
        (Type(Kind.FLOAT, nullable=True), [0.5, None, 1.5]),
        (Type(Kind.DATE, nullable=True), [date(2026, 11, 15), None, date(2026, 11, 16)]),
        (Type(Kind.BOOL, nullable=True), [True, None, False]),
    ],
)
def test_null_falls_to_the_first_share(type_: Type, values: list[Any]) -> None:
    relation = Relation("p", ("x",), (type_,), is_derived=True)
    rows = pa.table([pa.array(values, arrow_type(type_))], ["x"])
    found = partitions_of(rows, relation, 0, 1 << 20)
    assert found[1] == 0
    assert found[0] != found[2]
