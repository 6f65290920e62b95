"""`corollary run`."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corollary.analysis.pragmas import without_allowed
from corollary.cli import options
from corollary.cli.databases import open_warehouse
from corollary.cli.output import note_reactions, print_json, print_warnings
from corollary.cli.parameters import (
    DIRECTORY,
    family,
    functors,
    idempotency_key,
    is_given,
    programs,
)
from corollary.cli.report.violations import note_proofs, proving, proving_options, why_option
from corollary.console import TerminalConsole, counted
from corollary.data_class import dataclass

if TYPE_CHECKING:
    from datetime import date

    from corollary.core.program import Program
    from corollary.database.intake.evaluate_once import EvaluationResult
    from corollary.database.intake.pipeline import Inputs, PipelineRun

WAREHOUSE_PARAMETERS = (
    "algorithm",
    "relations",
    "strict",
    "max_bad",
    "max_deletes",
    "idempotency_key",
    "dry_run",
    "approve",
    "why",
    "max_rows",
    "existing",
    "without",
    "allow_webhook",
    "alerts",
)
"""The parameters that have a meaning for a warehouse only."""


@click.command()
@programs
@click.option(
    "--warehouse",
    metavar="DIR|URL",
    help="Keep the results there, and find out what has changed since the last run.",
)
@family("files", options.FileOptions)
@click.option(
    "-D",
    "--outputs",
    type=DIRECTORY,
    default=Path(),
    help="Directory for the outputs (.output); - prints them. Default: here.",
)
@click.option(
    "--bad-rows",
    type=click.Choice(["abort", "quarantine"]),
    help="Stop at malformed records, or set them aside. Default: a warehouse sets them aside.",
)
@click.option(
    "--dry-run", is_flag=True, help="Report what a run on the warehouse would do, and do nothing."
)
@click.option(
    "--approve",
    metavar="ID",
    allow_from_autoenv=False,
    help="Run only if this is still the plan, as `corollary plan` has printed it.",
)
@why_option
@family("sources", options.SourceOptions)
@idempotency_key
@family("maintenance", options.MaintenanceOptions)
@functors
@family("output", options.ChangeOutputOptions)
def command(
    programs: tuple[Path, ...],
    warehouse: str | None,
    outputs: Path,
    bad_rows: str | None,
    dry_run: bool,
    approve: str | None,
    why: bool,
    idempotency_key: str | None,
    files: options.FileOptions,
    sources: options.SourceOptions,
    maintenance: options.MaintenanceOptions,
    output: options.ChangeOutputOptions,
) -> None:
    """Evaluate a program once, or keep a warehouse up to date with it.

    Without --warehouse: facts are read from the directory -F (`.input edge` reads edge.facts,
    tab-separated), results are written to -D (`.output link` writes link.csv), as Soufflé does, or
    printed, with `-D -`. Nothing is written if anything is wrong.

    With --warehouse: the first run reads the sources and materialises everything; later ones find
    what has changed in the sources and in the program, maintain only that, commit it, publish the
    `.output` relations as Delta tables under WAREHOUSE/tables, and deliver alerts. A line for each
    relation shows what was added and removed, what maintained it, where, and in what time. A source
    that looks broken (most of its records are malformed, most rows of a relation would go) is
    refused; --max-bad and --max-deletes, or the same parameters of an `.input`, allow it. A
    warehouse is a directory, or postgresql://user@host/name?data=PLACE.

    Views may change freely from run to run: other columns, rules or names. --dry-run shows first
    what that would do: what is read, which relations are new, changed, rebuilt or dropped and why,
    tuples in and out, the schemas of published tables, constraints that would fail (exit status
    3), alerts. It does the work and rolls it back, so the numbers are exact; nothing is written.
    --why proves what violates a key or a constraint, in a run or a dry run. `corollary plan` shows
    rows as well, and --approve runs only what it has shown.

    In a directory with corollary.toml, the program, -F, --warehouse and other options come from
    there where they are not given.

    \b
      corollary run network.dl -F facts -D out
      corollary run network.dl -F facts --warehouse warehouse
      corollary run network.dl -F facts --warehouse warehouse --dry-run
      corollary run network.dl -F facts --warehouse warehouse --bad-rows abort --format json
    """
    _check_usage(warehouse, bad_rows)
    with output.reporting(0.0) as console:
        from corollary.database.intake.pipeline import Inputs
        from corollary.database.program.loaded_program import read_programs
        from corollary.warehouse.sources.quarantine import BadRowPolicy

        program = read_programs(programs)
        if warehouse is None:
            _evaluate(program, files, outputs, maintenance, output, console)
        else:
            from corollary.cli.report.changes import report_run

            policy = BadRowPolicy(bad_rows or BadRowPolicy.QUARANTINE)
            inputs = Inputs(files.facts, files.root, policy, sources.guards)
            request = RunRequest(
                program, inputs, idempotency_key, files.today, dry_run, why, approve
            )
            update_warehouse(warehouse, request, maintenance, console, report_run, output)


def _check_usage(warehouse: str | None, bad_rows: str | None) -> None:
    """Raise if options do not go together; those set in the environment do not matter."""
    if warehouse is not None:
        if is_given("outputs"):
            raise click.UsageError(
                "-D goes with a run that ends with its files; a warehouse publishes its outputs as "
                "Delta tables in its directory `tables`, and `corollary export` writes files"
            )
        return
    if bad_rows == "quarantine" and is_given("bad_rows"):
        raise click.UsageError(
            "--bad-rows quarantine goes with --warehouse, which has a place for malformed records; "
            "a run that ends with its files stops at them"
        )
    for each in click.get_current_context().command.params:
        if each.name in WAREHOUSE_PARAMETERS and is_given(each.name):
            raise click.UsageError(f"{each.opts[0]} goes with --warehouse only")


def _evaluate(
    program: "Program",
    files: options.FileOptions,
    outputs: Path,
    maintenance: options.MaintenanceOptions,
    output: options.ChangeOutputOptions,
    console: TerminalConsole,
) -> None:
    """Evaluate a program once, and write its outputs to files."""
    from corollary.database.engines import create_engine
    from corollary.database.intake.evaluate_once import run_once
    from corollary.database.state import DatabaseState
    from corollary.database.writing.inputs import FileLocations
    from corollary.warehouse.formats.delimited import print_rows
    from corollary.warehouse.formats.dialect import printed_directive

    state = DatabaseState(
        create_engine(maintenance.options), limits=maintenance.limits, console=console
    )
    if str(outputs) == "-":
        outputs = Path()
        directives = tuple(map(printed_directive, program.directives))
        program = replace(program, directives=directives)
    places = FileLocations(files.facts, outputs, files.root)
    outcome = run_once(state, program, places, today=files.today)
    if output.is_json:
        outcome.warnings = tuple(without_allowed(outcome.warnings, console.allowed))
        print_json(_as_json(outcome))
        return
    print_warnings(outcome.warnings, console)
    note_reactions(program, console)
    for directive, relation, table in outcome.printed:
        print_rows(table, sys.stdout.buffer, relation, directive)
    sys.stdout.flush()
    for name, size in outcome.sizes.items():
        click.echo(f"{name}\t{size}")
    for each in outcome.written:
        console.note(f"{each.relation}: {counted(each.tuples, 'tuple')} in {each.path}")


@dataclass(frozen=True)
class RunRequest:
    """What is to be run on a warehouse."""

    program: "Program"
    inputs: "Inputs"
    idempotency_key: str | None
    today: "date | None"
    is_dry: bool
    is_proved: bool
    approved: str | None = None
    creates: bool = True


Report = Callable[["PipelineRun", str, options.ChangeOutputOptions, TerminalConsole], None]
"""Prints what a run did to a warehouse."""


def update_warehouse(
    warehouse: str,
    request: RunRequest,
    maintenance: options.MaintenanceOptions,
    console: TerminalConsole,
    report: Report,
    output: options.ChangeOutputOptions,
) -> None:
    """Bring a warehouse up to date with a program and its sources, or find out what that does."""
    from corollary.database.intake.pipeline import run, run_until_read
    from corollary.database.program.loaded_program import load_program
    from corollary.warehouse.formats.dialect import is_stream

    program = request.program
    maintenance.check(load_program(program).normal)
    with open_warehouse(
        warehouse,
        console,
        proving_options(maintenance.options, is_asked=request.is_proved),
        create=request.creates,
        today=request.today,
    ) as database:
        with proving(database, is_asked=request.is_proved) as explainer:
            outcome = run(
                database,
                program,
                request.inputs,
                idempotency=request.idempotency_key,
                is_dry=request.is_dry,
                approved=request.approved,
                inspect=None if explainer is None else explainer.look,
            )
        note_proofs(outcome, database, explainer)
        report(outcome, warehouse, output, console)
        if not (request.is_dry or request.idempotency_key or request.approved):
            for more in run_until_read(database, program, request.inputs, first=outcome):
                report(more, warehouse, output, console)
    streamed = [each.relation for each in program.directives if is_stream(each)]
    if streamed:
        names = ", ".join(f"`{name}`" for name in dict.fromkeys(streamed))
        console.note(f"streams are read by `corollary watch` only: {names}")


def _as_json(outcome: "EvaluationResult") -> dict[str, Any]:
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
        "warnings": [each.as_json() for each in outcome.warnings],
        "seconds": round(outcome.seconds, 6),
    }
