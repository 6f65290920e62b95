"""The outbox: alerts on their way to their sinks, kept in the catalog.

An alert gets here in the transaction that makes its commit, once for each sink. It leaves when it
is marked as delivered; until then

| it is | when | and next |
|---|---|---|
| due | its time has come, and nobody has claimed it | a process claims it |
| claimed | a process is about to deliver it | it is delivered or postponed; or the claim expires |
| postponed | an attempt has failed | it is due again, each time after twice as long |

Claims are made in transactions of the catalog, one after another: no two processes have the same
alert at the same time. The id of an alert is a digest of all that it says and of its warehouse, so
it is the same in every attempt, and tells whether a row has been damaged.
"""

import json
import time
from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from corollary.core.alerts import Alert, Sink, SinkKind, value_from_json
from corollary.core.types import Kind, Type
from corollary.errors import ClaimError, WarehouseError
from corollary.warehouse import schema
from corollary.warehouse.connections import Connections
from corollary.warehouse.entries import NewCommit
from corollary.warehouse.waiting import LONGEST, OutboxState, Waiting, digest, id_of, pause

LEASE = 120.0
"""Seconds after which a claim expires."""
LONGEST_ERROR = 500
"""So many characters of what went wrong are kept."""

_table = schema.outbox


# --- with a commit -------------------------------------------------------------------------------


def record(connection: sa.Connection, number: int, new: NewCommit, warehouse: str) -> None:
    """Put the alerts of a commit into the outbox, and take out those that it delivers.

    What goes to the console is told by whoever commits; it stays here as what was told.

    Raises:
        ClaimError: the claim on those that it delivers has expired.
    """
    now = time.time()
    rows: dict[str, dict[str, Any]] = {}
    for place, alert in enumerate(new.alerts):
        id_ = id_of(warehouse, number, alert)
        is_told = alert.sink.kind is SinkKind.CONSOLE
        rows.setdefault(
            id_,
            {
                "id": id_,
                "commit_number": number,
                "place_in_commit": place,
                "depth": new.depth,
                **_columns(alert),
                "attempts": 0,
                "due": now,
                "delivered": now if is_told else None,
            },
        )
    if rows:
        connection.execute(_table.insert(), list(rows.values()))
    if new.cause is not None and not _mark(connection, new.cause.ids, new.cause.claim):
        raise ClaimError("another process delivers these alerts; nothing was changed")


def _columns(alert: Alert) -> dict[str, Any]:
    types = [[str(each.kind), each.nullable, each.precision, each.scale] for each in alert.types]
    return {
        "event": alert.event,
        "shape": json.dumps({"columns": alert.columns, "types": types}),
        "row": json.dumps(alert.as_json()["row"]),
        "message": alert.message,
        "sink": str(alert.sink.kind),
        "place": alert.sink.place,
    }


def alerts_at(catalog: Connections, number: int) -> list[Alert]:
    """Return the alerts of a commit, as far as they are kept."""
    query = sa.select(_table).where(_table.c.commit_number == number)
    with catalog.reading() as connection:
        return [_waiting(row).alert for row in connection.execute(query)]


