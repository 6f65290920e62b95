"""What we cannot maintain is left to Spark, dataset by dataset: a local server computes it anew.

Spark gets the plan as the project made it, and what it reads as Parquet files, under the names that
the plan has, and what the dataset has now: it takes the difference, and only that comes back. That
happens when something it reads may have changed, or the query itself has. The server is started for
the first such dataset of a run, and ends with the run.
"""

import hashlib
import logging
import secrets
import tempfile
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import pyarrow as pa

from corollary.console import Console, SilentConsole
from corollary.core.arrow import arrow_type, schema_of
from corollary.core.engine import LocalTable, TableHandle
from corollary.core.program import Declaration, Program
from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.frontends.sql.catalog import SqlCatalog, catalog_of
from corollary.frontends.sql.query_tree import QueryColumn
from corollary.pipelines.compile import DatasetPlan
from corollary.pipelines.digests import digest_of
from corollary.pipelines.flows import Reading
from corollary.pipelines.graph import Dataset, Flow, Project, RecordedQuery, SparkQuery
from corollary.pipelines.sources import type_of_arrow
from corollary.pipelines.spark_server import start_server

SLICE_ROWS = 65_536
"""Files for Spark are written in portions of this many rows."""
Rows = tuple[TableHandle, pa.Schema]
"""Rows, and the columns that a file of them gets."""


