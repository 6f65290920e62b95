"""From a lowered project to a program, and to what the flows of a run do beside it.

| dataset | in the program |
|---|---|
| materialized view | a stored view, published |
| temporary view | a virtual view |
| streaming table | a base relation, published, to which its flows append |
| target of AUTO CDC | a stored view, published, on the events that count |
| sink | a base relation with what the last run has for it |
| what is left to Spark | a base relation that is replaced by what Spark computes |
| external source | a base relation with an `.input` |

The events are in `t.events`. A flow `f` of a streaming table `t` is a virtual view, `t.f.flow`,
which reads `t.f.gains1` where it reads a stream. Such a base relation is empty but while a run asks
for the view: then it has what its stream has gained since the flow read it last. So a flow costs
what is new, not what is there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace

from sqlglot import exp

from corollary.analysis.change_streams import DELETED, END_AT, SEQUENCE, START_AT
from corollary.core.graph import reachable
from corollary.core.program import (
    SQL_DIRECTIVE,
    Column,
    Declaration,
    Directive,
    Program,
    TypeName,
)
from corollary.data_class import dataclass
from corollary.database.intake.change_events import identity_of, table_query
from corollary.errors import InputError
from corollary.frontends.sql.binder.bind import bind_query
from corollary.frontends.sql.binder.session import type_name
from corollary.frontends.sql.catalog import SqlCatalog, TableDefinition
from corollary.frontends.sql.parse import parse_query, split_statements
from corollary.frontends.sql.query_tree import QueryColumn, output_columns
from corollary.frontends.sql.statements import nodes
from corollary.frontends.sql.statements.definitions import (
    Compilation,
    PlacedDefinition,
    compile_views,
)
from corollary.frontends.sql.statements.tokens import SqlName
from corollary.frontends.sql.statements.writes import spark_type
from corollary.pipelines.graph import (
    CLOCK,
    STREAM,
    AutoCdcFlow,
    BinderQuery,
    Dataset,
    DatasetKind,
    Flow,
    LoweredProject,
    SparkQuery,
)
from corollary.pipelines.sinks import check_sink
from corollary.source import SourceFile, Span

_STATEFUL = {
    exp.Group: "groups rows",
    exp.Distinct: "removes duplicates",
    exp.Window: "has window functions",
    exp.Limit: "has a LIMIT",
}
"""What needs the rows of earlier runs, so that the rows of one run do not say what to append."""


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """A flow as a run does it.

    Attributes:
        key: under which its position is kept.
        writes: the base relation that gets its rows, or the events that count.
        view: the virtual view that has the rows of a run.
        gains: the base relations for what streams have gained, by stream.
        has_clock: whether the view reads the time of the run.
    """

    key: str
    target: str
    writes: str
    view: str
    gains: Mapping[str, str]
    cdc: AutoCdcFlow | None = None
    has_clock: bool = False


@dataclass(frozen=True, slots=True)
class DatasetPlan:
    """A dataset as a run does it.

    Attributes:
        how: in words, for people.
        relation: the base relation that runs write to; None for views.
        spark: why it is left to Spark, and which flow it has.
        circle: the other views that it is in a circle with.
    """

    dataset: Dataset
    how: str
    relation: str | None = None
    flows: tuple[FlowPlan, ...] = ()
    spark: tuple[Flow, SparkQuery] | None = None
    circle: tuple[str, ...] = ()


@dataclass(slots=True)
class CompiledProject:
    """A project that can be run."""

    lowered: LoweredProject
    program: Program
    plans: list[DatasetPlan] = field(default_factory=list)


SparkColumns = Callable[[Dataset, Flow, SparkQuery, SqlCatalog], tuple[QueryColumn, ...]]
"""Returns the columns of a dataset that is left to Spark, given those of what it reads."""


@dataclass(slots=True)
class ProjectCompiler:
    """Makes the program of a project.

    Attributes:
        sources: the declarations and `.input`s of what the project reads.
        spark_columns: returns the columns of a dataset that is left to Spark.
    """

    lowered: LoweredProject
    sources: Program
    spark_columns: SparkColumns
    catalog: SqlCatalog = field(default_factory=SqlCatalog)
    program: Program = field(default_factory=Program)
    views: list[PlacedDefinition] = field(default_factory=list)
    plans: dict[str, DatasetPlan] = field(default_factory=dict)

    def compile(self) -> CompiledProject:
        """Return the program of the project, and what its runs do.

        Raises:
            InputError: with all that is wrong.
        """
        left: dict[str, SparkQuery] = {}
        while True:  # until no view is refused by the lowering of queries
            self._begin()
            for name in self.lowered.order:
                self._add(self._dataset(name), left)
            work = Compilation(self.catalog)
            compile_views(work, self.views)
            refused = self._refused(work, left)
            if not refused:
                break
            left |= refused
        program = self.program + work.program()
        return CompiledProject(self.lowered, program, list(self.plans.values()))

    def _begin(self) -> None:
        self.catalog, self.views, self.plans = SqlCatalog(), [], {}
        self.program = self.sources
        for each in self.sources.declarations:
            self.catalog.add(_table(each.name, _columns_of(self.sources, each.name)))

    def _refused(self, work: Compilation, left: Mapping[str, SparkQuery]) -> dict[str, SparkQuery]:
        """Return the materialized views that rules cannot express, each with the reason.

        Raises:
            InputError: what cannot be left to Spark is refused.
        """
        found: dict[str, SparkQuery] = {}
        known = {name.lower(): name for name in self.plans}
        for key, findings in work.refused.items():
            name = known.get(key)
            is_view = name is not None and name not in left
            if not findings:
                continue
            if not is_view or name is None:
                raise InputError(findings)
            plan = self.plans[name]
            if plan.circle or plan.dataset.kind is not DatasetKind.MATERIALIZED_VIEW:
                raise InputError(findings)
            (flow,) = self._flows(name)
            query = self.lowered.queries[flow.name]
            found[name] = SparkQuery(findings[0], query.reads, query.streams)
        return found

    def _dataset(self, name: str) -> Dataset:
        return next(each for each in self.lowered.project.datasets if each.name == name)

    def _flows(self, target: str) -> list[Flow]:
        return [each for each in self.lowered.project.flows if each.target == target]

    # --- datasets ------------------------------------------------------------------------------

    def _add(self, dataset: Dataset, left: Mapping[str, SparkQuery]) -> None:
        cdc = [each for each in self.lowered.project.cdc_flows if each.target == dataset.name]
        if cdc:
            self._add_cdc(dataset, cdc)
            return
        flows = self._flows(dataset.name)
        queries = [(each, self.lowered.queries[each.name]) for each in flows]
        if dataset.kind in (DatasetKind.STREAMING_TABLE, DatasetKind.SINK):
            self._add_stream(dataset, queries)
            return
        ((flow, query),) = queries
        reason = left.get(dataset.name)
        if reason is not None:
            query = reason
        if isinstance(query, SparkQuery):
            self._add_spark(dataset, flow, query)
            return
        circle = self._circle(dataset.name)
        tree = _unwrapped(query.tree) if circle else query.tree
        if dataset.columns is not None:
            _check_declared(dataset, query.columns, flow.span)
            tree = _assigned(tree, query.columns, dataset.declared_columns())
        is_stored = dataset.kind is DatasetKind.MATERIALIZED_VIEW
        self._add_view(dataset.name, tree, query.file, dataset.span, is_materialized=is_stored)
        columns = dataset.declared_columns() if dataset.columns is not None else query.columns
        self.catalog.add(_table(dataset.name, columns))
        how = "maintained" if is_stored else "computed when it is read"
        if circle:
            how = f"maintained, as the least fixpoint with {', '.join(circle)}"
        self.plans[dataset.name] = DatasetPlan(dataset, how, circle=circle)

    def _circle(self, name: str) -> tuple[str, ...]:
        """Return the other views that a view reads, and that read it."""
        reads = {
            each.target: {*self.lowered.queries[each.name].reads}
            for each in self.lowered.project.flows
        }

        def below(start: str) -> dict[str, None]:
            return reachable(reads.get(start, ()), lambda each: sorted(reads.get(each, ())))

        return tuple(sorted(each for each in below(name) if each != name and name in below(each)))

    def _add_view(
        self,
        name: str,
        tree: exp.Expr,
        file: SourceFile,
        span: Span,
        *,
        is_materialized: bool = False,
        is_hidden: bool = False,
    ) -> None:
        kind = "MATERIALIZED VIEW" if is_materialized else "VIEW"
        text = f"CREATE {kind} {_quoted(name)} AS {tree.sql(dialect='spark', comments=False)}"
        made = nodes.CreateView(
            SqlName(name, span), (), tree, is_materialized, False, False, text, span
        )
        self.views.append(PlacedDefinition(made, file))
        if not is_hidden:
            self.program += Program(directives=(_kept(name, text, span),))

    def _declare(
        self,
        name: str,
        columns: Sequence[QueryColumn],
        span: Span,
        *,
        key: tuple[str, ...] = (),
        is_published: bool = False,
        is_hidden: bool = False,
    ) -> None:
        """Declare a base relation."""
        made = tuple(
            Column(each.name, TypeName.of(each.type.with_null(each.name not in key)))
            for each in columns
        )
        declaration = Declaration(name, made, key=key, is_bag=not key, span=span)
        directives: list[Directive] = []
        if not is_hidden:
            directives.append(_kept(name, _table_text(name, columns), span))
        if is_published:
            directives.append(Directive("output", name, span=span))
        self.program += Program(declarations=(declaration,), directives=tuple(directives))
        found = _table(name, columns)
        names = [each.name for each in columns]
        if key:
            found = replace(found, is_bag=False, keys=(frozenset(map(names.index, key)),))
        self.catalog.add(found)

    # --- streaming tables ----------------------------------------------------------------------

    def _add_stream(
        self, dataset: Dataset, queries: Sequence[tuple[Flow, BinderQuery | SparkQuery]]
    ) -> None:
        """Add a streaming table or a sink, with its flows.

        Raises:
            InputError: `C1721`, a flow is left to Spark, needs state, or has other columns.
        """
        for _, query in queries:
            if isinstance(query, SparkQuery):
                raise InputError([query.reason])
        known = [(flow, query) for flow, query in queries if isinstance(query, BinderQuery)]
        declared = None if dataset.columns is None else dataset.declared_columns()
        columns = declared or _merged(dataset, [query.columns for _, query in known])
        is_table = dataset.kind is DatasetKind.STREAMING_TABLE
        self._declare(dataset.name, columns, dataset.span, is_published=is_table)
        if dataset.kind is DatasetKind.SINK:
            check_sink(dataset)
        flows = []
        for flow, query in known:
            _refuse_state(flow, query)
            if declared is not None:
                _check_declared(dataset, query.columns, flow.span)
            prefix = f"{dataset.name}.{flow.name}"
            gains: dict[str, str] = {}
            tree = self._on_gains(query.tree, prefix, gains, flow.span)
            if not gains:
                raise InputError.of(
                    "C1721",
                    f"The flow `{flow.name}` reads no stream, so no rows are ever new to it.",
                    flow.span,
                    "read one by `spark.readStream` or `STREAM(…)`, or make it a materialized view",
                )
            tree = _assigned(tree, query.columns, columns)
            view = f"{prefix}.flow"
            self._add_view(view, tree, query.file, flow.span, is_hidden=True)
            has_clock = any(_name_of(each) == CLOCK.relation for each in tree.find_all(exp.Table))
            if has_clock and not self.catalog.find(CLOCK.relation):
                self._declare(CLOCK.relation, CLOCK.columns, flow.span, is_hidden=True)
            flows.append(
                FlowPlan(
                    f"flow {prefix}", dataset.name, dataset.name, view, gains, has_clock=has_clock
                )
            )
        what = "appended to" if is_table else "written to"
        how = f"{what} by {len(flows)} flow{'s' * (len(flows) != 1)}"
        self.plans[dataset.name] = DatasetPlan(dataset, how, dataset.name, tuple(flows))

    def _on_gains(self, tree: exp.Expr, prefix: str, gains: dict[str, str], span: Span) -> exp.Expr:
        """Return a query that reads what streams have gained, where it reads streams."""

        def renamed(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Table) or not node.meta.get(STREAM):
                return node
            name = self._gains_of(_name_of(node), prefix, gains, span)
            alias = node.args.get("alias") or exp.TableAlias(this=node.this.copy())
            found = exp.Table(this=exp.to_identifier(name, quoted=True), alias=alias)
            found.meta.update({key: each for key, each in node.meta.items() if key != STREAM})
            return found

        return tree.copy().transform(renamed)

    def _gains_of(self, stream: str, prefix: str, gains: dict[str, str], span: Span) -> str:
        """Return the relation that has what a stream has gained; a temporary view is asked again.

        Raises:
            InputError: `C1721`, it is a view that is stored: its rows come and go.
        """
        (definition,) = self.catalog.find(stream)
        plan = self.plans.get(definition.relation)
        if plan is not None and plan.dataset.kind is DatasetKind.TEMPORARY_VIEW:
            (flow,) = self._flows(definition.relation)
            query = self.lowered.queries[flow.name]
            assert isinstance(query, BinderQuery)
            _refuse_state(flow, query)
            view = f"{prefix}.{definition.relation}.flow"
            tree = self._on_gains(query.tree, prefix, gains, span)
            self._add_view(view, tree, query.file, span, is_hidden=True)
            self.catalog.add(_table(view, query.columns))
            return view
        if plan is not None and plan.relation is None:
            raise InputError.of(
                "C1721",
                f"`{definition.relation}` is maintained, so its rows come and go: no flow can read "
                "it as a stream.",
                span,
                "read it in whole (`spark.read.table`), or make it a streaming table",
            )
        name = gains.get(definition.relation)
        if name is None:
            name = gains[definition.relation] = f"{prefix}.gains{len(gains) + 1}"
            self._declare(name, definition.columns, span, is_hidden=True)
        return name

    # --- AUTO CDC ------------------------------------------------------------------------------

    def _add_cdc(self, dataset: Dataset, cdc: Sequence[AutoCdcFlow]) -> None:
        """Add the events that count, and the table that they describe."""
        first = cdc[0]
        events, history = f"{dataset.name}.events", first.scd_type == 2
        flows: list[FlowPlan] = []
        columns: tuple[QueryColumn, ...] = ()
        for each in cdc:
            if (each.keys, each.scd_type) != (first.keys, first.scd_type):
                raise InputError.of(
                    "C1721",
                    f"The flows into `{dataset.name}` have different keys or types of history.",
                    each.span,
                    "let them have the same `keys` and `stored_as_scd_type`",
                )
            prefix = f"{dataset.name}.{each.name}"
            gains: dict[str, str] = {}
            source = self._gains_of(each.source, prefix, gains, each.span)
            (changes,) = self.catalog.find(each.source)
            chosen = [column.name for column in each.chosen_columns(changes.columns)]
            tree = _events_tree(each, source, chosen)
            bound = output_columns(bind_query(tree, self.catalog, each.file))
            if not columns:
                columns = bound
                identity = identity_of(each.keys, has_history=history)
                self._declare(events, columns, each.span, key=identity, is_hidden=True)
            tree = _assigned(tree, bound, columns)
            view = f"{prefix}.flow"
            self._add_view(view, tree, each.file, each.span, is_hidden=True)
            flows.append(FlowPlan(f"flow {prefix}", dataset.name, events, view, gains, each))
        data = [each for each in columns if each.name not in (SEQUENCE, DELETED)]
        names = [each.name for each in data]
        text = table_query(
            events, names, first.keys, has_history=history, tracked=_tracked(first, names)
        )
        file = SourceFile.of_statement(dataset.name, text)
        (tokens,) = split_statements(file)
        tree = parse_query(tokens, file)
        self._add_view(dataset.name, tree, file, dataset.span, is_materialized=True, is_hidden=True)
        if history:
            (sequence,) = (each for each in columns if each.name == SEQUENCE)
            bounds = (QueryColumn(name, sequence.type) for name in (START_AT, END_AT))
            data = [*data, *bounds]
        self.catalog.add(_table(dataset.name, data))
        kept = _kept(dataset.name, _table_text(dataset.name, data), dataset.span)
        self.program += Program(directives=(kept,))
        how = f"AUTO CDC of type {first.scd_type}"
        self.plans[dataset.name] = DatasetPlan(dataset, how, events, tuple(flows))

    # --- what is left to Spark -----------------------------------------------------------------

    def _add_spark(self, dataset: Dataset, flow: Flow, query: SparkQuery) -> None:
        if dataset.kind is DatasetKind.TEMPORARY_VIEW:
            raise InputError([query.reason])
        if dataset.properties.get("corollary.refresh_policy", "").upper() == "INCREMENTAL STRICT":
            raise InputError([query.reason])
        columns = self.spark_columns(dataset, flow, query, self.catalog)
        self._declare(dataset.name, columns, dataset.span, is_published=True)
        self.plans[dataset.name] = DatasetPlan(
            dataset, "computed by Spark", dataset.name, spark=(flow, query)
        )


# --- columns -------------------------------------------------------------------------------------


def _kept(name: str, text: str, span: Span) -> Directive:
    return Directive(SQL_DIRECTIVE, name, (("text", text),), span)


def _quoted(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql(dialect="spark")


def _table_text(name: str, columns: Iterable[QueryColumn]) -> str:
    listed = ", ".join(f"{_quoted(each.name)} {type_name(each.type)}" for each in columns)
    return f"CREATE TABLE {_quoted(name)} ({listed})"


def _table(name: str, columns: Iterable[QueryColumn]) -> TableDefinition:
    return TableDefinition(name, tuple(_nullable(each) for each in columns), is_bag=True)


def _nullable(column: QueryColumn) -> QueryColumn:
    return QueryColumn(column.name, column.type.with_null(True), column.span)


def _columns_of(program: Program, name: str) -> tuple[QueryColumn, ...]:
    from corollary.frontends.sql.catalog import catalog_of

    (found,) = catalog_of(program).find(name)
    return found.columns


def _check_declared(dataset: Dataset, given: Sequence[QueryColumn], span: Span) -> None:
    """Refuse a query with a column that the declared schema lacks, as Spark does.

    Raises:
        InputError: `C1721`.
    """
    declared = [each.name.text for each in dataset.columns or ()]
    known = {each.lower() for each in declared}
    extra = next((each.name for each in given if each.name.lower() not in known), None)
    if extra is not None:
        raise InputError.of(
            "C1721",
            f"The query of `{dataset.name}` has a column `{extra}` that its declared schema lacks.",
            span,
            f"columns go by name: call it one of {', '.join(f'`{each}`' for each in declared)}",
        )


def _merged(dataset: Dataset, given: Sequence[Sequence[QueryColumn]]) -> tuple[QueryColumn, ...]:
    """Return the columns of all flows of a table, by their names.

    Raises:
        InputError: `C1721`, two flows have a column with different types.
    """
    found: dict[str, QueryColumn] = {}
    for column in (each for columns in given for each in columns):
        known = found.setdefault(column.name.lower(), _nullable(column))
        if known.type != column.type.with_null(True):
            raise InputError.of(
                "C1721",
                f"Flows into `{dataset.name}` give `{column.name}` the types "
                f"{type_name(known.type)} and {type_name(column.type)}.",
                dataset.span,
                "cast the column in one of them, or declare the schema of the table",
            )
    return tuple(found.values())


def _assigned(
    tree: exp.Expr, given: Sequence[QueryColumn], wanted: Sequence[QueryColumn]
) -> exp.Expr:
    """Return a query with the columns of a table, by name, null where it has none of that name."""
    if [(each.name, each.type.with_null(True)) for each in given] == [
        (each.name, each.type.with_null(True)) for each in wanted
    ]:
        return tree
    known = {each.name.lower(): each for each in given}
    columns: list[exp.Expr] = []
    for each in wanted:
        found = known.get(each.name.lower())
        value: exp.Expr = exp.Null()
        if found is not None:
            value = exp.column(exp.to_identifier(found.name, quoted=True))
        if found is None or found.type.with_null(True) != each.type.with_null(True):
            value = exp.Cast(this=value, to=spark_type(each.type))
        columns.append(exp.alias_(value, exp.to_identifier(each.name, quoted=True)))
    alias = exp.TableAlias(this=exp.to_identifier("rows"))
    return exp.select(*columns).from_(exp.Subquery(this=tree, alias=alias))


def _unwrapped(tree: exp.Expr) -> exp.Expr:
    """Return a query without those around it that only name its columns: it may be a recursion."""
    while isinstance(tree, exp.Select) and not any(
        value for key, value in tree.args.items() if key not in ("from_", "expressions", "kind")
    ):
        inner = tree.args["from_"].this
        names = [each.alias_or_name for each in tree.expressions]
        is_plain = all(
            isinstance(each.unalias(), exp.Column) and each.unalias().name == each.alias_or_name
            for each in tree.expressions
        )
        if not (isinstance(inner, exp.Subquery) and is_plain and isinstance(inner.this, exp.Query)):
            break
        if names != inner.this.named_selects:
            break
        tree = inner.this
    return tree


def _events_tree(flow: AutoCdcFlow, source: str, columns: Sequence[str]) -> exp.Expr:
    """Return the query for the events of a flow."""
    listed: list[exp.Expr] = [exp.column(exp.to_identifier(each, quoted=True)) for each in columns]
    deletes: exp.Expr = exp.Boolean(this=False)
    if flow.apply_as_deletes is not None:
        deletes = exp.Paren(this=flow.apply_as_deletes.copy())
        deletes = exp.Anonymous(this="coalesce", expressions=[deletes, exp.Boolean(this=False)])
    listed.append(exp.alias_(flow.sequence_by.copy(), SEQUENCE, quoted=True))
    listed.append(exp.alias_(deletes, DELETED, quoted=True))
    alias = exp.TableAlias(this=exp.to_identifier(flow.source, quoted=True))
    table = exp.Table(this=exp.to_identifier(source, quoted=True), alias=alias)
    return exp.select(*listed).from_(table)


def _tracked(flow: AutoCdcFlow, columns: Sequence[str]) -> list[str]:
    """Return the columns whose change begins another row of history."""
    keys = {each.lower() for each in flow.keys}
    chosen = None
    if flow.track_history_columns is not None:
        chosen = {each.lower() for each in flow.track_history_columns}
    without = keys | {each.lower() for each in flow.track_history_except_columns}
    return [
        each
        for each in columns
        if each.lower() not in without and (chosen is None or each.lower() in chosen)
    ]


# --- flows ---------------------------------------------------------------------------------------


def _name_of(table: exp.Table) -> str:
    return ".".join(each.name for each in table.parts)


def _refuse_state(flow: Flow, query: BinderQuery) -> None:
    """Refuse a flow whose new rows are not those of the new rows of its streams.

    Raises:
        InputError: `C1721`.
    """
    streams = [each for each in query.tree.find_all(exp.Table) if each.meta.get(STREAM)]
    reason = next(
        (
            what
            for kind, what in _STATEFUL.items()
            for node in query.tree.find_all(kind)
            if any(_is_inside(each, node) for each in streams)
        ),
        None,
    )
    joined = [each for each in streams if each.find_ancestor(exp.Join)]
    if (
        reason is None
        and joined
        and len(streams) > len(list(query.tree.find_all(exp.SetOperation))) + 1
    ):
        reason = "joins streams"
    if reason is not None:
        raise InputError.of(
            "C1721",
            f"The flow `{flow.name}` {reason}, and a flow only sees the rows that are new.",
            flow.span,
            "let the flow append the rows as they are, and do this in a materialized view",
        )


def _is_inside(table: exp.Table, node: exp.Expr) -> bool:
    """Whether a query that a clause belongs to reads a table."""
    select = node.find_ancestor(exp.Select, exp.SetOperation)
    return select is not None and any(each is table for each in select.find_all(exp.Table))
