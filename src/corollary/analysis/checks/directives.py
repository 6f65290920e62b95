"""Parameters of `.input`, `.output`, `.printsize`, `.limitsize` and `.sql`."""

from collections.abc import Iterator

from corollary.analysis import change_streams
from corollary.analysis.phrases import invalid_parameter, one_of, suggest_name
from corollary.analysis.replicas import ReplicaKind, is_replica, known_parameters, parameter_faults
from corollary.analysis.resolution import ResolvedProgram
from corollary.core.program import (
    REFRESH_PARAMETER,
    ROW_BOUND_FORMS,
    Directive,
    RowBound,
)
from corollary.core.spark_io import SPARK, is_spark_io
from corollary.core.table_options import DURATIONS, FLAGS, expected_value
from corollary.errors import Diagnostic

_FILE_PARAMETERS = (
    *("IO", "filename", "delimiter", "rfc4180", "headers", "columns", "compress"),
    *("attributeNames", "intermediate", "name"),
)
_STREAM_ONLY = ("op", "max_files")
_BOUNDS = ("max_bad", "max_deletes")
_PARAMETERS = {
    "input": (*_FILE_PARAMETERS, "format", "order", "new_columns", *_BOUNDS, *_STREAM_ONLY),
    "output": (*_FILE_PARAMETERS, *FLAGS, *DURATIONS, REFRESH_PARAMETER),
    "printsize": ("IO",),
    "limitsize": ("n",),
    "sql": ("text",),
}
_CHANNELS = {
    "input": (
        *("file", "stdin", "json", "jsonfile", "jsonlines", "parquet", "delta", "sqlite"),
        *("stream", "postgresql", "iceberg", SPARK, *change_streams.CHANNELS),
    ),
    "output": (
        *("file", "stdout", "stdoutprintsize", "json", "jsonfile", "sqlite", SPARK),
        *ReplicaKind,
    ),
    "printsize": ("stdoutprintsize",),
}
_JSON_PARAMETERS = {
    "input": ("IO", "filename", "format", "params", "order", "new_columns", *_BOUNDS),
    "output": ("IO", "filename", "format", "params", "compress", REFRESH_PARAMETER),
}
_EVERY_CHANNEL = frozenset(name for names in _CHANNELS.values() for name in names)
_SQLITE_PARAMETERS = {
    "input": ("IO", "filename", "dbname", "name", "order", "new_columns", *_BOUNDS),
    "output": ("IO", "filename", "dbname", "name", REFRESH_PARAMETER),
}
_TABLE_PARAMETERS = {
    "postgresql": ("IO", "connection", "table", "order", "new_columns", *_BOUNDS),
    "iceberg": ("IO", "catalog", "table", "order", "new_columns", *_BOUNDS),
}
"""The parameters of inputs that are tables elsewhere."""
_TABLE_EXAMPLES = {
    "connection": "`connection=shop`, whose URL is in COROLLARY_CONNECTION_SHOP",
    "catalog": "`catalog=lake`, as pyiceberg is configured for it",
}
_FLAGS = ("rfc4180", "headers", "compress", "intermediate")
_CHOICES = {
    "format": ("csv", "jsonl", "parquet", "delta"),
    "new_columns": ("ignore", "refuse"),
}
_JSON_FORMATS = ("list", "object")
_CSV_ONLY = ("delimiter", "rfc4180", "headers", "columns", "attributeNames")
_COUNT_UNITS = {"n": "tuples", "max_files": "files"}
_NOT_FOR_STREAMS = ("order", "new_columns", "compress")
_SPARK_MODES = ("error", "errorifexists", "append", "overwrite", "ignore")
_NOT_FOR_SPARK = {
    "headers": "`header=true`",
    "rfc4180": "`quote` and `escape`, Spark's own options",
    "columns": "the names of the columns: they are found by name",
    "compress": "`compression=gzip`",
    "op": "it for `IO=stream` only",
    "max_files": "it for `IO=stream` only",
    "path": "`filename`, which obeys `--root`",
    "paths": "`filename`, which obeys `--root`",
}
"""Parameters that Spark would ignore or should not see, and what to write instead."""


