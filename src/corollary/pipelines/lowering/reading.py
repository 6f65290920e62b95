"""What a query reads: tables, files, rows of the program, texts of SQL; and what names mean."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql.connect.proto import expressions_pb2 as pb
from pyspark.sql.connect.proto import relations_pb2 as relations
from pyspark.sql.connect.types import parse_attr_name
from pyspark.sql.types import StructType
from sqlglot import exp

from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.errors import Diagnostic, InputError
from corollary.frontends.sql.binder.bind import bind_query
from corollary.frontends.sql.binder.generators import is_generator
from corollary.frontends.sql.binder.names import near_names
from corollary.frontends.sql.catalog import SqlCatalog
from corollary.frontends.sql.parse import FIRST, LAST, offsets_of, span_between
from corollary.frontends.sql.query_tree import QueryColumn, output_columns
from corollary.frontends.sql.statements.definitions import free_table_nodes
from corollary.pipelines.graph import CLOCK, ONLY_SPARK, STREAM, ExternalSource, RecordedQuery
from corollary.pipelines.lowering.expressions import (
    ExpressionLowering,
    LeftToSparkError,
    NameResolver,
    cast,
    left_to_spark,
    literal,
    number,
)
from corollary.pipelines.lowering.frames import (
    SHOWN,
    FrameBlock,
    FrameColumn,
    column_of,
    distinct_names,
    identifier,
    source_frame,
)
from corollary.pipelines.lowering.names import spark_name
from corollary.pipelines.sql_files import NameOf, parse_stream_query, table_of
from corollary.source import SourceFile, Span

_Result = TypeVar("_Result")
ROWS_MAX = 10_000
"""The most rows of `createDataFrame` that become literals."""

_REFUSED = {
    "sample": ("A sample", "it has other rows each time; choose rows by a condition"),
    "tail": ("`tail`", "order the rows, and take a `limit`"),
    "map_partitions": ("A Python function of partitions", "write it with functions of Spark"),
    "group_map": ("A Python function of groups", "write it with aggregates and windows"),
    "co_group_map": ("A Python function of groups", "join the tables"),
    "collect_metrics": ("`observe`", "aggregate in a dataset of its own"),
    "as_of_join": ("A join with the nearest row", "write it by a window over the union"),
    "transpose": ("`transpose`", "write it by `unpivot` and `pivot`"),
    "parse": ("Reading a column of texts", "load files of that format"),
    "approx_quantile": ("`approxQuantile`", "write `F.percentile(x, p)`"),
}


_CLOCK_CALLS = ("now", "current_timestamp")


class ColumnsUnknownError(LeftToSparkError):
    """A relation whose columns only Spark knows."""


@dataclass(slots=True)
class Surroundings:
    """What a query may read.

    Attributes:
        catalog: the relations whose columns are known.
        name_of: returns the relation that the parts of a name mean.
        source: adds what the project does not define; raises if there is no such thing.
        unknown: why the columns of a relation are unknown, by its name in small letters.
        has_clock: whether the query may ask for the time: it is evaluated once, on rows that are
            new, and `CLOCK` has it.
    """

    catalog: SqlCatalog
    name_of: NameOf
    source: Callable[[ExternalSource], None]
    unknown: Mapping[str, Diagnostic] = field(default_factory=dict)
    has_clock: bool = False


class ReadLowering:
    """Lowers what a query reads; those above it lower the rest.

    Attributes:
        reads: the relations that it reads in whole.
        streams: those that it reads as streams.
    """

    def __init__(self, query: RecordedQuery, around: Surroundings) -> None:
        self.query = query
        self.file = query.file
        self.around = around
        self.reads: dict[str, None] = {}
        self.streams: dict[str, None] = {}
        self.watermarks: list[tuple[str, str]] = []
        self.span = query.span
        self.outer: list[FrameBlock] = []
        self.references: dict[int, relations.Relation] = {}
        self.views: dict[str, relations.Relation] = {}
        self._aliases = 0

    def lower(self, node: relations.Relation) -> FrameBlock:
        """Return the frame of a relation.

        Raises:
            LeftToSparkError: only Spark computes it.
            InputError: it names something that is not there.
        """
        kind = node.WhichOneof("rel_type") or ""
        visit: Callable[[Any], FrameBlock] | None = getattr(self, f"_visit_{kind}", None)
        before, place = self.span, self.query.places.get(node.common.plan_id)
        if place is not None:
            self.span = span_between(self.file, *place)
        try:
            if visit is None:
                words = f"`{kind.replace('_', ' ')}`"
                raise left_to_spark(*_with_place(_REFUSED.get(kind, (words, "")), self.span))
            return visit(getattr(node, kind)).with_plan(node.common.plan_id)
        finally:
            self.span = before

    def tree(self, node: relations.Relation) -> exp.Expr:
        """Return the query of a relation, in which nodes without a place have that of the query."""
        found = self.lower(node).query()
        self._place(found, self.query.span)
        return found

    # --- helpers -------------------------------------------------------------------------------

    def alias(self) -> str:
        """Return a name for a source."""
        self._aliases += 1
        return f"t{self._aliases}"

    def wrapped(self, frame: FrameBlock) -> FrameBlock:
        """Return a frame whose only source is the query of another one."""
        alias = self.alias()
        found = frame.wrapped(alias)
        assert found.source is not None
        self._place(found.source, self.span)
        return found

    def opened(self, frame: FrameBlock) -> FrameBlock:
        """Return a frame that more may be done to."""
        return self.wrapped(frame) if frame.is_closed else frame

    def _place(self, tree: exp.Expr, span: Span) -> None:
        if FIRST not in tree.meta and span.file is self.file:
            tree.meta[FIRST] = _offset(span.file, span.line, span.column)
            tree.meta[LAST] = _offset(span.file, span.end_line, span.end_column)

    def computed(
        self,
        frame: FrameBlock,
        work: Callable[[ExpressionLowering], _Result],
        *,
        is_loose: bool = False,
    ) -> tuple[FrameBlock, _Result]:
        """Lower expressions over a frame; one with computed columns that they read is wrapped."""
        names = FrameNames(self, frame, is_loose)
        result = work(ExpressionLowering(self.file, self.span, names))
        if not names.reads_computed:
            return frame, result
        frame = self.wrapped(frame)
        return frame, work(ExpressionLowering(self.file, self.span, FrameNames(self, frame)))

    def bound(self, tree: exp.Expr) -> tuple[QueryColumn, ...]:
        """Return the columns of a query, with their types."""
        self._place(tree, self.span)
        tree = self.timed(tree.copy())
        return output_columns(bind_query(tree, self.around.catalog, self.file))

    def timed(self, tree: exp.Expr) -> exp.Expr:
        """Return a query that reads the time where it asks for it, if it may.

        Raises:
            InputError: `C1721`, it asks for the names of files.
        """
        if not self.around.has_clock:
            return tree
        for node in tree.find_all(exp.Anonymous):
            if node.name.lower().startswith("input_file_"):
                raise self.asks_for_files(f"{node.name.lower()}()")
        return tree.transform(_from_clock)

    def asks_for_files(self, what: str) -> InputError:
        """Return the error of a flow that asks for the files that rows came from."""
        return InputError.of(
            "C1721",
            f"The flow asks for `{what}`, and rows that were read do not tell from which file.",
            self.span,
            "let each row have the name of its file as a column, where the files are made; or ask "
            "in a materialized view on the files, which Spark computes",
        )

    def types(self, frame: FrameBlock) -> list[Type]:
        """Return the types of a frame's columns."""
        names = distinct_names(frame.names)
        visible = replace(frame, columns=frame.visible)
        return [each.type for each in self.bound(visible.query(names))]

    def _bound_frame(self, tree: exp.Expr, known: Sequence[FrameColumn] = ()) -> FrameBlock:
        """Return a frame over a query whose columns the binder tells."""
        names = [each.name for each in self.bound(tree)]
        columns = [FrameColumn(name, exp.Null()) for name in names]
        if len(known) == len(names):
            columns = [replace(k, name=n) for k, n in zip(known, names, strict=True)]
        return source_frame(exp.Subquery(this=tree), self.alias(), columns, names)

    # --- what is read --------------------------------------------------------------------------

    def _visit_read(self, node: relations.Read) -> FrameBlock:
        if node.WhichOneof("read_type") == "data_source":
            return self._read_files(node.data_source, node.is_streaming)
        text = node.named_table.unparsed_identifier
        return self.table(parse_attr_name(text) or [text], node.is_streaming)

    def table(self, parts: Sequence[str], is_streaming: bool) -> FrameBlock:
        """Return the frame of a relation that is named."""
        name = self.relation(parts, is_streaming)
        (definition,) = self.around.catalog.find(name)[:1]
        words = [each.lower() for each in parts]
        qualifiers = frozenset(".".join(words[at:]) for at in range(len(words)))
        names = [each.name for each in definition.columns]
        columns = [FrameColumn(each, exp.Null(), qualifiers=qualifiers) for each in names]
        source = exp.Table(this=identifier(definition.relation))
        if is_streaming:
            source.meta[STREAM] = True
        self._place(source, self.span)
        return source_frame(source, self.alias(), columns, names)

    def relation(self, parts: Sequence[str], is_streaming: bool) -> str:
        """Return the relation that a name means, and note that it is read."""
        name = self.around.name_of(parts)
        known = self.around.unknown.get(name.lower())
        if known is None and not self.around.catalog.find(name):
            source = ExternalSource(name, self.span, table=".".join(parts))
            self.around.source(source)
        return self._noted(name, is_streaming)

    def _noted(self, name: str, is_streaming: bool) -> str:
        found = self.around.catalog.find(name)
        name = found[0].relation if found else name
        (self.streams if is_streaming else self.reads)[name] = None
        if name.lower() in self.around.unknown:
            cause = self.around.unknown[name.lower()]
            note = "give it a schema, or change what is left to Spark"
            text = f"The columns of `{name}` are only known to Spark."
            if cause.code == ONLY_SPARK:
                text = cause.message
            related = () if cause.span is None else ((cause.span, "because of this"),)
            raise ColumnsUnknownError(Diagnostic("C1711", text, self.span, note, related))
        return name

    def _read_files(self, node: relations.Read.DataSource, is_streaming: bool) -> FrameBlock:
        paths = tuple(node.paths) or tuple(filter(None, [node.options.get("path")]))
        options = {key: value for key, value in node.options.items() if key != "path"}
        name = source_name(node.format, paths, options, node.schema)
        source = ExternalSource(
            name, self.span, node.format or "parquet", "", paths, options, node.schema or None
        )
        if not self.around.catalog.find(name) and name.lower() not in self.around.unknown:
            self.around.source(source)
        self._noted(name, is_streaming)
        (definition,) = self.around.catalog.find(name)[:1]
        names = [each.name for each in definition.columns]
        table = exp.Table(this=identifier(name))
        if is_streaming:
            table.meta[STREAM] = True
        self._place(table, self.span)
        columns = [FrameColumn(each, exp.Null()) for each in names]
        return source_frame(table, self.alias(), columns, names)

    def _visit_range(self, node: relations.Range) -> FrameBlock:
        bounds = [number(each) for each in (node.start, node.end, node.step)]
        table = exp.Table(this=exp.Anonymous(this="range", expressions=bounds))
        return source_frame(table, self.alias(), [FrameColumn("id", exp.Null())], ["id"])

    def _visit_local_relation(self, node: relations.LocalRelation) -> FrameBlock:
        rows: list[dict[str, Any]] = []
        table = pa.ipc.open_stream(node.data).read_all() if node.data else None
        if table is not None and table.num_rows > ROWS_MAX:
            what = f"A DataFrame of more than {ROWS_MAX} rows in the program"
            raise left_to_spark(what, self.span, "write the rows into a file, and load it")
        if node.schema:
            schema = StructType.fromJson(json.loads(node.schema))
            types = [each.dataType.simpleString() for each in schema.fields]
            names = schema.fieldNames()
        else:
            from pyspark.sql.pandas.types import from_arrow_schema

            assert table is not None
            found = from_arrow_schema(table.schema)
            types, names = [each.dataType.simpleString() for each in found.fields], found.names
        if table is not None:
            unique = [f"c{at}" for at in range(len(names))]
            rows = table.rename_columns(unique).to_pylist()
        try:
            columns = [
                FrameColumn(name, cast(column_of("v", f"c{at}", name), type_))
                for at, (name, type_) in enumerate(zip(names, types, strict=True))
            ]
        except InputError as error:
            raise LeftToSparkError(
                replace(error.diagnostics[0], code="C1710", span=self.span)
            ) from None
        tuples = [exp.Tuple(expressions=[*map(literal, row.values())]) for row in rows]
        tuples = tuples or [exp.Tuple(expressions=[exp.Null() for _ in names])]
        source = exp.Values(
            expressions=tuples,
            alias=exp.TableAlias(
                this=identifier("v"), columns=[identifier(f"c{at}") for at in range(len(names))]
            ),
        )
        tests = () if rows else (exp.Boolean(this=False),)
        return self.wrapped(FrameBlock(source, tuple(columns), tests=tests))

    # --- SQL -----------------------------------------------------------------------------------

    def _visit_sql(self, node: relations.SQL) -> FrameBlock:
        named = {**node.named_arguments}
        positional = list(node.pos_arguments)
        if node.args or node.pos_args:
            raise left_to_spark("`args` of an older client", self.span, "write `args=`")
        return self._bound_frame(self.text(node.query, named, positional))

    def text(
        self, text: str, named: Mapping[str, pb.Expression], positional: Sequence[pb.Expression]
    ) -> exp.Expr:
        """Return the tree of a text of SQL, with the places that it has in the user's file."""
        start = _offset(self.file, self.span.line, self.span.column)
        end = _offset(self.file, self.span.end_line, self.span.end_column)
        at = self.file.text.find(text, start, end) if self.span.file is self.file else -1
        masked = re.sub(r"[^\n]", " ", self.file.text[:at]) + text if at >= 0 else text
        try:
            tree = parse_stream_query(SourceFile(self.file.name, masked))
        except InputError as error:
            raise InputError(
                [
                    replace(each, span=replace(each.span, file=self.file))
                    if at >= 0 and each.span
                    else replace(each, span=self.span)
                    for each in error.diagnostics
                ]
            ) from None
        if at < 0:
            for part in tree.walk():
                for key in (FIRST, LAST, "start", "end"):
                    part.meta.pop(key, None)
            self._place(tree, self.span)
        _, lowered = self.computed(
            FrameBlock(None, ()),
            lambda to: (
                {name: to.lower(each) for name, each in named.items()},
                to.all(positional),
            ),
        )
        return self.resolved_tables(_with_arguments(tree, *lowered))

    def resolved_tables(self, tree: exp.Expr) -> exp.Expr:
        """Return a tree of SQL whose tables are relations, and whose columns Spark's names."""
        for table in list(free_table_nodes(tree)):
            parts, is_streaming = table_of(table)
            place = self.span
            offsets = offsets_of(table)
            if offsets is not None:
                place = span_between(self.file, *offsets)
            alias = table.args.get("alias") or exp.TableAlias(this=identifier(parts[-1]))
            view = self.views.get(parts[0].lower()) if len(parts) == 1 else None
            if view is not None:
                inner: exp.Expr = exp.Subquery(this=self.lower(view).query(), alias=alias)
            else:
                before, self.span = self.span, place
                try:
                    name = self.relation(parts, is_streaming)
                finally:
                    self.span = before
                inner = exp.Table(this=identifier(name), alias=alias)
                inner.meta.update(table.meta)
                if offsets is not None:
                    inner.meta[FIRST], inner.meta[LAST] = offsets
            for part in ("joins", "pivots", "laterals"):
                if table.args.get(part):
                    inner.set(part, table.args[part])
            if table is tree:
                return inner
            table.replace(inner)
        _name_columns(tree)
        return tree


