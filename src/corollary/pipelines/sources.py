"""What a project reads and does not define: tables and files, as base relations with an `.input`.

| `spark.read` | `.input` | columns without a schema |
|---|---|---|
| `format("delta")`, a table with a log | `format=delta` | those of the log |
| `format("parquet")`, a table without | `format=parquet` | those of the first file |
| `format("csv")` | `format=csv` | the header; types with `inferSchema`, else texts |
| `format("json")` | `format=jsonl` | those of all records, by name |
| others | `IO=spark` | none: a schema has to be given |

A table of the catalog is looked for where Spark has it (`spark-warehouse`), or where the project's
`configuration` says: `corollary.source.orders: data/orders`.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlglot import exp

from corollary.core import types
from corollary.core.program import Directive, Program
from corollary.core.types import Type
from corollary.errors import InputError
from corollary.frontends.sql.binder.session import type_name
from corollary.frontends.sql.catalog import catalog_of
from corollary.frontends.sql.query_tree import QueryColumn
from corollary.frontends.sql.statements import nodes
from corollary.frontends.sql.statements.definitions import PlacedDefinition, compile_definitions
from corollary.frontends.sql.statements.parser import parse_statements
from corollary.pipelines.graph import ONLY_SPARK, ExternalSource, Project
from corollary.source import SourceFile

SOURCE_SETTING = "corollary.source."
"""Begins the key of a project's configuration that says where a table is."""

_FORMATS = ("delta", "parquet", "csv", "json")
_OPTIONS = {"csv": {"header": "header", "sep": "sep", "delimiter": "sep"}}
_IGNORED = frozenset({"inferschema", "recursivefilelookup"})
_PLAIN_VALUES = {"multiline": ("csv",), "mergeschema": ("delta",)}
"""The options whose `true` says nothing, by the formats where that is so."""
_INTEGERS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}
_PLAIN = {
    pa.float64(): types.FLOAT,
    pa.float32(): types.FLOAT32,
    pa.bool_(): types.BOOL,
    pa.date32(): types.DATE,
    pa.string(): types.SYMBOL,
    pa.large_string(): types.SYMBOL,
    pa.null(): types.SYMBOL,
    pa.binary(): types.BINARY,
    pa.large_binary(): types.BINARY,
}


def source_columns(source: ExternalSource, project: Project) -> tuple[QueryColumn, ...]:
    """Return the columns of a source: those of its schema, or as its files have them.

    Raises:
        InputError: `C1724`, it is not there; `C1725`, its columns are not known.
    """
    (found,) = catalog_of(source_program([source], project, is_strict=True)).find(source.name)
    return found.columns


def source_program(
    sources: Iterable[ExternalSource], project: Project, *, is_strict: bool = False
) -> Program:
    """Return the program that reads some sources; those that only Spark knows are left out.

    Raises:
        InputError: `C1724`, one is not there.
    """
    definitions: list[PlacedDefinition] = []
    through_spark: list[Directive] = []
    for each in sources:
        format_, path = _location(each, project)
        try:
            _check_layout(each, project, format_, path)
            columns = _ddl(each, project, format_, path)
            options = _options(each, format_)
        except InputError as error:
            if is_strict or any(found.code != ONLY_SPARK for found in error.diagnostics):
                raise
            continue
        name = exp.to_identifier(each.name, quoted=True).sql(dialect="spark")
        text = f"CREATE TABLE {name} ({columns})"
        if format_ in _FORMATS:
            options = {"path": path, **options}
            listed = ", ".join(
                f"{key} {exp.Literal.string(value).sql(dialect='spark')}"
                for key, value in options.items()
            )
            text += f" USING {format_} OPTIONS ({listed})"
        else:
            given = (("IO", "spark"), ("format", format_), *sorted(each.options.items()))
            if path:
                given = (*given, ("filename", path))
            through_spark.append(Directive("input", each.name, given, each.span))
        file = SourceFile.of_statement(each.name, text)
        definitions += [
            PlacedDefinition(statement, file)
            for statement in parse_statements(file)
            if isinstance(statement, nodes.Definition)
        ]
    made = compile_definitions(definitions, Program())
    return made + Program(directives=tuple(through_spark))


