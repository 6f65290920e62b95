"""What a pipeline project defines: datasets, the flows into them, and what the flows read.

A project is loaded (`load_project`), which runs its Python without a server, and lowered
(`lower_project`): each query becomes a tree that the binder of SQL takes, or says why it is left
to Spark. Names are those of relations: `orders` for `catalog.schema.orders` in the default catalog
and schema of the project, else `schema.orders` or `catalog.schema.orders`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from pathlib import Path

from sqlglot import exp

from corollary.core.types import TIMESTAMP
from corollary.data_class import dataclass
from corollary.errors import Diagnostic, InputError
from corollary.frontends.sql.catalog import TableDefinition
from corollary.frontends.sql.query_tree import QueryColumn
from corollary.frontends.sql.statements.nodes import TableColumn
from corollary.source import SourceFile, Span

STREAM = "stream"
"""A key of the `meta` of a table in a lowered tree: the flow reads what is new in it."""
ONLY_SPARK = "C1725"
"""The code of a source whose columns, options or directories only Spark knows: it reads it."""
CLOCK = TableDefinition("pipeline.clock", (QueryColumn("at", TIMESTAMP),), is_bag=True)
"""Has one row, with the time of the run, while a run evaluates a flow that asks for it."""


class DatasetKind(StrEnum):
    """What a dataset is."""

    MATERIALIZED_VIEW = "materialized view"
    TEMPORARY_VIEW = "temporary view"
    STREAMING_TABLE = "streaming table"
    SINK = "sink"


@dataclass(frozen=True, slots=True)
class Dataset:
    """What flows write to.

    Attributes:
        columns: those of its declared schema, if it has one.
        properties: its table properties.
        format: that of its table, or of a sink; None if it is not said.
        options: those of a sink.
    """

    name: str
    kind: DatasetKind
    span: Span
    columns: tuple[TableColumn, ...] | None = None
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    partition_columns: tuple[str, ...] = ()
    cluster_columns: tuple[str, ...] = ()
    format: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def declared_columns(self) -> tuple[QueryColumn, ...]:
        """Return the columns of its declared schema; none if it has none."""
        types = [each.type for each in self.columns or ()]
        wide = [replace(t.type, bits=t.bits) if t.type.is_number else t.type for t in types]
        return tuple(
            QueryColumn(each.name.text, type_.with_null(True), each.name.span)
            for each, type_ in zip(self.columns or (), wide, strict=True)
        )


@dataclass(frozen=True, slots=True)
class ExternalSource:
    """What a project reads and does not define: files, or a table.

    Attributes:
        name: the relation that it is.
        format: that of `spark.read.format(…)`; None for a table.
        table: the name of the table, as it is written.
        paths: as they are written; relative ones are relative to the project.
        schema: the DDL of the declared schema, if there is one.
    """

    name: str
    span: Span
    format: str | None = None
    table: str = ""
    paths: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedQuery:
    """A query as Spark is told it.

    Attributes:
        relation: a relation of Spark Connect, serialized; empty for SQL.
        tree: that of SQL, as it was parsed.
        text: the text of SQL.
        file: the text that positions are in.
        places: the offsets of the calls that made the relations of the plan, by plan id.
    """

    span: Span
    file: SourceFile
    relation: bytes = b""
    tree: exp.Expr | None = None
    text: str = ""
    places: Mapping[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Flow:
    """A query whose rows a dataset has, or gets."""

    name: str
    target: str
    query: RecordedQuery
    span: Span
    spark_conf: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_default(self) -> bool:
        """Whether its dataset was defined by it."""
        return self.name == self.target


@dataclass(frozen=True, slots=True)
class AutoCdcFlow:
    """A flow of changes by key.

    Attributes:
        source: the relation that the changes are read from, as a stream.
        sequence_by: the expression that orders the changes of a key, over the source's columns.
        apply_as_deletes: the condition of changes that delete.
        column_list: the columns that are kept; None for all.
        except_column_list: the columns that are left out.
        scd_type: 1 for the rows of now, 2 for their history.
        track_history_columns: those whose change begins another row of history; None for all.
        track_history_except_columns: those whose change does not.
        file: the text that positions in the expressions are in.
    """

    name: str
    target: str
    source: str
    keys: tuple[str, ...]
    sequence_by: exp.Expr
    span: Span
    file: SourceFile
    apply_as_deletes: exp.Expr | None = None
    column_list: tuple[str, ...] | None = None
    except_column_list: tuple[str, ...] = ()
    scd_type: int = 1
    track_history_columns: tuple[str, ...] | None = None
    track_history_except_columns: tuple[str, ...] = ()
    spark_conf: Mapping[str, str] = field(default_factory=dict)

    def chosen_columns(self, columns: Sequence[QueryColumn]) -> list[QueryColumn]:
        """Return the columns of the source that the target has.

        Raises:
            InputError: `C1722`, the source has no such column.
        """
        known = {each.name.lower(): each for each in columns}
        wanted = (
            *(self.column_list or ()),
            *self.except_column_list,
            *self.keys,
            *(self.track_history_columns or ()),
            *self.track_history_except_columns,
        )
        missing = [name for name in wanted if name.lower() not in known]
        if missing:
            raise InputError.of(
                "C1722",
                f"`{self.source}` has no column `{missing[0]}`.",
                self.span,
                f"its columns are {', '.join(f'`{each.name}`' for each in columns)}",
            )
        if self.column_list is not None:
            return [known[name.lower()] for name in self.column_list]
        without = {name.lower() for name in self.except_column_list}
        return [each for key, each in known.items() if key not in without]


@dataclass(frozen=True, slots=True)
class Project:
    """A pipeline project, loaded.

    Attributes:
        storage: the directory that `spark-pipeline.yml` names.
        catalog: the default catalog; None for Spark's own.
        schema: the default schema; None for `default`.
        root: the directory of the specification.
        files: the Python and SQL files, in the order in which they were read.
    """

    name: str
    storage: str
    catalog: str | None
    schema: str | None
    configuration: Mapping[str, str]
    root: Path
    files: tuple[SourceFile, ...]
    datasets: tuple[Dataset, ...]
    flows: tuple[Flow, ...]
    cdc_flows: tuple[AutoCdcFlow, ...] = ()


@dataclass(frozen=True, slots=True)
class BinderQuery:
    """A query that we maintain: what the binder takes.

    Attributes:
        tree: its syntax tree; a table that is read as a stream has `STREAM` in its `meta`.
        file: the text that its positions are in.
        columns: its columns, as they are bound.
        reads: the relations that it reads in whole.
        streams: the relations that it reads as streams.
        watermarks: the column and delay of each `withWatermark`.
    """

    tree: exp.Expr
    file: SourceFile
    columns: tuple[QueryColumn, ...]
    reads: tuple[str, ...]
    streams: tuple[str, ...]
    watermarks: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SparkQuery:
    """A query that is left to Spark.

    Attributes:
        reason: why, with its place.
    """

    reason: Diagnostic
    reads: tuple[str, ...]
    streams: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoweredProject:
    """A project whose queries are lowered.

    Attributes:
        queries: of each flow, by its name.
        sources: what the queries read and the project does not define, by relation.
        order: the datasets, each after those that it reads.
    """

    project: Project
    queries: Mapping[str, BinderQuery | SparkQuery]
    sources: Mapping[str, ExternalSource]
    order: tuple[str, ...]
