"""A database: a program, an engine that holds its relations, and transactions on them."""

import importlib
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from corollary.analysis.wording import suggestion
from corollary.core.alerts import SinkKind
from corollary.core.program import Relation
from corollary.core.states import State
from corollary.database.changes import Changes
from corollary.database.engines import LOCAL, made
from corollary.database.grants import Grants, MemoryGrants, checked_reader, checked_relations
from corollary.database.journal import DEPTH
from corollary.database.kernel import Kernel
from corollary.database.names import readable
from corollary.database.once import Places, answer_relation, inputs
from corollary.database.planning import algorithms_by_relation
from corollary.database.program import load, read_goal, read_programs
from corollary.database.progress import Progress
from corollary.database.reader import Reader
from corollary.database.transaction import Transaction
from corollary.database.views import RelationView
from corollary.errors import InputError
from corollary.frontends.datalog.parse import parse
from corollary.maintain.solve import answer
from corollary.source import SourceFile

if TYPE_CHECKING:
    import pyarrow as pa

    from corollary.database.delivery import Delivered
    from corollary.database.durable import Durable
    from corollary.database.history import Logged
    from corollary.database.opening import Opening
    from corollary.database.queries import QueryLog
    from corollary.warehouse.publishing.publisher import Outcome

Called = TypeVar("Called", bound=Callable[..., Any])


