"""What several commands share: options, files, errors as text or JSON, exit codes."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from corollary.console import TerminalConsole
from corollary.errors import CorollaryError, Diagnostic, InputError, LimitError, render

if TYPE_CHECKING:
    import pyarrow as pa

    from corollary.core.engine import Limits
    from corollary.core.program import Program, Relation

Command = TypeVar("Command", bound=Callable[..., Any])

INTERRUPTED = 130

programs = click.argument(
    "programs", metavar="PROGRAM...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
facts = click.option(
    "-F",
    "--facts",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Directory of the facts files (.input). Default: here.",
)
outputs = click.option(
    "-D",
    "--outputs",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Directory for the outputs (.output). Default: here.",
)
root = click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory that .input and .output may not leave. Default: the one of -F or -D.",
)
format_ = click.option(
    "--format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="How results and errors are printed.",
)
at = click.option(
    "--at", metavar="COMMIT", type=click.IntRange(min=1), help="As it was after this commit."
)
as_reader = click.option(
    "--as",
    "reader",
    metavar="READER",
    allow_from_autoenv=False,
    help="As this reader sees it: only what was granted to it.",
)
engine = click.option(
    "--engine",
    type=click.Choice(["local", "spark"]),
    default="spark",
    show_default=True,
    help="What computes: `spark` starts a local session once there is work for it, `local` never.",
)
placement = click.option(
    "--placement",
    type=click.Choice(["auto", "sql", "tasks", "driver"]),
    default="auto",
    show_default=True,
    help="Where Spark computes: in queries, in tasks that share the work, or here. By size: auto.",
)
quiet = click.option("-q", "--quiet", is_flag=True, help="Print results and errors only.")
verbose = click.option("-v", "--verbose", is_flag=True, help="Leave nothing out.")

ALGORITHMS = ("auto", "recompute", "dred", "pf", "epf", "counting", "ranked")
algorithm = click.option(
    "--algorithm",
    type=click.Choice(ALGORITHMS),
    default="auto",
    show_default=True,
    help="What maintains the derived relations.",
)
by_relation = click.option(
    "--relation",
    "relations",
    metavar="NAME=ALGORITHM",
    multiple=True,
    help="What maintains one of them, instead. May be repeated.",
)
strict = click.option(
    "--strict", is_flag=True, help="Fail rather than recompute a relation in full."
)
max_rows = click.option(
    "--max-rows",
    type=click.IntRange(min=0),
    default=1000,
    show_default=True,
    help="List so many tuples of a relation in JSON; the counts stay exact.",
)
idempotency_key = click.option(
    "--idempotency-key",
    metavar="KEY",
    allow_from_autoenv=False,
    help="If a transaction with this key was made before, tell what it did, and do nothing.",
)
headers = click.option(
    "--headers", is_flag=True, help="The first line of CSV and TSV files names the columns."
)
watch = click.option(
    "--watch",
    metavar="RELATION",
    multiple=True,
    help="Ask for the changes of this virtual relation only. Default: of all that are declared.",
)


def update(name: str, metavar: str, text: str) -> Callable[[Command], Command]:
    """Return an option that is no setting, so that no environment variable stands for it."""
    return click.option(name, metavar=metavar, multiple=True, help=text, allow_from_autoenv=False)


def algorithms_of(algorithm: str, relations: tuple[str, ...]) -> dict[str, str]:
    """Return the algorithms that are asked for by relation; the one for all others under ''."""
    found = {"": algorithm}
    for each in relations:
        name, _, chosen = each.rpartition("=")
        if not name or chosen not in ALGORITHMS:
            raise click.BadParameter(
                f"'{each}' is not a relation and an algorithm; write link=epf, with one of "
                f"{', '.join(ALGORITHMS)}",
                param_hint="'--relation'",
            )
        found[name] = chosen
    return found


def limits(command: Command) -> Command:
    """Add the options that bound an evaluation."""
    for name, kind, text in (
        ("memory", str, "Stop at so much memory, such as 500M or 2G."),
        ("seconds", click.FloatRange(min=0, max=1e9), "Stop after so many seconds."),
        ("tuples", click.IntRange(min=0), "Stop at so many tuples in all relations together."),
        ("rounds", click.IntRange(min=0), "Stop a recursion after so many rounds."),
    ):
        command = click.option(f"--limit-{name}", type=kind, help=text)(command)
    return command


without = click.option(
    "--without",
    metavar="OPTIMISATION",
    multiple=True,
    help="Monitor without it, to see what it is worth: relevance, polarity, sip, sharing, "
    "specialisation or minimising. May be repeated.",
)


def monitoring(command: Command) -> Command:
    """Add the options of active rules: what constraints do at first, and what is left out."""
    command = without(command)
    return click.option(
        "--existing",
        type=click.Choice(["report", "refuse", "accept"]),
        default="report",
        show_default=True,
        help="What to do about tuples that violate a new constraint and were there before it.",
    )(command)


def outlets(command: Command) -> Command:
    """Add the options that say where alerts may go."""
    command = click.option(
        "--alerts",
        type=click.Path(path_type=Path, file_okay=False),
        help="Directory that files of alerts may not leave. Default: `alerts` in the warehouse.",
    )(command)
    return click.option(
        "--allow-webhook",
        metavar="URL",
        multiple=True,
        envvar="COROLLARY_ALLOW_WEBHOOKS",
        help="Let alerts be posted to URLs that begin with this one. May be repeated.",
    )(command)


def outlets_of(options: dict[str, Any]) -> dict[str, Any]:
    """Take the options that say where alerts may go out of a command's options."""
    return {"webhooks": options.pop("allow_webhook"), "alerts": options.pop("alerts")}


