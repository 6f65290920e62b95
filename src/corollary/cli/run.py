"""`corollary run`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corollary.cli import options
from corollary.cli.databases import Wanted
from corollary.cli.tables import counted
from corollary.cli.warehouses import opened
from corollary.console import TerminalConsole

if TYPE_CHECKING:
    from corollary.database.once import Outcome

LASTING = {
    "algorithm": "--algorithm",
    "relations": "--relation",
    "strict": "--strict",
    "idempotency_key": "--idempotency-key",
    "max_rows": "--max-rows",
    "existing": "--existing",
    "without": "--without",
    "allow_webhook": "--allow-webhook",
    "alerts": "--alerts",
}
"""The options that have a meaning for a warehouse only."""


@click.command()
@options.programs
@click.option(
    "--warehouse",
    metavar="DIR|URL",
    help="Keep the results there, and find out what has changed since the last run.",
)
@options.facts
@options.outputs
@options.root
@click.option(
    "--bad-rows",
    type=click.Choice(["abort", "quarantine"]),
    help="Stop at malformed records, or set them aside. Default: a warehouse sets them aside.",
)
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
    programs: tuple[Path, ...],
    warehouse: str | None,
    facts: Path,
    outputs: Path,
    root: Path | None,
    engine: str,
    placement: str,
    format: str,
    quiet: bool,
    **rest: Any,
) -> None:
    """Evaluate a program once, or keep a warehouse up to date with it.

    Without --warehouse: facts are read from the directory -F (`.input edge` reads edge.facts,
    tab-separated), results are written to -D (`.output link` writes link.csv), as Soufflé does.
    Nothing is written if anything is wrong.

    With --warehouse: the first run reads the sources and materialises everything; later ones find
    what has changed in the sources and in the program, maintain only that, commit it, publish the
    `.output` relations as Delta tables under WAREHOUSE/tables, and deliver alerts. Each line tells
    of one relation what came and went, what maintained it, where, and in what time. A warehouse is
    a directory, or postgresql://user@host/name?data=DIRECTORY.

    \b
      corollary run network.dl -F facts -D out
      corollary run network.dl -F facts --warehouse warehouse
      corollary run network.dl -F facts --warehouse warehouse --bad-rows abort --format json
    """
    _refuse_misfits(warehouse, rest["bad_rows"])
    console = TerminalConsole(quiet)
    with options.reported(format, console):
        limits = options.limits_of(rest)
        if warehouse is not None:
            asked = {"limits": limits, "engine": engine, "placement": placement}
            asked |= options.outlets_of(rest)
            asked |= {name: rest.pop(name) for name in ("existing", "without")}
            _keep(programs, warehouse, facts, root, format, asked, console, **rest)
            return
        from corollary.database.engines import made
        from corollary.database.once import Places, run
        from corollary.database.program import read_programs
        from corollary.warehouse.delimited import print_rows

        program = read_programs(programs)
        outcome = run(
            program, Places(facts, outputs, root), limits, console, made(engine, None, placement)
        )
        if format == "json":
            options.print_json(_as_json(outcome))
            return
        options.print_warnings(outcome.warnings, console)
        options.note_reactions(program, console)
        for directive, relation, table in outcome.printed:
            print_rows(table, sys.stdout.buffer, relation, directive)
        sys.stdout.flush()
        for name, size in outcome.sizes.items():
            click.echo(f"{name}\t{size}")
        for each in outcome.written:
            console.note(f"{each.relation}: {counted(each.tuples, 'tuple')} in {each.path}")


def _refuse_misfits(warehouse: str | None, bad_rows: str | None) -> None:
    """Raise if options do not go together; what is set in the environment is no matter."""
    if warehouse is not None and options.is_given("outputs"):
        raise click.UsageError(
            "-D goes with a run that ends with its files; a warehouse publishes its outputs as "
            "Delta tables in its directory `tables`, and `corollary export` writes files"
        )
    if warehouse is None and bad_rows == "quarantine" and options.is_given("bad_rows"):
        raise click.UsageError(
            "--bad-rows quarantine goes with --warehouse, which has a place for malformed records; "
            "a run that ends with its files stops at them"
        )
    for name, option in LASTING.items():
        if warehouse is None and options.is_given(name):
            raise click.UsageError(f"{option} goes with --warehouse only")


def _keep(
    programs: tuple[Path, ...],
    warehouse: str,
    facts: Path,
    root: Path | None,
    format_: str,
    asked: dict[str, Any],
    console: TerminalConsole,
    *,
    bad_rows: str | None,
    algorithm: str,
    relations: tuple[str, ...],
    strict: bool,
    idempotency_key: str | None,
    max_rows: int,
) -> None:
    """Bring a warehouse to what a program and its sources say now."""
    from corollary.cli.change_report import tell
    from corollary.database.pipeline import Inputs, run
    from corollary.database.program import load, read_programs
    from corollary.warehouse.dialect import is_stream
    from corollary.warehouse.sources.quarantine import BadRows

    program = read_programs(programs)
    wanted = Wanted(options.algorithms_of(algorithm, relations), ())
    wanted.check(load(program).normal)
    inputs = Inputs(facts, root, BadRows(bad_rows or BadRows.QUARANTINE))
    asked |= {"algorithm": wanted.algorithms, "strict": strict}
    with opened(warehouse, console, create=True, create_on_commit=True, **asked) as database:
        outcome = run(database, program, inputs, idempotency=idempotency_key)
        tell(outcome, database, warehouse, max_rows=max_rows, format_=format_, console=console)
    streamed = [each.relation for each in program.directives if is_stream(each)]
    if streamed:
        names = ", ".join(f"`{name}`" for name in dict.fromkeys(streamed))
        console.note(f"streams are read by `corollary watch` only: {names}")


def _as_json(outcome: "Outcome") -> dict[str, Any]:
    from corollary.database.changes import json_rows

    return {
        "outputs": [
            {"relation": each.relation, "file": str(each.path), "tuples": each.tuples}
            for each in outcome.written
        ],
        "sizes": outcome.sizes,
        "rows": {
            relation.name: json_rows(table, relation) for _, relation, table in outcome.printed
        },
        "warnings": [options.as_json(each) for each in outcome.warnings],
        "seconds": round(outcome.seconds, 6),
    }
