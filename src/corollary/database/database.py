"""A database: a program, an engine that holds its relations, and transactions on them."""

import os
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corollary.analysis.today import TODAY_RELATION
from corollary.console import Phase
from corollary.core.alerts import LINEAGE_VARIABLE, SinkKind
from corollary.core.program import Program
from corollary.database.access.grants import check_grantable, check_reader_name
from corollary.database.access.principals import OWNER
from corollary.database.alerts.delivery import Delivered, Outlets, SenderFactory, deliver
from corollary.database.arguments import PATH, checked
from corollary.database.commit import TransactionRequest
from corollary.database.pending_commit import ALERT_DEPTH
from corollary.database.planning import parse_algorithms
from corollary.database.program.goals import given_rows, read_goal
from corollary.database.program.loaded_program import load_program, read_programs
from corollary.database.program.question_bounds import bounded_question
from corollary.database.publishing import PublishSchedule, PublishTime
from corollary.database.reactions.reactions import ExistingViolations
from corollary.database.reading.read_access import ReadAccess
from corollary.database.reading.reader import Reader
from corollary.database.state import DatabaseState
from corollary.database.store import OpenArguments, Store
from corollary.database.transaction import Transaction, scoped_key
from corollary.database.writing.day import read_day
from corollary.database.writing.quarantine import with_same_quarantine
from corollary.errors import InputError
from corollary.frontends.datalog.parser import parse
from corollary.registry import EXTENSIONS
from corollary.source import SourceFile
from corollary.warehouse.catalog.catalog_rows import DeliveredAlerts

if TYPE_CHECKING:
    from corollary.database.sql.session import SqlSession
    from corollary.database.warehouse_store import WarehouseStore
    from corollary.warehouse.publishing.outputs import PublishResult
    from corollary.warehouse.warehouse import Warehouse


