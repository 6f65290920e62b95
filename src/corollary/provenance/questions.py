"""Questions of users: what `db.why`, `db.why_not` and their like do.

A question is asked of a database, of its past (`at`), or as a reader, who is answered from what was
granted alone. Answers get the origins of the base tuples in them.
"""

from dataclasses import replace
from typing import Any, cast

from corollary.database.access.read_access import ReadAccess
from corollary.database.database import Database, state_of, warehouse_of
from corollary.provenance.limits import DEFAULT_LIMITS, ProofLimits
from corollary.provenance.origins.origins import OriginFinder
from corollary.provenance.proof import Proof
from corollary.provenance.why import why


def answer(
    question: str,
    asked: ReadAccess,
    goal: str,
    *,
    at: Any = None,
    limits: ProofLimits | None = None,
    **options: Any,
) -> Any:
    """Return the answer to a question.

    Args:
        question: `why`, `why-not`, `why-added` or `why-removed`.
        asked: the database, or a reader of it.
        goal: the tuple.
        at: a point in history; now if it is not given.
        limits: of the work.
        options: of the question.
    """
    bounds = limits or DEFAULT_LIMITS
    database = cast("Database", asked)
    match question:
        case "why":
            return _why(database, goal, at, bounds)
        case _:
            raise NotImplementedError(question)


def _why(database: Database, goal: str, at: Any, limits: ProofLimits) -> Proof:
    database.refresh()
    seen = database if at is None else database.at(at)
    state = state_of(seen)
    with state.lock:
        proof = why(state, goal, limits)
        return _with_origins(proof, OriginFinder(state, warehouse_of(database)))


def _with_origins(proof: Proof, finder: OriginFinder) -> Proof:
    """Return a proof in which base tuples say where they are from."""
    nodes, cuts = finder.with_origins(proof.nodes)
    others = tuple(_with_origins(each, finder) for each in proof.others)
    return replace(proof, nodes=nodes, others=others, cuts=(*proof.cuts, *cuts))