def directives(resolved: ResolvedProgram) -> Iterator[Diagnostic]:
    """Yield what is wrong with the parameters of directives."""
    for directive in resolved.program.directives:
        channel = directive.parameter("IO", "file")
        known = _PARAMETERS.get(directive.name, _FILE_PARAMETERS)
        if channel == "sqlite":
            known = _SQLITE_PARAMETERS.get(directive.name, known)
        if channel in _TABLE_PARAMETERS and directive.name == "input":
            known = _TABLE_PARAMETERS[channel]
            needed = known[1]
            if not directive.parameter(needed):
                example = _TABLE_EXAMPLES[needed]
                yield invalid_parameter(directive, f"A {needed} is missing", example)
        if channel in ("json", "jsonfile"):
            known = _JSON_PARAMETERS.get(directive.name, known)
        if is_replica(directive):
            known = known_parameters(directive)
            for what, instead in _replica_faults(resolved, directive):
                yield invalid_parameter(directive, what, instead)
        if directive.name in ("input", "output") and channel not in _EVERY_CHANNEL:
            yield Diagnostic(
                "C0102",
                f"`IO={channel}` is not supported.",
                directive.span,
                f"`.{directive.name}` knows "
                f"{one_of(f'`IO={name}`' for name in _CHANNELS[directive.name])}",
            )
            continue
        if change_streams.is_change_stream(directive):
            yield from _change_stream(resolved, directive)
            continue
        if is_spark_io(directive):
            for what, instead in _through_spark(resolved, directive):
                yield invalid_parameter(directive, what, instead)
            continue
        for name, value in directive.parameters:
            if name not in known:
                yield _unknown(directive, name, known)
                continue
            expected = _expected_value(resolved, directive, name, value)
            if expected:
                yield invalid_parameter(
                    directive, f"`{name}={value}` is not a value for `{name}`", expected
                )
        if channel not in ("sqlite", "json", "jsonfile"):
            yield from _inapplicable(directive)
        if directive.name == "limitsize" and not directive.parameter("n"):
            yield invalid_parameter(
                directive, "`.limitsize` needs the number of tuples", "`n=1000`"
            )


def _change_stream(resolved: ResolvedProgram, directive: Directive) -> Iterator[Diagnostic]:
    """Yield what is wrong with a directive that reads change events."""
    known = change_streams.PARAMETERS[directive.parameter("IO")]
    unknown = [name for name, _ in directive.parameters if name not in known]
    yield from (_unknown(directive, name, known) for name in unknown)
    schema = resolved.schemas.get(directive.relation)
    if schema is None or unknown:
        return
    declared = schema.declaration
    key = () if declared is None else declared.key
    is_bag = declared is not None and declared.is_bag
    faults = change_streams.parameter_faults(directive, schema.columns, key, is_bag=is_bag)
    for what, instead in faults:
        yield invalid_parameter(directive, what, instead)


