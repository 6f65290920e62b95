"""Loads a project: `spark-pipeline.yml`, and the Python and SQL files that it names."""

import importlib.util
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pyspark.errors import PySparkException
from pyspark.pipelines import output as spark_outputs
from pyspark.pipelines.block_session_mutations import block_session_mutations
from pyspark.pipelines.cli import PipelineSpec, find_pipeline_spec, load_pipeline_spec
from pyspark.pipelines.flow import Flow as SparkFlow
from pyspark.pipelines.graph_element_registry import (
    GraphElementRegistry,
    graph_element_registration_context,
)
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.types import parse_attr_name
from pyspark.sql.types import StructType
from sqlglot import exp

from corollary.errors import Diagnostic, InputError
from corollary.frontends.datalog.preprocessor import read_source
from corollary.frontends.sql.parse import split_statements
from corollary.frontends.sql.statements.nodes import TableColumn
from corollary.frontends.sql.statements.table_parser import read_columns
from corollary.frontends.sql.statements.tokens import TokenCursor
from corollary.pipelines import graph
from corollary.pipelines.recording import (
    OfflineClient,
    Places,
    RecordingSession,
    recording,
    sentence_of,
    span_at,
    telling,
)
from corollary.pipelines.sql_files import read_file
from corollary.source import SourceFile, Span

if TYPE_CHECKING:  # PySpark has it from 4.3 on
    from pyspark.pipelines.flow import AutoCdcFlow as SparkAutoCdcFlow

_KINDS = {
    spark_outputs.MaterializedView: graph.DatasetKind.MATERIALIZED_VIEW,
    spark_outputs.StreamingTable: graph.DatasetKind.STREAMING_TABLE,
    spark_outputs.TemporaryView: graph.DatasetKind.TEMPORARY_VIEW,
    spark_outputs.Sink: graph.DatasetKind.SINK,
}


def load_project(spec: Path | None = None) -> graph.Project:
    """Load a project; nothing is executed, and no server is asked.

    Args:
        spec: its specification; without it, the one of this directory or of one above.

    Raises:
        InputError: with the findings of all files.
    """
    try:
        path = find_pipeline_spec(Path.cwd()) if spec is None else spec
    except PySparkException as problem:
        raise InputError.of("C1700", sentence_of(problem), None, "name it by `--spec`") from None
    file = read_source(path)
    found = _read_spec(path, file)
    loader = ProjectLoader(found, path.parent.resolve())
    loader.load(file)
    return loader.project()


def _read_spec(path: Path, file: SourceFile) -> PipelineSpec:
    try:
        return load_pipeline_spec(path)
    except PySparkException as problem:
        given = problem.getMessageParameters() or {}
        words = (given.get(each, "") for each in ("key_name", "glob_pattern", "field_name"))
        span = _line_of(file, *words)
        raise InputError.of(
            "C1700", sentence_of(problem), span, "correct the specification"
        ) from None
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        span = Span(file, line, column, line, column + 1)
        text = f"The specification is not YAML: {getattr(problem, 'problem', None) or problem}."
        raise InputError.of("C1700", text, span, "correct this line") from None
    except (TypeError, KeyError, AttributeError):
        text = "The specification is not a mapping with a `name`, `storage` and `libraries`."
        note = "write each library as `- glob: {include: transformations/**}`"
        raise InputError.of("C1700", text, _line_of(file, "libraries"), note) from None


def _line_of(file: SourceFile, *words: str) -> Span | None:
    """Return the first line of a specification that has one of the words."""
    for word in words:
        found = re.search(rf"^.*{re.escape(word)}.*$", file.text, re.MULTILINE) if word else None
        if found is not None:
            start = found.start() + len(found[0]) - len(found[0].lstrip())
            return span_at(file, start, found.end())
    return None