class FrameNames(NameResolver):
    """The names of a frame, and of those around a subquery.

    Attributes:
        is_loose: whether a name may be one that a projection has just left out.
        reads_computed: whether a column was read that is no column of a source.
    """

    def __init__(self, lowering: ReadLowering, frame: FrameBlock, is_loose: bool = False) -> None:
        self.lowering = lowering
        self.frame = frame
        self.is_loose = is_loose
        self.reads_computed = False

    def column(self, parts: Sequence[str], plan_id: int | None, place: Span) -> exp.Expr:
        """Return the column of the frame, or of those around it."""
        for frame in (self.frame, *reversed(self.lowering.outer)):
            found, fields = frame.find(parts, plan_id, is_loose=self.is_loose)
            if not found:
                continue
            if any(each.node != found[0].node for each in found):
                text = f"`{parts[-1]}` can mean several columns."
                note = 'name the DataFrame of the column, `df["a"]`, or give aliases to both sides'
                raise InputError.of("C1304", text, place, note)
            column = found[0]
            if not column.is_plain:
                self.reads_computed = True
            tree = column.node.copy()
            tree.meta[SHOWN] = parts[-1 - len(fields)]
            for each in fields:
                tree = exp.Dot(this=tree, expression=identifier(each))
            return tree
        name = ".".join(parts)
        if parts[0].lower() == "_metadata" and self.lowering.around.has_clock:
            raise self.lowering.asks_for_files(name)
        note = near_names(parts[-1], self.frame.names, "the columns are")
        if plan_id is not None and self.frame.find(parts, None)[0]:
            note = f'the DataFrame that it is of is not read here; write `F.col("{name}")`'
        raise InputError.of("C1303", f"There is no column `{name}`.", place, note)

    def subquery(self, node: pb.SubqueryExpression, _: Span) -> exp.Expr:
        """Return a query that may name the columns of the frame."""
        self.lowering.outer.append(self.frame)
        try:
            return self.lowering.lower(self.lowering.references[node.plan_id]).query()
        finally:
            self.lowering.outer.pop()


