"""Bounded searches count their work: on a busy machine the same question has the same answer."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import corollary
from bench.advice.large_programs import chains, scheme_of
from corollary.advisor.advise import advise
from corollary.advisor.consultation import DEFAULT_OPTIONS
from corollary.advisor.render.json import advice_as_json
from corollary.advisor.render.text import report
from corollary.database.database import Database
from corollary.documents.answers.search_limits import SearchLimits
from corollary.documents.document import ActiveDocument
from corollary.engines import budget
from corollary.engines.budget import WorkBudget, WorkLimitError
from corollary.provenance.limits import ProofLimits

NONLINEAR = """
.decl edge(x: number, y: number)
.decl tc(x: number, y: number)
tc(x, y) :- edge(x, y).
tc(x, z) :- tc(x, y), tc(y, z).
"""


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return what makes the machine busy: it stands still for 15 seconds after each question."""

    def begin() -> None:
        readings = iter((0.0,))
        clock = SimpleNamespace(monotonic=lambda: next(readings, 15.0))
        monkeypatch.setattr(budget, "time", clock)

    return begin


def network(place: Path | None = None) -> Database:
    db = corollary.open(place, engine="local")
    db.load(text=NONLINEAR)
    with db.transaction() as transaction:
        transaction.insert("edge", [(at, at + 1) for at in range(12)])
    with db.transaction() as transaction:
        transaction.insert("edge", [(12, 13)])
    return db


QUESTIONS: list[tuple[str, str, dict[str, Any]]] = [
    ("why", "tc(0, 12)", {}),
    ("why_not", "tc(5, 0)", {"insertions": 1}),
    ("why_added", "tc(3, 13)", {}),
]


@pytest.mark.parametrize(("question", "goal", "options"), QUESTIONS)
def test_proofs(
    question: str,
    goal: str,
    options: dict[str, Any],
    busy: Callable[[], None],
    tmp_path: Path,
) -> None:
    db = network(tmp_path / "warehouse")
    for work in (10_000_000, 40_000):
        limits = ProofLimits(work=work)
        quiet = getattr(db, question)(goal, limits=limits, **options).to_json()
        busy()
        assert getattr(db, question)(goal, limits=limits, **options).to_json() == quiet
        assert quiet["work"]["used"] > 0


def test_proofs_that_end_at_their_limit_of_work() -> None:
    proof = network().why("tc(0, 12)", limits=ProofLimits(work=10_000))
    assert not proof.canonical
    (cut,) = proof.to_json()["cuts"]
    assert cut["reason"] == "work"
    assert "cut: the limit of work was reached" in str(proof)
    assert proof.work is not None
    assert proof.work.used > proof.work.limit == 10_000


def test_documents(busy: Callable[[], None]) -> None:
    for nodes in (2_000_000, 5):
        found = []
        for is_busy in (False, True):
            if is_busy:
                busy()
            document = ActiveDocument.from_terms(
                "r[p[!f] q[!g] t[u v]]", once=("f", "g"), limits=SearchLimits(nodes)
            )
            view = document.view("/r[p/*$x][q/*$x][t/*$x]")
            work = view.work
            assert work is not None
            found.append((view.possible(), view.is_exact, view.bound_reason, work))
            assert (work.used > nodes, work.limit) == (not view.is_exact, nodes)
        assert found[0] == found[1]


def test_advice(busy: Callable[[], None]) -> None:
    scheme = scheme_of(chains(6, 4))
    whole = advice_as_json(advise(scheme, DEFAULT_OPTIONS))
    assert whole["complete"]
    assert 0 < whole["work"]["used"] < whole["work"]["limit"]
    few = replace(DEFAULT_OPTIONS, max_steps=whole["work"]["used"] // 2)
    cut = advise(scheme, few)
    assert any("the search ended at its limit" in line for line in report(cut))
    busy()
    assert advice_as_json(advise(scheme, DEFAULT_OPTIONS)) == whole
    assert advice_as_json(advise(scheme, few)) == advice_as_json(cut)
    assert not cut.is_complete


def test_seconds_are_the_last_resort(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter(range(0, 1_000, 7))
    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: next(readings)))
    work = WorkBudget(1_000_000, seconds=10.0)
    work.spend(budget.CLOCK_MIN_STEPS)
    with pytest.raises(WorkLimitError, match=r"^10 s$"):
        work.spend(budget.CLOCK_MIN_STEPS)
    assert work.used.to_json() == {"used": 2 * budget.CLOCK_MIN_STEPS, "limit": 1_000_000}