@dataclass(slots=True)
class SparkFallback:
    """The Spark of one run.

    Attributes:
        held: the declarations in force, by relation: a query that is the same has the same columns.
        digests: of the queries in force, by dataset.
        console: is told that Spark starts, and why.
    """

    project: Project
    held: Mapping[str, Declaration] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    console: Console = field(default_factory=SilentConsole)
    _server: Any = None
    _spark: Any = None
    _folder: Any = None

    def known_columns(self) -> dict[str, tuple[QueryColumn, ...]]:
        """Return the columns of the datasets that Spark has computed, by the same queries."""
        by_target = {each.target: each for each in self.project.flows}
        found = {}
        for name, digest in self.digests.items():
            flow, declaration = by_target.get(name), self.held.get(name)
            if flow is None or declaration is None or digest_of(flow.query) != digest:
                continue
            found[name] = _columns_of(declaration)
        return found

    def has_other_inputs(self, query: SparkQuery, catalog: SqlCatalog) -> bool:
        """Whether what a query reads has other columns than before, so that it may have others."""
        inputs = (each for name in (*query.reads, *query.streams) for each in catalog.find(name))
        return any(
            each.relation in self.held and _columns_of(self.held[each.relation]) != each.columns
            for each in inputs
        )

    def columns(
        self, dataset: Dataset, flow: Flow, query: SparkQuery, catalog: SqlCatalog
    ) -> tuple[QueryColumn, ...]:
        """Return the columns that Spark says a dataset has.

        Raises:
            InputError: `C1728`, Spark refuses the query, or a column cannot be stored.
        """
        inputs: dict[str, Rows] = {}
        for name in (*query.reads, *query.streams):
            for each in catalog.find(name):
                empty = pa.schema([(c.name, arrow_type(c.type)) for c in each.columns])
                inputs[each.relation] = LocalTable(empty.empty_table()), empty
        schema = self._rows(self._frame(flow.query, inputs, dataset).limit(0), dataset).schema
        columns = []
        for each in schema:
            type_ = type_of_arrow(each.type)
            if type_ is None:
                raise InputError.of(
                    "C1728",
                    f"The column `{each.name}` of `{dataset.name}` has the type {each.type}, which "
                    "cannot be stored.",
                    dataset.span,
                    "cast it in the query",
                )
            columns.append(QueryColumn(each.name, type_.with_null(True)))
        return tuple(columns)

    def compute(
        self, plan: DatasetPlan, reading: Reading, earlier: frozenset[str], *, is_asked: bool
    ) -> pa.Table | None:
        """Return of how many copies each row of a dataset gets more or less.

        None if it need not be computed. Spark takes the difference: only what changes is read here.
        Since the dataset was computed, other commits have changed the relations `earlier`.

        Raises:
            InputError: `C1728`, Spark fails.
        """
        assert plan.spark is not None
        assert plan.relation is not None
        flow, query = plan.spark
        name = plan.dataset.name
        reads = (*query.reads, *query.streams)
        is_known = self.digests.get(name) == digest_of(flow.query)
        is_known &= all(each in reading.normal.relations for each in reads)
        if is_known and not is_asked and not reading.is_touched(reads, earlier):
            return None
        relations = reading.normal.relations
        inputs = {
            each: (reading.whole(each), schema_of(relations[each]))
            for each in reads
            if each in relations
        }
        computed = self._frame(flow.query, inputs, plan.dataset)
        counted = reading.counted(plan.relation)
        schema = schema_of(relations[counted])
        held = self._file_of((reading.handle(counted), schema), plan.dataset)
        try:
            changed = _difference(computed, held, schema)
            return self._rows(changed, plan.dataset).rename_columns(schema.names).cast(schema)
        except pa.ArrowException as error:
            raise _refused(plan.dataset, error) from None

    def _frame(self, query: RecordedQuery, inputs: Mapping[str, Rows], dataset: Dataset) -> Any:
        """Return the frame of a query on some relations."""
        views: dict[str, str] = {}
        for name, rows in inputs.items():
            view = f"pipeline_{len(views)}_{hashlib.md5(name.encode()).hexdigest()[:8]}"  # noqa: S324
            self._file_of(rows, dataset).createOrReplaceTempView(view)
            views[name.lower()] = view
        spark = self._session(dataset)
        try:
            if query.relation:
                return _frame_of_plan(spark, query.relation, views)
            return spark.sql(_renamed(query, views))
        except Exception as error:  # noqa: BLE001 - Spark's own, of many classes
            raise _refused(dataset, error) from None

    def _file_of(self, rows: Rows, dataset: Dataset) -> Any:
        """Return the frame of a file that gets some rows, portion by portion."""
        from pyarrow import parquet as pq

        spark = self._session(dataset)
        handle, schema = rows
        path = Path(self._folder.name) / f"{secrets.token_hex(8)}.parquet"
        with pq.ParquetWriter(path, schema) as writer:
            for part in handle.slices(SLICE_ROWS):
                writer.write_table(part.rename_columns(schema.names).cast(schema))
        return spark.read.parquet(str(path))

    def _rows(self, frame: Any, dataset: Dataset) -> pa.Table:
        """Return the rows of a frame: Spark writes files, which are read here."""
        from pyarrow import parquet as pq

        path = Path(self._folder.name) / f"rows-{secrets.token_hex(8)}"
        try:
            frame.write.parquet(str(path))
        except Exception as error:  # noqa: BLE001 - Spark's own, of many classes
            raise _refused(dataset, error) from None
        return pq.read_table(path)

    def _session(self, dataset: Dataset) -> Any:
        """Return the session with the server, which is started for the first dataset."""
        if self._spark is None:
            from corollary.engines.spark.java import set_java_home

            self.console.note(f"Spark is started for `{dataset.name}`")
            set_java_home()
            self._folder = tempfile.TemporaryDirectory(prefix="corollary-pipeline-")
            logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # raised, too
            self._server = start_server(self.project.root)
            self._spark = self._server.session
            for key, value in self.project.configuration.items():
                if key.startswith("spark.sql.") and "warehouse" not in key:
                    self._spark.conf.set(key, value)
        return self._spark

    def close(self) -> None:
        """Stop the server, if one was started."""
        server, folder = self._server, self._folder
        self._spark = self._server = self._folder = None
        try:
            if server is not None:
                server.stop()
        finally:
            if folder is not None:
                folder.cleanup()


