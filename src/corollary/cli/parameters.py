"""Arguments and options: their types, those that commands share, and families of options."""

import re
from collections.abc import Callable
from datetime import date
from functools import wraps
from inspect import get_annotations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from corollary.core.program import RowBound
    from corollary.warehouse.files.places import Place

Command = TypeVar("Command", bound=Callable[..., Any])

DIRECTORY = click.Path(path_type=Path, file_okay=False)
COUNT = click.IntRange(min=0)
POSITIVE = click.IntRange(min=1)
FLAG: Any = ((), {"is_flag": True})

PROJECT_FILE = "corollary.toml"
ENVIRONMENT_VARIABLE = "COROLLARY_ENVIRONMENT"
TAKEN_PLACES = ("warehouse", "places")
"""What a first argument is called that the warehouse of a project can take the place of."""

Pair = tuple[str, str]

programs = click.argument(
    "programs", metavar="PROGRAM...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
warehouse = click.argument("warehouse", metavar="WAREHOUSE")
headers = click.option(
    "--headers", is_flag=True, help="The first line of CSV and TSV files names the columns."
)
idempotency_key = click.option(
    "--idempotency-key",
    metavar="KEY",
    allow_from_autoenv=False,
    help="If a transaction with this key was made before, report what it did, and do nothing.",
)

_FUNCTORS = f"{__name__}.functors"


def _note_functors(context: click.Context, _: click.Parameter, value: tuple[str, ...]) -> None:
    context.meta[_FUNCTORS] = value


functors = click.option(
    "--functors",
    metavar="FILE|MODULE",
    type=click.Path(),
    multiple=True,
    envvar="COROLLARY_FUNCTORS",
    expose_value=False,
    callback=_note_functors,
    help="Run this Python code, which registers functors. It has all your rights: name only code "
    "that you trust. May be repeated.",
)


def given_functors() -> tuple[str, ...]:
    """Return the code of functors that the command line or the environment names."""
    context = click.get_current_context(silent=True)
    given: tuple[str, ...] = () if context is None else context.meta.get(_FUNCTORS, ())
    return given


def environment_option() -> click.Option:
    """Return the option that chooses an environment of the project."""
    return click.Option(
        ["--environment"],
        metavar="NAME",
        envvar=ENVIRONMENT_VARIABLE,
        expose_value=False,
        help=f"Take the settings of this environment of {PROJECT_FILE}.",
    )


def has_project(command: click.Command) -> bool:
    """Whether a project can say something about a command."""
    first = next((each for each in command.params if isinstance(each, click.Argument)), None)
    is_first = first is not None and first.name in (*TAKEN_PLACES, "programs")
    return is_first or any(each.name in {"programs", "limit_rounds"} for each in command.params)


def place(text: str | Path) -> "Place":
    """Return a directory, or objects such as `s3://bucket/name`: the type of an option."""
    from corollary.errors import WarehouseError
    from corollary.warehouse.files.places import is_object_url, place_of

    if isinstance(text, str) and is_object_url(text):
        try:
            return place_of(text)
        except WarehouseError as error:
            found = error.diagnostics[0]
            raise click.BadParameter(f"{found.message} {found.code}: {found.note}") from None
    path: Path = DIRECTORY.convert(text, None, None)
    return path


def pair(complaint: str, is_valid: Callable[[str], bool] = bool) -> Callable[[str], Pair]:
    """Return the click type of NAME=VALUE."""

    def parse(text: str) -> Pair:
        name, equals, value = text.partition("=")
        if not (name and equals and is_valid(value)):
            raise click.BadParameter(f"'{text}' {complaint}")
        return name, value

    return parse


def matching(pattern: str, complaint: str) -> Callable[[str], str]:
    """Return the click type of a text that matches a pattern."""

    def parse(text: str) -> str:
        if re.fullmatch(pattern, text) is None:
            raise click.BadParameter(f"'{text}' {complaint}")
        return text

    return parse


def byte_count(kilo: int, complaint: str) -> Callable[[str], float]:
    """Return the click type of a number of bytes, with units of 1000 or of 1024.

    >>> byte_count(1000, "")("2GB"), byte_count(1024, "")("1k")
    (2000000000.0, 1024.0)
    """
    units = {unit: float(kilo**power) for power, unit in enumerate("KMGT", 1)}

    def parse(text: str) -> float:
        number = text.strip().upper().removesuffix("B")
        factor = units.get(number[-1:], 1.0)
        try:
            count = float(number[:-1] if factor > 1 else number) * factor
        except ValueError:
            count = -1.0
        if not 0 <= count < float("inf"):
            raise click.BadParameter(f"'{text}' {complaint}")
        return count

    return parse


def point_in_history(text: str) -> object:
    """Return the commit, the date or the time of an option."""
    from corollary.database.history import read_point
    from corollary.errors import InputError

    try:
        point = read_point(text)
    except InputError as error:
        (found,) = error.diagnostics
        raise click.BadParameter(f"{found.message} {found.note}".replace("`", "'")) from None
    if isinstance(point, int) and point < 1:
        raise click.BadParameter(f"'{text}' is not a commit: the first one is 1")
    return point


def day(text: str) -> date:
    """Return the date of an option."""
    from corollary.database.writing.day import read_day
    from corollary.errors import InputError

    try:
        return read_day(text)
    except InputError:
        raise click.BadParameter(f"'{text}' is not a day; write 2026-11-16") from None


def row_bound(text: str) -> "RowBound":
    """Return the bound of a text such as `50%`, `1000` or `off`, a click type."""
    from corollary.core.program import RowBound

    bound = RowBound.parse(text)
    if bound is None:
        raise click.BadParameter(f"'{text}' is not a bound; write 10%, a number of rows, or off")
    return bound


def option(*names: str, **settings: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the click settings of a field; its option is named after it unless names are given."""
    return names, settings


def choice(*values: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the click settings of a field with one of several values, by default the first."""
    return option(type=click.Choice(values), default=values[0], show_default=True)


def family(argument: str, options: type[Any]) -> Callable[[Command], Command]:
    """Add the options of a family to a command, which gets the dataclass as one argument.

    The fields of the dataclass are annotated with the type, the help text and click's settings.
    Help lists a family's own options before those it inherits, which they may replace.
    """
    annotations: dict[str, Any] = {}
    for base in options.__mro__:
        annotations = {**annotations, **get_annotations(base), **annotations}

    def add(command: Command) -> Command:
        @wraps(command)
        def call(**values: Any) -> Any:
            members = {name: values.pop(name) for name in annotations}
            return command(**values, **{argument: options(**members)})

        decorated: Any = call
        for name in reversed(annotations):  # click lists the decorators of a command bottom up
            text, (flags, settings) = annotations[name].__metadata__
            flags = flags or (f"--{name.replace('_', '-')}",)
            # Environment variables are named after the parameter, so it is called like the field.
            decorated = click.option(*flags, name, help=text, **settings)(decorated)
        return cast("Command", decorated)

    return add


def action(name: str, metavar: str, text: str, kind: Any = None) -> Callable[[Command], Command]:
    """Return a repeatable option that is not a setting, so no environment variable sets it."""
    return click.option(
        name, metavar=metavar, type=kind, multiple=True, help=text, allow_from_autoenv=False
    )


def is_given(parameter: str) -> bool:
    """Whether an option is on the command line, not only in the environment."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source is ParameterSource.COMMANDLINE