def _options(source: ExternalSource, format_: str) -> dict[str, str]:
    """Return the options of a source as ours.

    Raises:
        InputError: `C1725`, we have no such option.
    """
    known = _OPTIONS.get(format_, {})
    found: dict[str, str] = {}
    if format_ not in _FORMATS:
        return found
    for key, value in source.options.items():
        name = known.get(key.lower())
        if name is not None:
            found[name] = value
        elif key.lower() in _PLAIN_VALUES and (
            value.lower() == "false" or format_ in _PLAIN_VALUES[key.lower()]
        ):
            continue
        elif key.lower() not in _IGNORED and not key.lower().startswith("max"):
            raise InputError.of(
                ONLY_SPARK,
                f"The option `{key}` of {_shown(source)} has no meaning here.",
                source.span,
                "leave it out, or let Spark write the files as Delta or Parquet first",
            )
    return found


def _check_layout(source: ExternalSource, project: Project, format_: str, path: str) -> None:
    """Refuse several directories, and those that say the values of columns.

    Raises:
        InputError: `C1725`.
    """
    place = project.root / path.removeprefix("file:")
    what = ""
    if len(source.paths) > 1:
        what = "several paths"
    elif not place.exists() and any(each.is_dir() for each in place.parent.glob(place.name)):
        what = "a pattern of directories"
    elif format_ in ("parquet", "csv", "json") and any(
        "=" in each for file in _files(place) for each in file.relative_to(place).parts[:-1]
    ):
        what = "directories of the form `column=value`"
    if what:
        raise InputError.of(
            ONLY_SPARK,
            f"{_shown(source)} has {what}, which only Spark reads.",
            source.span,
            "read one directory without them, or let Spark write the files as Delta first",
        )


def _shown(source: ExternalSource) -> str:
    return f"`{source.table or ', '.join(source.paths) or source.name}`"


def _location(source: ExternalSource, project: Project) -> tuple[str, str]:
    """Return the format of a source, and its path.

    Raises:
        InputError: `C1724`.
    """
    if not source.table:
        return (source.format or "parquet").lower(), source.paths[0] if source.paths else ""
    names = source.table.replace("`", "").split(".")
    top = Path(project.configuration.get("spark.sql.warehouse.dir", "spark-warehouse"))
    schema = names[-2] if len(names) > 1 else project.schema or "default"
    inside = top / names[-1] if schema == "default" else top / f"{schema}.db" / names[-1]
    found = project.configuration.get(f"{SOURCE_SETTING}{source.table}", str(inside))
    place = project.root / found.removeprefix("file:")
    if not place.exists():
        raise InputError.of(
            "C1724",
            f"The table `{source.table}` is not in the project, and not in `{inside}` either.",
            source.span,
            f"say in the `configuration` of the project where its files are, as in "
            f"`{SOURCE_SETTING}{source.table}: data/{names[-1]}`",
        )
    suffix = place.suffix.lower().lstrip(".")
    if (place / "_delta_log").is_dir():
        return "delta", found
    return {"csv": "csv", "json": "json", "jsonl": "json"}.get(suffix, "parquet"), found


# --- columns -------------------------------------------------------------------------------------


def _ddl(source: ExternalSource, project: Project, format_: str, path: str) -> str:
    """Return the columns of a source as CREATE TABLE has them.

    Raises:
        InputError: `C1724`, there are no files; `C1725`, they do not say which columns they have.
    """
    if source.schema:
        return source.schema
    if format_ not in _FORMATS:
        raise InputError.of(
            ONLY_SPARK,
            f"Files of the format `{format_}` do not say here which columns they have.",
            source.span,
            "declare the columns with `.schema(…)`, or Spark computes what reads them",
        )
    try:
        schema = _file_schema(source, format_, project.root / path.removeprefix("file:"))
    except (OSError, pa.ArrowException, ValueError) as error:
        raise InputError.of(
            "C1724",
            f"{_shown(source)} cannot be read: {str(error).splitlines()[0]}.",
            source.span,
            "correct the path, or declare the columns with `.schema(…)`",
        ) from None
    listed = []
    for each in schema:
        type_ = type_of_arrow(each.type)
        if type_ is None:
            raise InputError.of(
                ONLY_SPARK,
                f"The column `{each.name}` of {_shown(source)} has the type {each.type}, which "
                "cannot be stored.",
                source.span,
                "declare the columns that are needed with `.schema(…)`",
            )
        name = exp.to_identifier(each.name, quoted=True).sql(dialect="spark")
        listed.append(f"{name} {type_name(type_)}")
    return ", ".join(listed)


