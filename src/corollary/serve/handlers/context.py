"""The database that requests are answered on, as each principal sees it, now and earlier."""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from corollary.database.access.principals import NOBODY, AccessRole, Principal
from corollary.database.database import Database, state_of, store_of
from corollary.database.history import commit_number, read_point
from corollary.database.publishing import PublishSchedule, PublishTime
from corollary.database.reading.read_access import ReadAccess
from corollary.database.reading.reader import Reader
from corollary.database.reading.shape_plans import GoalPlans
from corollary.database.transaction import Transaction
from corollary.errors import AccessError
from corollary.serve import requests
from corollary.serve.answers import ServiceError
from corollary.serve.handlers.cursors import parse_cursor
from corollary.serve.service import ServiceLimits

BEHIND = "C1607"
"""The code of a request for a commit that is not there yet."""
SNAPSHOTS_MAX = 4
"""How many earlier states are kept open."""

PagedRequest = (
    requests.QueryRequest
    | requests.SqlRequest
    | requests.RelationRowsRequest
    | requests.QuarantineRequest
)


class HandlerContext:
    """What answers requests: an open database, and its earlier states.

    Args:
        database: the database.
        limits: the bounds on requests.
        publish: when tables are published.

    Attributes:
        timings: by commit, how the last commits of this server were made.
        goal_plans: the plans of goals that were asked.
        publishing: when tables are published, after the answers to writes.
        unpublished: the last transaction, if tables do not show it yet.
        last_changes: a commit, and by relation the last one up to it that has changed it.
        has_alerts: whether commits may have left alerts that are not delivered.
    """

    def __init__(
        self, database: Database, limits: ServiceLimits, publish: PublishTime = PublishTime.SECOND
    ) -> None:
        self.database = database
        self.publishing = PublishSchedule(publish)
        self.unpublished: Transaction | None = None
        self.has_alerts = False
        self.last_changes: tuple[int, dict[str, dict[str, int]]] | None = None
        state_of(database).author = NOBODY
        self.limits = limits
        self.timings: dict[int, dict[str, Any]] = {}
        self.goal_plans = GoalPlans(state_of(database), store_of(database))
        self._limited_at = -1
        self._seconds = limits.seconds
        self._snapshots: OrderedDict[int, ReadAccess] = OrderedDict()
        self._bound_work()

    @property
    def commit(self) -> int:
        """The last commit that it has seen."""
        return self.database.commits

    def refresh(self) -> None:
        """See what has been committed, unless the state is pinned."""
        self.database.refresh()
        self._bound_work()

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """See what has been committed, and then the same state for a while."""
        state = state_of(self.database)
        self.refresh()
        state.is_pinned = True
        try:
            yield
        finally:
            state.is_pinned = False

    def _bound_work(self) -> None:
        """Let the limit on tuples count those that a request works on, and not those stored."""
        state = state_of(self.database)
        if self._limited_at == self.commit and state.limits.seconds == self._seconds:
            return
        self._limited_at = self.commit
        tuples = state.engine.held_tuples() + self.limits.tuples
        state.limits = replace(
            state.limits, seconds=self._seconds, tuples=tuples, growth=self.limits.memory
        )

    @property
    def is_hurried(self) -> bool:
        """Whether requests have only a part of their seconds."""
        return self._seconds < self.limits.seconds

    @contextmanager
    def within(self, seconds: float | None) -> Iterator[None]:
        """Give requests this many seconds for a while; None for all that they may have."""
        if seconds is None:
            yield
            return
        self._seconds = min(seconds, self.limits.seconds)
        self._bound_work()
        try:
            yield
        finally:
            self._seconds = self.limits.seconds
            self._bound_work()

    def require_commit(self, number: int | None) -> None:
        """Refuse to answer before a commit is seen.

        Raises:
            ServiceError: `C1607`, it is not there yet.
        """
        if number is None or number <= self.commit:
            return
        state = state_of(self.database)
        before, state.is_pinned = state.is_pinned, False
        self.refresh()
        state.is_pinned = before
        if number > self.commit:
            text = f"Commit {number} is not there yet: the last one is {self.commit}."
            raise ServiceError.of(
                503, BEHIND, text, "ask again later, or for an earlier commit", retry_after=1
            )

    def note_commit(self, transaction: Transaction) -> None:
        """Note a commit whose alerts are to be delivered, and whose tables to be published."""
        self.unpublished = transaction
        self.publishing.is_behind = self.has_alerts = True

    def finish_commits(self, *, is_last: bool = False) -> None:
        """Deliver alerts, and publish tables if it is time to, or the last time for it."""
        if self.has_alerts:
            self.has_alerts = False
            self.database.deliver()
        wait = self.publishing.wait
        if wait is not None and (is_last or wait <= 0.0):
            transaction, self.unpublished = self.unpublished, None
            self.publishing.note_published()
            published = self.database.publish(transaction)
            if published is not None:
                self.publishing.note_published(published.retry_seconds)

    def close(self) -> None:
        """Close the snapshots and the database."""
        while self._snapshots:
            self._snapshots.popitem()[1].close()
        self.database.close()

    # --- who asks ------------------------------------------------------------------------------

    @contextmanager
    def acting_as(self, who: Principal) -> Iterator[None]:
        """Let all transactions be made on behalf of who asks; at other times nobody may."""
        state = state_of(self.database)
        before, state.author = state.author, who
        try:
            yield
        finally:
            state.author = before

    def view(self, who: Principal, at: int | str | None = None) -> tuple[ReadAccess, int]:
        """Return the database as a principal sees it, and the commit that it shows.

        Raises:
            InputError: it is not a point in history.
            WarehouseError: there is no such commit, or it is no longer kept.
        """
        self.refresh()
        if at is not None:
            number = self._number(at)
            if number != self.commit:
                return self._past(who, number), number
        if who.role is AccessRole.READ:
            return self.database.reader(who.name), self.commit
        return self.database, self.commit

    def owned(self, who: Principal, what: str) -> Database:
        """Return the database, for who sees all of it.

        Raises:
            AccessError: who asks is limited to grants.
        """
        if who.role is AccessRole.READ:
            raise AccessError.of(
                "C1041",
                f"`{who.name}` reads, and cannot {what}.",
                None,
                "ask with a token of the role `write` or `admin`",
            )
        self.refresh()
        return self.database

    def _number(self, at: int | str) -> int:
        from corollary.database.database import warehouse_of

        warehouse = warehouse_of(self.database)
        point = read_point(at)
        if warehouse is None:
            return self.commit if point == self.commit else self._without_history()
        number = commit_number(warehouse, point)
        warehouse.commit_at(number)
        return number

    def _without_history(self) -> int:
        self.database.log()  # raises: a database in memory has no history
        raise AssertionError

    def _past(self, who: Principal, number: int) -> ReadAccess:
        """Return an earlier state, from those that are kept open."""
        found = self._snapshots.get(number)
        if found is None:
            found = self._snapshots[number] = self.database.at(number)
            if len(self._snapshots) > SNAPSHOTS_MAX:
                self._snapshots.popitem(last=False)[1].close()
        self._snapshots.move_to_end(number)
        if who.role is not AccessRole.READ:
            return found
        return Reader(state_of(found), store_of(found), who.name, store_of(self.database).grants)

    # --- pages ---------------------------------------------------------------------------------

    def page(self, who: Principal, request: PagedRequest) -> tuple[ReadAccess, int, int]:
        """Return the database that a page of rows is read from, its commit, and the first row.

        Raises:
            InputError: the cursor belongs to another question.
        """
        if request.cursor is None:
            return *self.view(who, request.at), 0
        cursor = parse_cursor(request.cursor, request)
        return *self.view(who, cursor.commit), cursor.offset