def _waiting(row: Any, attempts: int = 0) -> Waiting:
    try:
        shape = json.loads(row.shape)
        types = tuple(Type(Kind(kind), *rest) for kind, *rest in shape["types"])
        values = zip(json.loads(row.row), types, strict=True)
        alert = Alert(
            row.event,
            tuple(value_from_json(value, type_) for value, type_ in values),
            row.message,
            tuple(shape["columns"]),
            types,
            Sink(SinkKind(row.sink), row.place),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise WarehouseError.is_damaged(f"alert {row.id} in the catalog") from error
    return Waiting(row.id, row.commit_number, alert, attempts, row.depth)


# --- delivery ------------------------------------------------------------------------------------


class Outbox:
    """The outbox of a catalog, as delivery uses it."""

    def __init__(self, catalog: Connections) -> None:
        self._catalog = catalog

    def sinks(self) -> list[Sink]:
        """Return the sinks for which something is due."""
        query = sa.select(_table.c.sink, _table.c.place).distinct().where(_is_due(time.time()))
        with self._catalog.reading() as connection:
            rows = connection.execute(query.order_by(_table.c.sink, _table.c.place))
            return [Sink(SinkKind(sink), place) for sink, place in rows if sink in set(SinkKind)]

    def claim(self, sink: Sink, claim: str, most: int) -> list[Waiting]:
        """Claim what is due for a sink, oldest first; so many at most."""
        now = time.time()
        is_wanted = sa.and_(_is_due(now), _is_for(sink))
        order = _table.c.commit_number, _table.c.place_in_commit
        query = sa.select(_table).where(is_wanted).order_by(*order).limit(most)
        with self._catalog.writing() as connection:
            found = []
            for row in connection.execute(query).all():
                what = {"claim": claim, "claimed": now + LEASE}
                try:
                    found.append(_waiting(row, row.attempts + 1))
                except WarehouseError as error:  # the others can go
                    what = {"due": now + LONGEST, "error": str(error)[:LONGEST_ERROR]}
                connection.execute(
                    _table.update()
                    .where(_table.c.id == row.id)
                    .values(attempts=row.attempts + 1, **what)
                )
        return found

    def renew(self, claim: str, ids: Sequence[str]) -> bool:
        """Let a claim last longer; return whether it is still there, so that nobody else has it."""
        with self._catalog.writing() as connection:
            done = connection.execute(
                _table.update().where(_has(claim, ids)).values(claimed=time.time() + LEASE)
            )
        return done.rowcount == len(ids)

    def mark(self, claim: str, ids: Sequence[str]) -> None:
        """Note that alerts are delivered; what is no longer claimed is another's business."""
        with self._catalog.writing() as connection:
            _mark(connection, ids, claim)

    def postpone(self, claim: str, waiting: Iterable[Waiting], error: str) -> None:
        """Note that an attempt at some alerts has failed."""
        now = time.time()
        with self._catalog.writing() as connection:
            for each in waiting:
                connection.execute(
                    _table.update()
                    .where(_has(claim, [each.id]))
                    .values(
                        claim=None,
                        claimed=None,
                        due=now + pause(each.attempts),
                        error=error[:LONGEST_ERROR],
                    )
                )

    def rest(self, sink: Sink, seconds: float) -> None:
        """Leave a sink alone for a while, which cannot be reached."""
        now = time.time()
        with self._catalog.writing() as connection:
            connection.execute(
                _table.update().where(_is_due(now), _is_for(sink)).values(due=now + seconds)
            )

    def state(self) -> OutboxState:
        """Return how the outbox is."""
        return outbox_state(self._catalog)


def _is_due(now: float) -> sa.ColumnElement[bool]:
    is_free = sa.or_(_table.c.claimed.is_(None), _table.c.claimed <= now)
    return sa.and_(_table.c.delivered.is_(None), _table.c.due <= now, is_free)


def _is_for(sink: Sink) -> sa.ColumnElement[bool]:
    return sa.and_(_table.c.sink == str(sink.kind), _table.c.place == sink.place)


def _has(claim: str, ids: Sequence[str]) -> sa.ColumnElement[bool]:
    is_claimed = sa.and_(_table.c.claim == claim, _table.c.delivered.is_(None))
    return sa.and_(_table.c.id.in_(ids), is_claimed)


def _mark(connection: sa.Connection, ids: Sequence[str], claim: str) -> bool:
    """Mark alerts as delivered; return whether the claim had all of them."""
    done = connection.execute(
        _table.update()
        .where(_has(claim, ids))
        .values(delivered=time.time(), claim=None, claimed=None, error=None)
    )
    return done.rowcount == len(ids)


# --- upkeep --------------------------------------------------------------------------------------


def outbox_state(catalog: Connections) -> OutboxState:
    """Return how many alerts wait, since when, and what went wrong last."""
    commits = schema.commits
    is_waiting = _table.c.delivered.is_(None)
    counted = (
        sa.select(sa.func.count(), sa.func.min(commits.c.created))
        .select_from(_table.join(commits, commits.c.number == _table.c.commit_number))
        .where(is_waiting)
    )
    failed = (
        sa.select(_table.c.error)
        .where(is_waiting, _table.c.error.is_not(None))
        .order_by(_table.c.due.desc())
        .limit(1)
    )
    with catalog.reading() as connection:
        waiting, oldest = connection.execute(counted).one()
        return OutboxState(int(waiting), oldest, connection.execute(failed).scalar())


def damaged(catalog: Connections, warehouse: str) -> list[str]:
    """Return the ids of alerts that are not what was written."""
    found = []
    with catalog.reading() as connection:
        for row in connection.execute(sa.select(_table)):
            try:
                _waiting(row)
            except WarehouseError:
                found.append(row.id)
                continue
            said = row.event, json.loads(row.row), row.message, row.sink, row.place
            if digest(warehouse, row.commit_number, *said) != row.id:
                found.append(row.id)
    return found
