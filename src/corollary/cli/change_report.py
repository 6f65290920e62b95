"""What `run --warehouse` and `apply` print: what changed, the commit, what became of it."""

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from corollary.cli import options
from corollary.cli.tables import aligned, counted, signed
from corollary.console import TerminalConsole
from corollary.database.database import Database, state_of
from corollary.errors import without_password

if TYPE_CHECKING:
    from corollary.database.delivery import Delivered
    from corollary.database.pipeline import Run
    from corollary.database.transaction import Transaction


MOST_SHOWN = 20
"""So many tuples that violate a new constraint are listed."""


def tell(
    outcome: "Run",
    database: "Database",
    warehouse: str,
    *,
    max_rows: int,
    format_: str,
    console: TerminalConsole,
) -> None:
    """Print an outcome: results to standard output, everything else as notes.

    Args:
        outcome: what was done.
        database: the database afterwards.
        warehouse: what the user calls the warehouse.
        max_rows: so many tuples of a relation, and so many alerts, are listed.
        format_: `text` or `json`.
        console: where notes go.
    """
    console.done()
    if format_ == "json":
        options.print_json(outcome.as_json(max_rows))
    else:
        for line in _result(outcome, max_rows):
            click.echo(line)
    options.print_warnings(dict.fromkeys(outcome.warnings), console)
    if outcome.transaction is not None:
        for line in _kept(outcome.transaction, database):
            console.note(line)
        for line in _existing(outcome.transaction):
            console.note(line)
    if outcome.published is not None:
        options.print_warnings(outcome.published.problems, console)
        names = [each.relation for each in outcome.published.published]
        if names and format_ == "text":
            console.note(f"published: {', '.join(names)}")
    note_delivery(outcome.delivered, console)
    if outcome.quarantined:
        goal = "quarantine(relation, source, file, line, code, reason, raw)"
        console.note(
            f"{counted(outcome.quarantined, 'malformed record')} set aside, to be seen with "
            f"corollary query {shlex.quote(without_password(warehouse))} '{goal}'"
        )


def note_delivery(delivered: "Delivered | None", console: TerminalConsole) -> None:
    """Say what became of alerts that go elsewhere."""
    if delivered is not None:
        if delivered.alerts:
            console.note(f"delivered: {counted(delivered.alerts, 'alert')}")
        options.print_warnings(delivered.problems, console)


def alert_lines(transaction: "Transaction", max_rows: int) -> Iterator[str]:
    """Yield the alerts of a transaction that go to the console."""
    from corollary.core.alerts import SinkKind, distinct

    every = [each for each in transaction.alerts if each.sink.kind is SinkKind.CONSOLE]
    alerts = distinct(every)
    for each in alerts[:max_rows]:
        yield f"alert: {each.message}"
    if len(alerts) > max_rows:
        yield f"alert: and {len(alerts) - max_rows:,} more"


def _result(outcome: "Run", max_rows: int) -> Iterator[str]:
    """Yield a line for each relation that changed, what became of it, then the alerts."""
    transaction = outcome.transaction
    if transaction is not None:
        yield from lines(transaction)
    if transaction is not None and transaction.is_repeated:
        yield f"nothing was done: commit {transaction.commit_number} was made under this key before"
    elif outcome.commit is None:
        is_idle = transaction is None or not transaction.changes
        yield f"dry run: {'nothing would change' if is_idle else 'nothing was changed'}"
    elif transaction is None or transaction.commit_number is None:
        since = f" since commit {outcome.commit}" if outcome.commit else ""
        yield f"nothing has changed{since}"
    else:
        is_idle = not transaction.changes
        yield f"commit {outcome.commit}{': no tuple has changed' if is_idle else ''}"
    if transaction is not None and not transaction.is_repeated:
        yield from alert_lines(transaction, max_rows)


def _existing(transaction: "Transaction") -> Iterator[str]:
    """Yield what violates new constraints and was there before them."""
    for each in transaction.existing[:MOST_SHOWN]:
        yield f"there before the constraint `{each.constraint}`: {each.message}"
    if len(transaction.existing) > MOST_SHOWN:
        yield f"and {len(transaction.existing) - MOST_SHOWN:,} more tuples that violate it"


def lines(transaction: "Transaction") -> Iterator[str]:
    """Yield a line for each relation that changed: what came and went, how, where and when."""
    yield from aligned([*_cells(transaction)])


def _cells(transaction: "Transaction") -> Iterator[list[str]]:
    for name, change in transaction.changes.items():
        stats = transaction.stats.get(name)
        told = [name, " ".join(signed(change.counts))]
        if stats is not None and change.relation.is_derived:
            told += [stats.algorithm, stats.placement, f"{stats.seconds:.2f} s"]
        yield told


def _kept(transaction: "Transaction", database: "Database") -> Iterator[str]:
    """Yield which tuples are still there although they were to be deleted, and why."""
    from corollary.database.parts import MANUAL, described

    normal = state_of(database).loaded.normal
    for name, kept in transaction.kept.items():
        parts = normal.parts.get(normal.bases.get(name, name), {})
        others = described(part for part in parts if part != MANUAL)
        stays = "stays" if len(kept) == 1 else "stay"
        them = "it" if len(kept) == 1 else "them"
        yield f"{counted(len(kept), 'tuple')} of `{name}` {stays}: {others} asserts {them} too"
