"""`corollary check`."""

import sys
from pathlib import Path

import click

from corollary.cli import options
from corollary.cli.tables import counted
from corollary.console import TerminalConsole


@click.command()
@options.programs
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@options.format_
@options.quiet
def command(programs: tuple[Path, ...], strict: bool, format: str, quiet: bool) -> None:
    """Say everything that is wrong or doubtful about a program.

    Every finding has a code, the place with a caret, and a note that says how to mend it. All are
    reported at once. The exit status is 1 if there is an error.

    \b
      corollary check network.dl
      corollary check types.dl rules.dl --strict
    """
    console = TerminalConsole(quiet)
    with options.reported(format, console):
        from corollary.analysis.check import diagnose
        from corollary.database.program import load, read_programs
        from corollary.errors import InputError, Severity, render

        program = read_programs(programs)
        found = diagnose(program)
        errors = sum(each.severity is Severity.ERROR for each in found)
        if not errors:
            try:
                load(program)
            except InputError as error:
                found, errors = (*found, *error.diagnostics), len(error.diagnostics)
        warnings = len(found) - errors
        if format == "json":
            options.print_json({"diagnostics": [options.as_json(each) for each in found]})
        else:
            for each in found:
                click.echo(render(each) + "\n")
            rules = len(program.clauses)
            console.note(
                f"{counted(errors, 'error')}, {counted(warnings, 'warning')} in "
                f"{counted(len(program.declarations), 'relation')} and {counted(rules, 'clause')}"
            )
        sys.exit(1 if errors or (strict and warnings) else 0)