def _replica_faults(resolved: ResolvedProgram, directive: Directive) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with an output to another system, each with what to write instead."""
    yield from parameter_faults(directive)
    schema = resolved.schemas.get(directive.relation)
    if (
        schema is not None
        and schema.declaration is not None
        and schema.declaration.storage == "virtual"
    ):
        what = f"`{schema.name}` is virtual, so that nothing else can hold it"
        yield what, f"`.decl {schema.name}(…)` without `virtual`"


def _unknown(directive: Directive, name: str, known: tuple[str, ...]) -> Diagnostic:
    words = one_of(f"`{word}`" for word in known) if known else "none"
    listed = f"its parameters are {words}" if known else "it takes none"
    return Diagnostic(
        "C0205",
        f"`.{directive.name}` has no parameter `{name}`.",
        directive.span,
        suggest_name(name, known) or listed,
    )


def _inapplicable(directive: Directive) -> Iterator[Diagnostic]:
    """Yield the parameters that do not apply to the format of an input."""
    if directive.name != "input":
        return
    channel = directive.parameter("IO", "file")
    is_stream = channel == "stream"
    is_plain = is_stream or channel in ("file", "stdin")
    format_ = directive.parameter("format", "csv" if is_plain else channel)
    for name, _ in directive.parameters:
        if format_ != "csv" and name in _CSV_ONLY:
            yield invalid_parameter(
                directive, f"`{name}` does not apply to `{format_}`", "it for `csv` only"
            )
        if is_stream and name in _NOT_FOR_STREAMS:
            yield invalid_parameter(
                directive, f"`{name}` does not apply to a stream", "it for files only"
            )
        if not is_stream and name in _STREAM_ONLY:
            yield invalid_parameter(directive, f"`{name}` applies to streams only", "`IO=stream`")
        if name == "format" and is_stream and format_ == "delta":
            expected = "`csv`, `jsonl` or `parquet`"
            yield invalid_parameter(directive, "A Delta table is not a stream of files", expected)
        if name == "format" and channel != "file" and not is_stream:
            yield invalid_parameter(
                directive, f"`format` and `IO={channel}` exclude each other", "one of them"
            )


def _expected_value(
    resolved: ResolvedProgram, directive: Directive, name: str, value: str
) -> str | None:
    """Return what a parameter's value should be; None if it is right."""
    if name == "IO" and value not in _CHANNELS[directive.name]:
        return one_of(f"`{channel}`" for channel in _CHANNELS[directive.name])
    is_json = directive.parameter("IO") in ("json", "jsonfile")
    if name == "format" and is_json:
        return None if value in _JSON_FORMATS else one_of(f"`{each}`" for each in _JSON_FORMATS)
    if name in _CHOICES and value not in _CHOICES[name]:
        return one_of(f"`{word}`" for word in _CHOICES[name])
    if name in _FLAGS and value not in ("true", "false"):
        return "`true` or `false`"
    if name in _BOUNDS and RowBound.parse(value) is None:
        return ROW_BOUND_FORMS
    if (expected := expected_value(name, value)) is not None:
        return expected
    if name in _COUNT_UNITS and not (value.isdecimal() and int(value)):
        return f"a number of {_COUNT_UNITS[name]} greater than 0"
    if name in ("delimiter", "filename", "dbname", "name", "op") and not value:
        return "at least one character"
    schema = resolved.schemas.get(directive.relation)
    if name == "IO" and value == "sqlite" and schema is not None and not schema.columns:
        return "`IO=file`: a table of SQLite has columns"
    if name == "op" and schema is not None and value in schema.columns:
        return f"the name of a further column: `{schema.name}` has this one itself"
    if name == "order" and schema is not None:
        if value not in schema.columns:
            return f"a column of `{schema.name}`"
        if schema.declaration is not None and not schema.declaration.key:
            return f"it only where `{schema.name}` has a `key`"
    if name == "columns" and schema is not None:
        positions = value.split(":") if value else []
        distinct = {int(position) for position in positions if position.isdecimal()}
        has_op = "op" in dict(directive.parameters)
        every = set(range(len(schema.columns) + has_op))
        if len(positions) != len(every) or len(distinct) != len(every):
            example = ":".join(str(position) for position in every)
            return f'one position in the file for each column, as in `columns="{example}"`'
        if directive.name == "output" and distinct != every:
            return f"the positions 0 to {len(every) - 1} in some order"
    return None


def _through_spark(resolved: ResolvedProgram, directive: Directive) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a directive of `IO=spark`, each with what to write instead."""
    given = dict(directive.parameters)
    for name, value in directive.parameters:
        if name.lower() in _NOT_FOR_SPARK:
            yield f"`{name}` is not for Spark", _NOT_FOR_SPARK[name.lower()]
        if name in ("format", "filename", "table") and not value:
            yield f"`{name}` is empty", "at least one character"
    if "table" in given and "filename" in given:
        yield "`table` and `filename` exclude each other", "one of them"
    if directive.name == "output":
        yield from _spark_output(given)
    else:
        yield from _spark_input(resolved, directive, given)


def _spark_input(
    resolved: ResolvedProgram, directive: Directive, given: dict[str, str]
) -> Iterator[tuple[str, str]]:
    if "table" in given and "format" in given:
        yield "`table` and `format` exclude each other: a table knows its own", "one of them"
    if "table" not in given and "format" not in given:
        yield "Nothing says what Spark is to read", '`format="…"` or `table="…"`'
    if given.get("new_columns", "ignore") not in ("ignore", "refuse"):
        yield f"`new_columns` is not `{given['new_columns']}`", "`ignore` or `refuse`"
    for name in _BOUNDS:
        if name in given and RowBound.parse(given[name]) is None:
            yield f"`{name}` is not `{given[name]}`", ROW_BOUND_FORMS
    schema = resolved.schemas.get(directive.relation)
    if "order" in given and schema is not None:
        if given["order"] not in schema.columns:
            yield f"`order` is not `{given['order']}`", f"a column of `{schema.name}`"
        elif schema.declaration is not None and not schema.declaration.key:
            yield "`order` is without effect", f"it only where `{schema.name}` has a `key`"


def _spark_output(given: dict[str, str]) -> Iterator[tuple[str, str]]:
    if "table" not in given and "format" not in given:
        yield "Nothing says how Spark is to write", '`format="…"` or `table="…"`'
    if given.get("mode", "error").lower() not in _SPARK_MODES:
        expected = one_of(f"`{each}`" for each in _SPARK_MODES)
        yield f"`mode={given['mode']}` is not a value for `mode`", expected