class Database(Kernel):
    """Relations kept true while the data under them changes.

    >>> import corollary
    >>> db = corollary.open(None)
    >>> _ = db.load(
    ...     text=".decl e(x: number, y: number) .decl p(x: number, y: number) "
    ...     "p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z)."
    ... )
    >>> with db.transaction() as tx:
    ...     tx.insert("e", [(1, 2), (2, 3)])
    >>> sorted(db.relation("p").rows())
    [(1, 2), (1, 3), (2, 3)]
    >>> with db.transaction() as tx:
    ...     tx.delete("e", [(1, 2)])
    >>> tx.changes["p"].counts
    (0, 2)
    """

    opening: "Opening | None" = None
    """How it was opened; None if it is in memory."""
    query_log: "QueryLog | None" = None
    """Where goals are counted; None if they are not."""

    is_trial = False
    """Whether nobody is to hear of what happens here: it is only tried."""

    existing = "report"
    """What is done about tuples that violate a new constraint and were there before it."""

    @cached_property
    def _granted(self) -> MemoryGrants:
        """The grants of a database in memory."""
        return MemoryGrants()

    # --- using it ------------------------------------------------------------------------------

    def load(
        self,
        *paths: str | Path,
        text: str | None = None,
        facts: str | Path | None = None,
        root: str | Path | None = None,
        existing: str | None = None,
    ) -> Transaction:
        """Put a program into force and derive everything it defines.

        If one is in force already, this is an edit: what differs is maintained, the data stays.

        Args:
            paths: files that make the program.
            text: the program itself, instead of files.
            facts: a directory; if given, the `.input` files in it are read too.
            root: the directory that these files may not leave; that of `facts` if not given.
            existing: what to do about tuples that violate a new constraint, see `transaction`.

        Raises:
            InputError: the program or a facts file is not acceptable.
        """
        from corollary.database.setting_aside import with_same_quarantine

        if text is not None:
            program = parse(SourceFile("program", text))
        else:
            program = read_programs([Path(each) for each in paths])
        program = with_same_quarantine(program, self.program)
        transaction = self.transaction(existing=existing)
        transaction.set_program(program)
        with transaction:
            if facts is not None:
                places = Places(Path(facts), root=None if root is None else Path(root))
                for relation, table in inputs(load(program), places, self.console, self.frames):
                    transaction.insert_input(relation, table)
        return transaction

    def transaction(
        self,
        *,
        algorithm: str | None = None,
        is_traced: bool = False,
        idempotency: str | None = None,
        is_dry: bool = False,
        existing: str | None = None,
    ) -> Transaction:
        """Begin a transaction, on what has been committed so far.

        What is inserted and deleted is done to the state at the commit: if others have committed
        since, it is done again on what they left, and what was read meanwhile does not matter. A
        transaction whose operations depend on what it reads gives a function to `tx.read`.

        Args:
            algorithm: instead of the database's own.
            is_traced: whether to keep the rows of the papers' tables in `trace`.
            idempotency: a key of the caller's; a second transaction of the same key does nothing
                and tells what the first one did. Needs a warehouse.
            is_dry: whether to find out only what would change.
            existing: what to do about tuples that violate a new constraint and were there before
                it: `report` them in `existing`, `refuse` the constraint, or `accept` them; as
                the database was opened if it is not given.
        """
        if algorithm is not None:
            algorithms_by_relation(algorithm)
        self.refresh()
        return Transaction(
            self,
            algorithm,
            is_traced=is_traced,
            idempotency=idempotency,
            is_dry=is_dry,
            existing=existing or self.existing,
        )

    def watch(self, relation: str, *, added: bool = True, removed: bool = True) -> None:
        """Ask for the changes of a virtual relation in every transaction from now on."""
        readable(self.loaded.normal, relation)
        wanted = {State.ADDED} if added else set()
        self.watched[relation] = frozenset(wanted | ({State.REMOVED} if removed else set()))
        self.planning.forget(self.loaded.normal)
        self.stand()

    def relation(self, name: str) -> RelationView:
        """Return a relation to read."""
        self.refresh()
        self.shape(name)
        return RelationView(self, name)

    def shape(self, name: str) -> Relation:
        """Return the columns of a relation, and their types."""
        return readable(self.loaded.normal, name)

    def read(self, name: str) -> "pa.Table":
        """Return the tuples of a relation; a virtual one is computed."""
        with self.lock:
            return self._read(name)

    def _read(self, name: str) -> "pa.Table":
        relation = readable(self.loaded.normal, name)
        if relation.is_derived and relation.is_virtual:
            columns = ", ".join(f"v{at}" for at in range(relation.arity))
            answers = self.query(f"{name}({columns})")
            return answers.rename_columns(list(relation.columns)) if relation.arity else answers
        return self.engine.read(name)

    def query(self, goal: str) -> "pa.Table":
        """Return the answers to a goal such as `link("a", y)`: a column for each variable."""
        return self.answers(goal)[1]

    def answers(self, goal: str) -> "tuple[Relation, pa.Table]":
        """Return the answers to a goal, and the relation that they make."""
        with self.lock:
            return self._answers(goal)

    def _answers(self, goal: str) -> "tuple[Relation, pa.Table]":
        self.refresh()
        literal = read_goal(self.program, goal)
        if self.query_log is not None:
            self.query_log.note(literal)
        normal = self.loaded.normal
        answers = answer_relation(literal)

        def is_there(name: str) -> bool:
            relation = normal.relations[name]
            return not (relation.is_derived and relation.is_virtual)

        plan = answer(normal, literal, self.planning.statistics_to_ask(normal), is_there)
        self.engine.declare({answers.name: answers})
        try:
            self.engine.run(plan, Progress(self.console), self.limits)
            return answers, self.engine.read(answers.name)
        finally:
            self.console.done()
            self.engine.drop([answers.name])

    # --- what lasts ----------------------------------------------------------------------------

    def refresh(self) -> None:
        """See what other processes have committed."""
        with self.lock:
            if self.store is not None and not self.is_busy:
                self.store.catch_up(self)

    def at(self, commit: int) -> "Database":
        """Return the database as it was after a commit, in memory: what changes there stays there.

        Raises:
            WarehouseError: there is no such commit, or it is no longer kept.
        """
        past = Database(made(LOCAL), limits=self.limits, console=self.console, frames=self.frames)
        past.is_trial = True
        self._durable.recall(past, commit)
        return past

    def log(self, limit: int | None = None) -> "list[Logged]":
        """Return the commits that are kept, newest first, with how much each has changed.

        Args:
            limit: so many at most.
        """
        from corollary.database.history import logged

        return logged(self._durable.warehouse, limit)

    def changes(self, commit: int) -> Changes:
        """Return what a commit changed.

        Raises:
            WarehouseError: there is no such commit, or it is no longer kept.
        """
        return self._durable.changes_at(commit)

    def feed(
        self, relation: str | None = None, *, since: int | None = None, upto: int | None = None
    ) -> "Iterator[tuple[Relation, pa.Table]]":
        """Yield what commits have changed, relation by relation, as change feeds of Delta do.

        A table has the columns of the relation, then `_change_type` (`insert` or `delete`),
        `_commit_version` and `_commit_timestamp`.

        Args:
            relation: the one to tell of; all if it is not given.
            since: only commits after this one; if it is not given, all that are kept.
            upto: the last commit to tell of.

        Raises:
            InputError: there is no such relation, or its changes are not kept.
            WarehouseError: not all commits since then are kept.
        """
        from corollary.database.history import fed

        warehouse = self._durable.warehouse
        self.refresh()
        asked = None if relation is None else readable(self.loaded.normal, relation)
        return fed(warehouse, asked, since, upto)

    def publish(self, transaction: Transaction | None = None) -> "Outcome | None":
        """Bring the Delta tables of all `.output` relations forward to the last commit.

        Args:
            transaction: the one that made the last commit, so that it need not be read back.
        """
        with self.lock:
            return None if self.store is None else self.store.publish(self, transaction)

    # --- who may see what ----------------------------------------------------------------------

    def grant(self, reader: str, *relations: str) -> None:
        """Let a reader see relations and event predicates, and not what they are derived from.

        Raises:
            InputError: there is none of a name.
        """
        self.refresh()
        names = checked_relations(relations, self.loaded.checked.signatures)
        self._grants.add(checked_reader(reader), names)

    def revoke(self, reader: str, *relations: str) -> None:
        """Take grants back; what was not granted stays so."""
        self._grants.remove(checked_reader(reader), relations)

    def grants(self) -> dict[str, list[str]]:
        """Return for each reader what it may see."""
        return self._grants.every()

    def reader(self, name: str) -> Reader:
        """Return the database as a reader sees it: what was granted to it, and nothing else.

        The reader goes when this database is closed. It keeps honest programs to what they may
        see, such as a server that acts for others; whoever can open the files can read them.
        """
        return Reader(self, checked_reader(name), self._grants)

    @property
    def _grants(self) -> Grants:
        if self.store is None:
            return self._granted
        from corollary.warehouse.grants import StoredGrants

        return StoredGrants(self.store.warehouse.catalog)

    # --- alerts --------------------------------------------------------------------------------

    def on(self, event: str) -> "Callable[[Called], Called]":
        """Let a function be called behind every commit in which an event has happened.

        The function is called with a list of tuples, which have the attributes `id`, `event`,
        `message` and `commit`: at least once for each, with the same `id`. If it raises, or the
        process ends first, it is called again later: what waits is delivered when a function is
        registered, behind a transaction, and by `deliver`.

        >>> import corollary
        >>> db = corollary.open(None)
        >>> _ = db.load(text=".decl link(x: symbol) lost(x) :- -link(x).")
        >>> @db.on("lost")
        ... def tell(rows):
        ...     print([(x, row.commit) for row in rows for x in row])

        Args:
            event: an event predicate or relation.

        Raises:
            InputError: `C1013`, the program has none of that name.
        """
        known = self.loaded.checked.signatures
        if known and event not in known:
            near = suggestion(event, known)
            text = f"There is no event or relation `{event}`."
            raise InputError.of("C1013", text, None, near or "load the program that has it first")

        def register(function: "Called") -> "Called":
            self.callbacks.setdefault(event, []).append(function)
            self.planning.forget(self.loaded.normal)
            self.stand()
            self.notify()
            return function

        return register

    def deliver(self) -> "Delivered":
        """Deliver the alerts that are due, as far as this process can.

        What goes wrong is told in the result and tried again later; it raises nothing.
        """
        from corollary.database.delivery import deliver

        return deliver(self)

    def notify(self) -> None:
        """Do what is due behind a commit without being asked.

        Callbacks are called; a database in memory delivers everything. What alerts themselves
        have committed is delivered by whoever delivers them.
        """
        if self.is_trial or DEPTH.get() or (self.store is not None and not self.callbacks):
            return
        if not self.outbox.sinks():
            return
        from corollary.database.delivery import deliver

        kinds = (SinkKind.CALLBACK,) if self.store is not None else tuple(SinkKind)
        for problem in deliver(self, kinds).problems:
            self.console.note(str(problem))

    def stream(
        self,
        frame: Any,
        into: str,
        *,
        op: str | None = None,
        order: str | None = None,
        checkpoint: str | Path | None = None,
        trigger: Mapping[str, Any] | None = None,
        bad_rows: str = "quarantine",
        on_batch: "Callable[[Any], object] | None" = None,
    ) -> Any:
        """Let a streaming frame of Spark change a base relation, exactly once.

        Every micro-batch is one transaction, under a key that the query and the batch make.

        Args:
            frame: a streaming frame. Columns are found by name if all names of the relation are
                there, by place if none of them is.
            into: the base relation.
            op: the column that tells what a row does: `insert` or `delete`, or another spelling
                that `corollary.streaming.events` knows. If it is not given, all rows are inserts.
            order: the column by which the rows of a batch follow one another: of several on one
                tuple the last one counts.
            checkpoint: where Spark notes how far it is; `streams/RELATION` in the warehouse if it
                is not given.
            trigger: when there is a batch, as `DataStreamWriter.trigger` takes it, such as
                `{"availableNow": True}`; as soon as possible if it is not given.
            bad_rows: `quarantine` sets rows aside that do not fit, `abort` stops at them.
            on_batch: called with a `corollary.streaming.batches.Batch` behind every commit.

        Returns:
            Spark's `StreamingQuery`.

        Raises:
            InputError: the database is in memory, or the frame does not fit the relation.
        """
        # Packages above this one are looked up by name: they know it, and not the reverse.
        start = importlib.import_module("corollary.streaming.stream").start
        return start(
            self,
            frame,
            into,
            op=op,
            order=order,
            checkpoint=checkpoint,
            trigger=trigger,
            bad_rows=bad_rows,
            on_batch=on_batch,
        )

    def close(self) -> None:
        """Let go of the warehouse and of the engine; streams are stopped between two batches."""
        while self.closing:
            self.closing.pop()()
        if self.query_log is not None:
            self.query_log.flush()
        self.engine.close()
        if self.store is not None:
            self.store.warehouse.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _durable(self) -> "Durable":
        if self.store is None:
            raise InputError.of(
                "C0918",
                "This database is in memory, so it has no history.",
                None,
                "open one that lasts with `corollary.open(DIRECTORY)`",
            )
        return self.store