class ProjectLoader(GraphElementRegistry):
    """Collects what the files of a project define; Spark's decorators call it."""

    def __init__(self, spec: PipelineSpec, root: Path) -> None:
        self.spec = spec
        self.root = root
        self.places = Places()
        self.session = RecordingSession(OfflineClient(spec.configuration, self.places))
        self.files: list[SourceFile] = []
        self.datasets: list[graph.Dataset] = []
        self.flows: list[graph.Flow] = []
        self.cdc_flows: list[graph.AutoCdcFlow] = []
        self.findings: list[Diagnostic] = []

    def project(self) -> graph.Project:
        """Return what was loaded.

        Raises:
            InputError: with all findings.
        """
        self._check()
        if self.findings:
            raise InputError(self.findings)
        spec = self.spec
        return graph.Project(
            spec.name, spec.storage, spec.catalog, spec.database, spec.configuration, self.root,
            tuple(self.files), tuple(self.datasets), tuple(self.flows), tuple(self.cdc_flows),
        )  # fmt: skip

    def name_of(self, parts: Sequence[str]) -> str:
        """Return the relation that a name means."""
        return relation_name(parts, self.spec.catalog, self.spec.database)

    # --- files ---------------------------------------------------------------------------------

    def load(self, spec: SourceFile) -> None:
        """Run or read all files, in the order in which Spark does."""
        seen: set[Path] = set()
        with recording(self.session, self.root), graph_element_registration_context(self):
            for library in self.spec.libraries:
                for path in sorted(self.root.glob(library.include)):
                    if path.is_file() and "__pycache__" not in path.parts and path not in seen:
                        seen.add(path)
                        self._load_file(path, _line_of(spec, library.include.removesuffix("/*")))
        if not seen:
            text = "The specification names no file that is there."
            self._find("C1700", text, _line_of(spec, "libraries"), "name some by `libraries`")

    def _load_file(self, path: Path, line: Span | None) -> None:
        if path.suffix not in (".py", ".sql"):
            text = f"`{path.name}` is neither a Python nor a SQL file."
            self._find("C1700", text, line, "leave it out of the directories of `libraries`")
            return
        try:
            file = replace(read_source(path), name=str(path.relative_to(self.root)))
            self.files.append(file)
            if path.suffix == ".py":
                self._run(path, file)
            else:
                self._add_sql(file)
        except InputError as error:
            self.findings += error.diagnostics

    def _add_sql(self, file: SourceFile) -> None:
        datasets, flows, cdc_flows = read_file(file, self.name_of)
        self.datasets += datasets
        self.flows += flows
        self.cdc_flows += cdc_flows

    def _run(self, path: Path, file: SourceFile) -> None:
        self.places.enter(str(path), file)
        spec = importlib.util.spec_from_file_location(path.stem, str(path))
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        module.__dict__["spark"] = self.session
        with telling(self.places), block_session_mutations():
            # Not its bytecode, which Python takes for that of a text written in the same second.
            exec(compile(file.text, str(path), "exec"), module.__dict__)  # noqa: S102 - the user's

    # --- what Spark's decorators call ----------------------------------------------------------

    def register_output(self, output: spark_outputs.Output) -> None:
        """Add a dataset."""
        span = self.places.line_span(output.source_code_location.line_number)
        name, kind = self._name(output.name), _KINDS[type(output)]
        found = graph.Dataset(name, kind, span, comment=output.comment)
        match output:
            case spark_outputs.Table():
                found = replace(
                    found,
                    columns=_declared(output.schema, span),
                    properties=dict(output.table_properties),
                    partition_columns=tuple(output.partition_cols or ()),
                    cluster_columns=tuple(output.cluster_by or ()),
                    format=output.format,
                )
            case spark_outputs.Sink():
                found = replace(found, format=output.format, options=dict(output.options))
            case _:
                pass
        self.datasets.append(found)

    def register_flow(self, flow: SparkFlow) -> None:
        """Add a flow, whose function is run now."""
        client, file = self.session.client, self.places.file
        assert file is not None
        span = self.places.line_span(flow.source_code_location.line_number)
        client.is_in_query = True
        before = dict(client.settings)
        client.settings.update(flow.spark_conf)
        chance = random.getstate()
        random.seed(flow.name)  # Spark takes seeds from it, and the same query has the same ones
        try:
            with telling(self.places):
                frame = flow.func()
            if not isinstance(frame, DataFrame):
                text = f"The function of `{flow.name}` returns no DataFrame."
                raise InputError.of("C1701", text, span, "return one that `spark` has made")
            plan = frame._plan.plan(client)  # noqa: SLF001
        except InputError as error:
            self.findings += error.diagnostics
            return
        finally:
            random.setstate(chance)
            client.is_in_query = False
            client.settings = before
        query = graph.RecordedQuery(
            span, file, plan.SerializeToString(), places=self.places.relations
        )
        target = self._name(flow.target)
        name = target if flow.name == flow.target else flow.name
        self.flows.append(graph.Flow(name, target, query, span, dict(flow.spark_conf)))

    def register_auto_cdc_flow(self, flow: "SparkAutoCdcFlow") -> None:
        """Add a flow of changes by key."""
        from corollary.pipelines.lowering.expressions import plain_expression

        file = self.places.file
        assert file is not None
        span = self.places.line_span(flow.source_code_location.line_number)

        def tree(column: Any) -> exp.Expr:
            return plain_expression(column.to_plan(self.session.client), file, span)

        def names(columns: list[Any] | None) -> tuple[str, ...]:
            return tuple(tree(each).name for each in columns or ())

        target = self._name(flow.target)
        deletes = flow.apply_as_deletes
        self.cdc_flows.append(
            graph.AutoCdcFlow(
                flow.name or target, target, self._name(flow.source), names(flow.keys),
                tree(flow.sequence_by), span, file, None if deletes is None else tree(deletes),
                names(flow.column_list) or None, names(flow.except_column_list),
                int(flow.stored_as_scd_type or 1), names(flow.track_history_column_list) or None,
                names(flow.track_history_except_column_list), dict(flow.spark_conf),
            )
        )  # fmt: skip

    def register_sql(self, sql_text: str, file_path: Path) -> None:
        """Add what a text of SQL defines."""
        self._add_sql(SourceFile(str(file_path), sql_text))

    def _name(self, text: str) -> str:
        return self.name_of(parse_attr_name(text) or [text])

    # --- checks --------------------------------------------------------------------------------

    def _find(self, code: str, text: str, span: Span | None, note: str) -> None:
        self.findings.append(Diagnostic(code, text, span, note))

    def _check(self) -> None:
        """Find datasets and flows that do not fit together."""
        named: dict[str, graph.Dataset] = {}
        for each in self.datasets:
            first = named.setdefault(each.name.lower(), each)
            if first is not each:
                related = ((first.span, "the first one"),)
                text = f"There is a dataset `{each.name}` already; case does not matter."
                note = "give it another name"
                self.findings.append(Diagnostic("C1704", text, each.span, note, related))
        flows: dict[str, graph.Flow | graph.AutoCdcFlow] = {}
        into: dict[str, list[graph.Flow | graph.AutoCdcFlow]] = {}
        every: list[graph.Flow | graph.AutoCdcFlow] = [*self.flows, *self.cdc_flows]
        for flow in every:
            into.setdefault(flow.target.lower(), []).append(flow)
            if flows.setdefault(flow.name.lower(), flow) is not flow:
                text = f"There is a flow `{flow.name}` already."
                self._find("C1704", text, flow.span, "give it another name")
            if flow.target.lower() not in named:
                text = f"The flow `{flow.name}` writes to `{flow.target}`, which is not defined."
                note = "define it by `dp.create_streaming_table(…)`"
                self._find("C1704", text, flow.span, note)
        if self.findings:
            return
        for each in self.datasets:
            found = into.get(each.name.lower(), [])
            is_stream = each.kind in (graph.DatasetKind.STREAMING_TABLE, graph.DatasetKind.SINK)
            if not found and each.kind is not graph.DatasetKind.SINK:
                text = f"No flow writes to `{each.name}`."
                self._find("C1704", text, each.span, "give it one, by `@dp.append_flow(target=…)`")
            elif len(found) > 1 and not is_stream:
                text = f"Several flows write to the {each.kind} `{each.name}`."
                self._find("C1704", text, found[1].span, "make it a streaming table")