def _difference(computed: Any, held: Any, schema: pa.Schema) -> Any:
    """Return the frame of the rows that are to come and go, and how many copies of each.

    Rows are equal as Spark groups them, which is as we hold them: null and NaN equal themselves.

    Args:
        computed: what a dataset has to have.
        held: what it has, with the copies of each row in the last column.
        schema: the columns of `held`.
    """
    from pyspark.sql.connect import functions as F  # noqa: N812 - as everybody calls it

    *names, copies = [f"c{at}" for at in range(len(schema))]
    more = computed.toDF(*names).withColumn(copies, F.lit(1).cast("long"))
    less = held.toDF(*names, copies).withColumn(copies, -F.col(copies))
    keys = [
        _grouped(F.col(name), each.type).alias(f"key of {name}")
        for name, each in zip(names, schema, strict=False)
    ]
    values = [F.first(name).alias(name) for name in names]
    counts = more.union(less).groupBy(*keys).agg(*values, F.sum(copies).alias(copies))
    return counts.where(F.col(copies) != 0).select(*names, copies)


def _grouped(column: Any, type_: pa.DataType) -> Any:
    """Return what a column is grouped by: its entries where it has maps.

    Grouped by maps themselves, Spark 4.3 takes a null number in one for 0.
    """
    from pyspark.sql.connect import functions as F  # noqa: N812 - as everybody calls it

    if "map<" not in str(type_):
        return column
    if pa.types.is_struct(type_):
        fields = [_grouped(column[each.name], each.type).alias(each.name) for each in type_]
        return F.when(column.isNotNull(), F.struct(*fields))
    if pa.types.is_list(type_):
        return F.transform(column, lambda each: _grouped(each, type_.value_type))
    entries = F.map_entries(column)
    return F.array_sort(
        F.transform(
            entries, lambda each: F.struct(each["key"], _grouped(each["value"], type_.item_type))
        )
    )


def _columns_of(declaration: Declaration) -> tuple[QueryColumn, ...]:
    (table,) = catalog_of(Program(declarations=(declaration,))).find(declaration.name)
    return table.columns


def _refused(dataset: Dataset, error: Exception) -> InputError:
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return InputError.of(
        "C1728",
        f"Spark cannot compute `{dataset.name}`: {first[:300]}",
        dataset.span,
        "correct the query; nothing was changed",
    )


def _frame_of_plan(spark: Any, relation: bytes, views: Mapping[str, str]) -> Any:
    """Return the frame of a plan whose tables have other names."""
    from pyspark.sql.connect import proto
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.plan import LogicalPlan

    found = proto.Relation.FromString(relation)
    _rename_tables(found, views)

    class RecordedPlan(LogicalPlan):
        def plan(self, _: Any) -> Any:
            return found

    return DataFrame(RecordedPlan(None), spark)


def _rename_tables(message: Any, views: Mapping[str, str]) -> None:
    """Give the tables of a plan other names, in place; a stream is read in whole."""
    name = message.DESCRIPTOR.name
    if name == "Read":
        message.is_streaming = False
    if name == "NamedTable":
        given = message.unparsed_identifier.replace("`", "").lower()
        message.unparsed_identifier = _view_of(given, views) or message.unparsed_identifier
    for each, value in message.ListFields():
        if each.message_type is None or each.message_type.GetOptions().map_entry:
            continue
        for part in value if each.is_repeated else (value,):
            _rename_tables(part, views)


def _view_of(name: str, views: Mapping[str, str]) -> str | None:
    """Return the view of a table, which may be named with its schema and catalog."""
    parts = name.split(".")
    return next(
        (found for at in range(len(parts)) if (found := views.get(".".join(parts[at:])))), None
    )


def _renamed(query: RecordedQuery, views: Mapping[str, str]) -> str:
    """Return the text of a query whose tables have other names."""
    from sqlglot import exp, parse_one

    tree = parse_one(query.text, dialect="spark")
    for table in tree.find_all(exp.Table):
        view = _view_of(".".join(each.name for each in table.parts).lower(), views)
        if view is not None:
            alias = table.args.get("alias") or exp.TableAlias(this=table.this.copy())
            table.replace(exp.Table(this=exp.to_identifier(view), alias=alias))
    return tree.sql(dialect="spark")
