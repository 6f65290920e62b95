"""Parameters of `.input`, `.output`, `.printsize` and `.limitsize`."""

from collections.abc import Iterator

from corollary.analysis.survey import Survey
from corollary.analysis.through_spark import through_spark
from corollary.analysis.wording import alternatives, suggestion
from corollary.core.program import Directive
from corollary.core.through_spark import SPARK, is_through_spark
from corollary.errors import Diagnostic

_FORMAT = ("IO", "filename", "delimiter", "rfc4180", "headers", "columns", "compress")
_OF_STREAMS = ("op", "max_files")
_PARAMETERS = {
    "input": (*_FORMAT, "format", "order", "new_columns", *_OF_STREAMS),
    "output": _FORMAT,
    "printsize": (),
    "limitsize": ("n",),
}
_CHANNELS = {
    "input": ("file", "stdin", "jsonlines", "parquet", "delta", "stream", SPARK),
    "output": ("file", "stdout", SPARK),
}
_FLAGS = ("rfc4180", "headers", "compress")
_WORDS = {"format": ("csv", "jsonl", "parquet", "delta"), "new_columns": ("ignore", "refuse")}
_OF_CSV = ("delimiter", "rfc4180", "headers", "columns")
_COUNTED = {"n": "tuples", "max_files": "files"}
_NOT_OF_STREAMS = ("order", "new_columns", "compress")


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
        if is_through_spark(directive):
            for what, instead in through_spark(survey, directive):
                yield _bad(directive, what, instead)
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
    is_stream = channel == "stream"
    is_plain = is_stream or channel in ("file", "stdin")
    said = directive.parameter("format", "csv" if is_plain else channel)
    for name, _ in directive.parameters:
        if said != "csv" and name in _OF_CSV:
            yield _bad(directive, f"`{name}` says nothing about `{said}`", "it for `csv` only")
        if is_stream and name in _NOT_OF_STREAMS:
            yield _bad(directive, f"`{name}` says nothing about a stream", "it for files only")
        if not is_stream and name in _OF_STREAMS:
            yield _bad(directive, f"`{name}` says something about streams only", "`IO=stream`")
        if name == "format" and is_stream and said == "delta":
            wanted = "`csv`, `jsonl` or `parquet`"
            yield _bad(directive, "A Delta table is no stream of files", wanted)
        if name == "format" and channel != "file" and not is_stream:
            yield _bad(directive, f"`format` and `IO={channel}` exclude each other", "one of them")


def _wanted(survey: Survey, directive: Directive, name: str, value: str) -> str | None:
    """Return what a parameter's value should be; None if it is right."""
    if name == "IO" and value not in _CHANNELS[directive.name]:
        return alternatives(f"`{channel}`" for channel in _CHANNELS[directive.name])
    if name in _WORDS and value not in _WORDS[name]:
        return alternatives(f"`{word}`" for word in _WORDS[name])
    if name in _FLAGS and value not in ("true", "false"):
        return "`true` or `false`"
    if name in _COUNTED and not (value.isdecimal() and int(value)):
        return f"a number of {_COUNTED[name]} greater than 0"
    if name in ("delimiter", "filename", "op") and not value:
        return "at least one character"
    shape = survey.shapes.get(directive.relation)
    if name == "op" and shape is not None and value in shape.columns:
        return f"the name of a further column: `{shape.name}` has this one itself"
    if name == "order" and shape is not None:
        if value not in shape.columns:
            return f"a column of `{shape.name}`"
        if shape.declaration is not None and not shape.declaration.key:
            return f"it only where `{shape.name}` has a `key`"
    if name == "columns" and shape is not None:
        places = value.split(":") if value else []
        distinct = {int(place) for place in places if place.isdecimal()}
        has_op = "op" in dict(directive.parameters)
        every = set(range(len(shape.columns) + has_op))
        if len(places) != len(every) or len(distinct) != len(every):
            example = ":".join(str(position) for position in every)
            return f'one position in the file for each column, as in `columns="{example}"`'
        if directive.name == "output" and distinct != every:
            return f"the positions 0 to {len(every) - 1} in some order"
    return None
