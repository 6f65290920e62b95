"""A commit that makes every process begin anew from what is stored.

Its program is a new one of the same text: a process that has the database open sees that the
program in force is another, and restores. One that is about to commit, or to fold, comes too late.
"""

from collections.abc import Mapping

from corollary.warehouse.entries import Commit, NewCommit
from corollary.warehouse.warehouse import Delta, Warehouse


def fence(
    warehouse: Warehouse,
    latest: Commit,
    changes: Mapping[str, Delta] | None = None,
    payload: frozenset[str] = frozenset(),
) -> int:
    """Make such a commit behind the last one; return its number.

    Args:
        warehouse: the warehouse.
        latest: its last commit.
        changes: what changes with it.
        payload: the relations whose payload is valid after it.

    Raises:
        ConflictError: another commit came first.
    """
    stored = warehouse.catalog.program(latest.program)
    new = NewCommit(latest.number, payload, {}, program=(stored.text, stored.places))
    return warehouse.commit(new, changes or {})
