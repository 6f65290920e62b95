"""What several commands share: options, files, errors as text or JSON, exit codes."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

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
engine = click.option(
    "--engine",
    type=click.Choice(["local"]),
    default="local",
    show_default=True,
    help="What evaluates the program.",
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
watch = click.option(
    "--watch",
    metavar="RELATION",
    multiple=True,
    help="Ask for the changes of this virtual relation only. Default: of all that are declared.",
)


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
    """Turn errors into messages (or JSON) and exit codes; Ctrl-C ends quietly."""
    try:
        yield
    except CorollaryError as error:
        console.done()
        if format_ == "json":
            print_json({"error": str(error), "diagnostics": findings(error)})
        else:
            click.echo(str(error), err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        console.done()
        click.echo("interrupted; nothing was written", err=True)
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


def rows_as_json(table: "pa.Table", relation: "Relation") -> list[list[Any]]:
    """Return the rows of a relation, sorted, as JSON arrays."""
    from corollary.core.arrow import sort, to_python
    from corollary.core.values import json_of

    return [
        [json_of(value, type_) for value, type_ in zip(row, relation.types, strict=True)]
        for row in to_python(sort(table))
    ]


def print_json(value: Any) -> None:
    """Print a JSON document on one line."""
    click.echo(json.dumps(value, ensure_ascii=False))


def note_reactions(program: "Program", console: TerminalConsole) -> None:
    """Say that a program has active rules, which do not run so far."""
    if program.reactions or any(head.sign for each in program.clauses for head in each.heads):
        console.note("alerts, constraints and triggers are checked, but do not run here yet")


def print_warnings(warnings: tuple[Diagnostic, ...], console: TerminalConsole) -> None:
    """Print what is doubtful about a program."""
    for warning in warnings:
        console.note(render(warning))
