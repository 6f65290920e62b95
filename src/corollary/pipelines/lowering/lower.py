"""Lowers all queries of a project, each after those of the datasets that it reads."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql.connect.proto import relations_pb2 as relations
from pyspark.sql.connect.types import parse_attr_name
from sqlglot import exp

from corollary.analysis.change_streams import END_AT, START_AT
from corollary.errors import Diagnostic, InputError
from corollary.frontends.sql.binder.bind import bind_query
from corollary.frontends.sql.catalog import SqlCatalog, TableDefinition
from corollary.frontends.sql.query_tree import QueryColumn, output_columns
from corollary.frontends.sql.statements.definitions import free_table_nodes
from corollary.pipelines import graph
from corollary.pipelines.lowering.expressions import LeftToSparkError
from corollary.pipelines.lowering.reading import Surroundings
from corollary.pipelines.lowering.relations import RelationLowering
from corollary.pipelines.project import relation_name
from corollary.pipelines.sql_files import parse_stream_query, table_of
from corollary.source import SourceFile, Span

SourceColumns = Callable[[graph.ExternalSource, graph.Project], Sequence[QueryColumn]]
"""Returns the columns of what a project reads and does not define.

It raises an `InputError` if it is not there; code C1725 says that only Spark knows its columns.
"""

_MISTAKES = frozenset(
    ("C1300", "C1302", "C1303", "C1304", "C1307", "C1312", "C1313", "C1315", "C1361", "C1706")
)
"""Findings about queries that Spark refuses, too; the others are reasons to leave one to it."""
_MEANINGS = {
    "spark.sql.ansi.enabled": ("true",),
    "spark.sql.session.timezone": ("UTC", "Etc/UTC", "GMT", "Z", "+00:00"),
    "spark.sql.casesensitive": ("false",),
    "spark.sql.timestamptype": ("TIMESTAMP_LTZ",),
}
"""Settings with another value than these give queries another meaning."""


def lower_project(
    project: graph.Project,
    source_columns: SourceColumns,
    known: Mapping[str, Sequence[QueryColumn]] | None = None,
) -> graph.LoweredProject:
    """Return a project whose queries are lowered, as far as they can be.

    Args:
        project: as it was loaded.
        source_columns: returns the columns of what it reads and does not define.
        known: the columns of datasets that are left to Spark, as far as Spark has told them.

    Raises:
        InputError: with the findings of all queries that have mistakes.
    """
    work = _ProjectLowering(project, source_columns, known or {})
    for dataset in project.datasets:
        work.lower(dataset.name.lower())
    if work.findings:
        raise InputError(dict.fromkeys(work.findings))
    return graph.LoweredProject(project, work.queries, work.sources, tuple(work.order))


class _ProjectLowering:
    """Lowers datasets as others read them."""

    def __init__(
        self,
        project: graph.Project,
        source_columns: SourceColumns,
        known: Mapping[str, Sequence[QueryColumn]],
    ) -> None:
        self.project = project
        self.source_columns = source_columns
        self.known = {name.lower(): columns for name, columns in known.items()}
        self.datasets = {each.name.lower(): each for each in project.datasets}
        self.catalog = SqlCatalog()
        self.catalog.add(graph.CLOCK)
        self.unknown: dict[str, Diagnostic] = {}
        self.queries: dict[str, graph.BinderQuery | graph.SparkQuery] = {}
        self.sources: dict[str, graph.ExternalSource] = {}
        self.order: list[str] = []
        self.findings: list[Diagnostic] = []
        self.failed: set[str] = set()
        self.under_way: list[str] = []
        self.done: set[str] = set()

    def lower(self, name: str) -> None:
        """Lower the flows of a dataset, once."""
        if name in self.done:
            return
        self.done.add(name)
        self.under_way.append(name)
        dataset = self.datasets[name]
        columns: list[QueryColumn] | None = []
        reason: Diagnostic | None = None
        for flow in self.project.flows:
            if flow.target.lower() != name:
                continue
            found = self._lower_flow(flow)
            if isinstance(found, graph.BinderQuery) and columns is not None:
                taken = {each.name.lower() for each in columns}
                columns += [each for each in found.columns if each.name.lower() not in taken]
            elif isinstance(found, graph.SparkQuery):
                columns, reason = None, found.reason
            else:
                columns = None
        for cdc in self.project.cdc_flows:
            if cdc.target.lower() == name and columns is not None and not columns:
                columns = self._changed_columns(cdc)
        self.under_way.pop()
        self.order.append(dataset.name)
        self._define(dataset, columns, reason)

    def _define(
        self,
        dataset: graph.Dataset,
        columns: Sequence[QueryColumn] | None,
        reason: Diagnostic | None,
    ) -> None:
        """Let others read a dataset."""
        if dataset.columns is not None:
            columns = dataset.declared_columns()
        elif columns is None:
            columns = self.known.get(dataset.name.lower())
        if columns is not None:
            nullable = [replace(each, type=each.type.with_null(True)) for each in columns]
            self.catalog.add(TableDefinition(dataset.name, tuple(nullable), is_bag=True))
        elif reason is not None:
            self.unknown[dataset.name.lower()] = reason
        else:
            self.failed.add(dataset.name.lower())

    def _changed_columns(self, flow: graph.AutoCdcFlow) -> list[QueryColumn] | None:
        """Return the columns of the target of a flow of changes."""
        try:
            self.need(graph.ExternalSource(flow.source, flow.span, table=flow.source))
            source = self.catalog.find(flow.source)
            if not source:
                return None
            columns = flow.chosen_columns(source[0].columns)
            if flow.scd_type == 2:
                query = exp.select(flow.sequence_by.copy()).from_(
                    exp.Table(this=exp.to_identifier(source[0].relation, quoted=True))
                )
                (bound,) = output_columns(bind_query(query, self.catalog, flow.file))
                columns += [replace(bound, name=name) for name in (START_AT, END_AT)]
        except InputError as error:
            self.findings += error.diagnostics
            return None
        return columns

    def need(self, source: graph.ExternalSource) -> None:
        """Make the columns of a relation known, or why they are not."""
        name = source.name.lower()
        if name in self.datasets:
            if name in self.under_way:
                return self._need_circle(source)
            self.lower(name)
            if name in self.failed:
                raise _ReadsMistakeError
            return None
        if name in self.catalog_names():
            return None
        try:
            columns = tuple(self.source_columns(source, self.project))
        except InputError as error:
            if any(each.code != graph.ONLY_SPARK for each in error.diagnostics):
                raise
            self.unknown[name] = error.diagnostics[0]
        else:
            self.catalog.add(TableDefinition(source.name, columns, is_bag=True))
        self.sources[source.name] = source
        return None

    def catalog_names(self) -> set[str]:
        """Return the names of the relations whose columns are known."""
        return {each.lower() for each in self.catalog.names()} | set(self.unknown)

    def _need_circle(self, source: graph.ExternalSource) -> None:
        """Let a dataset be read that is read by what it reads, by its declared columns."""
        dataset = self.datasets[source.name.lower()]
        if dataset.columns is None:
            at = self.under_way.index(source.name.lower())
            circle = [self.datasets[each].name for each in self.under_way[at:]]
            names = " → ".join([*circle, dataset.name])
            text = (
                f"Datasets read each other in a circle, and their columns are not known: {names}."
            )
            note = "break the circle, or declare `schema=` of this one: then it is a recursion"
            raise InputError.of("C1705", text, dataset.span, note)
        self._define(dataset, None, None)

    # --- flows ---------------------------------------------------------------------------------

    def _lower_flow(self, flow: graph.Flow) -> graph.BinderQuery | graph.SparkQuery | None:
        """Return the query of a flow; None if it has mistakes."""
        kind = self.datasets[flow.target.lower()].kind
        has_clock = kind in (graph.DatasetKind.STREAMING_TABLE, graph.DatasetKind.SINK)
        around = replace(self.surroundings(), has_clock=has_clock)
        lowering = RelationLowering(flow.query, around)
        try:
            self._check_settings({**self.project.configuration, **flow.spark_conf}, flow.span)
            found: graph.BinderQuery | graph.SparkQuery = lower_query(lowering)
        except _ReadsMistakeError:
            return None
        except LeftToSparkError as refused:
            found = self._left(refused.reason, flow, lowering)
        except InputError as error:
            if any(each.code in _MISTAKES or each.code[:3] == "C17" for each in error.diagnostics):
                self.findings += error.diagnostics
                return None
            found = self._left(error.diagnostics[0], flow, lowering)
        self.queries[flow.name] = found
        return found

    def surroundings(self) -> Surroundings:
        """Return what queries may read."""
        project = self.project
        return Surroundings(
            self.catalog,
            lambda parts: relation_name(parts, project.catalog, project.schema),
            self.need,
            self.unknown,
        )

    def _left(
        self, reason: Diagnostic, flow: graph.Flow, lowering: RelationLowering
    ) -> graph.SparkQuery:
        """Return a query that is left to Spark, with all that it reads."""
        reads, streams = dict(lowering.reads), dict(lowering.streams)
        for parts, is_streaming in named_tables(flow.query):
            name = relation_name(parts, self.project.catalog, self.project.schema)
            try:
                self.need(graph.ExternalSource(name, flow.span, table=".".join(parts)))
            except (InputError, _ReadsMistakeError):
                continue
            found = self.catalog.find(name)
            dataset = self.datasets.get(name.lower())
            spelled = found[0].relation if found else dataset.name if dataset else name
            (streams if is_streaming else reads)[spelled] = None
        return graph.SparkQuery(reason, tuple(reads), tuple(streams))

    def _check_settings(self, settings: Mapping[str, str], span: Span) -> None:
        """Refuse settings that give queries another meaning."""
        for key, value in settings.items():
            good = _MEANINGS.get(key.lower())
            is_legacy = key.lower().startswith("spark.sql.legacy.")
            if is_legacy or (good and value.lower() not in [each.lower() for each in good]):
                text = f"The setting `{key}` is `{value}`, with which queries mean something else."
                note = "leave it out" if good is None else f"set it to `{good[0]}`"
                raise LeftToSparkError(Diagnostic("C1712", text, span, note))


class _ReadsMistakeError(Exception):
    """A query reads a dataset whose own query has mistakes, which are told."""


def lower_query(lowering: RelationLowering) -> graph.BinderQuery:
    """Return a query as the binder takes it, bound once.

    Raises:
        LeftToSparkError: only Spark computes it.
        InputError: it has a mistake, or something that is not supported.
    """
    query = lowering.query
    if query.tree is not None:
        tree = lowering.resolved_tables(query.tree.copy())
    else:
        node = relations.Relation.FromString(query.relation)
        tree = lowering.tree(node)
    tree = lowering.timed(tree)
    columns = output_columns(bind_query(tree.copy(), lowering.around.catalog, query.file))
    names = [each.name.lower() for each in columns]
    twice = next((each.name for each in columns if names.count(each.name.lower()) > 1), None)
    if twice is not None:
        text = f"There are two columns `{twice}`; case does not matter."
        raise InputError.of("C1304", text, query.span, "rename or drop one of them")
    return graph.BinderQuery(
        tree, query.file, columns, tuple(lowering.reads), tuple(lowering.streams),
        tuple(lowering.watermarks),
    )  # fmt: skip


def named_tables(query: graph.RecordedQuery) -> list[tuple[list[str], bool]]:
    """Return the tables that a query names anywhere, and whether as streams."""
    found: list[tuple[list[str], bool]] = []

    def add_tree(tree: exp.Expr) -> None:
        found.extend(table_of(each) for each in free_table_nodes(tree))

    def visit(message: object) -> None:
        if isinstance(message, relations.Read) and message.HasField("named_table"):
            text = message.named_table.unparsed_identifier
            found.append((parse_attr_name(text) or [text], message.is_streaming))
        if isinstance(message, relations.SQL):
            try:
                add_tree(parse_stream_query(SourceFile("SQL", message.query)))
            except InputError:
                return
        for descriptor, value in getattr(message, "ListFields", list)():
            if descriptor.message_type is None or descriptor.message_type.GetOptions().map_entry:
                continue
            for each in value if descriptor.is_repeated else [value]:
                visit(each)

    if query.tree is not None:
        add_tree(query.tree)
    else:
        visit(relations.Relation.FromString(query.relation))
    return found
