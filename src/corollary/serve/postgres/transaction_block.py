"""The transaction that a client has open: its writes, which wait for COMMIT, and savepoints."""

from dataclasses import field
from enum import StrEnum

from corollary.data_class import dataclass
from corollary.serve import requests
from corollary.serve.postgres.problems import PgError
from corollary.serve.postgres.relations import VisibleRelations
from corollary.serve.postgres.statements import NotifyStatement
from corollary.serve.postgres.temporary.tables import TemporaryTable, TemporaryTables
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
        pending: writes and definitions that are not committed yet.
        relations: what may be named after the definitions, once that was asked for.
        notifications: what is told to others if it is committed.
        snapshot: the commit that all reads see, once one of them has seen it and that is asked for.
        temporary: the temporary tables of the session.
    """

    status: BlockStatus = BlockStatus.IDLE
    pending: list[TranslatedStatement] = field(default_factory=list)
    relations: VisibleRelations | None = None
    snapshot: int | None = None
    notifications: list[NotifyStatement] = field(default_factory=list)
    temporary: TemporaryTables = field(default_factory=TemporaryTables)
    _savepoints: list[tuple[str, int, dict[str, TemporaryTable]]] = field(default_factory=list)
    _before: dict[str, TemporaryTable] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether BEGIN was sent, and not its end."""
        return self.status is not BlockStatus.IDLE

    def begin(self) -> None:
        """Begin a transaction."""
        self.status = BlockStatus.OPEN
        self._before = dict(self.temporary.tables)

    def end(self, *, is_committed: bool) -> None:
        """End it, whatever has become of the writes."""
        if self.is_open and not is_committed:
            self.temporary.tables = self._before
        self.temporary.commit()
        self.status = BlockStatus.IDLE
        self.pending.clear()
        self.relations = None
        self._savepoints.clear()
        self.notifications.clear()
        self.snapshot = None

    def write_temporary(self, name: str, table: TemporaryTable) -> None:
        """Let a temporary table have other rows; outside of a transaction, that is all of one.

        Raises:
            PgError: the tables of the session would have too much.
        """
        self.temporary.put(name, table)
        if not self.is_open:
            self.temporary.commit()

    def fail(self) -> None:
        """Note an error: an open transaction has failed; outside, writes that wait are dropped."""
        if self.status is BlockStatus.OPEN:
            self.status = BlockStatus.FAILED
        elif self.status is BlockStatus.IDLE:
            self.pending.clear()

    @property
    def is_alone(self) -> bool:
        """Whether it cannot share a commit: it defines or copies something, or returned rows."""
        others = any(each.returned or each.copied for each in self.pending)
        return others or self.has_definitions

    @property
    def has_definitions(self) -> bool:
        """Whether something is defined that is not there yet."""
        return any(each.is_definition for each in self.pending)

    def request(self, then: requests.Request | None = None) -> requests.SqlTransactionRequest:
        """Return the request of what waits; or of what is found once it were done."""
        parameters = {
            name: each.parameters[name] for each in self.pending for name in each.parameters
        }
        statements = tuple(each.sql for each in self.pending)
        asked = None
        if then is not None:
            asked = {"kind": requests.request_kind(type(then)), **requests.request_as_json(then)}
        returned = {str(at): each.returned for at, each in enumerate(self.pending) if each.returned}
        copied = {
            str(at): [each.copied.relation.name, each.copied.file.name]
            for at, each in enumerate(self.pending)
            if each.copied is not None
        }
        return requests.SqlTransactionRequest(statements, parameters, asked, returned, copied)

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
            self._savepoints.append((name, len(self.pending), dict(self.temporary.tables)))
            return action
        places = [at for at, (each, *_) in enumerate(self._savepoints) if each == name]
        if not places:
            raise PgError("3B001", f"There is no savepoint `{name}`.")
        if action == "RELEASE":
            del self._savepoints[places[-1] :]
            return action
        del self._savepoints[places[-1] + 1 :]
        _, size, tables = self._savepoints[-1]
        del self.pending[size:]
        self.temporary.tables = dict(tables)
        self.relations = None
        self.status = BlockStatus.OPEN
        return action
