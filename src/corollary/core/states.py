"""The four ways to read one relation."""

from enum import StrEnum


class State(StrEnum):
    """`OLD` and `NEW` are whole relations; `ADDED` and `REMOVED` their difference.

    For a relation that a loop accumulates, the difference is that of the last round.
    """

    OLD = "old"
    NEW = "new"
    ADDED = "added"
    REMOVED = "removed"


SIGNS = {"+": State.ADDED, "-": State.REMOVED}
"""The states that the marks of programs stand for."""

CHANGES = (State.ADDED, State.REMOVED)
"""The two states that make up the change of a relation."""
