"""The transaction that a client has open: its writes, which wait for COMMIT, and savepoints."""

from collections.abc import Sequence
from dataclasses import field
from enum import StrEnum

from corollary.data_class import dataclass
from corollary.serve.postgres.problems import PgError, not_supported
from corollary.serve.postgres.translation import TranslatedStatement


class BlockStatus(StrEnum):
    """Whether a transaction is open, as ReadyForQuery tells it."""

    IDLE = "I"
    OPEN = "T"
    FAILED = "E"


@dataclass(slots=True)
class TransactionBlock:
    """What is between BEGIN and COMMIT; outside, the writes that wait for Sync.

    Attributes:
        status: whether there is one.
        pending: writes that are not committed yet.
        definitions: definitions that are not made yet.
        snapshot: the commit that all reads see, once one of them has seen it and that is asked for.
    """

    status: BlockStatus = BlockStatus.IDLE
    pending: list[TranslatedStatement] = field(default_factory=list)
    definitions: list[str] = field(default_factory=list)
    snapshot: int | None = None
    _savepoints: list[tuple[str, int, int]] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """Whether BEGIN was sent, and not its end."""
        return self.status is not BlockStatus.IDLE

    def end(self) -> None:
        """End it, whatever has become of the writes."""
        self.status = BlockStatus.IDLE
        self.pending.clear()
        self.definitions.clear()
        self._savepoints.clear()
        self.snapshot = None

    def fail(self) -> None:
        """Note an error: an open transaction has failed; outside, writes that wait are dropped."""
        if self.status is BlockStatus.OPEN:
            self.status = BlockStatus.FAILED
        elif self.status is BlockStatus.IDLE:
            self.pending.clear()
            self.definitions.clear()

    def take_pending(self) -> list[TranslatedStatement]:
        """Return the writes that wait, and forget them."""
        found, self.pending = self.pending, []
        return found

    def refuse_own_writes(self) -> None:
        """Refuse a read after writes, which it would not see.

        Raises:
            PgError: there are such writes.
        """
        if self.pending or self.definitions:
            raise not_supported(
                "The transaction has changed something, and cannot read before its end.",
                "write `COMMIT` before this statement",
            )

    def refuse_mixture(self, others: Sequence[object]) -> None:
        """Refuse to define something after writes, or to write after definitions.

        Raises:
            PgError: there are such others.
        """
        if others:
            raise not_supported(
                "A transaction either changes data or defines something.",
                "write `COMMIT` before this statement",
            )

    def savepoint(self, action: str, name: str) -> str:
        """Set a savepoint, release it, or go back to it; return the command tag.

        Raises:
            PgError: there is no transaction, or no such savepoint.
        """
        if not self.is_open:
            raise PgError("25P01", f"{action} is only possible in a transaction.", "write `BEGIN`")
        if self.status is BlockStatus.FAILED and action != "ROLLBACK":
            raise PgError("25P02", "The transaction has failed.", "write `ROLLBACK`")
        if action == "SAVEPOINT":
            self._savepoints.append((name, len(self.pending), len(self.definitions)))
            return action
        places = [at for at, (each, *_) in enumerate(self._savepoints) if each == name]
        if not places:
            raise PgError("3B001", f"There is no savepoint `{name}`.")
        if action == "RELEASE":
            del self._savepoints[places[-1] :]
            return action
        del self._savepoints[places[-1] + 1 :]
        _, writes, definitions = self._savepoints[-1]
        del self.pending[writes:], self.definitions[definitions:]
        self.status = BlockStatus.OPEN
        return action
