"""The functions of a document: streams that still write into it, or have ended."""

from dataclasses import dataclass
from enum import StrEnum

from corollary.documents.types import FunctionType


class State(StrEnum):
    """Whether a function may still bring something."""

    LIVE = "live"
    ENDED = "ended"
    CLOSED = "closed"
    """Nobody needs what it would bring, so it is left out."""


@dataclass(slots=True)
class Function:
    """A function of one document.

    Attributes:
        name: as documents call it.
        number: as relations call it.
        is_once: whether it answers at most once, with one tree.
        type: what its trees look like; None if nothing is known.
        whole: the same, once the calls in its trees have brought theirs.
        state: whether it may still bring something.
    """

    name: str
    number: int
    is_once: bool = False
    type: FunctionType | None = None
    whole: FunctionType | None = None
    state: State = State.LIVE

    @property
    def is_active(self) -> bool:
        """Whether its type names functions that its trees may call."""
        return self.whole is not self.type
