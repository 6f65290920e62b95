"""Questions of users: what `db.why`, `db.why_not` and their like do.

A question is asked of a database, of its past (`at`), or as a reader, who is answered from what was
granted alone. Answers get the origins of the base tuples in them.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from corollary.core.logic import Constant
from corollary.database.database import Database, state_of, store_of, warehouse_of
from corollary.database.program.goals import read_goal
from corollary.provenance.absences.why_not import why_not, with_attempts
from corollary.provenance.asked_state import asked_state
from corollary.provenance.limits import DEFAULT_LIMITS, ProofLimits
from corollary.provenance.origins.origins import OriginFinder
from corollary.provenance.proof import Absence, Proof
from corollary.provenance.why import why


def answer(
    question: str,
    database: Database,
    goal: str,
    *,
    limits: ProofLimits | None = None,
    **options: Any,
) -> Any:
    """Return the answer to a question.

    Args:
        question: `why` or `why-not`.
        database: the database that is asked.
        goal: the tuple.
        limits: of the work.
        options: of the question.
    """
    bounds = limits or DEFAULT_LIMITS
    database.refresh()
    return QUESTIONS[question](database, goal, limits=bounds, **options)


def _why(database: Database, goal: str, *, at: Any, limits: ProofLimits) -> Proof:
    seen = database if at is None else database.at(at)
    state = state_of(seen)
    with state.lock:
        proof = why(state, goal, limits)
        if not proof.holds:
            slots = read_goal(state.loaded, goal).literal.slots
            is_tuple = all(isinstance(slot, Constant) for slot in slots)
            return proof if is_tuple else replace(proof, answers=0)
        asked = asked_state(state)
        others = tuple(with_attempts(asked, each, limits) for each in proof.others)
        proof = replace(with_attempts(asked, proof, limits), others=others)
        return _proof_with_origins(proof, OriginFinder(state, warehouse_of(database)))


def _why_not(
    database: Database, goal: str, *, at: Any, insertions: int | None, limits: ProofLimits
) -> Absence:
    seen = database if at is None else database.at(at)
    state = state_of(seen)
    with state.lock:
        found = why_not(state, store_of(seen), goal, insertions=insertions or 0, limits=limits)
        return _absence_with_origins(found, OriginFinder(state, warehouse_of(database)))


QUESTIONS: dict[str, Callable[..., Any]] = {"why": _why, "why-not": _why_not}
"""What answers each question."""


def _proof_with_origins(proof: Proof, finder: OriginFinder) -> Proof:
    """Return a proof in which base tuples say where they are from."""
    nodes, cuts = finder.with_origins(proof.nodes)
    others = tuple(_proof_with_origins(each, finder) for each in proof.others)
    return replace(proof, nodes=nodes, cuts=(*proof.cuts, *cuts), others=others)


def _absence_with_origins(absence: Absence, finder: OriginFinder) -> Absence:
    """Return an absence in which base tuples say where they are from."""
    nodes, cuts = finder.with_origins(absence.nodes)
    return replace(absence, nodes=nodes, cuts=(*absence.cuts, *cuts))
