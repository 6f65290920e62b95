"""Loops that follow a trail: walked or not, the same tuples come in the same rounds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given

from corollary.core import engine as core_engine
from corollary.core.engine import Limits
from corollary.engines.local.evaluation import breadth_first
from corollary.engines.local.evaluation.derivation import Derivation
from corollary.engines.local.evaluation.linear_loops import find_linear_loop
from corollary.errors import LimitError
from support.cases.change_runs import CASES, name_of, run_case
from support.cases.changes import ChangeCase
from support.cases.narrow_loops import commit, everything, seen_loops
from support.generators.scenarios import Scenario, judge, scenarios, unhurried
from support.maintained_database import opened
from support.payload_check import check_payload
from support.selection import examples, sampled

REACH = """
.decl edge(x: number, y: number)
.decl start(x: number)
.decl reach(x: number)
reach(x) :- start(x).
reach(y) :- reach(x), edge(x, y).
.output reach
"""
CLOSURE = """
.decl edge(x: number, y: number)
.decl start(x: number)
.decl tc(x: number, y: number)
tc(x, y) :- start(x), edge(x, y).
tc(x, z) :- tc(x, y), edge(y, z).
.output tc
"""


@contextmanager
def walking(is_eager: bool, *, tuples: int = 3, few: int = 64) -> Iterator[None]:
    """Walk whenever a loop follows a trail, in bits of so many tuples, or never."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(breadth_first, "ROUND_COST_TUPLES", 1 << 60 if is_eager else 0)
        patch.setattr(breadth_first, "FLUSH_TUPLES", tuples)
        patch.setattr(breadth_first, "NARROW_ROUND_MAX_TUPLES", few)
        patch.setattr(breadth_first, "LEVEL_MAX_TUPLES", few)
        yield


# -------------------------------------------------------------------------------- which loops are


TRAILS = {
    "reach(y) :- reach(x), edge(x, y).": True,
    "reach(y) :- edge(x, y), reach(x).": True,
    "reach(y) :- reach(x), edge(y, x), start(y).": True,
    "reach(y) :- reach(x), edge(x, y), !start(y).": True,
    "reach(y) :- reach(x), edge(x, y). reach(y) :- reach(x), edge(y, x).": True,
    "reach(y) :- reach(x), edge(x, y), x < y.": False,
    "reach(y) :- reach(x), edge(x, z), edge(z, y).": False,
    "reach(y) :- reach(x), reach(z), edge(x, y), edge(z, y).": False,
    "reach(x + 1) :- reach(x), edge(x, x).": False,
    "reach(7) :- reach(x), edge(x, _).": False,
}


@pytest.mark.parametrize("rules", TRAILS)
def test_linear_recursion_along_a_relation_is_a_trail(rules: str) -> None:
    text = REACH.replace("reach(y) :- reach(x), edge(x, y).", rules)
    for algorithm in ("auto", "recompute"):
        db = opened(text, algorithm)
        commit(db, {"edge": [(1, 2), (2, 3)], "start": [(1,)]})
        loops = seen_loops(db, {"edge": [(3, 4), (4, 5)]})
        assert loops
        assert all((find_linear_loop(each, ()) is not None) == TRAILS[rules] for each in loops)


def test_columns_that_are_copied_do_not_matter() -> None:
    db = opened(CLOSURE, "recompute")
    (loop,) = seen_loops(db, {"edge": [(1, 2), (2, 3)], "start": [(1,)]})
    trail = find_linear_loop(loop, ())
    assert trail is not None
    assert trail.column == 1
    assert find_linear_loop(loop, {"edge"}) is None  # a table that another invocation may exchange


# ------------------------------------------------------------------------------ what comes of them


@pytest.mark.parametrize("variant", sampled(["auto", "ranked", "dred", "recompute"], 30))
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_cases_of_changes(case: ChangeCase, variant: str) -> None:
    with walking(True):
        run_case(case, "as written", variant)


@pytest.mark.slow
@pytest.mark.parametrize("algorithms", [("auto", "recompute"), ("ranked", "dred")])
def test_random_programs(algorithms: tuple[str, ...]) -> None:
    counts: Counter[str] = Counter()

    @unhurried(examples(5, 30))
    @given(scenarios(algorithms))
    def run(scenario: Scenario) -> None:
        with walking(True, few=2):
            counts.update(judge(scenario))

    run()
    assert counts["steps"] >= examples(8, 60)


