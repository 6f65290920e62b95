"""Loops with many steps: only those with something to do are run, with the same result."""

from __future__ import annotations

import pytest

from corollary.engines import loop_schedule
from corollary.engines.local import interpreter
from support.cases.change_runs import CASES, name_of, run_case
from support.cases.changes import ChangeCase
from support.maintained_database import delete, insert, opened
from support.selection import sampled


@pytest.mark.parametrize("variant", sampled(["auto", "ranked", "dred", "recompute", "epf"], 30))
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_cases_of_changes(case: ChangeCase, variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_schedule, "LONG_LOOP_STEPS", 0)
    run_case(case, "as written", variant)


def ring(size: int) -> str:
    """Return a program of mutually recursive relations, each of which reads the one before."""
    lines = [".decl s(x: number)", "r0(x) :- s(x)."]
    for at in range(size):
        lines += [f".decl r{at}(x: number)", f"r{(at + 1) % size}(x) :- r{at}(x)."]
    return "\n".join(lines)


def steps_of(size: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many steps are run for a ring: filled, added to, and emptied."""
    counts = [0]
    step = interpreter.Interpreter._step

    def counted(self: object, *arguments: object) -> None:
        counts[0] += 1
        step(self, *arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(interpreter.Interpreter, "_step", counted)
        db = opened(ring(size), limits=None)
        insert(db, "s", [(1,)])
        insert(db, "s", [(2,)])
        assert sorted(db.relation(f"r{size - 1}").rows()) == [(1,), (2,)]
        delete(db, "s", [(1,), (2,)])
        assert db.relation(f"r{size - 1}").rows() == []
    return counts[0]


@pytest.mark.slow
def test_steps_of_mutual_recursion_grow_with_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = steps_of(50, monkeypatch), steps_of(100, monkeypatch)
    assert two < 2.5 * one
