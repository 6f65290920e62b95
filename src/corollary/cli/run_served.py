"""Runs a command on the database of a server, for a client that prints what it prints."""

import base64
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from corollary.cli.recording import Recording, recording_to
from corollary.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from corollary.database.database import Database
    from corollary.serve.commands import CommandRequest

WIDTH_MIN, WIDTH_MAX = 20, 1000
CHANGES = "changes"
"""The name of the lines of changes among the files of a request."""


def run_command(
    database: "Database", reader: str | None, request: "CommandRequest"
) -> dict[str, Any]:
    """Return what a command prints, and its exit status.

    Args:
        database: the one of the server.
        reader: who asks, if it may only see what was granted to it.
        request: the command.

    Raises:
        InputError: `C1641`, an option is not one of this command, or a file is not readable.
    """
    from corollary.cli.main import group
    from corollary.database.database import store_of

    recording = Recording(
        database,
        str(store_of(database).location),
        min(max(request.width, WIDTH_MIN), WIDTH_MAX),
        request.is_terminal,
        {name: _table(each) for name, each in request.files.items() if name != CHANGES},
        str(request.files.get(CHANGES, "")).encode("utf-8", "surrogatepass"),
    )
    command = group.get_command(click.Context(group), request.command)
    assert command is not None, "the server knows its commands"
    arguments = _arguments(command, _limited_to(reader, request.options))
    _check_files(request)
    with recording_to(recording):
        status = _run(group, [request.command, *arguments], request.program, recording)
    return {"output": [list(each) for each in recording.output], "status": status}


def _run(group: click.Group, arguments: list[str], program: str, recording: Recording) -> int:
    try:
        # What the client has in its environment is among the options.
        group.main(arguments, program, standalone_mode=False, auto_envvar_prefix=None)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except click.ClickException as error:
        recording.add("err", _usage(error))
        return error.exit_code
    return 0


def _usage(error: click.ClickException) -> str:
    """Return what click prints about a wrong use of a command."""
    from io import StringIO

    text = StringIO()
    error.show(text)
    return text.getvalue()


def _limited_to(reader: str | None, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Let a reader ask as itself only."""
    if reader is None:
        return options
    if options.get("reader", reader) != reader:
        raise _refused(f"`{reader}` cannot read as somebody else")
    return {**options, "reader": reader}


def _arguments(command: click.Command, options: Mapping[str, Any]) -> list[str]:
    """Return the arguments of a command line."""
    from corollary.cli.served_command import SERVED_OPTIONS

    parameters = {each.name: each for each in command.params}
    found: list[str] = []
    positional: list[str] = []
    for name, value in options.items():
        parameter = parameters.get(name)
        if parameter is None or name not in SERVED_OPTIONS:
            raise _refused(f"there is no option `{name}` for it")
        if isinstance(parameter, click.Argument):
            positional += _texts(name, value)
        elif isinstance(parameter, click.Option):
            found += _option(parameter, name, value)
    return [*found, "--", *positional]


def _option(option: click.Option, name: str, value: Any) -> Iterator[str]:
    if option.is_flag:
        if value is True:
            yield option.opts[-1]
        elif value is not False:
            raise _refused(f"the option `{name}` is true or false")
        return
    for each in _texts(name, value):
        yield f"{option.opts[-1]}={each}"


def _check_files(request: "CommandRequest") -> None:
    """Refuse a command whose files the client has not sent."""
    options, files = request.options, request.files
    named = [each for name in ("insert", "delete") for each in _texts(name, options.get(name, []))]
    missing = [each for each in named if each not in files]
    if CHANGES in options and not isinstance(files.get(CHANGES), str):
        missing.append(CHANGES)
    if missing:
        raise _refused(f"`files` has no text of `{missing[0]}`")


def _texts(name: str, value: Any) -> list[str]:
    found = value if isinstance(value, list) else [value]
    if not all(isinstance(each, str) for each in found):
        raise _refused(f"the option `{name}` is a text, or a list of texts")
    return found


def _table(encoded: Any) -> "pa.Table":
    """Return the rows of a file that the client has read."""
    import pyarrow as pa

    try:
        content = base64.b64decode(encoded, validate=True)
        with pa.ipc.open_stream(content) as stream:
            return stream.read_all()
    except (TypeError, ValueError, OSError, pa.ArrowException):
        raise _refused("rows of a file are not an Arrow stream in base64") from None


def _refused(reason: str) -> InputError:
    text = f"The server does not run this command: {reason}."
    return InputError.of("C1641", text, None, "use a command line of the same version")
