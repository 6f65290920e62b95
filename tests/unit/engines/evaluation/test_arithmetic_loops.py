"""Loops that only compute: tuple by tuple or by steps, the same tuples in the same rounds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from corollary.core import engine as core_engine
from corollary.core.engine import Limits
from corollary.core.types import NUMBER, SYMBOL
from corollary.engines.local.evaluation import arithmetic_loops
from corollary.engines.local.evaluation.arithmetic_loops import find_arithmetic_loop
from corollary.engines.local.evaluation.derivation import Derivation
from corollary.errors import EvaluationError, LimitError
from oracles import evaluation
from support.cases.narrow_loops import commit, everything, seen_loops
from support.comparison import comparable
from support.maintained_database import opened
from support.payload_check import check_payload
from support.selection import sampled

START = ".decl start(x: number)\n.decl n(x: number)\nn(x) :- start(x).\n"


@contextmanager
def computing(is_eager: bool, *, tuples: int = 3, few: int = 64) -> Iterator[None]:
    """Run rounds tuple by tuple whenever a loop only computes, in blocks of so many, or never."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arithmetic_loops, "FIRST_ROUNDS", 1 if is_eager else 1 << 60)
        patch.setattr(arithmetic_loops, "FIRST_BLOCK_TUPLES", tuples)
        patch.setattr(arithmetic_loops, "BLOCK_TUPLES", tuples)
        patch.setattr(arithmetic_loops, "NARROW_ROUND_MAX_TUPLES", few)
        patch.setattr(arithmetic_loops, "LEVEL_MAX_TUPLES", few)
        yield


RULES = {
    "n(x + 1) :- n(x), x < 40.": True,
    "n(x + 1) :- n(x), x < 30. n(x - 3) :- n(x), x > 20.": True,
    "n(y) :- n(x), y = x * 3 + 1, y <= 500, y != 20.": True,
    "n(-x) :- n(x). n(x + 2) :- n(x), x < 25, x > -25.": True,
    "n(0) :- n(x), x > 3.": True,
    "n(x / 2) :- n(x), x > 1.": False,
    "n(x + 1) :- n(x), start(x).": False,
    "n(x + y) :- n(x), n(y), x < 9, y < 9.": False,
    "n(strlen(to_string(x))) :- n(x).": False,
}


@pytest.mark.parametrize("rules", RULES)
def test_which_loops_only_compute(rules: str) -> None:
    for algorithm in ("auto", "recompute"):
        db = opened(START + rules, algorithm)
        loops = seen_loops(db, {"start": [(1,)]})
        assert loops
        for loop in loops:
            targets = arithmetic_loops.find_targets(loop)
            types = {} if targets is None else {targets.delta: (NUMBER,) * (1 + targets.is_ranked)}
            found = targets and find_arithmetic_loop(loop, (), types)
            assert (found is not None) is RULES[rules]
            texts = dict.fromkeys(types, (SYMBOL,))
            assert targets is None or find_arithmetic_loop(loop, (), texts) is None


PROGRAMS = {
    **{rules: START + rules for rules, only_computes in RULES.items() if only_computes},
    "pairs": """
.decl start(x: number)
.decl n(i: number, a: number, b: number)
n(0, 0, x) :- start(x).
n(i + 1, b, a + b) :- n(i, a, b), i < 20.
""",
    "several": """
.decl start(x: number)
.decl n(x: number, y: number)
n(x, 0) :- start(x).
n(x, y + 1) :- n(x, y), y < 12.
n(x + 1, y) :- n(x, y), y > 10, x < 30.
n(y, x) :- n(x, y), x < y.
""",
}


@pytest.mark.parametrize("algorithm", ["auto", "ranked", "dred", "recompute"])
@pytest.mark.parametrize("name", sampled(list(PROGRAMS), 7))
def test_tuples_ranks_and_rounds_are_those_of_steps(name: str, algorithm: str) -> None:
    text = PROGRAMS[name]
    starts = [(0,), (3,), (11,)]
    told = []
    for is_eager, few, tuples in ((False, 64, 9), (True, 64, 1000), (True, 64, 5), (True, 2, 1)):
        with computing(is_eager, few=few, tuples=tuples):
            db = opened(text, algorithm)
            told.append(
                [
                    everything(db, commit(db, {"start": starts[:1]})),
                    everything(db, commit(db, {"start": starts[1:]})),
                    everything(db, commit(db, {"start": [(5,)]}, {"start": starts[:1]})),
                ]
            )
            check_payload(db)
            expected = evaluation.evaluate(text, {"start": {(3,), (11,), (5,)}})["n"]
            assert comparable(db.relation("n").rows()) == comparable(expected)
    assert told[0] == told[1] == told[2] == told[3]


@pytest.mark.parametrize("is_eager", [True, False])
@pytest.mark.parametrize(
    ("rules", "error"),
    [
        ("n(x * 3) :- n(x).", EvaluationError),
        ("n(x - 1000000000000000000) :- n(x).", EvaluationError),
        ("n(x + 1) :- n(x).", LimitError),
    ],
)
def test_errors_are_those_of_steps(is_eager: bool, rules: str, error: type[Exception]) -> None:
    with computing(is_eager, tuples=100):
        db = opened(START + rules, "auto", limits=Limits(rounds=200))
        with pytest.raises(error):
            commit(db, {"start": [(1,)]})
        assert len(db.relation("n")) == 0


@pytest.mark.slow
def test_what_has_no_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_engine, "ROUNDS_MAX", 300_000)
    db = opened(START + "n(x + 1) :- n(x).", "auto", limits=Limits())
    with pytest.raises(LimitError, match="300,000 rounds"):
        commit(db, {"start": [(1,)]})
    db = opened(START + "n(x + 1) :- n(x).", "auto", limits=Limits(tuples=100_000))
    with pytest.raises(LimitError, match="100000 tuples"):
        commit(db, {"start": [(1,)]})


def test_many_rounds_are_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    run = Derivation.run
    monkeypatch.setattr(Derivation, "run", lambda *each: runs.append(1) or run(*each))
    db = opened(START + "n(x + 1) :- n(x), x < 50000.", "auto", limits=Limits())
    transaction: Any = commit(db, {"start": [(0,)]})
    assert len(db.relation("n")) == 50_001
    assert transaction.stats["n"].counts["rounds"] == 50_001
    assert len(runs) < 50
