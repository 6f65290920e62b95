"""Small slips in the search for proofs are noticed: the judge is satisfied with nothing less."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from corollary.database.database import Database
from corollary.provenance import proof_builder, steps
from corollary.provenance.limits import ProofLimits
from corollary.provenance.query_state import query_state
from corollary.provenance.why import prove
from oracles.provenance import Derivations
from support.maintained_database import apply, opened
from support.provenance.asking import PATIENT, TIGHT, facts_of
from support.provenance.judge import ProofJudge

PROGRAMS = (
    """
.decl e(x: number, y: number)
.decl p(x: number, y: number)
p(x, y) :- e(x, y).
p(x, y) :- e(x, y), x < 100.
p(x, z) :- p(x, y), p(y, z).
""",
    """
.decl e(x: number, y: number)
.decl p(x: number, y: number)
.decl q(x: number, y: number)
p(x, y) :- e(x, y).
p(x, z) :- p(x, y), e(y, z).
q(x, y) :- p(x, y), p(y, x).
q(x, z) :- q(x, y), p(y, z).
q(x, y) :- e(x, y), !p(y, x).
""",
)
NODES, EDGES, CHANGES = 7, 12, 4


def databases() -> list[tuple[Database, Derivations]]:
    """Return databases with old ranks: edges came and went."""
    found = []
    for number, text in enumerate(PROGRAMS):
        generator = random.Random(number)

        def edge(generator: random.Random = generator) -> tuple[int, int]:
            return generator.randrange(NODES), generator.randrange(NODES)

        db, edges = opened(text, "ranked"), {edge() for _ in range(EDGES)}
        apply(db, ({"e": edges}, {}))
        for _ in range(CHANGES):
            gone, come = set(generator.sample(sorted(edges), 3)), {edge() for _ in range(3)}
            apply(db, ({"e": come - gone}, {"e": gone}))
            edges = (edges - gone) | (come - gone)
        found.append((db, Derivations(text, {"e": edges})))
    return found


def judge_all(*, exact: bool = False) -> int:
    """Judge the proofs of all tuples; return how many there are."""
    count = 0
    for db, truth in databases():
        judge = ProofJudge(truth)
        asked = query_state(db._state)
        asked = replace(asked, exact=asked.ranked) if exact else asked
        for fact in facts_of(truth, ("p", "q"), 0):
            for limits in (PATIENT, TIGHT[1], ProofLimits(seconds=3_600.0, expanded=6)):
                proof = prove(asked, *fact, limits)
                judge.judge(proof, fact, is_whole=limits is PATIENT)
                count += 1
        db.close()
    return count


@pytest.mark.slow
def test_without_a_slip_nothing_is_noticed() -> None:
    assert judge_all() > 100


def _size_is_forgotten(patch: Callable[..., None]) -> None:
    patch(proof_builder, "_size", lambda known, sizes: 1)


def _last_rule_is_first(patch: Callable[..., None]) -> None:
    patch(proof_builder, "_order", lambda known: (-known.instance.step,))


def _everything_is_higher(patch: Callable[..., None]) -> None:
    real = steps.ProofSteps.least_height
    patch(steps.ProofSteps, "least_height", lambda self, name: 2 * real(self, name))


def _every_bound_is_reached(patch: Callable[..., None]) -> None:
    patch(proof_builder, "lower_bound", lambda graph, root: graph.heights[root])


@pytest.mark.parametrize(
    "slip",
    [_size_is_forgotten, _last_rule_is_first, _everything_is_higher, _every_bound_is_reached],
)
def test_a_slip_is_noticed(slip: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    slip(monkeypatch.setattr)
    with pytest.raises(AssertionError):
        judge_all()


def test_old_ranks_are_no_lower_bounds() -> None:
    with pytest.raises(AssertionError):
        judge_all(exact=True)
