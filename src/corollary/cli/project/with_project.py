"""Commands in a project: what `corollary.toml` says takes the place of what is not given."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from corollary.cli.output import report_errors
from corollary.cli.parameters import (
    ENVIRONMENT_VARIABLE,
    PROJECT_FILE,
    TAKEN_PLACES,
    has_project,
)
from corollary.cli.project.project_file import ProjectSettings, read_project
from corollary.cli.recording import current_recording
from corollary.cli.served_command import PROGRAM_SUFFIXES, SERVER_VARIABLE, ServedCommand
from corollary.console import TerminalConsole

NOT_FOR_WAREHOUSES = ("--outputs", "-D")
"""A run that is given these ends with its files, and has no warehouse."""


def add_project(
    context: click.Context, name: str, command: click.Command, args: list[str]
) -> list[str]:
    """Return the arguments of a command with what the project says; options become defaults.

    Args:
        context: of the group; its defaults are those of its commands.
        name: what the command is called.
        command: the command.
        args: what is on the command line after its name.
    """
    if current_recording() is not None or context.resilient_parsing:
        return args
    if isinstance(command, click.Group):
        below = command.get_command(context, args[0]) if args else None
        if below is None:
            return args
        own = click.Context(command, parent=context, info_name=name)
        return [args[0], *add_project(own, args[0], below, args[1:])]
    if not has_project(command):
        return args
    given = _given(context, command, args)
    if given is None or any(each in context.help_option_names for each in args):
        return args
    named = given.get("environment")
    if named is None and Path(PROJECT_FILE).exists():
        named = os.environ.get(ENVIRONMENT_VARIABLE) or None
    with report_errors(TerminalConsole(), is_json=given.get("format") == "json"):
        project = read_project(named)
    if project is None:
        return args
    if given.get("verbose"):
        chosen = f", environment {project.environment}" if project.environment else ""
        click.echo(f"settings of {PROJECT_FILE}{chosen}", err=True)
    defaults = _defaults(command, args, given, project, is_asked=bool(named))
    context.default_map = {**(context.default_map or {}), name: defaults}
    return _with_places(command, args, given, project)


def _given(
    context: click.Context, command: click.Command, args: list[str]
) -> dict[str, Any] | None:
    """Return what is on the command line, by parameter; None if it is no command line."""
    own = click.Context(command, parent=context, resilient_parsing=True)
    try:
        found, rest, _ = command.make_parser(own).parse_args(args=list(args))
    except click.UsageError:  # it is reported when the command reads it
        return None
    return {
        name: value
        for name, value in {**found, "": rest}.items()
        if isinstance(value, str | bool | list | tuple)
    }


def _defaults(
    command: click.Command,
    args: Sequence[str],
    given: Mapping[str, Any],
    project: ProjectSettings,
    *,
    is_asked: bool,
) -> dict[str, Any]:
    """Return the defaults of the options of a command.

    The warehouse is none of them where another program is named, or files are written: then it
    has to be named too, or the environment.
    """
    names = {each.name for each in command.params}
    arguments = _arguments(command)
    found = {name: value for name, value in project.defaults.items() if name in names}
    if "limit_rounds" not in names:  # the limits of proofs and of servers are others
        found = {name: each for name, each in found.items() if not name.startswith("limit_")}
    first = arguments[0].name if arguments else None
    if first != "programs" and "programs" in names:  # `--program` of `test`
        found["programs"] = list(project.programs)
    if "warehouse" in names and first not in TAKEN_PLACES:
        has_own_program = first == "programs" and bool(_words(arguments, given))
        has_files = any(each in args for each in NOT_FOR_WAREHOUSES)
        if project.warehouse is not None and (is_asked or not (has_own_program or has_files)):
            found["warehouse"] = project.warehouse
    return found


def _with_places(
    command: click.Command, args: list[str], given: Mapping[str, Any], project: ProjectSettings
) -> list[str]:
    """Return the arguments of a command with the program or the warehouse, if none is named."""
    arguments = _arguments(command)
    words = _words(arguments, given)
    first = arguments[0].name if arguments else None
    if first == "programs":
        return args if words or not arguments[0].required else [*project.programs, *args]
    if first not in TAKEN_PLACES or project.warehouse is None:
        return args
    has_server = isinstance(command, ServedCommand) and (
        given.get("server") or os.environ.get(SERVER_VARIABLE)
    )
    is_missing = not has_server and _lacks_place(arguments, words)
    return [project.warehouse, *args] if is_missing else args


def _arguments(command: click.Command) -> list[click.Argument]:
    return [each for each in command.params if isinstance(each, click.Argument)]


def _words(arguments: Sequence[click.Argument], given: Mapping[str, Any]) -> list[str]:
    """Return the positional arguments that are given, in their order."""
    found: list[str] = []
    for each in (*(str(each.name) for each in arguments), ""):
        value = given.get(each, ())
        found += [value] if isinstance(value, str) else list(value)
    return found


def _lacks_place(arguments: Sequence[click.Argument], words: Sequence[str]) -> bool:
    """Whether no warehouse and no program is named where one can be."""
    has_room = any(each.nargs == -1 for each in arguments) or len(words) < len(arguments)
    return has_room and not (words and _is_place(words[0]))


def _is_place(word: str) -> bool:
    """Whether a word names a program, or a warehouse that is there."""
    if "://" in word.partition("?")[0] or word.endswith(PROGRAM_SUFFIXES):
        return True
    if not Path(word).is_dir():
        return False
    from corollary.warehouse.warehouse_catalog import CATALOG_FILE

    return Path(word, CATALOG_FILE).is_file()