def _file_schema(source: ExternalSource, format_: str, path: Path) -> pa.Schema:
    if format_ == "delta":
        from corollary.warehouse.sources.delta_snapshot import arrow_schema

        return arrow_schema(str(path))
    files = _files(path)
    if not files:
        raise ValueError("there are no files")
    if format_ == "parquet":
        from pyarrow import parquet as pq

        return pq.read_schema(files[0])
    if format_ == "json":
        return _json_schema(files)
    return _csv_schema(source, files[0])


def _files(path: Path) -> list[Path]:
    """Return the data files of a folder or pattern, or the one file."""
    found = path.rglob("*") if path.is_dir() else path.parent.glob(path.name)
    return sorted(each for each in found if each.is_file() and each.name[0] not in "_.")


def _json_schema(files: Sequence[Path]) -> pa.Schema:
    from pyarrow import json

    found = [json.read_json(each).schema for each in files if each.stat().st_size]
    merged = pa.unify_schemas(found, promote_options="permissive")
    # Spark has the columns by name, and leaves texts that are times as they are.
    fields = sorted(merged, key=lambda each: each.name)
    return pa.schema(
        each.with_type(pa.string()) if pa.types.is_timestamp(each.type) else each for each in fields
    )


def _csv_schema(source: ExternalSource, file: Path) -> pa.Schema:
    from pyarrow import csv

    options = {key.lower(): value for key, value in source.options.items()}
    has_header = options.get("header", "").lower() == "true"
    infers = options.get("inferschema", "").lower() == "true"
    separator = options.get("sep", options.get("delimiter", ","))
    read: Any = csv.ReadOptions(autogenerate_column_names=not has_header)
    table = csv.read_csv(file, read, csv.ParseOptions(delimiter=separator))
    fields = []
    for at, each in enumerate(table.schema):
        name = each.name if has_header else f"_c{at}"
        type_ = each.type if infers else pa.string()
        if infers and pa.types.is_int64(type_):
            values = table.column(at).drop_null()
            is_small = all(abs(v.as_py()) < 2**31 for v in _extremes(values))
            type_ = pa.int32() if is_small else type_
        fields.append(pa.field(name, type_))
    return pa.schema(fields)


def _extremes(values: pa.ChunkedArray) -> list[pa.Scalar]:
    import pyarrow.compute as pc

    found = pc.min_max(values)
    return [found["min"], found["max"]] if len(values) else []


def type_of_arrow(type_: pa.DataType) -> Type | None:
    """Return the type of a column of Arrow; None if we have none."""
    from dataclasses import replace

    if type_ in _INTEGERS:
        return replace(types.NUMBER, bits=_INTEGERS[type_])
    if type_ in _PLAIN:
        return _PLAIN[type_]
    if pa.types.is_timestamp(type_):
        return types.TIMESTAMP if type_.tz else types.TIMESTAMP_NTZ
    if pa.types.is_decimal(type_):
        return types.decimal(type_.precision, type_.scale)
    if pa.types.is_dictionary(type_):
        return type_of_arrow(type_.value_type)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        inner = type_of_arrow(type_.value_type)
        return None if inner is None else types.array_of(inner)
    if pa.types.is_map(type_):
        key, value = type_of_arrow(type_.key_type), type_of_arrow(type_.item_type)
        return None if key is None or value is None else types.map_of(key, value)
    if pa.types.is_struct(type_):
        fields = [(each.name, type_of_arrow(each.type)) for each in type_]
        known = [(name, each) for name, each in fields if each is not None]
        return types.struct_of(known) if len(known) == len(fields) else None
    return None
