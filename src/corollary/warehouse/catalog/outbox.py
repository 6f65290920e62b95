"""The outbox: alerts on their way to their sinks, in the catalog.

An alert is inserted in the transaction that makes its commit, once for each sink. Until it is
marked as delivered

| it is | when | and next |
|---|---|---|
| due | its time has come, and no process has claimed it | a process claims it |
| claimed | a process is about to deliver it | it is delivered or postponed; or the claim expires |
| postponed | an attempt has failed | it is due again, each time after twice as long |

Claims are made in write transactions of the catalog, which are serialized: no two processes hold
the same alert at the same time. The id of an alert is a digest of its content and its warehouse, so
it is the same in every attempt, and shows whether a row has been damaged.
"""

import json
import time
from collections.abc import Iterable, Sequence
from typing import Any

from corollary.core.alerts import Alert, Sink, SinkKind
from corollary.core.types import type_from_json
from corollary.core.values import value_from_json
from corollary.errors import ClaimError, WarehouseError
from corollary.warehouse.catalog import queued_alert
from corollary.warehouse.catalog.catalog_rows import NewCommit
from corollary.warehouse.catalog.connections import CatalogConnection, Connections

CLAIM_SECONDS = 120.0
"""The time after which a claim expires."""
ERROR_MAX_CHARACTERS = 500
"""The maximum length of an error message that is stored."""

_DUE_ALERTS = """
    FROM corollary_outbox
    WHERE delivered IS NULL AND due <= ? AND (claimed IS NULL OR claimed <= ?)"""
"""The alerts that a process may claim at a time, which is given twice."""
_SINKS = f"SELECT DISTINCT sink, place {_DUE_ALERTS} ORDER BY sink, place"
_CLAIMABLE = f"""
    SELECT * {_DUE_ALERTS} AND sink = ? AND place = ?
    ORDER BY commit_number, place_in_commit LIMIT ?"""
_PAUSE = f"""
    UPDATE corollary_outbox SET due = ?
    WHERE id IN (SELECT id {_DUE_ALERTS} AND sink = ? AND place = ?)"""  # noqa: S608 - all of it is written here


# --- with a commit -------------------------------------------------------------------------------


def record_alerts(
    connection: CatalogConnection, number: int, new: NewCommit, warehouse: str
) -> None:
    """Insert the alerts of a commit into the outbox, and mark those that it delivers.

    The committing process prints alerts for the console itself; here they are a record of that,
    already marked as delivered.

    Raises:
        ClaimError: the claim on the alerts that it delivers has expired.
    """
    now = time.time()
    rows: dict[str, dict[str, Any]] = {}
    for place, alert in enumerate(new.alerts):
        id_ = queued_alert.alert_id(warehouse, number, alert)
        is_printed = alert.sink.kind is SinkKind.CONSOLE
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
                "delivered": now if is_printed else None,
            },
        )
    connection.insert("corollary_outbox", list(rows.values()))
    # In the same transaction as the commit, so that a relation gets each alert exactly once.
    if new.delivers is not None and not _mark(connection, new.delivers.ids, new.delivers.claim):
        raise ClaimError("another process delivers these alerts; nothing was changed")


def _columns(alert: Alert) -> dict[str, Any]:
    types = [each.as_json for each in alert.types]
    return {
        "event": alert.event,
        "shape": json.dumps({"columns": alert.columns, "types": types}),
        "row": json.dumps(alert.as_json()["row"]),
        "message": alert.message,
        "sink": str(alert.sink.kind),
        "place": alert.sink.location,
    }


def alerts_of_commit(catalog: Connections, number: int) -> list[Alert]:
    """Return the alerts of a commit that are still in the outbox."""
    query = "SELECT * FROM corollary_outbox WHERE commit_number = ?"
    with catalog.read_transaction() as connection:
        return [_queued_alert(row).alert for row in connection.rows(query, number)]


def recent_alerts(
    catalog: Connections, limit: int, events: frozenset[str] | None = None
) -> list[tuple[queued_alert.QueuedAlert, bool]]:
    """Return the last alerts of the outbox, newest first, and whether each was delivered.

    Args:
        catalog: the catalog.
        limit: the maximum number of alerts.
        events: only those of these events; all if it is not given.
    """
    chosen, arguments = "", tuple[str, ...]()
    if events is not None:
        arguments = tuple(sorted(events))
        chosen = f"WHERE event IN ({', '.join('?' * len(arguments)) or 'NULL'})"
    query = (
        f"SELECT * FROM corollary_outbox {chosen}"  # noqa: S608 - values are arguments
        " ORDER BY commit_number DESC, place_in_commit LIMIT ?"
    )
    with catalog.read_transaction() as connection:
        rows = connection.rows(query, *arguments, limit)
        return [(_queued_alert(row), row.delivered is not None) for row in rows]


def count_alerts(
    catalog: Connections, since: int, events: frozenset[str] | None = None
) -> dict[int, int]:
    """Return how many alerts the commits after one have in the outbox, each counted once.

    Args:
        catalog: the catalog.
        since: the commit before the first one.
        events: only those of these events; all if it is not given.
    """
    query = (
        "SELECT commit_number, event, count(DISTINCT row) FROM corollary_outbox"
        " WHERE commit_number > ? GROUP BY commit_number, event"
    )
    found: dict[int, int] = {}
    with catalog.read_transaction() as connection:
        for number, event, count in connection.rows(query, since):
            if events is None or event in events:
                found[number] = found.get(number, 0) + int(count)
    return found


