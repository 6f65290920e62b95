"""`corollary apply`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from corollary.cli import options
from corollary.cli.databases import Wanted
from corollary.cli.warehouses import opened, warehouse
from corollary.console import TerminalConsole
from corollary.database.database import Database, state_of

if TYPE_CHECKING:
    from corollary.database.transaction import Transaction
    from corollary.errors import Diagnostic


@click.command()
@warehouse
@options.update("--insert", "RELATION=FILE", "Add the rows of this file. May be repeated.")
@options.update("--delete", "RELATION=FILE", "Take the rows of this file out. May be repeated.")
@click.option(
    "--changes",
    metavar="FILE|-",
    allow_from_autoenv=False,
    help="Do what this file says, line by line; - is standard input.",
)
@options.headers
@click.option("--dry-run", is_flag=True, help="Tell what would change, and change nothing.")
@options.engine
@options.placement
@options.algorithm
@options.by_relation
@options.strict
@options.idempotency_key
@options.max_rows
@options.limits
@options.monitoring
@options.outlets
@options.format_
@options.quiet
def command(
    warehouse: str,
    insert: tuple[str, ...],
    delete: tuple[str, ...],
    changes: str | None,
    headers: bool,
    dry_run: bool,
    engine: str,
    placement: str,
    algorithm: str,
    relations: tuple[str, ...],
    strict: bool,
    idempotency_key: str | None,
    max_rows: int,
    format: str,
    quiet: bool,
    **rest: Any,
) -> None:
    """Change a warehouse: one transaction, all or nothing.

    Takes tuples out (--delete) and adds some (--insert) from files whose ending is their format:
    .csv (commas), .tsv or .facts (tabs), .jsonl, .parquet; then does what --changes says, a JSON
    object a line. Whatever depends on it is maintained, the commit recorded, the tables of
    .output relations brought forward, and alerts delivered.

    \b
      {"op": "insert", "relation": "edge", "row": ["a", "b"]}
      {"op": "delete", "relation": "edge", "row": ["a", "c"]}
      {"op": "add-rule", "rule": "link(x, y) :- link(y, x)."}
      {"op": "remove-rule", "rule": "link(x, y) :- edge(x, y)."}

    Tuples that the program text or a source asserts as well stay, and the output says so. A rule
    may also be a trigger, an event rule, or `.alert` and `.abort` lines. Exit status 3: a key or a
    constraint would be violated; 4: others committed first again and again; 5: triggers did not
    come to an end.

    \b
      corollary apply warehouse --insert edge=new.csv --delete edge=old.csv
      corollary apply warehouse --changes today.jsonl --dry-run
      generate | corollary apply warehouse --changes - --idempotency-key 2026-11-15
    """
    if not (insert or delete or changes):
        raise click.UsageError(
            "nothing is to be changed; say what is, with --insert edge=new.csv, --delete "
            "edge=old.csv or --changes FILE"
        )
    given = [("delete", *_pair(each, "--delete")) for each in delete]
    given += [("insert", *_pair(each, "--insert")) for each in insert]
    wanted = Wanted(options.algorithms_of(algorithm, relations), ())
    console = TerminalConsole(quiet)
    limits = options.limits_of(rest)
    with (
        options.reported(format, console),
        opened(
            warehouse,
            console,
            engine=engine,
            placement=placement,
            algorithm=wanted.algorithms,
            strict=strict,
            limits=limits,
            **options.outlets_of(rest),
            **rest,
        ) as database,
    ):
        from corollary.cli.change_report import tell
        from corollary.database.pipeline import Run

        wanted.check(state_of(database).loaded.normal)
        outcome = Run()
        transaction = database.transaction(idempotency=idempotency_key, is_dry=dry_run)
        outcome.transaction = transaction
        with transaction:
            if not transaction.is_repeated:
                outcome.warnings += _files(database, transaction, given, headers)
                _lines(database, transaction, changes)
        if not dry_run:
            outcome.commit = transaction.commit_number or database.commits
            console.progress("publishing")
            outcome.published = database.publish(transaction)
            console.progress("delivering alerts")
            outcome.delivered = database.deliver()
        tell(outcome, database, warehouse, max_rows=max_rows, format_=format, console=console)


def _pair(text: str, option: str) -> tuple[str, str]:
    """Return the relation and the file of an option."""
    name, _, file = text.partition("=")
    if not (name and file):
        raise click.BadParameter(
            f"'{text}' is not a relation and a file; write edge=new.csv", param_hint=f"'{option}'"
        )
    return name, file


def _files(
    database: "Database",
    transaction: "Transaction",
    given: list[tuple[str, str, str]],
    has_headers: bool,
) -> Iterator["Diagnostic"]:
    """Let a transaction take the rows of files; yield what is doubtful about them."""
    from corollary.database.files import read_rows

    for operation, name, file in given:
        state_of(database).console.progress(f"reading {file}")
        rows, warnings = read_rows(file, state_of(database).writable(name), has_headers=has_headers)
        yield from warnings
        if operation == "insert":
            transaction.insert(name, rows)
        else:
            transaction.delete(name, rows)


def _lines(database: "Database", transaction: "Transaction", changes: str | None) -> None:
    """Let a transaction do what a file of changes says."""
    from corollary.database.change_file import read_changes

    if changes is not None:
        state_of(database).console.progress(f"reading {changes}")
        read_changes(changes, state_of(database).loaded.normal).into(transaction)
