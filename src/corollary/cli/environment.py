"""Settings in the environment: which variables a command knows, and a warning about others."""

import os
from collections.abc import Iterator

import click

from corollary.cli.recording import current_recording
from corollary.console import TerminalConsole

PREFIX = "COROLLARY_"
SHARED = (
    *("COROLLARY_ALLOW_WEBHOOKS", "COROLLARY_BULK", "COROLLARY_DRIVER_MEMORY"),
    *("COROLLARY_FUNCTORS", "COROLLARY_SERVER", "COROLLARY_TOKEN"),
)
"""The variables that several commands know."""
RESERVED = ("COROLLARY_FAULT", "COROLLARY_JAVA_HOME", "COROLLARY_ACCEPT", "COROLLARY_TEST_")
"""What the names of variables begin with that are no settings: those of tests and of Java."""


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
