"""Frames of the user's session: inputs that Spark reads, relations as frames, outputs it writes.

All of this happens in the session that was passed, which is not configured: temp views of the user
are visible here, and temp views made here are visible to the user. Without one, it is the local
session.

| type         | in a frame                         |
|--------------|------------------------------------|
| unsigned     | decimal(20,0)                      |
| timestamp    | timestamp, an instant in any zone  |
| other types  | the same type                      |
| no columns   | a column `holds`, which is true    |
"""

import pickle
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from corollary.core.arrow import empty_table
from corollary.core.engine import MapResult, Portion, TableHandle
from corollary.core.program import Directive, Relation
from corollary.core.records.record_structs import TEXT, with_records
from corollary.core.spark_io import CORRUPT_COLUMN, display_name, spark_options
from corollary.data_class import dataclass
from corollary.engines.spark.frame_pins import pin_files
from corollary.engines.spark.session import (
    describe_jobs,
    local_session,
    require_package,
    require_pyspark,
)
from corollary.errors import CorollaryError, InputError, redact_password

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.types import StructType

HOLDS_COLUMN = "holds"
MAPPED_ROWS = 1 << 20
"""A function is applied to about this many rows of an input at once."""
BATCH_ROWS = 1 << 16
"""The number of rows of the batches that tasks hand to Spark."""
UNSIGNED_TYPE = pa.decimal128(20, 0)
"""Spark has no unsigned integers."""

READ_OPTIONS: Mapping[str, Mapping[str, str]] = {"json": {"primitivesAsString": "true"}}
"""Default options by format: values are read as texts, and converted here."""

_EXACT = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timeZone": "UTC"}
WRITE_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "csv": _EXACT,
    "json": {**_EXACT, "ignoreNullFields": "false"},
}
"""The same for writing: by default, Spark truncates microseconds."""

_HINTS = {
    "DATA_SOURCE_NOT_FOUND": "choose a format that Spark has, or give the session its package with "
    "`spark.jars.packages`",
    "No suitable driver": "give the session the JDBC driver with `spark.jars.packages` or "
    "`spark.jars`",
    "ClassNotFoundException": "give the session the package with `spark.jars.packages` or "
    "`spark.jars`",
    "ALREADY_EXISTS": "say what happens to what is there: `mode=overwrite` or `mode=append`",
}
"""Hints, by what the message of Spark contains."""


def read_input(
    spark: "SparkSession | None",
    directive: Directive,
    paths: Sequence[Path | str],
    wanted: Sequence[str],
) -> tuple[tuple[str, ...], pa.Table]:
    """Return the names of all columns of an `.input`, and the wanted columns with their rows.

    Args:
        spark: the session of the user; None for the local one.
        directive: the `.input`.
        paths: the files or the folder to read; empty if it names none.
        wanted: the columns of the relation; missing ones are left out. If it has none, the table
            has one column, and at most one row.

    Raises:
        InputError: `C0987`, Spark cannot read it; `C0988`, there is no such table.
    """
    with _read_frame(spark, directive, paths) as frame:
        names = tuple(frame.columns)
        return names, _selected(frame, names, wanted)


def map_input(
    spark: "SparkSession | None",
    directive: Directive,
    paths: Sequence[Path | str],
    wanted: Sequence[str],
    function: Callable[[pa.Table], MapResult],
) -> tuple[tuple[str, ...], pa.Table, list[MapResult]]:
    """Apply a function to the rows of an `.input`, some at a time, where Spark's tasks have them.

    Args:
        spark: the session of the user; None for the local one.
        directive: the `.input`.
        paths: the files or the folder to read; empty if it names none.
        wanted: the columns of the relation, of which there are some; missing ones are left out.
        function: can be pickled; a task that is run again calls it again.

    Returns:
        The names of all columns, the wanted columns without rows, and the results.

    Raises:
        InputError: `C0987`, Spark cannot read it; `C0988`, there is no such table.
        CorollaryError: the one that the function raised.
    """
    with _read_frame(spark, directive, paths) as frame:
        names = tuple(frame.columns)
        selected = _select(frame, names, wanted)
        if selected is None:
            return names, _selected(frame, names, wanted), []
        return names, empty_rows(selected), map_frame(selected, function)


