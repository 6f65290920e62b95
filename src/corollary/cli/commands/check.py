"""`corollary check`."""

import sys
from pathlib import Path

import click

from corollary.cli.options import CheckOutputOptions
from corollary.cli.parameters import family, functors, programs
from corollary.console import counted


@click.command()
@programs
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@functors
@family("output", CheckOutputOptions)
def command(programs: tuple[Path, ...], strict: bool, output: CheckOutputOptions) -> None:
    """Report everything that is wrong or doubtful about a program.

    Every finding has a code, the place with a caret, and a note on how to fix it. All are
    reported at once. The exit status is 1 if there is an error. A comment such as
    `// corollary: allow C0706` accepts a warning for good, --allow for this time.

    \b
      corollary check network.dl
      corollary check types.dl rules.dl --strict
    """
    with output.reporting() as console:
        from corollary.analysis.pragmas import without_allowed
        from corollary.database.program.loaded_program import diagnose_loading, read_programs
        from corollary.errors import Severity, render

        program = read_programs(programs)
        diagnostics = without_allowed(diagnose_loading(program), output.allowed)
        errors = sum(each.severity is Severity.ERROR for each in diagnostics)
        warnings = len(diagnostics) - errors
        output.show(
            lambda: {"diagnostics": [each.as_json() for each in diagnostics]},
            (render(each) + "\n" for each in diagnostics),
        )
        if not output.is_json:
            rules = len(program.clauses)
            console.note(
                f"{counted(errors, 'error')}, {counted(warnings, 'warning')} in "
                f"{counted(len(program.declarations), 'relation')} and {counted(rules, 'clause')}"
            )
        sys.exit(1 if errors or (strict and warnings) else 0)
