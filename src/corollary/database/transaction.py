"""A transaction: what users ask for and read; `commit` does it."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

import pyarrow as pa

from corollary.core.alerts import Alert, distinct_alerts
from corollary.core.engine import TableHandle
from corollary.core.program import Program, Relation
from corollary.core.recorder import JobRecord
from corollary.core.states import State
from corollary.core.values import is_encodable, quote_text
from corollary.database.access.principals import OWNER, Principal
from corollary.database.arguments import COUNT, check_function, checked, wrong_argument
from corollary.database.changes import JSON_MAX_ROWS, Changes, KeptTuples
from corollary.database.commit import CommitOutcome, OpenTransaction, TransactionRequest, commit
from corollary.database.counters import Stats, TraceRow
from corollary.database.pending_commit import DeferredOperations, FollowUp
from corollary.database.program.loaded_program import LoadedProgram
from corollary.database.program.program_edits import with_rule, without_rule
from corollary.database.reactions.reactions import ExistingViolations, Violation
from corollary.database.reactions.trigger_rounds import TriggerEffects
from corollary.database.relation_plans import RelationPlan
from corollary.database.state import DatabaseState
from corollary.database.store import Store
from corollary.database.writing.bag_operations import check_counts
from corollary.database.writing.operations import Operation
from corollary.database.writing.rows import check_rows, is_frame
from corollary.errors import ConstraintError, InputError
from corollary.warehouse.catalog.idempotency_keys import KEY_MAX_CHARACTERS, SCOPE_END, scope_of

if TYPE_CHECKING:
    from corollary.database.alterations import Alter
    from corollary.warehouse.publishing.outputs import PublishResult

Found = TypeVar("Found")


class Transaction:
    """Inserts, deletes, rules added and removed, in the order given; the last one wins.

    Used as a context manager it commits at the end of the block, and rolls back if the block
    raises. After the commit the attributes say what happened.

    Attributes:
        changes: what was added and removed, by relation.
        alerts: what `.alert`s report.
        stats: how each relation was maintained.
        trace: the rows of the papers' tables, if the transaction is traced.
        jobs: those in which partitions were asked, on Spark, while views were maintained.
        kept: by relation, the tuples that were deleted but that another part still asserts.
        dropped: the tables that `DROP TABLE` has dropped, with the numbers of rows that have gone.
        triggered: what triggers did, round by round.
        existing: the tuples that violate a new constraint and were there before it.
        commit_number: of the commit; None if there was nothing to commit.
        published: the tables that show the commit, if publishing was asked for.
        next_program: the program that is in force after it, or would be.
        plan: what happens to relations, and why, if the program changes or in a dry run.
        returned: what `RETURNING` of the statement gives that has made it.
        is_repeated: whether an earlier transaction of the same idempotency key did all this. Such
            a transaction does nothing, whatever is asked of it.
    """

    def __init__(
        self, state: DatabaseState, store: Store, request: TransactionRequest | None = None
    ) -> None:
        self._state = state
        self._store = store
        self._request = request or TransactionRequest(state.author)
        self._is_open = True
        self._is_done = False
        self.returned: pa.Table | None = None
        replay = self._request.find_replay(store)
        self._report(CommitOutcome() if replay is None else CommitOutcome.of_replay(replay))

    def _report(self, outcome: CommitOutcome) -> None:
        """Set the attributes that users read."""
        self.changes: Changes = outcome.changes
        self.alerts: list[Alert] = list(outcome.alerts)
        self.stats: dict[str, Stats] = dict(outcome.stats)
        self.trace: list[TraceRow] = list(outcome.trace)
        self.jobs: list[JobRecord] = list(outcome.jobs)
        self.kept: dict[str, KeptTuples] = dict(outcome.kept)
        self.dropped: dict[str, int] = dict(outcome.dropped)
        self.triggered: list[TriggerEffects] = list(outcome.triggered)
        self.existing: list[Violation] = list(outcome.existing)
        self.commit_number: int | None = outcome.commit_number
        self.published: PublishResult | None = outcome.published
        self.is_repeated: bool = outcome.is_repeated
        self.next_program: LoadedProgram = outcome.program or self._state.loaded
        self.plan: list[RelationPlan] = list(outcome.plan)

    def __repr__(self) -> str:
        if self.is_repeated:
            return f"<Transaction: done before as commit {self.commit_number}>"
        if self._is_open:
            rows = sum(len(each.rows) for each in self._request.operations)
            edits = len(self._request.edits)
            return f"<Transaction: open, {rows:,} rows and {edits} edits of the program>"
        if self.commit_number is not None:
            return f"<Transaction: commit {self.commit_number}, {self.changes!r}>"
        return f"<Transaction: {'nothing changed' if self._is_done else 'rolled back'}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if not self._is_open:
            return
        if kind is None:
            self.commit()
        else:
            self.rollback()

    # --- requests ------------------------------------------------------------------------------

    @checked(relation=str)
    def insert(self, relation: str, rows: Any) -> None:
        """Add tuples to a base relation; to one with copies (`bag`), a copy for each row.

        Args:
            relation: its name.
            rows: an iterable of tuples or dictionaries, an Arrow table, a NumPy array or a data
                frame. Columns of tables are found by name if all names are there, by place if none
                is.

        Raises:
            InputError: there is no such base relation, or a row does not fit it.
        """
        self._check_open()
        if self.is_repeated:
            return
        declared = self._writable(relation)
        self._operate(Operation(State.ADDED, relation, self._checked_rows(rows, declared)))

    @checked(relation=str)
    def delete(self, relation: str, rows: Any = (), *, keys: Any = ()) -> None:
        """Remove tuples from a base relation; what is not there is ignored.

        From a relation with copies (`bag`), a copy for each row is removed.

        Args:
            relation: its name.
            rows: the tuples, as for `insert`.
            keys: instead, or as well: values for the columns of its key, in the same forms; the
                tuples that have them are removed, whatever their other values are.

        Raises:
            InputError: there is no such base relation, a row does not fit it, or it has no key.
        """
        self._check_open()
        if self.is_repeated:
            return
        declared = self._writable(relation)
        self._operate(Operation(State.REMOVED, relation, self._checked_rows(rows, declared)))
        if not isinstance(keys, tuple) or keys:
            self._delete_keys(declared, keys)

    @checked(relation=str)
    def upsert(self, relation: str, rows: Any) -> None:
        """Add tuples to a base relation with a key, in place of those that have the same key.

        It replaces tuples that `insert` and `upsert` have added. A tuple that a source or the
        program text asserts stays, and then the key is violated.

        Args:
            relation: its name.
            rows: the tuples, as for `insert`.

        Raises:
            InputError: there is no such base relation, a row does not fit it, or it has no key.
        """
        self._check_open()
        if self.is_repeated:
            return
        declared = self._writable(relation)
        key = self._key(declared)
        positions = [declared.columns.index(name) for name in key]
        given = self._checked_rows(rows, declared)
        if isinstance(given, list):
            self._delete_keys(declared, [tuple(row[at] for at in positions) for row in given])
        elif isinstance(given, pa.Table):
            self._delete_keys(declared, given.select(positions))
        else:
            self._operate(Operation(State.REMOVED, relation, given, key=key))
        self._operate(Operation(State.ADDED, relation, given))

    def _writable(self, relation: str) -> Relation:
        """Return a relation, and note the columns that it has now."""
        declared = self._request.columns[relation] = self._state.writable_relation(relation)
        return declared

    def _checked_rows(
        self, rows: Any, relation: Relation
    ) -> list[tuple[Any, ...]] | pa.Table | TableHandle:
        if getattr(rows, "is_distributed", False) is True:  # checked where they were read
            handle: TableHandle = rows
            return handle
        has_counts = relation.name in self._state.loaded.normal.bags.values()
        tasks = self._state.engine.tasks
        if tasks is not None and relation.columns and is_frame(rows):
            from corollary.database.writing.frame_rows import read_frame

            return read_frame(rows, relation, tasks, has_counts=has_counts)
        found = check_rows(rows, relation)
        if has_counts:
            check_counts(relation, found)
        return found

    def _operate(self, operation: Operation) -> None:
        self._request.operations.append(operation)

    def _delete_keys(self, relation: Relation, keys: Any) -> None:
        key = self._key(relation)
        types = tuple(relation.types[relation.columns.index(name)] for name in key)
        rows = self._checked_rows(keys, replace(relation, columns=key, types=types))
        self._operate(Operation(State.REMOVED, relation.name, rows, key=key))

    def _key(self, relation: Relation) -> tuple[str, ...]:
        """Return the columns of the key of a relation."""
        for each in self._state.program.declarations:
            if each.name == relation.name and each.key:
                return each.key
        bags = self._state.loaded.normal.bags
        if relation.name in (*bags, *bags.values()):
            raise InputError.of(
                "C0921",
                f"`{relation.name}` has copies and no key, so it is not known which are meant.",
                None,
                "give whole rows to `insert` and `delete`: each of them is one copy",
            )
        raise InputError.of(
            "C0921",
            f"`{relation.name}` has no key, so it is not known which tuples are meant.",
            None,
            f"declare one, as in `.decl {relation.name}(…) key(…)`, or give whole tuples to "
            "`insert` and `delete`",
        )

    def insert_input(self, relation: str, table: pa.Table) -> None:
        """Add the rows read for an `.input` of the program that is put into force."""
        self._request.operations.append(Operation(State.ADDED, relation, table))

    def read(self, function: Callable[[], DeferredOperations]) -> None:
        """Add the operations that a function returns; it is called at the commit.

        All that it reads of the database belongs to the one state that the commit follows, so
        transactions are serializable. If another process commits first, it is called again.
        """
        check_function(function, "read")

        def read() -> DeferredOperations:
            found = function()
            if not isinstance(found, DeferredOperations):
                raise wrong_argument("read", "function", DeferredOperations, found)
            return found

        self._request.reads.append(read)

    def follow_up(self, follow_up: FollowUp) -> None:
        """Let further rows be written, which depend on all other changes of base relations."""
        self._request.follow_up = follow_up

    @checked(text=str, place=str)
    def add_rule(self, text: str, *, place: str = "rule") -> None:
        """Add a rule, such as `link(x, y) :- cable(x, y).`, or a fact.

        Messages call the text `place`.

        Raises:
            InputError: it is not a rule. Whether it fits the program is checked at the commit.
        """
        self.edit(lambda program: with_rule(program, text, place))

    @checked(text=str, place=str)
    def remove_rule(self, text: str, *, place: str = "rule") -> None:
        """Remove a rule or fact of the program; the names of its variables do not matter.

        Messages call the text `place`.

        Raises:
            InputError: the program has no such rule.
        """
        self.edit(lambda program: without_rule(program, text, place))

    @checked(program=Program)
    def set_program(self, program: Program) -> None:
        """Replace the whole program, as if its text had been edited."""
        self.edit(lambda _: program)

    def edit(self, edit: Callable[[Program], Program], drops: Iterable[str] = ()) -> None:
        """Edit the program at the commit; errors in the edit itself are raised now.

        Args:
            edit: returns the program that follows another.
            drops: the relations whose tuples go, with those that were given for them until now.
        """
        self._check_open()
        if not self.is_repeated:
            self._request.add_edit(self._state.program, edit)
            self._request.drop(drops)

    def alter(self, alter: "Alter") -> None:
        """Alter a relation at the commit, and nothing else; the tuples there fit, or it fails."""
        self._check_open()
        self._request.alter, self._request.existing = alter, ExistingViolations.REFUSE

    def _check_open(self) -> None:
        if not self._is_open:
            raise InputError.of(
                "C0914",
                "The transaction has ended: it was committed or rolled back.",
                None,
                "begin another one with `db.transaction()`",
            )

    def share(self, requests: Iterable[tuple[Principal, str, str]]) -> None:
        """Note the requests that this transaction does together: authors, keys and digests.

        None of the keys may have been used before: whoever groups requests looks that up.

        Raises:
            InputError: one is not an idempotency key.
        """
        digests = {scoped_key(who, key): digest for who, key, digest in requests}
        self._request.keys, self._request.digests = tuple(digests), digests

    def inspect(self, function: Callable[[OpenTransaction], None]) -> None:
        """Call a function at the commit, when everything is maintained.

        The engine has the state before and the new one then; the transaction is recorded, or
        refused and rolled back, when the function has returned.
        """
        self._request.inspect = check_function(function, "inspect")

    def look(self, ask: Callable[[], Found]) -> Found:
        """Return what a function finds in the state that the transaction would leave so far.

        All of it is done for that and undone again; what constraints say does not matter yet.
        """
        self._check_open()
        if self.is_repeated:
            return ask()
        found: list[Found] = []
        state = self._state

        def inspect(transaction: OpenTransaction) -> None:
            before = state.loaded, state.shapes
            state.loaded, state.shapes = transaction.after, None
            try:
                found.append(ask())
            finally:
                state.loaded, state.shapes = before

        commit(state, self._store, replace(self._request, is_dry=True, inspect=inspect))
        return found[0]

    # --- the end -------------------------------------------------------------------------------

    def rollback(self) -> None:
        """End the transaction without any change."""
        self._is_open = False
        self._request.operations.clear()

    def commit(self) -> None:
        """Apply all changes and maintain what depends on them; all or nothing.

        If another transaction has committed first, everything is done again on its result.

        Raises:
            InputError: the rules do not fit, or an expression has no value.
            ConstraintError: a key, a functional dependency or a constraint would not hold.
            LimitError: a limit was hit.
            ConflictError: others committed first every time.
        """
        self._check_open()
        self._is_open = False
        self._state.check_open()
        outcome = commit(self._state, self._store, self._request)
        self._report(outcome)
        self._is_done = True
        if outcome.failures:  # of a dry run
            raise ConstraintError(outcome.failures)

    @checked(max_rows=COUNT)
    def as_json(self, max_rows: int = JSON_MAX_ROWS) -> dict[str, Any]:
        """Return what happened as `apply` prints it."""
        alerts = distinct_alerts(self.alerts)
        found: dict[str, Any] = {
            "commit": self.commit_number,
            "changes": {name: each.as_json(max_rows) for name, each in self.changes.items()},
            "alerts": [each.as_json() for each in alerts[:max_rows]],
            "stats": {name: each.as_json() for name, each in self.stats.items()},
        }
        if self.kept:
            found["kept"] = {name: each.as_json(max_rows) for name, each in self.kept.items()}
        if len(alerts) > max_rows:
            found |= {"truncated": True, "counts": {"alerts": len(alerts)}}
        return found


def scoped_key(who: Principal, key: str) -> str:
    """Return an idempotency key as it is stored, with the name of who has chosen it.

    Raises:
        InputError: a catalog cannot store it.
    """
    scope = "" if who == OWNER else scope_of(who.name)
    most = KEY_MAX_CHARACTERS - len(scope)
    if not 0 < len(key) <= most or not is_encodable(key) or SCOPE_END in key:
        raise InputError.of(
            "C0920",
            f"{quote_text(key[:KEY_MAX_CHARACTERS])} is not an idempotency key.",
            None,
            f"use a text of 1 to {most} characters, none of them NUL, a tab or half a surrogate "
            "pair",
        )
    return scope + key
