"""What `db.why`, `db.why_not` and their like do.

A question is asked of a database, of its past (`at`), or as a reader, who is answered from what was
granted alone. Answers get the origins of the base tuples in them.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from corollary.core.engine import within_seconds
from corollary.core.logic import Constant
from corollary.core.states import State
from corollary.database.database import (
    Database,
    state_of,
    store_of,
    warehouse_of,
    warehouse_store_of,
)
from corollary.database.history import commit_number, read_point
from corollary.database.program.goals import read_goal
from corollary.database.reading.read_access import no_history
from corollary.database.reading.reader import Reader
from corollary.database.warehouse_store import WarehouseStore
from corollary.provenance.absences.why_not import why_not, with_attempts
from corollary.provenance.changes.why_changed import why_changed
from corollary.provenance.changes.why_event import is_event, why_event
from corollary.provenance.limits import DEFAULT_LIMITS, ProofLimits
from corollary.provenance.nodes import ProofKind
from corollary.provenance.origins import OriginFinder
from corollary.provenance.proof import Absence, ChangeExplanation, Proof
from corollary.provenance.query_state import query_state
from corollary.provenance.readers import reader_why, reader_why_not
from corollary.provenance.trials import what_if
from corollary.provenance.why import why

_Found = TypeVar("_Found", bound=Proof | Absence)


def answer(
    question: str,
    database: Database | Reader,
    goal: str,
    *,
    limits: ProofLimits | None = None,
    **options: Any,
) -> Any:
    """Return the answer to a question.

    Args:
        question: `why`, `why-not`, `why-added`, `why-removed` or `what-if`.
        database: the database that is asked.
        goal: the tuple.
        limits: of the work.
        options: of the question.
    """
    if question == "what-if":
        assert isinstance(database, Database)
        return what_if(database, goal)
    bounds = limits or DEFAULT_LIMITS
    database.refresh()
    questions = READERS_QUESTIONS if isinstance(database, Reader) else QUESTIONS
    with within_seconds(state_of(database).limits):
        return questions[question](database, goal, limits=bounds, **options)


def _why(database: Database, goal: str, *, at: Any, limits: ProofLimits) -> Proof:
    if is_event(state_of(database).loaded, goal):
        return _why_event(database, goal, at=at, limits=limits)
    seen = database if at is None else database.at(at)
    state = state_of(seen)
    with state.lock:
        proof = why(state, goal, limits)
        if not proof.holds:
            slots = read_goal(state.loaded, goal).literal.slots
            is_tuple = all(isinstance(slot, Constant) for slot in slots)
            return proof if is_tuple else replace(proof, answers=0)
        proof = with_attempts(query_state(state), proof, limits)
        return _with_origins(proof, OriginFinder(state, warehouse_of(database)))


def _why_event(database: Database, goal: str, *, at: Any, limits: ProofLimits) -> Proof:
    """Return why an event has happened in a commit, by default in the last one."""
    store, state = _history_of(database), state_of(database)
    with state.lock:
        commit = None if at is None else commit_number(store.warehouse, read_point(at))
        proof = why_event(store, state, goal, commit=commit, limits=limits)
    for number in (proof.commit, proof.commit - 1):  # some tuples are of the state before
        proof = _of_commit(database, proof, number)
    return proof


def _why_not(
    database: Database, goal: str, *, at: Any, insertions: int | None, limits: ProofLimits
) -> Absence:
    seen = database if at is None else database.at(at)
    state = state_of(seen)
    with state.lock:
        found = why_not(state, store_of(seen), goal, insertions=insertions or 0, limits=limits)
        return _with_origins(found, OriginFinder(state, warehouse_of(database)))


def _why_changed(
    database: Database, goal: str, *, sign: State, commit: int | None, limits: ProofLimits
) -> ChangeExplanation:
    store, state = _history_of(database), state_of(database)
    with state.lock:
        found = why_changed(store, state, goal, sign, commit=commit, limits=limits)
    before, after = (
        _of_commit(database, each, number)
        for each, number in ((found.before, found.commit - 1), (found.after, found.commit))
    )
    return replace(found, before=before, after=after)


def _of_commit(database: Database, found: _Found, commit: int) -> _Found:
    """Return an answer about a commit with the origins of then."""
    if commit < 1 or all(node.kind is not ProofKind.BASE for node in found.nodes):
        return found
    with database.at(commit) as past:
        return _with_origins(found, OriginFinder(state_of(past), warehouse_of(database)))


def _history_of(database: Database) -> WarehouseStore:
    """Return the store that has earlier commits.

    Raises:
        InputError: the database is in memory.
    """
    store = warehouse_store_of(database)
    if store is None:
        raise no_history()
    return store


QUESTIONS: dict[str, Callable[..., Any]] = {
    "why": _why,
    "why-not": _why_not,
    "why-added": partial(_why_changed, sign=State.ADDED),
    "why-removed": partial(_why_changed, sign=State.REMOVED),
}
"""What answers each question."""

READERS_QUESTIONS: dict[str, Callable[..., Any]] = {"why": reader_why, "why-not": reader_why_not}
"""What answers the questions of readers."""


def _with_origins(found: _Found, finder: OriginFinder) -> _Found:
    """Return an answer in which base tuples say where they are from."""
    nodes, cuts = finder.with_origins(found.nodes)
    found = replace(found, nodes=nodes, cuts=(*found.cuts, *cuts))
    if isinstance(found, Proof):
        found = replace(found, others=tuple(_with_origins(each, finder) for each in found.others))
    return found
