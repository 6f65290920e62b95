"""The seconds of relations: those of an aggregate are its relation's, and all add up."""

from __future__ import annotations

import time
from typing import Any

import pytest

from corollary.database import counters
from support.maintained_database import insert, opened

PROGRAM = """\
.decl edge(x: number, y: number)
.decl degree(x: number, n: number)
degree(x, n) :- edge(x, _), n = count : { edge(x, y), edge(y, _) }.
.decl even(x: number, y: number)
even(x, y) :- odd(x, z), edge(z, y).
.decl odd(x: number, y: number)
odd(x, y) :- edge(x, y).
odd(x, y) :- even(x, z), edge(z, y).
"""


def test_the_seconds_of_relations_are_those_of_all_strata(monkeypatch: pytest.MonkeyPatch) -> None:
    recorders: list[counters.StatsRecorder] = []
    made = counters.StatsRecorder

    def record(*arguments: Any) -> counters.StatsRecorder:
        recorders.append(made(*arguments))
        return recorders[-1]

    monkeypatch.setattr(counters, "StatsRecorder", record)
    db = opened(PROGRAM)
    recorders.clear()
    began = time.monotonic()
    stats = insert(db, "edge", [(1, 2), (2, 3), (3, 1)]).stats
    spent = time.monotonic() - began
    (recorder,) = recorders
    every = sum(each.seconds for each in recorder.strata.values())
    assert sum(each.seconds for each in stats.values()) == pytest.approx(every)
    assert every <= spent
    shown = {name: each.seconds for name, each in stats.items() if each.seconds}
    assert set(shown) == {"degree", "even", "odd"}
    assert shown["even"] == pytest.approx(shown["odd"])
    own = {"degree", "degree.aggregate1", "degree.aggregate1.some1"}
    assert own <= set(stats)
