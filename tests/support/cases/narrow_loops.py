"""Loops with few tuples in each round: which there are, and what comes of them."""

from __future__ import annotations

from typing import Any

import pytest

from corollary.core.plans import Loop, steps_of
from corollary.core.states import State


def seen_loops(db: Any, rows: dict[str, list[Any]]) -> list[Loop]:
    """Return the loops of a transaction whose tuples only come."""
    found: list[Loop] = []
    with pytest.MonkeyPatch.context() as patch:
        run = type(db._state.engine).run

        def watched(engine: Any, plan: Any, *more: Any) -> int:
            found.extend(each for each in steps_of(plan) if isinstance(each, Loop))
            return run(engine, plan, *more)

        patch.setattr(type(db._state.engine), "run", watched)
        commit(db, rows)
    return [each for each in found if "suspended" not in str(each)]


def commit(db: Any, rows: dict[str, list[Any]], removed: dict[str, list[Any]] | None = None) -> Any:
    with db.transaction() as transaction:
        for name, each in (removed or {}).items():
            transaction.delete(name, each)
        for name, each in rows.items():
            transaction.insert(name, each)
    return transaction


def everything(db: Any, transaction: Any) -> Any:
    """Return all relations with what is kept beside them, and how many rounds there were."""
    held = {
        name: sorted(db._state.engine.read(name, State.NEW).to_pylist(), key=str)
        for name in db._state.engine.relations
    }
    return held, {name: each.counts.get("rounds") for name, each in transaction.stats.items()}
