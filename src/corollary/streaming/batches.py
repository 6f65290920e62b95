"""What Spark calls for every micro-batch: one transaction, made once however often it is called.

rows of the batch → events → the last one on each tuple → a transaction under the key of query and
batch → commit → publish → deliver alerts

Spark calls it again for a batch that it has not noted as done, which may have been committed all
the same: then the key is known, and nothing happens. The query is that of the checkpoint, so a
checkpoint that was thrown away makes new keys.

With Spark Connect the function runs in a process of the server. So it takes nothing along but
names, and opens the database by its place; in the process of the database it finds it open.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakValueDictionary

from corollary.core.program import Relation
from corollary.database.database import Database, state_of
from corollary.database.opened import Opened
from corollary.database.opening import reopen
from corollary.database.pending_commit import DeferredOperations
from corollary.database.quarantine import quarantine_operations, with_quarantine
from corollary.errors import CorollaryError, Diagnostic, InputError
from corollary.streaming.events import Events, net
from corollary.warehouse.delimited import first_findings
from corollary.warehouse.sources.quarantine import BadRows

if TYPE_CHECKING:
    from corollary.database.delivery import Delivered
    from corollary.database.transaction import Transaction
    from corollary.warehouse.publishing.publisher import Outcome

METADATA = "metadata"
"""The file of a checkpoint that names its query."""


class Reader(Protocol):
    """What makes events of the rows of a batch."""

    @property
    def op(self) -> str | None:
        """The column of the operation; None if all are inserts."""

    def read(
        self, frame: Any, relation: Relation, source: str, batch: str
    ) -> tuple[Events, list[list[Diagnostic]]]:
        """Return what a batch says, and the findings about what does not fit."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What became of a micro-batch.

    Attributes:
        stream: the name of the stream.
        number: of the batch, from 0.
        transaction: what changed; of a batch that comes again, what had changed.
        malformed: how many rows were set aside.
        published: the tables that show it; None if there are none.
        delivered: the alerts that went to their sinks.
        seconds: how long it took.
    """

    stream: str
    number: int
    transaction: "Transaction"
    malformed: int
    published: "Outcome | None"
    seconds: float
    delivered: "Delivered | None" = None

    def as_json(self, max_rows: int) -> dict[str, Any]:
        """Return it as `corollary watch` prints it."""
        return {
            **self.transaction.as_json(max_rows),
            "stream": self.stream,
            "batch": self.number,
            "malformed": self.malformed,
            "seconds": round(self.seconds, 6),
        }


class _Local:
    """What the streams of this process share."""

    def __init__(self) -> None:
        self.open: WeakValueDictionary[str, Database] = WeakValueDictionary()
        """The databases of streams that were started here."""
        self.opened: dict[str, Database] = {}
        """By place, those that were opened for streams that were started elsewhere."""
        self.stopping: set[str] = set()
        self.failed: dict[str, CorollaryError] = {}


local = _Local()


class StoppedError(CorollaryError):
    """The stream is about to stop: this batch is left for the next start."""


@dataclass(frozen=True, slots=True)
class MicroBatches:
    """The function of `foreachBatch`.

    Attributes:
        opened: how the database is opened elsewhere.
        token: names this start of the stream; under it the database is found here.
        relation: the base relation that is changed.
        source: the name of the stream.
        reader: makes events of rows.
        checkpoint: where Spark notes how far it is.
        bad_rows: what is done about rows that do not fit.
        on_batch: called behind every commit.
    """

    opened: Opened
    token: str
    relation: str
    source: str
    reader: Reader
    checkpoint: str
    bad_rows: BadRows = BadRows.QUARANTINE
    on_batch: Callable[[Batch], object] | None = None

    def __call__(self, frame: Any, number: int) -> None:
        """Make a transaction of a micro-batch, unless that was done before."""
        try:
            database = self._database(frame)
            with state_of(database).lock:
                if self.token in local.stopping:
                    raise StoppedError(f"`{self.source}` is stopped before batch {number}")
                batch = self._transact(database, frame, number)
        except CorollaryError as error:
            local.failed[self.token] = error
            raise
        batch = replace(batch, delivered=database.deliver())
        if self.on_batch is not None:
            self.on_batch(batch)

    def _database(self, frame: Any) -> Database:
        found = local.open.get(self.token) or local.opened.get(self.opened.place)
        if found is None:
            found = reopen(self.opened, frame.sparkSession)
            local.opened[self.opened.place] = found
        return found

    def _transact(self, database: Database, frame: Any, number: int) -> Batch:
        began = time.monotonic()
        database.refresh()
        transaction = database.transaction(idempotency=f"stream {self._query(frame)} {number}")
        malformed = 0
        if not transaction.is_repeated:
            malformed = self._ask(transaction, database, frame, number)
            transaction.commit()
        published = database.publish(transaction)
        seconds = time.monotonic() - began
        return Batch(self.source, number, transaction, malformed, published, seconds)

    def _ask(self, transaction: "Transaction", database: Database, frame: Any, number: int) -> int:
        """Ask for what a batch does; return how many rows of it are set aside."""
        relation = state_of(database).writable(self.relation)
        name = f"batch {number}"
        events, findings = self.reader.read(frame, relation, self.source, name)
        change = net(events, relation, self.reader.op, self.source, name)
        if change.bad and self.bad_rows is BadRows.ABORT:
            raise InputError(
                first_findings(findings, self.source)
                or [Diagnostic(change.bad[0].code, f"{change.bad[0].reason}: {change.bad[0].raw}.")]
            )
        transaction.delete(self.relation, change.removed)
        transaction.insert(self.relation, change.added)
        if change.bad:
            transaction.edit(with_quarantine)
            transaction.read(
                lambda: DeferredOperations(
                    quarantine_operations(state_of(database), self.source, change.bad, frozenset()),
                    {},
                )
            )
        return len(change.bad)

    def _query(self, frame: Any) -> str:
        """Return the id of the query, which is that of its checkpoint."""
        if "://" in self.checkpoint:
            (row,) = frame.sparkSession.read.text(f"{self.checkpoint}/{METADATA}").collect()
            return str(json.loads(row.value)["id"])
        path = Path(self.checkpoint.removeprefix("file:")) / METADATA
        return str(json.loads(path.read_text("utf-8"))["id"])
