"""Parameters of `.input`, `.output`, `.printsize` and `.limitsize`."""

from collections.abc import Iterator

from corollary.analysis.survey import Survey
from corollary.analysis.wording import alternatives, suggestion
from corollary.core.program import Directive
from corollary.errors import Diagnostic

_FORMAT = ("IO", "filename", "delimiter", "rfc4180", "headers", "columns", "compress")
_PARAMETERS = {
    "input": (*_FORMAT, "format", "order", "new_columns"),
    "output": _FORMAT,
    "printsize": (),
    "limitsize": ("n",),
}
_CHANNELS = {
    "input": ("file", "stdin", "jsonlines", "parquet", "delta"),
    "output": ("file", "stdout"),
}
_FLAGS = ("rfc4180", "headers", "compress")
_WORDS = {"format": ("csv", "jsonl", "parquet", "delta"), "new_columns": ("ignore", "refuse")}
_OF_CSV = ("delimiter", "rfc4180", "headers", "columns")


def directives(survey: Survey) -> Iterator[Diagnostic]:
    """Yield what is wrong with the parameters of directives."""
    for directive in survey.program.directives:
        channel = directive.parameter("IO", "file")
        known = _PARAMETERS.get(directive.name, _FORMAT)
        if directive.name in _CHANNELS and channel not in {*_CHANNELS["input"], "stdout"}:
            yield Diagnostic(
                "C0102",
                f"`IO={channel}` is not supported.",
                directive.span,
                f"`.{directive.name}` knows "
                f"{alternatives(f'`IO={name}`' for name in _CHANNELS[directive.name])}",
            )
            continue
        for name, value in directive.parameters:
            if name not in known:
                yield _unknown(directive, name, known)
                continue
            wanted = _wanted(survey, directive, name, value)
            if wanted:
                yield _bad(directive, f"`{name}={value}` is no value for `{name}`", wanted)
        yield from _foreign(directive)
        if directive.name == "limitsize" and not directive.parameter("n"):
            yield _bad(directive, "`.limitsize` needs the number of tuples", "`n=1000`")


def _unknown(directive: Directive, name: str, known: tuple[str, ...]) -> Diagnostic:
    words = alternatives(f"`{word}`" for word in known) if known else "none"
    listed = f"its parameters are {words}" if known else "it takes none"
    return Diagnostic(
        "C0205",
        f"`.{directive.name}` has no parameter `{name}`.",
        directive.span,
        suggestion(name, known) or listed,
    )


def _bad(directive: Directive, what: str, wanted: str) -> Diagnostic:
    return Diagnostic("C0206", f"{what}.", directive.span, f"write {wanted}")


def _foreign(directive: Directive) -> Iterator[Diagnostic]:
    """Yield the parameters that the format of an input has no use for."""
    if directive.name != "input":
        return
    channel = directive.parameter("IO", "file")
    said = directive.parameter("format", "csv" if channel in ("file", "stdin") else channel)
    for name, _ in directive.parameters:
        if said != "csv" and name in _OF_CSV:
            yield _bad(directive, f"`{name}` says nothing about `{said}`", "it for `csv` only")
        if name == "format" and channel != "file":
            yield _bad(directive, f"`format` and `IO={channel}` exclude each other", "one of them")


def _wanted(survey: Survey, directive: Directive, name: str, value: str) -> str | None:
    """Return what a parameter's value should be; None if it is right."""
    if name == "IO" and value not in _CHANNELS[directive.name]:
        return alternatives(f"`{channel}`" for channel in _CHANNELS[directive.name])
    if name in _WORDS and value not in _WORDS[name]:
        return alternatives(f"`{word}`" for word in _WORDS[name])
    if name in _FLAGS and value not in ("true", "false"):
        return "`true` or `false`"
    if name == "n" and not (value.isdecimal() and int(value)):
        return "a number of tuples greater than 0"
    if name in ("delimiter", "filename") and not value:
        return "at least one character"
    shape = survey.shapes.get(directive.relation)
    if name == "order" and shape is not None:
        if value not in shape.columns:
            return f"a column of `{shape.name}`"
        if shape.declaration is not None and not shape.declaration.key:
            return f"it only where `{shape.name}` has a `key`"
    if name == "columns" and shape is not None:
        places = value.split(":") if value else []
        distinct = {int(place) for place in places if place.isdecimal()}
        every = set(range(len(shape.columns)))
        if len(places) != len(every) or len(distinct) != len(every):
            example = ":".join(str(position) for position in every)
            return f'one position in the file for each column, as in `columns="{example}"`'
        if directive.name == "output" and distinct != every:
            return f"the positions 0 to {len(every) - 1} in some order"
    return None
