"""Parameters of `.input` and `.output` with `IO=spark`."""

from collections.abc import Iterator

from corollary.analysis.survey import Survey
from corollary.analysis.wording import alternatives
from corollary.core.program import Directive

MODES = ("error", "errorifexists", "append", "overwrite", "ignore")
_OF_FILES = {
    "headers": "`header=true`",
    "rfc4180": "`quote` and `escape`, Spark's own options",
    "columns": "the names of the columns: they are found by name",
    "compress": "`compression=gzip`",
    "op": "it for `IO=stream` only",
    "max_files": "it for `IO=stream` only",
    "path": "`filename`, which obeys `--root`",
    "paths": "`filename`, which obeys `--root`",
}
"""What Spark would not notice, or should not see; and what to write instead."""

Finding = tuple[str, str]
"""What is wrong, and what to write."""


def through_spark(survey: Survey, directive: Directive) -> Iterator[Finding]:
    """Yield what is wrong with a directive that reads or writes through Spark."""
    said = dict(directive.parameters)
    for name, value in directive.parameters:
        if name.lower() in _OF_FILES:
            yield f"`{name}` is not for Spark", _OF_FILES[name.lower()]
        if name in ("format", "filename", "table") and not value:
            yield f"`{name}` is empty", "at least one character"
    if "table" in said and "filename" in said:
        yield "`table` and `filename` exclude each other", "one of them"
    if directive.name == "output":
        yield from _of_output(said)
    else:
        yield from _of_input(survey, directive, said)


def _of_input(survey: Survey, directive: Directive, said: dict[str, str]) -> Iterator[Finding]:
    if "table" in said and "format" in said:
        yield "`table` and `format` exclude each other: a table knows its own", "one of them"
    if "table" not in said and "format" not in said:
        yield "Nothing says what Spark is to read", '`format="…"` or `table="…"`'
    if said.get("new_columns", "ignore") not in ("ignore", "refuse"):
        yield f"`new_columns` is not `{said['new_columns']}`", "`ignore` or `refuse`"
    shape = survey.shapes.get(directive.relation)
    if "order" in said and shape is not None:
        if said["order"] not in shape.columns:
            yield f"`order` is not `{said['order']}`", f"a column of `{shape.name}`"
        elif shape.declaration is not None and not shape.declaration.key:
            yield "`order` is without effect", f"it only where `{shape.name}` has a `key`"


def _of_output(said: dict[str, str]) -> Iterator[Finding]:
    if "table" not in said and "format" not in said:
        yield "Nothing says how Spark is to write", '`format="…"` or `table="…"`'
    if said.get("mode", "error").lower() not in MODES:
        wanted = alternatives(f"`{each}`" for each in MODES)
        yield f"`mode={said['mode']}` is no value for `mode`", wanted
