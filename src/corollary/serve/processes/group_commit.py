"""Group commit: writes that wait become one transaction, in the order of their arrival.

A group ends before a write that may not join it: one that has the opposite sign of a tuple in it
or the same key, changes rules or the day, is a dry run, or wants to be alone. A group that fails is
done again in halves, so that an error reaches only who has caused it. Constraints and events see a
group as one step.

Writes in SQL are grouped in the same way. All of a group read the state before it, so one that
reads what the group has changed begins the next one: whatever was read is what it would be if the
writes had been made one after the other. UPDATE and DELETE of rows that have some values read no
other rows.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any

from corollary.console import Phase, SilentConsole, Stopwatch
from corollary.core.arrow import from_python, to_python
from corollary.core.engine import LocalTable
from corollary.core.program import NormalProgram
from corollary.core.states import CHANGES, State
from corollary.data_class import dataclass
from corollary.database.access.principals import ORDER, Principal
from corollary.database.changes import Change
from corollary.database.database import state_of
from corollary.database.engines import SparkFrames
from corollary.database.intake.change_files import ChangeFile, digest_change, row_key
from corollary.database.sql.session import affected_relations
from corollary.database.sql.writes import PreparedWrite, PreparedWrites
from corollary.database.transaction import Transaction
from corollary.errors import CorollaryError, UnknownOutcomeError
from corollary.serve.answers import Answer, ServiceError
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.handlers.dispatch import handle
from corollary.serve.handlers.failures import service_error
from corollary.serve.handlers.writes import read_lines, read_sql_changes, sql_changes_answer
from corollary.serve.requests import ApplyRequest, Request, SqlChangesRequest

TIMINGS_MAX = 1000
"""The number of latest commits of which it is remembered how they were made."""


@dataclass(frozen=True, slots=True)
class Write:
    """A write that waits.

    Attributes:
        number: identifies it.
    """

    number: int
    who: Principal
    request: Request


@dataclass(frozen=True, slots=True)
class CommitReport:
    """What a server tells about a commit that it has made.

    Attributes:
        number: of the commit.
        seconds: how long it took.
        requests: how many requests share it.
        rows: how many tuples each relation has gained and lost.
        timings: seconds by phase, and the number of requests, for who asks about the commit.
    """

    number: int
    seconds: float
    requests: int
    rows: dict[str, tuple[int, int]]
    timings: dict[str, Any]


@dataclass(slots=True)
class _Member:
    """A write of a group, with its changes.

    Attributes:
        key: who has chosen its idempotency key, the key, and the digest of the change.
    """

    write: Write
    request: ApplyRequest
    changes: ChangeFile
    key: tuple[Principal, str, str] | None

    @classmethod
    def of(cls, write: Write, request: ApplyRequest, changes: ChangeFile) -> "_Member":
        """Return a write with its changes."""
        key = request.idempotency_key
        if key is None:
            return cls(write, request, changes, None)
        digest = digest_change(changes, request.day)
        return cls(write, request, changes, (write.who, key, digest))


@dataclass(slots=True)
class _Group:
    """Writes that can be done together."""

    members: list[_Member] = field(default_factory=list)
    keys: set[tuple[Principal, str]] = field(default_factory=set)
    signs: dict[tuple[str, Any], State] = field(default_factory=dict)

    def may_join(self, member: _Member) -> bool:
        """Return whether a write can be done in the same transaction."""
        if not self.members:
            return True
        if is_lonely(member.request) or member.changes.edits:
            return False
        if member.key is not None and member.key[:2] in self.keys:
            return False
        return all(
            self.signs.get((relation, row_key(row)), sign) is sign
            for sign, relation, rows in member.changes.operations
            for row in rows
        )

    def add(self, member: _Member) -> None:
        """Add a write."""
        self.members.append(member)
        if member.key is not None:
            self.keys.add(member.key[:2])
        for sign, relation, rows in member.changes.operations:
            self.signs.update(dict.fromkeys(((relation, row_key(row)) for row in rows), sign))


@dataclass(slots=True)
class _SqlGroup:
    """Writes in SQL that can be done together: none reads what an earlier one changes.

    Attributes:
        program: the rules in force.
        by_relation: the writes to each relation.
    """

    program: NormalProgram
    members: list[tuple[Write, PreparedWrites]] = field(default_factory=list)
    by_relation: dict[str, list[PreparedWrite]] = field(default_factory=dict)

    def may_join(self, writes: PreparedWrites) -> bool:
        """Return whether writes can be done in the same transaction."""
        return not self.members or all(map(self._may_follow, writes.writes))

    def _may_follow(self, write: PreparedWrite) -> bool:
        """Return whether a write does the same before those of the group and after them."""
        reads = write.reads
        if write.touched is not None and not self.program.active.triggers:
            reads -= {write.relation.lower()}  # of which it reads those rows only
        if reads and not reads.isdisjoint(affected_relations(self.program, self.by_relation)):
            return False
        return all(
            _is_apart(each, write)
            for each in self.by_relation.get(write.relation, ())
            if each.reads or write.reads
        )

    def add(self, write: Write, writes: PreparedWrites) -> None:
        """Add writes."""
        self.members.append((write, writes))
        for each in writes.writes:
            self.by_relation.setdefault(each.relation, []).append(each)


def _is_apart(one: PreparedWrite, other: PreparedWrite) -> bool:
    """Return whether two writes to a relation concern different rows."""
    if one.touched is None or other.touched is None:
        return False
    return one.touched.is_apart_from(other.touched)


class PhaseConsole(SilentConsole):
    """Measures how long the phases of a commit take."""

    def __init__(self) -> None:
        self.stopwatch = Stopwatch()

    def enter(self, phase: Phase) -> None:
        """Begin a phase; the one before has ended."""
        self.stopwatch.enter(phase)


class GroupCommitter:
    """Makes transactions of writes.

    Args:
        context: the database.
        begin: called with the numbers of the writes that are about to be committed.
        report: called after each commit, before its requests are answered.
    """

    def __init__(
        self,
        context: HandlerContext,
        begin: Callable[[Sequence[int]], None],
        report: Callable[[CommitReport], None],
    ) -> None:
        self._context = context
        self._begin = begin
        self._report = report
        self._console = PhaseConsole()
        state_of(context.database).console = self._console

    def run(self, writes: Iterable[Write]) -> Iterator[tuple[int, Answer | ServiceError]]:
        """Do some writes; yield for each of them its number and its answer, as soon as possible."""
        waiting = deque(writes)
        while waiting:
            if isinstance(waiting[0].request, SqlChangesRequest):
                sql_group = _SqlGroup(state_of(self._context.database).loaded.normal)
                yield from self._gather_sql(waiting, sql_group)
                if sql_group.members:
                    self._begin([write.number for write, _ in sql_group.members])
                    yield from self._commit_sql(sql_group.members)
                continue
            if not isinstance(waiting[0].request, ApplyRequest) or waiting[0].request.dry_run:
                write = waiting.popleft()
                self._begin([write.number])
                yield write.number, self._alone(write)
                continue
            group = _Group()
            yield from self._gather(waiting, group)
            if group.members:
                self._begin([each.write.number for each in group.members])
                yield from self._commit(group.members)

    # --- groups --------------------------------------------------------------------------------

    def _gather(
        self, waiting: deque[Write], group: _Group
    ) -> Iterator[tuple[int, Answer | ServiceError]]:
        """Move writes into a group, as long as they may join; answer those that need no commit."""
        context = self._context
        context.database.refresh()
        while waiting:
            write = waiting[0]
            request = write.request
            if not isinstance(request, ApplyRequest) or request.dry_run:
                return
            try:
                write.who.require(request.role, "change data")
                member = _Member.of(write, request, read_lines(context, request))
                if not group.may_join(member):
                    return
                replay = self._replay(member)
            except Exception as error:  # noqa: BLE001 - the error of one request only
                waiting.popleft()
                yield write.number, service_error(error)
                continue
            waiting.popleft()
            if replay is not None:
                yield write.number, replay
                continue
            group.add(member)
            if is_lonely(request) or member.changes.edits:
                return

    def _gather_sql(
        self, waiting: deque[Write], group: "_SqlGroup"
    ) -> Iterator[tuple[int, Answer | ServiceError]]:
        """Move writes in SQL into a group, as long as they may join."""
        context = self._context
        context.database.refresh()
        while waiting:
            write = waiting[0]
            request = write.request
            if not isinstance(request, SqlChangesRequest):
                return
            try:
                write.who.require(request.role, "change data")
                writes = read_sql_changes(context, request)
            except Exception as error:  # noqa: BLE001 - the error of one request only
                waiting.popleft()
                yield write.number, service_error(error)
                continue
            if not group.may_join(writes):
                return
            group.add(write, writes)
            waiting.popleft()

    def _commit_sql(
        self, members: Sequence[tuple[Write, PreparedWrites]]
    ) -> Iterator[tuple[int, Answer | ServiceError]]:
        """Commit a group of writes in SQL; if that fails, its halves."""
        try:
            began = time.monotonic()
            transaction = self._open([write.who for write, _ in members])
            PreparedWrites.apply_all([writes for _, writes in members], transaction)
            transaction.commit()
            self._note(transaction, len(members), time.monotonic() - began)
            commit = transaction.commit_number or self._context.commit
            found = [
                (write.number, sql_changes_answer(commit, writes)) for write, writes in members
            ]
        except Exception as error:  # noqa: BLE001 - the writer goes on
            is_shared = len(members) > 1 and isinstance(error, CorollaryError)
            if isinstance(error, UnknownOutcomeError) or not is_shared:
                yield from ((write.number, service_error(error)) for write, _ in members)
                return
            half = len(members) // 2
            yield from self._commit_sql(members[:half])
            yield from self._commit_sql(members[half:])
            return
        yield from found

    def _open(
        self, authors: Iterable[Principal], key: str | None = None, digest: str | None = None
    ) -> Transaction:
        """Begin a transaction on behalf of the one with the fewest rights."""
        self._console.stopwatch = Stopwatch()
        least = min(authors, key=lambda who: ORDER.index(who.role))
        with self._context.acting_as(least):
            return self._context.database.transaction(idempotency=key, digest=digest)

    def _replay(self, member: _Member) -> Answer | None:
        """Return the answer to a write whose key was used before."""
        if member.key is None:
            return None
        database = self._context.database
        who, key, digest = member.key
        with self._context.acting_as(who):
            transaction = database.transaction(idempotency=key, digest=digest)
        if not transaction.is_repeated:
            transaction.rollback()
            return None
        answers = _Answers(transaction, [member], database.commits)
        return Answer.of(database.commits, answers.document(member))

    def _commit(self, members: list[_Member]) -> Iterator[tuple[int, Answer | ServiceError]]:
        """Commit a group; if that fails, its halves."""
        first = members[0]
        is_lonely_one = is_lonely(first.request) or bool(first.changes.edits)
        if len(members) == 1 and is_lonely_one:
            yield first.write.number, self._alone(first.write)
            return
        try:
            transaction = self._transact(members)
            commit = self._context.commit
            answers = _Answers(transaction, members, commit)
            found = [(each, Answer.of(commit, answers.document(each))) for each in members]
        except UnknownOutcomeError as error:
            yield from ((each.write.number, service_error(error)) for each in members)
            return
        except CorollaryError as error:
            if len(members) == 1:
                yield first.write.number, service_error(error)
                return
            half = len(members) // 2
            yield from self._commit(members[:half])
            yield from self._commit(members[half:])
            return
        except Exception as error:  # noqa: BLE001 - the writer goes on
            yield from ((each.write.number, service_error(error)) for each in members)
            return
        yield from ((each.write.number, answer) for each, answer in found)

    def _transact(self, members: Sequence[_Member]) -> Transaction:
        """Make one transaction of a group."""
        keys = [each.key for each in members]
        began = time.monotonic()
        _, key, digest = keys[0] if len(keys) == 1 and keys[0] is not None else (None, None, None)
        transaction = self._open((each.write.who for each in members), key, digest)
        if not transaction.is_repeated:
            if key is None:
                transaction.share(each for each in keys if each is not None)
            for each in members:
                each.changes.apply_to(transaction)
        transaction.commit()
        self._note(transaction, len(members), time.monotonic() - began)
        return transaction

    def _alone(self, write: Write) -> Answer | ServiceError:
        """Answer a write that shares its commit with nobody."""
        before = self._context.commit
        began = time.monotonic()
        self._console.stopwatch = Stopwatch()
        try:
            answer = handle(self._context, write.who, write.request)
        except ServiceError as error:
            return error
        number = self._context.commit
        if number != before:
            warehouse_changes = answer.json.get("changes", {}) if answer.body else {}
            rows = {
                name: (len(each.get("added", ())), len(each.get("removed", ())))
                for name, each in warehouse_changes.items()
            }
            self._tell(number, time.monotonic() - began, 1, rows)
        return answer

    def _note(self, transaction: Transaction, requests: int, seconds: float) -> None:
        if transaction.commit_number is None or transaction.is_repeated:
            return
        self._context.note_commit(transaction)
        rows = {name: each.counts for name, each in transaction.changes.items()}
        self._tell(transaction.commit_number, seconds, requests, rows)

    def _tell(
        self, number: int, seconds: float, requests: int, rows: dict[str, tuple[int, int]]
    ) -> None:
        phases = {
            str(phase): round(spent, 6) for phase, spent in self._console.stopwatch.seconds.items()
        }
        timings = {"phases": phases, "grouped": requests}
        remember_timings(self._context, number, timings)
        self._report(CommitReport(number, seconds, requests, rows, timings))


def remember_timings(context: HandlerContext, number: int, timings: dict[str, Any]) -> None:
    """Remember how a commit was made, and forget the oldest."""
    context.timings[number] = timings
    while len(context.timings) > TIMINGS_MAX:
        context.timings.pop(next(iter(context.timings)))


def is_lonely(request: ApplyRequest) -> bool:
    """Return whether a write shares its commit with nobody."""
    return request.alone or request.today is not None


class _Answers:
    """The answers to the writes of one transaction: own base changes, common derived ones.

    Args:
        transaction: what was done.
        members: the writes that it has done; or one that repeats the key of an earlier write.
        commit: the last commit.
    """

    def __init__(self, transaction: Transaction, members: Sequence[_Member], commit: int) -> None:
        self._transaction = transaction
        self._commit = transaction.commit_number or commit
        self._is_shared = len(members) > 1 or transaction.is_repeated
        self._size = len(members)
        self._documents: dict[int, dict[str, Any]] = {}
        self._rows: dict[str, tuple[dict[Any, Any], dict[Any, Any]]] = {}
        self._asked: dict[str, set[Any]] = {}
        for each in members if self._is_shared else ():
            for _, relation, rows in each.changes.operations:
                self._asked.setdefault(relation, set()).update(map(row_key, rows))

    def document(self, member: _Member) -> dict[str, Any]:
        """Return the answer to one write."""
        max_rows = member.request.max_rows
        if max_rows not in self._documents:
            self._documents[max_rows] = self._transaction.as_json(max_rows)
        common = self._documents[max_rows] | {"commit": self._commit}
        if not self._is_shared:
            return common
        common.pop("kept", None)
        changes = dict(common["changes"])
        for name, change in self._transaction.changes.items():
            if name in self._asked:
                changes[name] = self._own(member, change).as_json(max_rows)
        found = {
            **common,
            "changes": {
                name: each
                for name, each in changes.items()
                if any(each.get(key) for key in ("added", "removed"))
            },
        }
        for name, kept in self._transaction.kept.items():
            asked = _own_rows(member, State.REMOVED, name)
            own = kept.of_rows([row for row in to_python(kept.table()) if row_key(row) in asked])
            if own:
                found.setdefault("kept", {})[name] = own.as_json(max_rows)
        return {**found, "grouped": self._size} if self._size > 1 else found

    def _own(self, member: _Member, change: Change) -> Change:
        """Return what a write has changed in a base relation.

        What nobody has asked for, triggers did: that is in every answer. When a key is repeated,
        it is not known what others of the same group have asked for.
        """
        name = change.relation.name
        if name not in self._rows:
            added, removed = (
                {row_key(row): row for row in to_python(table)}
                for table in (change.added, change.removed)
            )
            self._rows[name] = added, removed
        asked = self._asked[name]
        tables: list[LocalTable] = []
        for sign, rows in zip(CHANGES, self._rows[name], strict=True):
            own = _own_rows(member, sign, name)
            is_repeated = self._transaction.is_repeated
            shown = [
                row
                for key, row in rows.items()
                if key in own or (key not in asked and not is_repeated)
            ]
            tables.append(LocalTable(from_python(shown, change.relation)))
        return Change(change.relation, tables[0], tables[1], SparkFrames())


def _own_rows(member: _Member, sign: State, name: str) -> set[Any]:
    """Return the keys of the rows that a write adds to a relation, or deletes from it."""
    return {
        row_key(row)
        for each, relation, given in member.changes.operations
        if each is sign and relation == name
        for row in given
    }