def relation_name(parts: Sequence[str], catalog: str | None, schema: str | None) -> str:
    """Return the relation that a name means: without the default catalog and schema.

    >>> relation_name(["main", "sales", "orders"], "main", "sales")
    'orders'
    >>> relation_name(["raw", "orders"], None, "sales")
    'raw.orders'
    """
    left = [*parts]
    if len(left) == 3 and left[0].lower() == (catalog or "spark_catalog").lower():
        left = left[1:]
    if len(left) == 2 and left[0].lower() == (schema or "default").lower():
        left = left[1:]
    return ".".join(left)


def _declared(schema: StructType | str | None, span: Span) -> tuple[TableColumn, ...] | None:
    """Return the columns of a declared schema.

    Raises:
        InputError: a column has a type that none can have here; at the dataset.
    """
    if schema is None:
        return None
    return columns_of_ddl(schema if isinstance(schema, str) else ddl_of(schema), span)


def ddl_of(schema: StructType) -> str:
    """Return the DDL of columns."""
    return ", ".join(
        f"`{each.name}` {each.dataType.simpleString()}{'' if each.nullable else ' NOT NULL'}"
        for each in schema.fields
    )


def columns_of_ddl(ddl: str, span: Span | None) -> tuple[TableColumn, ...]:
    """Return the columns that DDL names; what is wrong with them is said at a span."""
    file = SourceFile("schema", f"({ddl})")
    try:
        (tokens,) = split_statements(file)
        cursor = TokenCursor(tokens, file)
        columns, _ = read_columns(cursor)
        cursor.finish()
    except InputError as error:
        raise InputError([replace(each, span=span) for each in error.diagnostics]) from None
    return columns
