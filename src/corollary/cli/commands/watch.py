"""`corollary watch`."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from corollary.cli import options
from corollary.cli.databases import open_warehouse
from corollary.cli.output import print_json, print_warnings
from corollary.cli.parameters import family, functors, programs
from corollary.cli.report.changes import alert_lines, change_summary, note_delivery, retained_lines
from corollary.console import TerminalConsole, counted
from corollary.data_class import dataclass

if TYPE_CHECKING:
    from corollary.database.intake.pipeline import PipelineRun
    from corollary.database.transaction import Transaction
    from corollary.streaming.batches import StreamBatch


@click.command()
@programs
@click.option("--warehouse", metavar="DIR|URL", required=True, help="Where the results are kept.")
@family("files", options.FileOptions)
@click.option(
    "--interval",
    metavar="SECONDS",
    type=click.FloatRange(min=0.05, max=1e6),
    default=2.0,
    show_default=True,
    help="The time between looks at the sources, and between batches of streams.",
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
@family("sources", options.SourceOptions)
@family("maintenance", options.MaintenanceOptions)
@functors
@family("output", options.ChangeOutputOptions)
def command(
    programs: tuple[Path, ...],
    warehouse: str,
    interval: float,
    once: bool,
    bad_rows: str,
    files: options.FileOptions,
    sources: options.SourceOptions,
    maintenance: options.MaintenanceOptions,
    output: options.ChangeOutputOptions,
) -> None:
    """Keep a warehouse up to date with a program and its sources, continuously.

    First the program is run as `corollary run --warehouse` does. Then its sources are looked at
    every few seconds, and a change in them is maintained, committed and published at once; so are
    change events of files and Kafka (IO=events, IO=kafka), which need no Spark. An
    `.input` with IO=stream names a folder into which files come: Spark Structured Streaming finds
    them, and each batch of them is one transaction, made exactly once. With op="…" a column of
    them says what a row does, `insert` or `delete`.

    \b
      .input direct_link(IO=stream, filename="arrivals", format=jsonl, op="op")

    An output with a target lag, as in .output link(target_lag="5 minutes"), has its sources looked
    at that often instead.

    A line for each commit shows what it changed. Ctrl-C (or SIGTERM) finishes the batch that is
    being committed and ends with status 0. Start it again, also after a crash, and it goes on where
    it was: nothing is lost or done twice. Checkpoints are in WAREHOUSE/streams.

    \b
      corollary watch network.dl -F facts --warehouse warehouse
      corollary watch network.dl -F facts --warehouse warehouse --once --format json
    """
    with output.reporting() as console:
        from corollary.database.intake.pipeline import Inputs
        from corollary.database.program.loaded_program import load_program, read_programs
        from corollary.streaming.watch_loop import WatchOptions, watch
        from corollary.warehouse.sources.quarantine import BadRowPolicy

        program = read_programs(programs)
        maintenance.check(load_program(program).normal)
        report = CommitPrinter(console, output)
        watched = WatchOptions(
            program,
            Inputs(files.facts, files.root, BadRowPolicy(bad_rows), sources.guards),
            interval,
            once,
            report.print_run,
            report.print_batch,
            lambda error: console.note(f"{error}\nthe sources are looked at again"),
        )
        commit = 0
        try:
            with (
                _terminable(),
                open_warehouse(
                    warehouse, console, maintenance.options, create=True, today=files.today
                ) as database,
            ):
                try:
                    watch(database, watched)
                finally:
                    commit = database.commits
        except KeyboardInterrupt:
            console.done()
        if not output.is_json:
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


@dataclass(frozen=True, slots=True)
class CommitPrinter:
    """Prints a line for each commit."""

    console: TerminalConsole
    output: options.ChangeOutputOptions

    def print_run(self, outcome: "PipelineRun") -> None:
        """Print what a run of the pipeline has changed."""
        self.console.done()
        print_warnings(dict.fromkeys(outcome.warnings), self.console)
        if outcome.published is not None:
            print_warnings(outcome.published.problems, self.console)
        note_delivery(outcome.delivered, self.console)
        if self.output.is_json:
            print_json(outcome.as_json(self.output.max_rows))
        elif outcome.transaction is None or outcome.transaction.commit_number is None:
            since = f" since commit {outcome.commit}" if outcome.commit else ""
            click.echo(f"nothing has changed{since}")
        else:
            click.echo(_line(outcome.transaction, outcome.seconds))
            self._print_alerts(outcome.transaction)

    def print_batch(self, batch: "StreamBatch") -> None:
        """Print what a batch of a stream has changed."""
        self.console.done()
        if batch.published is not None:
            print_warnings(batch.published.problems, self.console)
        note_delivery(batch.delivered, self.console)
        if self.output.is_json:
            print_json(batch.as_json(self.output.max_rows))
            return
        origin = f"batch {batch.number} of {batch.stream}"
        if batch.transaction.is_repeated:
            origin += ", which was committed before"
        if batch.malformed:
            origin += f", {counted(batch.malformed, 'malformed record')} set aside"
        for line in retained_lines(batch.transaction):
            origin += f", {line}"
        click.echo(f"{_line(batch.transaction, batch.seconds)}  {origin}")
        self._print_alerts(batch.transaction)

    def _print_alerts(self, transaction: "Transaction") -> None:
        if not transaction.is_repeated:
            for line in alert_lines(transaction, self.output.max_rows):
                click.echo(line)


def _line(transaction: "Transaction", seconds: float) -> str:
    """Return what a commit has changed, in a line."""
    changes = change_summary(transaction)
    commit = transaction.commit_number
    what = "no change" if commit is None else f"commit {commit}"
    return f"{what}  {f'{changes}  ' if changes else ''}{seconds:.2f} s"
