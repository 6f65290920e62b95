"""What commands print: results as text or JSON, errors with their exit codes, warnings as notes.

Among the warnings are those about variables of the environment that no command knows.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from corollary.analysis.pragmas import without_allowed
from corollary.cli.recording import current_recording, echo
from corollary.console import TerminalConsole
from corollary.errors import (
    SCAN_REFUSED,
    ConstraintError,
    CorollaryError,
    Diagnostic,
    InputError,
    LimitError,
    render,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from corollary.core.program import Program, Relation

INTERRUPT_EXIT_CODE = 130


@contextmanager
def report_errors(console: TerminalConsole, *, is_json: bool) -> Iterator[None]:
    """Turn errors into messages (or JSON) and exit codes; Ctrl-C reports what was committed."""
    try:
        yield
    except CorollaryError as error:
        console.done()
        if current_recording() is not None and _is_for_another_process(error):
            raise
        _print_error(error, is_json=is_json)
        sys.exit(error.exit_code)
    except KeyboardInterrupt as error:
        console.done()
        echo(f"interrupted; {str(error) or 'nothing was written'}", err=True)
        sys.exit(INTERRUPT_EXIT_CODE)
    except BrokenPipeError:
        # Python would complain on standard error when it flushes the closed pipe at its end.
        sys.stderr.close()
        sys.exit(1)
    except (OSError, MemoryError, RecursionError) as error:
        console.done()
        reason = "out of memory" if isinstance(error, MemoryError) else str(error)
        echo(f"error: {reason}", err=True)
        sys.exit(LimitError.exit_code if isinstance(error, MemoryError) else 1)


def _is_for_another_process(error: CorollaryError) -> bool:
    """Whether a process of the server that has tasks can do what this one has refused."""
    return isinstance(error, InputError) and any(
        each.code == SCAN_REFUSED for each in error.diagnostics
    )


def _print_error(error: CorollaryError, *, is_json: bool) -> None:
    """Print a message, and proofs of what is violated if they were asked for."""
    why = error.why if isinstance(error, ConstraintError) else ()
    if is_json:
        diagnostics = error.diagnostics if isinstance(error, InputError) else ()
        found: dict[str, Any] = {
            "error": str(error),
            "diagnostics": [each.as_json() for each in diagnostics],
        }
        if why:
            from corollary.cli.report.violations import proofs_as_json

            found["why"] = proofs_as_json(why)
        print_json(found)
        return
    echo(str(error), err=True)
    if why:
        from corollary.cli.report.violations import proof_texts

        for line in proof_texts(why):
            echo(line, err=True)


def print_json(value: Any) -> None:
    """Print a JSON document on one line."""
    echo(json.dumps(value, ensure_ascii=False))


def print_rows(table: "pa.Table", relation: "Relation") -> None:
    r"""Print the names of the columns and a line per row, separated by tabs.

    Tabs, line breaks, backslashes and control characters in texts are escaped: `\t`, `\n`, `\\`.
    """
    from corollary.core.program import Directive
    from corollary.warehouse.formats.delimited_lines import AMBIGUOUS_CHARACTERS, lines_of
    from corollary.warehouse.formats.dialect import dialect_of

    output = Directive("output", relation.name, (("headers", "true"),))
    dialect = dialect_of(relation, output)
    for lines in lines_of(table, relation, output, dialect, escaped=AMBIGUOUS_CHARACTERS):
        echo(lines, nl=False)


def print_warnings(warnings: Iterable[Diagnostic], console: TerminalConsole) -> None:
    """Print warnings about a program or its data as notes, but those that are accepted."""
    for warning in without_allowed(warnings, console.allowed):
        console.note(render(warning))


def note_reactions(program: "Program", console: TerminalConsole) -> None:
    """Note that active rules need transactions, so a single evaluation does not run them."""
    if program.reactions or any(head.sign for each in program.clauses for head in each.heads):
        console.note(
            "alerts, constraints and triggers react to transactions: run with --warehouse for them"
        )


# --- settings in the environment -----------------------------------------------------------------


PREFIX = "COROLLARY_"
SHARED = (
    *("COROLLARY_ALLOW_WEBHOOKS", "COROLLARY_BULK", "COROLLARY_DRIVER_MEMORY"),
    *("COROLLARY_ENVIRONMENT", "COROLLARY_FUNCTORS", "COROLLARY_SERVER", "COROLLARY_TOKEN"),
)
"""The variables that several commands know."""
RESERVED = (
    *("COROLLARY_FAULT", "COROLLARY_JAVA_HOME", "COROLLARY_ACCEPT", "COROLLARY_TEST_"),
    *("COROLLARY_CONNECTION_", "COROLLARY_SECRET_", "COROLLARY_SMTP"),
)
"""What the names of other variables begin with: of tests, of Java, and what programs name."""


def warn_of_unknown_variables(console: TerminalConsole) -> None:
    """Note the variables that look like settings, and have no effect on any command."""
    context = click.get_current_context(silent=True)
    named = sorted(name for name in os.environ if name.startswith(PREFIX))
    if context is None or not named or current_recording() is not None:
        return
    known = {*SHARED, *_variables_of(context)}
    others = tuple(_prefixes_of_other_commands(context))
    for name in named:
        if name not in known and not name.startswith((*RESERVED, *others)):
            from corollary.analysis.phrases import suggest_name
            from corollary.errors import Diagnostic, Severity, render

            message = f"No setting is named `{name}` in the environment, so it has no effect."
            near = suggest_name(name, known)
            cure = near or "the name of a setting is COROLLARY_<COMMAND>_<OPTION>"
            console.note(
                render(Diagnostic("C0922", message, None, cure, severity=Severity.WARNING))
            )


def _variables_of(context: click.Context) -> Iterator[str]:
    """Yield the variables that set the options of a command."""
    for each in context.command.params:
        if isinstance(each, click.Option) and each.allow_from_autoenv and each.name:
            yield f"{context.auto_envvar_prefix}_{each.name.upper()}"


def _prefixes_of_other_commands(context: click.Context) -> Iterator[str]:
    """Yield what the names of the variables of other commands begin with.

    Which options these have is not looked up: their modules would have to be imported.
    """
    at: click.Context | None = context
    while at is not None and at.parent is not None:
        group = at.parent.command
        assert isinstance(group, click.Group)
        for name in group.list_commands(at.parent):
            if name != at.info_name:
                yield f"{at.parent.auto_envvar_prefix}_{name.upper().replace('-', '_')}_"
        at = at.parent