def map_frame(frame: "DataFrame", function: Callable[[pa.Table], MapResult]) -> list[MapResult]:
    """Return the results of a function on the rows of a frame, some at a time, in their order.

    It is called where Spark's tasks have the rows, and again in a task that is run again.

    Raises:
        CorollaryError: the one that the function raised.
        InputError: `C0995`, the workers lack this package.
    """
    with require_package():
        replies = task_replies(frame.mapInArrow(partial(_map_batches, function), "reply binary"))
    found = [pickle.loads(bytes(row[0])) for row in replies]  # noqa: S301 - our own tasks made it
    for each in found:
        if isinstance(each, CorollaryError):
            raise each
    return found


def _map_batches(
    function: Callable[[pa.Table], Any], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the pickled results of a function for rows; Spark calls this in a task."""
    for table in tables_of(batches):
        try:
            found: object = function(table)
        except CorollaryError as error:
            found = error
        reply = pa.array([pickle.dumps(found, protocol=5)], pa.binary())
        yield pa.record_batch([reply], names=["reply"])


def tables_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield batches in tables with as many rows as a task handles at once."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(each.num_rows for each in held) >= MAPPED_ROWS:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


# --- tuples as frames ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FrameRows:
    """Gives tuples the columns of a frame, here or in a task.

    Attributes:
        relation: of the tuples.
        records: whether records are texts or structs.
        constants: columns that follow, each of one value.
    """

    relation: Relation
    records: str = TEXT
    constants: tuple[tuple[str, pa.Scalar], ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """The columns, in types that Spark has."""
        fields = [pa.field(name, each.type, nullable=False) for name, each in self.constants]
        fields = [
            *with_records(empty_table(self.relation), self.relation, self.records).schema,
            *fields,
        ]
        spark = [field.with_type(_spark_type(field.type)) for field in fields]
        return pa.schema(spark or [pa.field(HOLDS_COLUMN, pa.bool_())])

    def __call__(self, table: pa.Table) -> pa.Table:
        """Return tuples as a table that Spark takes."""
        count, schema = table.num_rows, self.schema
        if self.relation.types:
            # By position: columns may have got other names since.
            named = table.rename_columns(list(self.relation.columns))
            table = with_records(named, self.relation, self.records)
        columns = [*table.columns, *(pa.repeat(each, count) for _, each in self.constants)]
        columns = columns or [pa.repeat(pa.scalar(True), count)]
        return pa.Table.from_arrays(
            [each.cast(field.type) for each, field in zip(columns, schema, strict=True)],
            schema=schema,
        )


def _spark_type(type_: pa.DataType) -> pa.DataType:
    """Return the type of values in a frame; Spark has no unsigned integers."""
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_spark_type(field.type)) for field in type_])
    return UNSIGNED_TYPE if type_ == pa.uint64() else type_


FrameParts = Sequence[tuple[TableHandle, FrameRows]]
"""What a frame has: tuples, and the columns that are made of them, which are the same for all."""


FrameOrder = tuple[Sequence[tuple[int, bool, bool]] | None, int, Sequence[str]]
"""Columns, whether each descends, whether nulls come first; the others follow: None for no order.
How many of the first rows are left out; the names of the first columns, which alone are shown."""


def make_frame(
    spark: "SparkSession | None",
    parts: FrameParts,
    view: str | None = None,
    order: FrameOrder | None = None,
) -> "DataFrame":
    """Return tuples as a frame of the user's session.

    Those of this process become a local relation; others are read by tasks, and their files stay
    as long as a plan reads them.

    Args:
        spark: the session of the user; None for the local one.
        parts: the tuples.
        view: the name of a temp view of the frame to create, if any.
        order: of the rows, if any; no two of their columns have the same name then.

    Raises:
        InputError: `C0989`, a view cannot have this name.
    """
    with _reported("C0989", f"Spark cannot show `{view}`", None):
        session = _session(spark)
        here, frames = [], []
        for handle, make_rows in parts:
            portions = handle.portions()
            if portions is None:
                here.append(make_rows(handle.table()))
            else:
                schema = _spark_schema(make_rows.schema)
                frames.append(portion_frame(session, portions, make_rows, schema))
                pin_files(frames[-1], handle, has_view=view is not None)
        if here and (not frames or any(each.num_rows for each in here)):
            # Spark loses rows that follow an empty chunk.
            frames.append(arrow_frame(session, pa.concat_tables(here).combine_chunks()))
        frame = reduce(lambda one, other: one.unionAll(other), frames)
        if order is not None:
            frame = _order_rows(frame, *order)
        if view is not None:
            frame.createOrReplaceTempView(view)
        return frame


def _order_rows(
    frame: "DataFrame",
    keys: Sequence[tuple[int, bool, bool]] | None,
    offset: int,
    names: Sequence[str],
) -> "DataFrame":
    """Return a frame in an order, without the first rows and the last columns; see `FrameOrder`."""
    if keys is not None:
        others = [(at, False, True) for at in range(len(frame.columns))]
        columns = [
            getattr(
                frame[at], f"{'desc' if down else 'asc'}_nulls_{'first' if nulls else 'last'}"
            )()
            for at, down, nulls in (*keys, *others)
        ]
        frame = frame.orderBy(*columns).offset(offset)
    return frame.select(*frame.columns[: len(names)]).toDF(*names)


@dataclass(frozen=True, slots=True)
class ReadPortions:
    """Reads portions of tuples in tasks; Spark calls it with batches of their numbers."""

    portions: Sequence[Portion]
    make_rows: Callable[[pa.Table], pa.Table]

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some portions."""
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for table in self.portions[number]():
                    yield from self.make_rows(table).to_batches(max_chunksize=BATCH_ROWS)


def portion_frame(
    session: "SparkSession",
    portions: Sequence[Portion],
    make_rows: Callable[[pa.Table], pa.Table],
    schema: "StructType | str",
) -> "DataFrame":
    """Return a frame of tuples that tasks read, a task for each portion."""
    numbers = session.range(0, len(portions), 1, max(1, len(portions)))
    return numbers.mapInArrow(ReadPortions(portions, make_rows), schema)


def _spark_schema(schema: pa.Schema) -> "StructType":
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def arrow_frame(session: "SparkSession", table: pa.Table) -> "DataFrame":
    """Return a table as a frame; of one without rows, Connect asks for the schema."""
    if table.num_rows:
        return session.createDataFrame(table)
    return session.createDataFrame([], _spark_schema(table.schema))


def write_output(
    spark: "SparkSession | None",
    tuples: TableHandle,
    relation: Relation,
    directive: Directive,
    path: Path | None,
) -> None:
    """Write a relation to what an `.output` names.

    Raises:
        InputError: `C0989`, Spark cannot write it.
    """
    format_, name = directive.parameter("format"), directive.parameter("table")
    frame = make_frame(spark, [(tuples, FrameRows(relation))])
    with (
        _reported("C0989", f"Spark cannot write `{display_name(directive)}`", directive),
        describe_jobs(frame.sparkSession, f"write {relation.name} to {display_name(directive)}"),
    ):
        writer = frame.write.mode(directive.parameter("mode", "error"))
        writer = writer.options(
            **{**WRITE_OPTIONS.get(format_.lower(), {}), **spark_options(directive)}
        )
        writer = writer.format(format_) if format_ else writer
        if name:
            writer.saveAsTable(name)
        else:
            writer.save(None if path is None else f"file://{path}")


def _session(spark: "SparkSession | None") -> "SparkSession":
    require_pyspark()
    return local_session() if spark is None else spark


@contextmanager
def _read_frame(
    spark: "SparkSession | None", directive: Directive, paths: Sequence[Path | str]
) -> "Iterator[DataFrame]":
    """Give the frame of an `.input`; jobs and errors meanwhile are those of reading it."""
    name = display_name(directive)
    with _reported("C0987", f"Spark cannot read `{name}`", directive):
        session = _session(spark)
        frame = _frame(session, directive, paths)
        with describe_jobs(session, f"read {name} for {directive.relation}"):
            yield frame


def _frame(
    session: "SparkSession", directive: Directive, paths: Sequence[Path | str]
) -> "DataFrame":
    format_, table = directive.parameter("format"), directive.parameter("table")
    options = {**READ_OPTIONS.get(format_.lower(), {}), **spark_options(directive)}
    reader = session.read.options(**options)
    if not table:
        return reader.format(format_).load([_literal(each) for each in paths] or None)
    # Without this check, parquet.`/any/file` would be a table, too.
    if not session.catalog.tableExists(table):
        raise InputError.of(
            "C0988",
            f"The Spark session has no table or view `{table}`.",
            directive.span,
            f'make it with `frame.createTempView("{table}")` in the session that is passed with '
            "`corollary.open(…, spark=spark)`, or correct the name",
        )
    return reader.table(table)


def _literal(path: Path | str) -> str:
    """Return the URL of a path, or a URL, with the characters of patterns escaped."""
    escaped = re.sub(r"([\\*?\[\]{}])", r"\\\1", str(path))
    return f"file://{escaped}" if isinstance(path, Path) else escaped


def _selected(frame: "DataFrame", names: Sequence[str], wanted: Sequence[str]) -> pa.Table:
    from pyspark.sql import functions as spark

    if not wanted:
        return all_rows(frame.limit(1).select(spark.lit(True).alias(HOLDS_COLUMN)))
    selected = _select(frame, names, wanted)
    if selected is not None:
        return all_rows(selected)
    is_ambiguous = any(name in wanted for name in names)  # which the caller reports
    return empty_rows(frame) if is_ambiguous else pa.table({})


def _select(frame: "DataFrame", names: Sequence[str], wanted: Sequence[str]) -> "DataFrame | None":
    """Return the wanted columns of a frame; None if there are none, or two of one name."""
    present = [name for name in names if name in wanted or name == CORRUPT_COLUMN]
    if len(set(present)) < len(present) or not set(present) - {CORRUPT_COLUMN}:
        return None
    quoted = ["`" + name.replace("`", "``") + "`" for name in present]
    return frame.select(*quoted)


# --- what comes to the driver: a test allows it here only ----------------------------------------


def task_replies(frame: "DataFrame") -> "list[Row]":
    """Return what our own tasks say of their work: names of files, counts, few tuples."""
    return frame.collect()


def has_rows(frame: "DataFrame") -> bool:
    """Return whether there is a row, of which one comes."""
    return bool(frame.limit(1).collect())


def empty_rows(frame: "DataFrame") -> pa.Table:
    """Return the columns of a frame; no row comes."""
    return frame.limit(0).toArrow()


def all_rows(frame: "DataFrame") -> pa.Table:
    """Return the rows of a frame that the caller has counted, or has no tasks for.

    The local engine holds what it reads in this process, whatever its size.
    """
    return frame.toArrow()


# --- errors of Spark -----------------------------------------------------------------------------


@contextmanager
def _reported(code: str, what: str, directive: Directive | None) -> Iterator[None]:
    """Turn an error of Spark into one of ours: its first sentence, and a hint."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise
        text = _root_cause(error)
        known = next((hint for sign, hint in _HINTS.items() if sign in text), None)
        span = None if directive is None else directive.span
        hint = known or "fix what Spark names, or the parameters of the directive"
        raise InputError.of(code, f"{what}: {_sentence(text, directive)}.", span, hint) from error


def _root_cause(error: Any) -> str:
    """Return the message of the innermost cause, in one line."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    if causes:
        return causes[-1].removeprefix("Caused by: ")
    is_wrapped = lines[0].startswith("An error occurred while calling") and len(lines) > 1
    return lines[1].removeprefix(": ") if is_wrapped else lines[0]


def _sentence(cause: str, directive: Directive | None) -> str:
    """Return a message without class names, error classes, SQL states and secrets."""
    text = re.sub(r"^([\w$]+\.)+(?=\w+(Exception|Error)\b)", "", cause)
    text = re.sub(r"^Spark\w*Exception: |\[[A-Z_.]+\] ", "", text)
    text = redact_password(re.sub(r"\s*SQLSTATE: \w+", "", text))
    for name, value in spark_options(directive).items() if directive is not None else ():
        if value and re.search("password|secret|token", name, re.IGNORECASE):
            text = text.replace(value, "…")
    return text.rstrip(" .")