def limits_of(options: dict[str, Any]) -> "Limits":
    """Take the limit options out of a command's options."""
    from corollary.core.engine import Limits

    return Limits(
        options.pop("limit_rounds"),
        options.pop("limit_tuples"),
        options.pop("limit_seconds"),
        _bytes(options.pop("limit_memory")),
    )


def _bytes(text: str | None) -> int | None:
    if text is None:
        return None
    units = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
    number, unit = (text[:-1], units[text[-1].upper()]) if text[-1:].upper() in units else (text, 1)
    try:
        return int(float(number) * unit)
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"'{text}' is not an amount of memory; write 500M or 2G",
            param_hint="'--limit-memory'",
        ) from None


@contextmanager
def reported(format_: str, console: TerminalConsole) -> Iterator[None]:
    """Turn errors into messages (or JSON) and exit codes; Ctrl-C says what it has left."""
    try:
        yield
    except CorollaryError as error:
        console.done()
        if format_ == "json":
            print_json({"error": str(error), "diagnostics": findings(error)})
        else:
            click.echo(str(error), err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt as error:
        console.done()
        click.echo(f"interrupted; {str(error) or 'nothing was written'}", err=True)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except (OSError, MemoryError, RecursionError) as error:
        console.done()
        reason = "out of memory" if isinstance(error, MemoryError) else str(error)
        click.echo(f"error: {reason}", err=True)
        sys.exit(LimitError.exit_code if isinstance(error, MemoryError) else 1)


def findings(error: CorollaryError) -> list[dict[str, Any]]:
    """Return the diagnostics of an error as JSON objects."""
    found = error.diagnostics if isinstance(error, InputError) else ()
    return [as_json(each) for each in found]


def as_json(diagnostic: Diagnostic) -> dict[str, Any]:
    """Return a diagnostic as a JSON object."""
    span = diagnostic.span
    place = {"file": span.file.name, "line": span.line, "column": span.column} if span else {}
    return {
        "code": diagnostic.code,
        "severity": str(diagnostic.severity),
        "message": diagnostic.message,
        **place,
        "note": diagnostic.note,
    }


def print_json(value: Any) -> None:
    """Print a JSON document on one line."""
    click.echo(json.dumps(value, ensure_ascii=False))


def note_reactions(program: "Program", console: TerminalConsole) -> None:
    """Say that a program has active rules, for which a single evaluation is no event."""
    if program.reactions or any(head.sign for each in program.clauses for head in each.heads):
        console.note(
            "alerts, constraints and triggers react to transactions: run with --warehouse for them"
        )


def print_rows(table: "pa.Table", relation: "Relation") -> None:
    """Print the names of the columns, and a line per row, with tabs in between."""
    from corollary.core.program import Directive
    from corollary.warehouse.dialect import dialect_of
    from corollary.warehouse.lines import lines_of

    asked = Directive("output", relation.name, (("headers", "true"),))
    for lines in lines_of(table, relation, asked, dialect_of(relation, asked), is_checked=False):
        click.echo(lines, nl=False)


def is_given(option: str) -> bool:
    """Whether an option stands on the command line, not only in the environment."""
    source = click.get_current_context().get_parameter_source(option)
    return source is ParameterSource.COMMANDLINE


def print_warnings(warnings: Iterable[Diagnostic], console: TerminalConsole) -> None:
    """Print what is doubtful about a program or its data."""
    for warning in warnings:
        console.note(render(warning))