def _queued_alert(row: Any, attempts: int = 0) -> queued_alert.QueuedAlert:
    try:
        shape = json.loads(row.shape)
        types = tuple(map(type_from_json, shape["types"]))
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
        raise WarehouseError.damaged(f"alert {row.id} in the catalog") from error
    return queued_alert.QueuedAlert(row.id, row.commit_number, alert, attempts, row.depth)


# --- delivery ------------------------------------------------------------------------------------


class CatalogOutbox:
    """The outbox of a catalog, for the processes that deliver alerts."""

    def __init__(self, catalog: Connections) -> None:
        self._catalog = catalog

    def sinks(self) -> list[Sink]:
        """Return the sinks for which alerts are due."""
        now = time.time()
        with self._catalog.read_transaction() as connection:
            rows = connection.rows(_SINKS, now, now)
        return [Sink(SinkKind(sink), place) for sink, place in rows if sink in set(SinkKind)]

    def claim(self, sink: Sink, claim: str, max_alerts: int) -> list[queued_alert.QueuedAlert]:
        """Claim alerts that are due for a sink, oldest first, up to a maximum number."""
        now = time.time()
        values = now, now, str(sink.kind), sink.location, max_alerts
        with self._catalog.write_transaction() as connection:
            found = []
            for row in connection.rows(_CLAIMABLE, *values):
                attempts = row.attempts + 1
                try:
                    found.append(_queued_alert(row, attempts))
                except WarehouseError as error:  # a damaged row must not hold up the others
                    connection.execute(
                        "UPDATE corollary_outbox SET attempts = ?, due = ?, error = ? WHERE id = ?",
                        attempts,
                        now + queued_alert.RETRY_MAX_SECONDS,
                        str(error)[:ERROR_MAX_CHARACTERS],
                        row.id,
                    )
                    continue
                connection.execute(
                    "UPDATE corollary_outbox SET attempts = ?, claim = ?, claimed = ? WHERE id = ?",
                    attempts,
                    claim,
                    now + CLAIM_SECONDS,
                    row.id,
                )
        return found

    def renew(self, claim: str, ids: Sequence[str]) -> bool:
        """Extend a claim; return whether it still held all of the alerts."""
        until = time.time() + CLAIM_SECONDS
        with self._catalog.write_transaction() as connection:
            renewed = connection.execute_many(
                "UPDATE corollary_outbox SET claimed = ?"
                " WHERE id = ? AND claim = ? AND delivered IS NULL",
                [(until, each, claim) for each in ids],
            )
        return renewed == len(ids)

    def mark(self, claim: str, ids: Sequence[str]) -> None:
        """Mark alerts as delivered, except those that another process has claimed meanwhile."""
        with self._catalog.write_transaction() as connection:
            _mark(connection, ids, claim)

    def postpone(self, claim: str, waiting: Iterable[queued_alert.QueuedAlert], error: str) -> None:
        """Record that an attempt to deliver some alerts has failed, and when they are due again."""
        now = time.time()
        with self._catalog.write_transaction() as connection:
            connection.execute_many(
                "UPDATE corollary_outbox SET claim = NULL, claimed = NULL, due = ?, error = ?"
                " WHERE id = ? AND claim = ? AND delivered IS NULL",
                [
                    (
                        now + queued_alert.retry_delay(each.attempts),
                        error[:ERROR_MAX_CHARACTERS],
                        each.id,
                        claim,
                    )
                    for each in waiting
                ],
            )

    def pause_sink(self, sink: Sink, seconds: float) -> None:
        """Delay all alerts for a sink that cannot be reached."""
        now = time.time()
        with self._catalog.write_transaction() as connection:
            connection.execute(_PAUSE, now + seconds, now, now, str(sink.kind), sink.location)

    def state(self) -> queued_alert.OutboxState:
        """Return how many alerts are queued, and the last error."""
        return outbox_state(self._catalog)


def _mark(connection: CatalogConnection, ids: Sequence[str], claim: str) -> bool:
    """Mark alerts as delivered; return whether the claim held all of them."""
    now = time.time()
    marked = connection.execute_many(
        "UPDATE corollary_outbox SET delivered = ?, claim = NULL, claimed = NULL, error = NULL"
        " WHERE id = ? AND claim = ? AND delivered IS NULL",
        [(now, each, claim) for each in ids],
    )
    return marked == len(ids)


# --- upkeep --------------------------------------------------------------------------------------


def outbox_state(catalog: Connections) -> queued_alert.OutboxState:
    """Return how many alerts are queued, since when, and the last error."""
    counted = (
        "SELECT count(*), min(corollary_commits.created) FROM corollary_outbox"
        " JOIN corollary_commits ON corollary_commits.number = corollary_outbox.commit_number"
        " WHERE delivered IS NULL"
    )
    failed = (
        "SELECT error FROM corollary_outbox WHERE delivered IS NULL AND error IS NOT NULL"
        " ORDER BY due DESC LIMIT 1"
    )
    with catalog.read_transaction() as connection:
        waiting, oldest = connection.first(counted)
        return queued_alert.OutboxState(int(waiting), oldest, connection.scalar(failed))


def damaged_alerts(catalog: Connections, warehouse: str) -> list[str]:
    """Return the ids of alerts whose rows are not as they were written."""
    found = []
    with catalog.read_transaction() as connection:
        for row in connection.rows("SELECT * FROM corollary_outbox"):
            try:
                _queued_alert(row)
            except WarehouseError:
                found.append(row.id)
                continue
            content = row.event, json.loads(row.row), row.message, row.sink, row.place
            if queued_alert.alert_digest(warehouse, row.commit_number, *content) != row.id:
                found.append(row.id)
    return found
