"""What must hold after the sequence of `crash_sequence.py` has died."""

from __future__ import annotations

from pathlib import Path

from support.comparison import comparable
from support.figures import FIGURES, WHOLE
from support.maintained_database import reopened
from support.payload_check import check_payload
from support.processes.crash_sequence import states
from support.warehouse_scenarios import loose_files, root_of, stored


def demand_whole(place: str, acknowledged: int, point: str = "") -> int:
    """Assert that a warehouse holds what it should after a crash; return its last commit."""
    with reopened("", place=place) as db:
        assert acknowledged <= db.commits <= acknowledged + 1
        wanted = {name: comparable(rows) for name, rows in states()[db.commits].items()}
        assert stored(db) == wanted
        # `gc` takes files away that nobody speaks of; of objects it alone does.
        if not point.startswith("during_gc") and isinstance(root_of(db), Path):
            assert loose_files(db) == set()
        if db.commits:
            check_payload(db)
        FIGURES[WHOLE] += 1
        return db.commits
