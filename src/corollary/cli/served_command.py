"""Commands that a running server answers, if there is one; else they open the warehouse.

Of a directory, that is a server of the same user that has left `server.json` there and says within
0.2 seconds that it is ready; an address, `http://…` or `https://…`, always means a server.
"""

import base64
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from corollary.cli.output import (
    print_json,
    print_warnings,
    report_errors,
    warn_of_unknown_variables,
)
from corollary.cli.recording import current_recording, open_console, terminal_columns
from corollary.errors import LimitError

if TYPE_CHECKING:
    from corollary.console import TerminalConsole
    from corollary.core.program import Relation
    from corollary.errors import Diagnostic
    from corollary.serve.client import ServerClient

SERVER_VARIABLE, TOKEN_VARIABLE = "COROLLARY_SERVER", "COROLLARY_TOKEN"
SERVER_OPTION = "--server"
URL_SCHEMES = ("http://", "https://")
PROGRAM_SUFFIXES = (".dl", ".sql")
SERVED_OPTIONS = frozenset(
    (
        *("warehouse", "places", "goal", "question", "fact", "relation", "reader", "at", "order"),
        *("limit", "parameters", "depth", "insertions", "commit", "since", "max_rows", "allow"),
        *("limit_nodes", "limit_expanded", "limit_seconds", "limit_dry_runs", "insert", "delete"),
        *("changes", "headers", "today", "dry_run", "idempotency_key", "format", "quiet"),
        *("verbose", "engine"),
    )
)
"""The parameters that a server can take; with others a command opens the warehouse itself."""
IGNORED_SETTINGS = frozenset(("facts", "root", "server", "functors"))
"""Settings from the environment that do not matter for a warehouse."""
PROOF_COMMANDS = ("why", "why-not", "why-added", "why-removed")
"""The commands whose limits bound one answer, and not the work of the server."""


