"""`corollary watch`."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corollary.cli import options
from corollary.cli.change_report import alert_lines, note_delivery
from corollary.cli.databases import Wanted
from corollary.cli.tables import counted, signed
from corollary.cli.warehouses import opened
from corollary.console import TerminalConsole

if TYPE_CHECKING:
    from corollary.database.pipeline import Run
    from corollary.database.transaction import Transaction
    from corollary.streaming.batches import Batch


@click.command()
@options.programs
@click.option("--warehouse", metavar="DIR|URL", required=True, help="Where the results are kept.")
@options.facts
@options.root
@click.option(
    "--interval",
    metavar="SECONDS",
    type=click.FloatRange(min=0.05, max=1e6),
    default=2.0,
    show_default=True,
    help="Look at the sources so often, and let streams have a batch so often.",
)
@click.option(
    "--once", is_flag=True, help="End when all that is there now has been read, streams included."
)
@click.option(
    "--bad-rows",
    type=click.Choice(["abort", "quarantine"]),
    default="quarantine",
    show_default=True,
    help="Stop at malformed records, or set them aside.",
)
@options.engine
@options.placement
@options.algorithm
@options.by_relation
@options.strict
@options.max_rows
@options.limits
@options.monitoring
@options.outlets
@options.format_
@options.quiet
def command(
    programs: tuple[Path, ...],
    warehouse: str,
    facts: Path,
    root: Path | None,
    interval: float,
    once: bool,
    bad_rows: str,
    algorithm: str,
    relations: tuple[str, ...],
    max_rows: int,
    format: str,
    quiet: bool,
    **rest: Any,
) -> None:
    """Keep a warehouse up to date with a program and its sources, continuously.

    First the program is run as `corollary run --warehouse` does. Then its sources are looked at
    every few seconds, and a change in them is maintained, committed and published at once. An
    `.input` with IO=stream names a folder into which files come: Spark Structured Streaming finds
    them, and each batch of them is one transaction, made exactly once. With op="…" a column of
    them says what a row does, `insert` or `delete`.

    \b
      .input direct_link(IO=stream, filename="arrivals", format=jsonl, op="op")

    A line tells of each commit what came and went. Ctrl-C (or SIGTERM) finishes the batch that is
    being committed and ends with status 0. Start it again, also after a crash, and it goes on where
    it was: nothing is lost or done twice. Checkpoints are in WAREHOUSE/streams.

    \b
      corollary watch network.dl -F facts --warehouse warehouse
      corollary watch network.dl -F facts --warehouse warehouse --once --format json
    """
    console = TerminalConsole(quiet)
    with options.reported(format, console):
        limits = options.limits_of(rest)
        from corollary.database.pipeline import Inputs
        from corollary.database.program import load, read_programs
        from corollary.streaming.watching import Watch, watch
        from corollary.warehouse.sources.quarantine import BadRows

        program = read_programs(programs)
        wanted = Wanted(options.algorithms_of(algorithm, relations), ())
        wanted.check(load(program).normal)
        teller = Teller(console, format, max_rows)
        asked = Watch(
            program,
            Inputs(facts, root, BadRows(bad_rows)),
            interval,
            once,
            teller.of_run,
            teller.of_batch,
            lambda error: console.note(f"{error}\nthe sources are looked at again"),
        )
        rest |= {"limits": limits, "algorithm": wanted.algorithms, **options.outlets_of(rest)}
        commit = 0
        try:
            with _terminable(), opened(warehouse, console, create=True, **rest) as database:
                try:
                    watch(database, asked)
                finally:
                    commit = database.commits
        except KeyboardInterrupt:
            console.done()
        if format == "text":
            click.echo(f"{'all is read' if once else 'stopped'} at commit {commit}")


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Teller:
    """Prints a line for each commit."""

    def __init__(self, console: TerminalConsole, format_: str, max_rows: int) -> None:
        self._console = console
        self._format = format_
        self._max_rows = max_rows

    def of_run(self, outcome: "Run") -> None:
        """Tell what a run of the pipeline has changed."""
        self._console.done()
        options.print_warnings(dict.fromkeys(outcome.warnings), self._console)
        if outcome.published is not None:
            options.print_warnings(outcome.published.problems, self._console)
        note_delivery(outcome.delivered, self._console)
        if self._format == "json":
            options.print_json(outcome.as_json(self._max_rows))
        elif outcome.transaction is None or outcome.transaction.commit_number is None:
            since = f" since commit {outcome.commit}" if outcome.commit else ""
            click.echo(f"nothing has changed{since}")
        else:
            click.echo(_line(outcome.transaction, outcome.seconds))
            self._alert(outcome.transaction)

    def of_batch(self, batch: "Batch") -> None:
        """Tell what a batch of a stream has changed."""
        self._console.done()
        if batch.published is not None:
            options.print_warnings(batch.published.problems, self._console)
        note_delivery(batch.delivered, self._console)
        if self._format == "json":
            options.print_json(batch.as_json(self._max_rows))
            return
        told = f"batch {batch.number} of {batch.stream}"
        if batch.transaction.is_repeated:
            told += ", which was committed before"
        if batch.malformed:
            told += f", {counted(batch.malformed, 'malformed record')} set aside"
        for name, kept in batch.transaction.kept.items():
            told += f", {counted(len(kept), 'tuple')} of {name} kept: a source asserts them too"
        click.echo(f"{_line(batch.transaction, batch.seconds)}  {told}")
        self._alert(batch.transaction)

    def _alert(self, transaction: "Transaction") -> None:
        if not transaction.is_repeated:
            for line in alert_lines(transaction, self._max_rows):
                click.echo(line)


def _line(transaction: "Transaction", seconds: float) -> str:
    """Return what a commit has changed, in a line."""
    changes = ", ".join(
        f"{name} {' '.join(signed(change.counts))}" for name, change in transaction.changes.items()
    )
    commit = transaction.commit_number
    what = "no change" if commit is None else f"commit {commit}"
    return f"{what}  {f'{changes}  ' if changes else ''}{seconds:.2f} s"
