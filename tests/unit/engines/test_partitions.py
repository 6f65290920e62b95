"""Strata that are maintained elsewhere: share by share, or in another engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
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
from corollary.engines.spark.partitioned import handle
from corollary.engines.spark.strata import driver, versions
from corollary.engines.spark.strata.messages import PartitionRequest, partitions_of
from support.cases.change_runs import CASES, VARIANTS, name_of, run_case
from support.cases.changes import ChangeCase
from support.generators.scenarios import Scenario, judge, scenarios, unhurried
from support.maintained_database import (
    CLOSURES,
    MIXED,
    Judged,
    apply,
    closure,
    delete,
    flips,
    insert,
    opened,
    pairs,
)
from support.selection import examples, sampled
from support.spark.in_process_partitions import InProcess, share_out
from support.warehouse_scenarios import keep, store_of

EXAMPLES = examples(4, 20)
PLACEMENTS = ("tasks", "partitions")
KINDS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "stored": (("auto", "ranked", "dred", "recompute", "pf", "epf", MIXED), {}),
    "rules": (("auto", "ranked", "epf", "dred", MIXED), {"with_rules": True}),
    "rules, virtual": (("auto", "epf", "pf", MIXED), {"with_rules": True, "with_virtual": True}),
}


@pytest.mark.smoke
@pytest.mark.matrix(3)
@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_maintained_is_recomputed(
    kind: str, placement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    algorithms, options = KINDS[kind]
    counts: Counter[str] = Counter()
    share_out(monkeypatch, placement)
    before = InProcess.jobs

    @unhurried(EXAMPLES)
    @given(scenarios(algorithms, **options))
    def run(scenario: Scenario) -> None:
        counts.update(judge(scenario))

    run()
    assert counts["steps"] >= EXAMPLES
    assert counts["changed"] >= EXAMPLES // 2
    assert InProcess.jobs > before


@pytest.mark.slow
@pytest.mark.matrix(3)
@pytest.mark.parametrize(
    ("placement", "apart"),
    [("tasks", driver.DISTRIBUTED_MIN_TUPLES), ("tasks", 1), ("partitions", 1)],
)
@pytest.mark.parametrize("kind", KINDS)
def test_it_lasts(
    kind: str, placement: str, apart: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    algorithms, options = KINDS[kind]
    counts: Counter[str] = Counter()
    share_out(monkeypatch, placement)
    monkeypatch.setattr(driver, "DISTRIBUTED_MIN_TUPLES", apart)
    monkeypatch.setattr(handle, "DISTRIBUTED_MIN_TUPLES", apart)
    before = InProcess.jobs

    @unhurried(EXAMPLES // 2)
    @given(scenarios(algorithms, **options), st.integers(0, 999))
    def run(scenario: Scenario, seed: int) -> None:
        counts.update(keep(scenario, str(tmp_path / "w"), seed))

    run()
    assert counts["steps"] >= EXAMPLES // 2
    assert InProcess.jobs > before


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("variant", sampled(VARIANTS, 80))
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_cases(
    case: ChangeCase, variant: str, placement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    share_out(monkeypatch, placement)
    run_case(case, "as written", variant)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLOSURES)
def test_flips(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch)
    judged = Judged(closure(kind, "number"), "auto")
    before = InProcess.jobs
    for step in flips(3, 6, examples(15, 40)):
        judged.step(step)
    has_pivot = kind != "non-linear"
    assert (InProcess.jobs > before) == has_pivot


@pytest.mark.slow
@pytest.mark.matrix(6)
@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize(("then", "used"), [(8, 8), (3, 2), (1, 2)])
def test_the_tasks_of_today_are_used(
    placement: str, then: int, used: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [*flips(3, 9, 20)]
    asked = set[int]()
    run_job, run_slices = InProcess._run_job, InProcess._run_slices

    def note_job(self: InProcess, request: PartitionRequest) -> list[bytes]:
        asked.add(request.partitions)
        return run_job(self, request)

    def note_slices(self: InProcess, slices: Mapping[int, bytes], title: str) -> list[bytes]:
        asked.add(len(slices))
        return run_slices(self, slices, title)

    monkeypatch.setattr(InProcess, "_run_job", note_job)
    monkeypatch.setattr(InProcess, "_run_slices", note_slices)
    share_out(monkeypatch, placement, 2)
    judged = Judged(closure(type_="number"), "auto", place=str(tmp_path / "w"))
    for step in steps[:12]:
        judged.step(step)
    store_of(judged.db).fold(judged.db._state)
    assert max(asked) == 2
    share_out(monkeypatch, placement, then)
    judged.reopen()
    judged.step(steps[12])
    store_of(judged.db).fold(judged.db._state)
    asked.clear()
    for step in steps[13:]:
        judged.step(step)
    # In `tasks`, a partition is a task; otherwise a task takes several partitions.
    assert max(asked) == (used if placement == "tasks" else min(then, used))
    judged.reopen()
    judged.step(steps[13])


@pytest.mark.slow
def test_files_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch)
    monkeypatch.setattr(versions, "LOG_MAX_ENTRIES", 10)
    db = opened(closure(type_="number"))
    counts = []
    for step in flips(5, 8, 80):
        apply(db, step)
        counts.append(sum(1 for _ in db._state.engine._root.rglob("*")))
    assert max(counts) <= 3 * 6 + 10 * 4  # bases, and entries of the log
    with db.transaction(is_dry=True) as tx:
        tx.insert("edge", [(90, 91)])
    assert sum(1 for _ in db._state.engine._root.rglob("*")) == counts[-1]
    root = db._state.engine._root
    db.close()
    assert not root.exists()


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_what_is_not_concerned_stays_where_it_is(
    placement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    share_out(monkeypatch, placement)
    db = opened(f"{closure()}.decl other(x: symbol)\n.decl seen(x: symbol)\nseen(x) :- other(x).\n")
    insert(db, "edge", pairs("ab bc"))
    monkeypatch.setattr(
        db._state.engine, "_fetch_copy", lambda name: pytest.fail(f"{name} was brought")
    )
    assert insert(db, "other", [("x",)]).changes["reach"].counts == (0, 0)
    assert insert(db, "edge", pairs("cd")).changes["reach"].counts == (3, 0)


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