class ServedCommand(click.Command):
    """A command that a server can answer."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.params.append(
            click.Option(
                [SERVER_OPTION],
                metavar="URL",
                envvar=SERVER_VARIABLE,
                expose_value=False,
                help="Ask this server, instead of naming a warehouse; its token is in "
                f"{TOKEN_VARIABLE}.",
            )
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; a server that is named takes the place of the warehouse."""
        given, rest, _ = self.make_parser(ctx).parse_args(args=list(args))
        url = given.get("server")
        url = url if isinstance(url, str) else None
        if url is None and not _names_place(rest, given):
            url = os.environ.get(SERVER_VARIABLE) or None
        if url is not None and current_recording() is None:
            _check_url(url, ctx)
            args = [url, *args]
        ctx.meta[__name__] = self.make_parser(ctx).parse_args(args=list(args))[0]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Let a server answer, or do it here."""
        if current_recording() is None and _answer_by_server(ctx):
            return None
        return super().invoke(ctx)


def _names_place(rest: list[str], given: dict[str, Any]) -> bool:
    """Whether the arguments name a warehouse or a program that is there."""
    places = given.get("places")
    places = places if isinstance(places, list | tuple) else ()
    texts = [given.get("warehouse"), *places, *rest]
    first = next((each for each in texts if isinstance(each, str)), "")
    is_url = "://" in first.partition("?")[0]
    is_directory = bool(first) and Path(first).is_dir()
    return is_url or first.endswith(PROGRAM_SUFFIXES) or is_directory


def _check_url(url: str, ctx: click.Context) -> None:
    if not url.startswith(URL_SCHEMES):
        raise click.BadParameter(
            f"'{url}' is not the address of a server; write http://127.0.0.1:8765", ctx=ctx
        )


def _answer_by_server(ctx: click.Context) -> bool:
    """Let a server answer; return False if the command has to be done here."""
    named = ctx.params.get("warehouse") or ctx.params["places"][0]
    is_remote = named.startswith(URL_SCHEMES)
    if not is_remote and not Path(named, "server.json").exists():
        return False
    unserved = list(_unserved(ctx))
    if unserved and is_remote:
        raise click.UsageError(f"a server does not take {', '.join(unserved)}", ctx=ctx)
    if unserved:
        return False
    is_quiet, is_verbose = (bool(ctx.params.get(each)) for each in ("quiet", "verbose"))
    allowed = frozenset(ctx.params.get("allow") or ())
    console = open_console(is_quiet, is_verbose=is_verbose, allowed=allowed)
    is_json = ctx.params["format"] == "json"
    with report_errors(console, is_json=is_json):
        from corollary.serve.client import ServerClient

        if is_remote:
            client: ServerClient | None = ServerClient.of_url(named, os.environ.get(TOKEN_VARIABLE))
        else:
            client = ServerClient.of_warehouse(named)
        if client is None:
            return False
        status = _Conversation(ctx, client, console, is_json=is_json).run()
    if status:
        sys.exit(status)
    return status is not None


def _unserved(ctx: click.Context) -> Iterator[str]:
    """Yield the options that a server cannot take."""
    for each in ctx.command.params:
        assert each.name is not None
        source = ctx.get_parameter_source(each.name)
        if source in (ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP, None):
            continue
        is_setting = source is ParameterSource.ENVIRONMENT and each.name in IGNORED_SETTINGS
        is_limit = each.name == "limit_seconds" and ctx.info_name not in PROOF_COMMANDS
        is_served = each.name in SERVED_OPTIONS and not is_limit
        if not is_served and not is_setting and each.name not in {"server", "environment"}:
            yield each.opts[-1]


class _Conversation:
    """A command that a server answers: what it is asked, and what is printed."""

    def __init__(
        self,
        ctx: click.Context,
        client: "ServerClient",
        console: "TerminalConsole",
        *,
        is_json: bool,
    ) -> None:
        self._ctx = ctx
        self._client = client
        self._console = console
        self._is_json = is_json
        self._warnings: list[Diagnostic] = []

    def run(self) -> int | None:
        """Ask the server, and print; return the exit status, or None if it did not answer."""
        from corollary.serve.client import LostAnswerError, RefusedError, UnavailableError
        from corollary.serve.command_names import WRITING_COMMANDS

        name = str(self._ctx.info_name)
        try:
            document = {
                "command": name,
                "options": dict(self._options()),
                "program": self._ctx.find_root().info_name or "corollary",
                "width": terminal_columns(),
                "is_terminal": sys.stderr.isatty(),
                "files": self._files(),
            }
            path = "/v1/writing-command" if name in WRITING_COMMANDS else "/v1/command"
            answer = self._client.post(path, document)
        except UnavailableError as error:
            if self._client.is_local:
                return None
            raise _unreachable(self._client.name, str(error)) from None
        except LostAnswerError as error:
            if self._client.is_local and name != "apply":
                return None
            raise _lost(self._client.name, str(error), name == "apply") from None
        except RefusedError as error:
            return self._refused(error.document)
        status = int(answer["status"])
        if status == LimitError.exit_code and self._client.is_local:
            return None  # the limit of the server: without one it may take longer here
        self._print(answer["output"])
        return status

    def _options(self) -> Iterator[tuple[str, Any]]:
        """Yield the options as they are written: on the command line, or in the environment."""
        given = self._ctx.meta[__name__]
        for each in self._ctx.command.params:
            name = str(each.name)
            if name not in SERVED_OPTIONS or name == "engine":
                continue
            source = self._ctx.get_parameter_source(name)
            if source is ParameterSource.COMMANDLINE:
                value = given[name]
            elif source is ParameterSource.ENVIRONMENT:
                value = each.value_from_envvar(self._ctx)
            else:
                continue
            if isinstance(each, click.Option) and each.is_flag:
                value = bool(self._ctx.params[name])
            yield name, list(value) if isinstance(value, list | tuple) else value

    # --- files, which the client reads -----------------------------------------------------------

    def _files(self) -> dict[str, str]:
        parameters = self._ctx.params
        named = [*(parameters.get("delete") or ()), *(parameters.get("insert") or ())]
        found: dict[str, str] = {}
        if named:
            from corollary.database.intake.change_files import read_rows

            relations = self._declarations([name for name, _ in named])
            for name, file in named:
                rows, warnings = read_rows(file, relations[name], has_headers=parameters["headers"])
                self._warnings += warnings
                found[file_key(name, file)] = _encoded(rows)
        changes = parameters.get("changes")
        if isinstance(changes, str):
            from corollary.database.intake.change_files import read_content

            found["changes"] = read_content(changes).decode("utf-8", "surrogatepass")
        return found

    def _declarations(self, names: list[str]) -> "dict[str, Relation]":
        from corollary.core.program import Relation
        from corollary.core.types import type_from_json

        answer = self._client.post("/v1/declarations", {"relations": list(dict.fromkeys(names))})
        return {
            each["relation"]: Relation(
                each["relation"],
                tuple(each["columns"]),
                tuple(map(type_from_json, each["types"])),
                is_derived=False,
            )
            for each in answer["relations"]
        }

    # --- what is printed -------------------------------------------------------------------------

    def _print(self, output: list[list[str]]) -> None:
        warn_of_unknown_variables(self._console)
        if self._ctx.params.get("verbose"):
            self._console.note(f"answered by {self._client.name}")
        has_warned = not self._warnings
        for stream, text in output:
            if stream == "err" and not has_warned:
                print_warnings(dict.fromkeys(self._warnings), self._console)
                has_warned = True
            click.echo(text, nl=False, err=stream == "err")
        if not has_warned:
            print_warnings(dict.fromkeys(self._warnings), self._console)

    def _refused(self, document: dict[str, Any]) -> int:
        """Print an error of the server as one of the command."""
        status = int(document.pop("status", 1))
        if self._is_json:
            print_json({"error": document["error"], "diagnostics": document.get("diagnostics", [])})
        else:
            click.echo(document["error"], err=True)
        return status


def file_key(relation: str, file: str) -> str:
    """Return the name of the rows of a file that is read for a relation."""
    return f"{relation}={file}"


def _encoded(rows: Any) -> str:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return base64.b64encode(sink.getvalue()).decode()


def _unreachable(name: str, reason: str) -> Exception:
    from corollary.errors import InputError

    return InputError.of(
        "C1643",
        f"The server {name} does not answer: {reason}.",
        None,
        "check that it runs and can be reached, and try again: nothing was changed",
    )


def _lost(name: str, reason: str, is_change: bool) -> Exception:
    from corollary.errors import InputError

    cure = "try again"
    if is_change:
        cure = (
            "whether the change was made is not known: `corollary log` shows it; with "
            "`--idempotency-key KEY` it can be repeated safely"
        )
    return InputError.of(
        "C1644", f"The connection to {name} was lost: {reason or 'no answer'}.", None, cure
    )
