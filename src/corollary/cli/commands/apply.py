"""`corollary apply`."""

from typing import TYPE_CHECKING

import click

from corollary.cli.databases import open_warehouse
from corollary.cli.options import ChangeOutputOptions, MaintenanceOptions
from corollary.cli.parameters import (
    Pair,
    action,
    day,
    family,
    functors,
    headers,
    idempotency_key,
    pair,
    warehouse,
)
from corollary.cli.recording import current_recording
from corollary.cli.report.violations import note_proofs, proving, proving_options, why_option
from corollary.cli.served_command import ServedCommand, file_key
from corollary.console import Phase
from corollary.database.database import Database, state_of

if TYPE_CHECKING:
    from datetime import date

    import pyarrow as pa

    from corollary.database.intake.change_files import ChangeFile
    from corollary.errors import Diagnostic

RELATION_FILE = pair("is not a relation and a file; write edge=new.csv")


@click.command(cls=ServedCommand)
@warehouse
@action("--insert", "RELATION=FILE", "Add the rows of this file. May be repeated.", RELATION_FILE)
@action(
    "--delete", "RELATION=FILE", "Delete the rows of this file. May be repeated.", RELATION_FILE
)
@click.option(
    "--changes",
    metavar="FILE|-",
    allow_from_autoenv=False,
    help="Do what this file says, line by line; - is standard input.",
)
@headers
@click.option(
    "--today",
    metavar="DATE",
    type=day,
    help="The day that `today()` gives in the program from now on.",
)
@click.option("--dry-run", is_flag=True, help="Report what would change, and change nothing.")
@why_option
@idempotency_key
@family("maintenance", MaintenanceOptions)
@functors
@family("output", ChangeOutputOptions)
def command(
    warehouse: str,
    insert: tuple[Pair, ...],
    delete: tuple[Pair, ...],
    changes: str | None,
    headers: bool,
    today: "date | None",
    dry_run: bool,
    why: bool,
    idempotency_key: str | None,
    maintenance: MaintenanceOptions,
    output: ChangeOutputOptions,
) -> None:
    """Change a warehouse: one transaction, all or nothing.

    Deletes tuples (--delete) and adds some (--insert) from files whose ending is their format:
    .csv (commas), .tsv or .facts (tabs), .jsonl, .parquet; then does what --changes says, a JSON
    object a line. Whatever depends on it is maintained, the commit recorded, the tables of
    .output relations brought forward, and alerts delivered.

    \b
      {"op": "insert", "relation": "edge", "row": ["a", "b"]}
      {"op": "delete", "relation": "edge", "row": ["a", "c"]}
      {"op": "add-rule", "rule": "link(x, y) :- link(y, x)."}
      {"op": "remove-rule", "rule": "link(x, y) :- edge(x, y)."}

    Tuples that the program text or a source asserts as well stay, and the output says so. A rule
    may also be a trigger, an event rule, or `.alert` and `.abort` lines. --dry-run shows what would
    happen and why, as that of `corollary run` does, and writes nothing. Exit status 3: a key or a
    constraint would be violated, and --why proves it; 4: others committed first again and again;
    5: triggers did not come to an end.

    \b
      corollary apply warehouse --insert edge=new.csv --delete edge=old.csv
      corollary apply warehouse --changes today.jsonl --dry-run
      generate | corollary apply warehouse --changes - --idempotency-key 2026-11-15
    """
    if not (insert or delete or changes or today):
        raise click.UsageError(
            "nothing is to be changed; say what is, with --insert edge=new.csv, --delete "
            "edge=old.csv, --changes FILE or --today DATE"
        )
    files = [("delete", *each) for each in delete] + [("insert", *each) for each in insert]
    with (
        output.reporting(0.0) as console,
        open_warehouse(
            warehouse, console, proving_options(maintenance.options, is_asked=why), today=today
        ) as database,
        proving(database, is_asked=why) as explainer,
    ):
        from corollary.cli.report.changes import report_run
        from corollary.database.intake.change_files import digest_change
        from corollary.database.intake.dry_run import try_out
        from corollary.database.intake.pipeline import PipelineRun

        maintenance.check(state_of(database).loaded.normal)
        outcome = PipelineRun()
        console.enter(Phase.READ)
        tables = [
            (operation, name, _read_rows(database, name, file, headers, outcome.warnings))
            for operation, name, file in files
        ]
        lines = None if changes is None else _read_lines(database, changes)
        transaction = database.transaction(
            idempotency=idempotency_key,
            digest=None if idempotency_key is None else digest_change(lines, today, tables),
            is_dry=dry_run,
        )
        outcome.transaction = transaction
        if explainer is not None:
            transaction.inspect(explainer.look)
        for operation, name, rows in tables:
            change = transaction.insert if operation == "insert" else transaction.delete
            change(name, rows)
        if lines is not None:
            lines.apply_to(transaction)
        if dry_run:
            outcome.plan = try_out(database, transaction)
            note_proofs(outcome, database, explainer)
        else:
            transaction.commit()
            outcome.commit = transaction.commit_number or database.commits
            if not database.publishes_by_hand:
                outcome.published = database.publish(transaction)
            console.progress("delivering alerts")
            outcome.delivered = database.deliver()
        report_run(outcome, warehouse, output, console)


def _read_rows(
    database: Database, name: str, file: str, has_headers: bool, warnings: "list[Diagnostic]"
) -> "pa.Table":
    """Return the rows of a file for a relation; add warnings about them."""
    from corollary.database.intake.change_files import read_rows

    progress = state_of(database).console.progress(f"reading {file}")
    relation = state_of(database).writable_relation(name)
    recording = current_recording()
    if recording is None:
        rows, found = read_rows(file, relation, has_headers=has_headers)
        warnings += found
    else:
        rows = recording.rows[file_key(name, file)]
    progress.advance(rows=rows.num_rows)
    return rows


def _read_lines(database: Database, changes: str) -> "ChangeFile":
    """Return the lines of a file of changes."""
    from corollary.database.intake.change_files import changes_name, parse_changes, read_changes

    state_of(database).console.progress(f"reading {changes}")
    normal, recording = state_of(database).loaded.normal, current_recording()
    if recording is None:
        return read_changes(changes, normal)
    return parse_changes(recording.changes, changes_name(changes), normal)