def frame_of(to: ExpressionLowering) -> FrameBlock:
    """Return the frame that expressions are lowered over."""
    assert isinstance(to.names, FrameNames)
    return to.names.frame


def source_name(format_: str, paths: Sequence[str], options: Mapping[str, str], schema: str) -> str:
    """Return the relation that files are: named like the last path, and told apart by a number.

    >>> source_name("csv", ["/data/orders/*.csv"], {}, "")
    'orders_csv_...'
    """
    from hashlib import sha256

    words = [re.sub(r"\W+", "_", each).strip("_") for each in "/".join(paths).split("/")]
    named = [each for each in words if each and each.lower() != (format_ or "parquet").lower()]
    key = json.dumps([format_, list(paths), sorted(options.items()), schema])
    stem = f"{(named or ['source'])[-1]}_{format_ or 'parquet'}".lower()
    return f"{stem}_{sha256(key.encode()).hexdigest()[:4]}"


def _from_clock(node: exp.Expr) -> exp.Expr:
    name = node.name.lower() if isinstance(node, exp.Anonymous) and not node.expressions else ""
    is_day = isinstance(node, exp.CurrentDate) or name in ("current_date", "curdate")
    if not is_day and not isinstance(node, exp.CurrentTimestamp) and name not in _CLOCK_CALLS:
        return node
    time = exp.select(exp.column(identifier(CLOCK.columns[0].name)))
    found = time.from_(exp.Table(this=identifier(CLOCK.relation))).subquery()
    return cast(found, "date") if is_day else found


