"""`corollary trace`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corollary.cli import options
from corollary.cli.databases import Wanted, filled
from corollary.console import TerminalConsole
from corollary.database.database import Database, state_of

if TYPE_CHECKING:
    from corollary.database.facts import Fact
    from corollary.database.transaction import Transaction

SHOWN, LISTED = 20, 1000
"""So many tuples of a list are printed as text, and as JSON."""


@click.command()
@options.programs
@options.facts
@options.root
@options.update("--add", "TUPLE", "Add this tuple to a base relation. May be repeated.")
@options.update("--remove", "TUPLE", "Remove this tuple from one. May be repeated.")
@options.update("--add-rule", "RULE", "Add this rule. May be repeated.")
@options.update("--remove-rule", "RULE", "Remove this rule. May be repeated.")
@options.algorithm
@options.by_relation
@options.watch
@click.option(
    "--max-rows",
    type=click.IntRange(min=0),
    help=f"Print so many tuples of a list. Default: {SHOWN}; {LISTED} in JSON.",
)
@options.limits
@options.format_
@options.verbose
@options.quiet
def command(
    programs: tuple[Path, ...],
    facts: Path,
    root: Path | None,
    add: tuple[str, ...],
    remove: tuple[str, ...],
    add_rule: tuple[str, ...],
    remove_rule: tuple[str, ...],
    algorithm: str,
    relations: tuple[str, ...],
    watch: tuple[str, ...],
    max_rows: int | None,
    format: str,
    verbose: bool,
    quiet: bool,
    **rest: Any,
) -> None:
    """Show one propagation step by step, as the tables of the papers do.

    Evaluates the program in memory, changes it in one transaction (removals first, then additions)
    and prints a line for every invocation of a rule: the updates that came in, what they might
    change (approximation), what is provable all the same (disqualified), and what really changes
    (actual). Then the changes of every relation, and the counters with the algorithm and why it was
    chosen. No file is changed.

    \b
      corollary trace tc.dl -F facts --remove 'edge("b", "d")' --algorithm epf
      corollary trace tc.dl -F facts --add 'edge("b", "f")' --relation tc=ranked
      corollary trace tc.dl -F facts --add-rule 'tc(x, x) :- edge(x, _).' --format json
    """
    if not (add or remove or add_rule or remove_rule):
        raise click.UsageError(
            "nothing changes, so there is nothing to trace; say what does, as in "
            '--remove \'edge("b", "d")\', or with --add, --add-rule or --remove-rule'
        )
    console = TerminalConsole(quiet)
    with options.reported(format, console):
        from corollary.cli.change_report import alert_lines
        from corollary.cli.trace_report import as_json, report

        wanted = Wanted(options.algorithms_of(algorithm, relations), watch)
        database = filled(programs, facts, root, wanted, options.limits_of(rest), console)
        transaction = _change(database, add, remove, add_rule, remove_rule, console)
        if format == "json":
            options.print_json(as_json(transaction, LISTED if max_rows is None else max_rows))
            return
        for line in report(transaction, SHOWN if max_rows is None else max_rows, is_full=verbose):
            click.echo(line)
        for line in alert_lines(transaction, LISTED):
            click.echo(line)


def _change(
    database: "Database",
    add: tuple[str, ...],
    remove: tuple[str, ...],
    add_rule: tuple[str, ...],
    remove_rule: tuple[str, ...],
    console: TerminalConsole,
) -> "Transaction":
    """Commit one transaction with everything that is asked for; say what has no effect."""
    from corollary.database.facts import read_facts

    removed = [
        each for text in remove for each in read_facts(state_of(database).loaded, text, "--remove")
    ]
    added = [each for text in add for each in read_facts(state_of(database).loaded, text, "--add")]
    with database.transaction(is_traced=True) as transaction:
        for text in remove_rule:
            transaction.remove_rule(text)
        for text in add_rule:
            transaction.add_rule(text)
        for name, row in removed:
            transaction.delete(name, [row])
        for name, row in added:
            transaction.insert(name, [row])
    _note_idle(database, transaction, removed, added, console)
    return transaction


def _note_idle(
    database: "Database",
    transaction: "Transaction",
    removed: "list[Fact]",
    added: "list[Fact]",
    console: TerminalConsole,
) -> None:
    """Say which tuples were there already, or were not there to be removed."""
    from corollary.core.arrow import to_python
    from corollary.core.printer import print_value

    for given, others, remark in (
        (removed, added, "was not there to be removed"),
        (added, removed, "was there already"),
    ):
        for name, row in given:
            relation = state_of(database).writable(name)
            if relation.is_derived or (name, row) in others:
                continue
            change = transaction.changes[name]
            if row not in to_python(change.removed if given is removed else change.added):
                values = map(print_value, row, relation.types)
                console.note(f"{name}({', '.join(values)}) {remark}")