def graph(seed: int) -> tuple[list[tuple[int, int]], random.Random]:
    """Return chains with some branches, shortcuts and ways back."""
    rng = random.Random(seed)
    size = rng.choice([5, 20, 60])
    edges = {(at, at + 1) for at in range(size)}
    for _ in range(rng.randrange(6)):
        edges.add((rng.randrange(size), rng.randrange(2 * size)))
    return sorted(edges), rng


@pytest.mark.parametrize("text", [REACH, CLOSURE], ids=["unary", "binary"])
@pytest.mark.parametrize("algorithm", ["auto", "ranked", "dred", "recompute"])
@pytest.mark.parametrize("seed", sampled(range(8), 8))
def test_tuples_ranks_and_rounds_are_those_of_ordinary_rounds(
    text: str, algorithm: str, seed: int
) -> None:
    told = []
    for is_eager, few in ((False, 64), (True, 64), (True, 2)):
        edges, rng = graph(seed)
        with walking(is_eager, few=few, tuples=rng.choice([1, 7, 1000])):
            db = opened(text, algorithm)
            half = len(edges) // 2
            told.append(
                [
                    everything(db, commit(db, {"edge": edges[:half], "start": [(0,), (3,)]})),
                    everything(db, commit(db, {"edge": edges[half:], "start": [(9,)]})),
                    everything(db, commit(db, {"edge": [(2, 4)]}, {"edge": [edges[half]]})),
                ]
            )
            check_payload(db)
    assert told[0] == told[1] == told[2]


# --------------------------------------------------------------------------------- limits, and cost


@pytest.mark.parametrize("is_eager", [True, False])
@pytest.mark.parametrize("limits", [Limits(rounds=20), Limits(tuples=300)])
def test_limits_hold(is_eager: bool, limits: Limits) -> None:
    with walking(is_eager):
        db = opened(REACH, "auto", limits=limits)
        chain = [(at, at + 1) for at in range(18)]
        commit(db, {"edge": chain, "start": [(0,)]})
        longer = [(at, at + 1) for at in range(18, 300)]
        with pytest.raises(LimitError, match=r"limit of (20 rounds|300 tuples)"):
            commit(db, {"edge": longer})
        assert len(db.relation("reach")) == 19


GROWING = """\
.decl seed(x: number)
.decl n(x: number)
n(x) :- seed(x).
n(x + 1) :- n(x).
"""


@pytest.mark.parametrize("algorithm", ["auto", "dred", "pf", "epf"])
def test_what_has_no_end_is_stopped_without_a_limit(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core_engine, "ROUNDS_MAX", 50)
    db = opened(GROWING, algorithm, limits=Limits())
    with pytest.raises(LimitError, match=r"limit of 50 rounds") as caught:
        commit(db, {"seed": [(1,)]})
    assert "--limit-rounds" in str(caught.value)
    assert len(db.relation("seed")) == 0


def test_a_search_along_a_relation_is_not_taken_for_endless(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(core_engine, "ROUNDS_MAX", 500)
    db = opened(REACH, "auto", limits=Limits())
    commit(db, {"edge": [(at, at + 1) for at in range(20_000)], "start": [(0,)]})
    assert len(db.relation("reach")) == 20_001


def test_a_long_chain_is_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    run = Derivation.run
    monkeypatch.setattr(Derivation, "run", lambda *each: runs.append(1) or run(*each))
    db = opened(REACH, "auto", limits=Limits())
    size = 20_000
    commit(db, {"edge": [(at, at + 1) for at in range(size)], "start": [(0,)]})
    assert len(db.relation("reach")) == size + 1
    assert len(runs) < size / 50
    runs.clear()
    tail = [(at, at + 1) for at in range(size, size + 1000)]
    transaction = commit(db, {"edge": tail})
    assert len(db.relation("reach")) == size + 1001
    assert transaction.stats["reach"].counts["rounds"] == 1000
    assert len(runs) < 500