class Database(ReadAccess):
    """Relations that are maintained while the data under them changes.

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

    Args:
        state: engine, program in force, plans.
        store: where commits are recorded; in memory if not given.
        existing: what is done about tuples that violate a new constraint and were there before it.
        outlets: where alerts may go.
        publish: when tables are published; when a transaction asks for it if it is not given.
    """

    def __init__(
        self,
        state: DatabaseState,
        store: Store | None = None,
        *,
        existing: ExistingViolations = ExistingViolations.REPORT,
        outlets: Outlets | None = None,
        publish: PublishTime | None = None,
    ) -> None:
        super().__init__(state, store)
        self._publishing = None if publish is None else PublishSchedule(publish)
        self._existing = existing
        self._senders = SenderFactory(
            state, self._store, outlets or Outlets(), self._begin_delivery
        )
        state.after_commit = self._after_commit
        self._session: SqlSession | None = None

    @property
    def program(self) -> Program:
        """The program in force, as written."""
        return self._state.program

    def __repr__(self) -> str:
        return f"<Database {self._store.location}: {self._summary()}>"

    # --- changing it ---------------------------------------------------------------------------

    @checked(paths=PATH, text=str, facts=PATH, root=PATH, existing=str)
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
            paths: files that make up the program.
            text: the program itself, instead of files.
            facts: a directory, or objects (`s3://bucket/name`); if given, the `.input` files in
                it are read too.
            root: the directory that these files may not leave; that of `facts` if not given.
            existing: what to do about tuples that violate a new constraint, see `transaction`.

        Raises:
            InputError: the program or a facts file is not acceptable.
        """
        if (text is None) is not bool(paths):
            raise InputError.of(
                "C0927",
                "`load` takes the files of a program, or its text.",
                None,
                'write `db.load("shop.dl")` or `db.load(text="…")`',
            )
        if text is not None:
            program = parse(SourceFile("program", text))
        else:
            program = read_programs([Path(each) for each in paths])
        program = with_same_quarantine(program, self.program)
        transaction = self.transaction(existing=existing)
        transaction.set_program(program)
        state = self._state
        with transaction:
            if facts is not None:
                state.console.enter(Phase.READ)
                from corollary.database.writing.inputs import FileLocations, read_inputs
                from corollary.warehouse.files.places import place_of

                top = None if root is None else place_of(str(root))
                places = FileLocations(place_of(str(facts)), root=top)
                for relation, table in read_inputs(
                    load_program(program), places, state.console, state.frames
                ):
                    transaction.insert_input(relation, table)
        return transaction

    @checked(text=str)
    def sql(self, text: str, /, *, at: int | str | date | None = None, **parameters: Any) -> Any:
        """Run statements of SQL, in Spark's dialect.

        Questions (SELECT, WITH, VALUES) are answered. CREATE and DROP edit the program, those that
        follow one another in one transaction. INSERT, DELETE and UPDATE change base relations, in
        one transaction each, or in one for all between BEGIN and COMMIT.

        Args:
            text: the statements, with `;` between them; `:name` stands for a parameter.
            at: a commit or a point in time at which questions are answered, as for `at`.
            parameters: the values of the parameters, by name.

        Returns:
            What the last statement gives: a `SqlAnswer` for a question; the `Transaction` for a
            change that was committed; None for one that waits for COMMIT.

        Raises:
            InputError: a statement is wrong; those before it stay.
        """
        from corollary.database.sql.session import SqlSession

        self._state.check_open()
        if self._session is None:
            self._session = SqlSession(
                self._state, self.transaction, self._ask_at, self._recall, self.explain
            )
        return self._session.run(text, parameters, at)

    @checked(text=str)
    def explain(self, text: str) -> str:
        """Return how a question in SQL, or a goal, is answered: the steps of its plan.

        Raises:
            InputError: it does not fit the program.
        """
        from corollary.core.titles import show_titles
        from corollary.database.reading.sql_texts import is_sql, one_question
        from corollary.explain.plan import print_procedures

        is_statement = is_sql(text)
        with self._state.lock, bounded_question(self._state.limits, is_sql=is_statement):
            self.refresh()
            if is_statement:
                asked = self._read_question(*one_question(text))[1]
            else:
                asked = read_goal(self._state.loaded, text)
            with given_rows(self._state.engine, asked):
                text = "\n".join(print_procedures(self._plan(asked)))
                return show_titles(text, asked.program)

    def set_today(self, day: date | str) -> Transaction | None:
        """Set the day that `today()` gives, and maintain what depends on it.

        If no program in force asks for it yet, the first one that does gets it.

        Args:
            day: a date, or a text such as `2026-11-16`.

        Returns:
            The transaction that changed it, if it was changed now.

        Raises:
            InputError: it is not a day.
        """
        self._catch_up()
        self._state.day = read_day(day)
        if TODAY_RELATION not in self._state.loaded.normal.relations:
            return None
        with self.transaction() as transaction:
            return transaction

    @checked(
        algorithm=(str, Mapping),
        is_traced=bool,
        idempotency=str,
        digest=str,
        is_dry=bool,
        publish=bool,
        existing=str,
    )
    def transaction(
        self,
        *,
        algorithm: str | Mapping[str, str] | None = None,
        is_traced: bool = False,
        idempotency: str | None = None,
        digest: str | None = None,
        is_dry: bool = False,
        publish: bool | None = None,
        existing: str | None = None,
    ) -> Transaction:
        """Begin a transaction, on what has been committed so far.

        Inserts and deletes apply to the state at the commit: if others have committed since, they
        are applied again to the result, whatever was read in between. A transaction whose
        operations depend on what it reads gives a function to `tx.read`.

        Args:
            algorithm: instead of the database's own.
            is_traced: whether to keep the rows of the papers' tables in `trace`.
            idempotency: a key of the caller's; a second transaction of the same key does nothing
                and reports what the first one did. In memory keys are known until it is closed.
            digest: of what is going to be asked, at most 64 characters: a key that comes with
                another digest is an error (`C0929`).
            is_dry: whether to report what would change, and change nothing.
            publish: whether to bring the tables of `.output` relations up to date after the
                commit; as the database was opened if it is not given.
            existing: what to do about tuples that violate a new constraint and were there before
                it: `report` them in `existing`, `refuse` the constraint, or `accept` them; as
                the database was opened if it is not given.
        """
        if algorithm is not None:
            parse_algorithms(algorithm)
        self._catch_up()
        if publish is None:
            publish = self._publishes_next(is_dry=is_dry)
        author = self._state.author
        key = None if idempotency is None else scoped_key(author, idempotency)
        request = TransactionRequest(
            author,
            algorithm=algorithm,
            is_traced=is_traced,
            idempotency=key,
            digests={} if key is None or digest is None else {key: digest},
            is_dry=is_dry,
            publishes=publish,
            existing=ExistingViolations.of(existing) if existing else self._existing,
        )
        return Transaction(self._state, self._store, request)

    def run(
        self,
        *paths: str | Path,
        facts: str | Path = "",
        root: str | Path | None = None,
        bad_rows: str = "quarantine",
        max_bad: str | int = "50%",
        max_deletes: str | int = "50%",
        idempotency: str | None = None,
    ) -> Any:
        """Bring the database up to date with a program and its sources, as `corollary run` does.

        What has changed in the sources and in the program since the last run is read, maintained
        and committed; tables are published and alerts delivered.

        Args:
            paths: files that make up the program.
            facts: the directory that the names of sources are relative to; the current one if it
                is not given.
            root: the directory that sources may not leave; that of `facts` if not given.
            bad_rows: `quarantine` sets malformed records aside, `abort` stops at them.
            max_bad: how many records of a source may be malformed: a share such as `50%`, a number
                or `off`.
            max_deletes: how many rows of a relation a source may delete, likewise.
            idempotency: a key, as for `transaction`.

        Returns:
            A `corollary.database.intake.pipeline.PipelineRun`.

        Raises:
            InputError: the program or a source is not acceptable; nothing was changed.
        """
        return EXTENSIONS.run_pipeline(
            self,
            *paths,
            facts=facts,
            root=root,
            bad_rows=bad_rows,
            max_bad=max_bad,
            max_deletes=max_deletes,
            idempotency=idempotency,
        )

    @checked(into=str, op=str, order=str, checkpoint=PATH, trigger=Mapping, bad_rows=str)
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
        max_bad: str | int = "50%",
        max_deletes: str | int = "50%",
        on_batch: Callable[[Any], object] | None = None,
    ) -> Any:
        """Let a streaming frame of Spark change a base relation, exactly once.

        Every micro-batch is one transaction, under a key that the query and the batch make.

        Args:
            frame: a streaming frame. Columns are found by name if all names of the relation are
                there, by place if none of them is.
            into: the base relation.
            op: the column that says what a row does: `insert` or `delete`, or another spelling
                that `corollary.database.writing.events` knows. If it is not given, all rows are
                inserts.
            order: the column by which the rows of a batch follow one another: of several on one
                tuple the last one counts.
            checkpoint: where Spark notes how far it is; `streams/RELATION` in the warehouse if it
                is not given.
            trigger: when there is a batch, as `DataStreamWriter.trigger` takes it, such as
                `{"availableNow": True}`; as soon as possible if it is not given.
            bad_rows: `quarantine` sets rows aside that do not fit, `abort` stops at them.
            max_bad: how many rows of a batch may not fit: a share such as `50%`, of batches with
                1,000 rows and more, a number or `off`.
            max_deletes: how many rows of a relation a batch may delete, likewise.
            on_batch: called with a `corollary.streaming.batches.Batch` after every commit.

        Returns:
            Spark's `StreamingQuery`.

        Raises:
            InputError: the database is in memory, or the frame does not fit the relation.
        """
        return EXTENSIONS.start_stream(
            self,
            frame,
            into,
            op=op,
            order=order,
            checkpoint=checkpoint,
            trigger=trigger,
            bad_rows=bad_rows,
            max_bad=max_bad,
            max_deletes=max_deletes,
            on_batch=on_batch,
        )

    @checked(transaction=Transaction)
    def publish(self, transaction: Transaction | None = None) -> "PublishResult | None":
        """Bring the Delta tables of all `.output` relations up to date with the last commit.

        Args:
            transaction: the one that made the last commit, so that it need not be read back.
        """
        self._state.check_open()
        with self._state.lock:
            is_last = transaction is not None and transaction.commit_number == self.commits
            fresh = transaction.changes if transaction is not None and is_last else None
            self._state.console.enter(Phase.PUBLISH)
            try:
                published = self._store.publish(self._state, fresh)
                if self._publishing is not None:
                    self._publishing.note_published(
                        None if published is None else published.retry_seconds
                    )
                return published
            finally:
                self._state.console.enter(Phase.OTHER)

    @property
    def publishes_by_hand(self) -> bool:
        """Whether tables are published only when `publish` is called."""
        return self._publishing is not None and self._publishing.when is PublishTime.MANUAL

    def _publishes_next(self, *, is_dry: bool) -> bool:
        """Return whether the next transaction publishes, and note what it leaves to be done."""
        schedule = self._publishing
        if schedule is None or is_dry:
            return False
        schedule.is_behind = True
        if schedule.wait != 0.0:
            return False
        schedule.note_begun()
        return True

    def close(self) -> None:
        """Close the warehouse and the engine; tables that are behind are published first."""
        is_open = not self._state.is_closed
        if is_open and self._publishing is not None and self._publishing.wait is not None:
            self.publish()
        super().close()

    def at(self, point: int | str | date) -> "Database":
        """Return the database as it was: what changes there stays there, and is not durable.

        Relations are read when they are first used.

        Args:
            point: a commit; a timestamp (the last commit not after it) or a date (the end of that
                day, UTC), as a text such as `2026-11-15T08:00:00Z` or as Python has them.

        Raises:
            InputError: it is none of these.
            WarehouseError: there is no such commit, or it is no longer kept.
        """
        return Database(*self._past(point))

    # --- who may see what ----------------------------------------------------------------------

    @checked(reader=str, relations=str)
    def grant(self, reader: str, *relations: str) -> None:
        """Let a reader see relations and event predicates, and not what they are derived from.

        Raises:
            InputError: one of them does not exist.
        """
        self.refresh()
        names = check_grantable(relations, self._state.loaded.checked.signatures)
        self._store.grants.add(check_reader_name(reader), names)

    @checked(reader=str, relations=str)
    def revoke(self, reader: str, *relations: str) -> None:
        """Withdraw grants; what was not granted is ignored."""
        self.refresh()
        self._store.grants.remove(check_reader_name(reader), relations)

    def grants(self) -> dict[str, list[str]]:
        """Return for each reader what it may see."""
        self._state.check_open()
        return self._store.grants.by_reader()

    @checked(name=str)
    def reader(self, name: str, *, owns: bool = False) -> Reader:
        """Return the database as a reader sees it: what was granted to it, and nothing else.

        This limits programs that act for others, such as a server. It does not protect the files:
        whoever can open them can read them.

        Args:
            name: of the reader.
            owns: whether closing the reader closes this database.
        """
        self._state.check_open()
        grants = self._store.grants
        return Reader(self._state, self._store, check_reader_name(name), grants, owns=owns)

    # --- alerts --------------------------------------------------------------------------------

    def deliver(self) -> Delivered:
        """Deliver the alerts that are due, as far as this process can; then events of OpenLineage.

        What goes wrong is reported in the result and tried again later; it raises nothing.
        """
        self._state.check_open()
        found = deliver(self._store.outbox, self._senders)
        warehouse = warehouse_of(self) if os.environ.get(LINEAGE_VARIABLE) else None
        if warehouse is not None:
            from corollary.database.alerts.openlineage import send_events

            self.refresh()
            problem = send_events(warehouse, self._state.loaded.normal)
            found.problems += [] if problem is None else [problem]
        return found

    def _after_commit(self) -> None:
        """Call callbacks; in memory, deliver everything.

        Nothing is done after a commit that a delivery makes: that delivery goes on by itself.
        """
        is_durable, state = self._store.is_durable, self._state
        if state.is_trial or ALERT_DEPTH.get() or (is_durable and not state.callbacks):
            return
        outbox = self._store.outbox
        if outbox.sinks():
            kinds = (SinkKind.CALLBACK,) if is_durable else tuple(SinkKind)
            for problem in deliver(outbox, self._senders, kinds).problems:
                state.console.note(str(problem))

    def _begin_delivery(self, cause: DeliveredAlerts) -> Transaction:
        """Begin the transaction that delivers alerts into a relation."""
        self._catch_up()
        request = TransactionRequest(OWNER, existing=self._existing, delivers=cause)
        return Transaction(self._state, self._store, request)


# --- for the packages above: not part of what users see in a `Database` --------------------------


def state_of(database: ReadAccess) -> DatabaseState:
    """Return the state of a database."""
    return database._state  # noqa: SLF001 - here is where it is handed out


def store_of(database: ReadAccess) -> Store:
    """Return the store of a database."""
    return database._store  # noqa: SLF001 - here is where it is handed out


def warehouse_store_of(database: ReadAccess) -> "WarehouseStore | None":
    """Return the store of a durable database; None if it is in memory."""
    from corollary.database.warehouse_store import WarehouseStore

    store = store_of(database)
    return store if isinstance(store, WarehouseStore) else None


def warehouse_of(database: ReadAccess) -> "Warehouse | None":
    """Return the warehouse of a database; None if it is in memory."""
    store = warehouse_store_of(database)
    return None if store is None else store.warehouse


def open_arguments_of(database: Database) -> OpenArguments | None:
    """Return how a durable database was opened; None if it is in memory."""
    store = warehouse_store_of(database)
    return None if store is None else store.open_arguments