def _with_place(refused: tuple[str, str], span: Span) -> tuple[str, Span, str]:
    return refused[0], span, refused[1] or "write it in another way to have it maintained"


def _with_arguments(
    tree: exp.Expr, named: Mapping[str, exp.Expr], positional: Sequence[exp.Expr]
) -> exp.Expr:
    """Return a tree with the values of its parameters."""
    given = iter(positional)
    for each in list(tree.find_all(exp.Placeholder)):
        name = str(each.this or "")
        value = named.get(name) if name else next(given, None)
        if value is not None:
            each.replace(value.copy())
    return tree


def _name_columns(tree: exp.Expr) -> None:
    """Give the columns of a query the names that Spark gives to expressions without alias."""
    while isinstance(tree, exp.SetOperation | exp.Subquery | exp.Paren):
        tree = tree.this
    if not isinstance(tree, exp.Select):
        return
    for each in tree.expressions:
        named = (exp.Alias, exp.Aliases, exp.Column, exp.Dot, exp.Star)
        if not isinstance(each, named) and not is_generator(each):
            alias = exp.Alias(this=each.copy(), alias=identifier(spark_name(each)))
            alias.meta.update(each.meta)
            each.replace(alias)


def _offset(file: SourceFile, line: int, column: int) -> int:
    """Return the offset of a line and a column."""
    start = 0
    for _ in range(line - file.first_line):
        start = file.text.find("\n", start) + 1
    return start + column - 1
