"""From the statements of SQL text to a program: declarations, rules, directives, reactions.

All statements of a program are compiled together, so views may name each other in any order. Views
that name each other in a circle are one recursion, as the tables of one `WITH RECURSIVE` are.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path

from sqlglot import exp

from corollary.core.alerts import PLACEHOLDER
from corollary.core.functors.catalog import functor_of_sql
from corollary.core.graph import strongly_connected_components
from corollary.core.program import (
    SQL_DIRECTIVE,
    Directive,
    Program,
    Reaction,
)
from corollary.data_class import dataclass
from corollary.errors import Diagnostic, InputError
from corollary.frontends.datalog.preprocessor import read_source
from corollary.frontends.sql.binder.aggregates import AGGREGATES
from corollary.frontends.sql.binder.bind import bind_query
from corollary.frontends.sql.binder.functions.table import refusal_of
from corollary.frontends.sql.catalog import SqlCatalog, TableDefinition, catalog_of, visible_catalog
from corollary.frontends.sql.lowering.queries import lower_view
from corollary.frontends.sql.query_tree import Query, QueryColumn
from corollary.frontends.sql.statements import nodes
from corollary.frontends.sql.statements.constraints import (
    constraint_rules,
    quote_message,
    show_columns,
)
from corollary.frontends.sql.statements.functions import check_function
from corollary.frontends.sql.statements.parser import parse_statements
from corollary.frontends.sql.statements.questions import with_column_names
from corollary.frontends.sql.statements.tables import TableLayout, lay_out_table, source_of
from corollary.frontends.sql.statements.tokens import SqlName
from corollary.frontends.sql.statements.triggers import compile_trigger
from corollary.frontends.sql.statements.writes import default_value
from corollary.source import SourceFile, Span


@dataclass(frozen=True, slots=True)
class PlacedDefinition:
    """A statement and the text that it is in."""

    statement: nodes.Definition
    file: SourceFile

    @property
    def name(self) -> str:
        """What it defines."""
        return self.statement.name.text


@dataclass(slots=True)
class Compilation:
    """A program while it is made of statements.

    Attributes:
        catalog: the relations that queries may name, those of other files too.
        refused: the findings about views by their names, in small letters; none if a view reads
            one that is refused.
    """

    catalog: SqlCatalog
    parts: list[Program] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)
    refused: dict[str, list[Diagnostic]] = field(default_factory=dict)

    def add_view(
        self,
        name: str,
        query: Query,
        *,
        is_materialized: bool = False,
        columns: Sequence[SqlName] = (),
        span: Span | None = None,
        is_constraint: bool = False,
    ) -> tuple[QueryColumn, ...]:
        """Add the rules of a query as those of a relation; return its columns."""
        named = with_column_names(name, query, columns, span)
        place = span if is_constraint else None
        lowered = lower_view(name, named, is_materialized=is_materialized, place=place)
        self.parts.append(
            Program(
                declarations=tuple(lowered.declarations),
                clauses=tuple(lowered.clauses),
                warnings=tuple(lowered.warnings),
            )
        )
        self.catalog.add(TableDefinition(name, lowered.columns, lowered.is_bag, lowered.keys, span))
        return lowered.columns

    def program(self) -> Program:
        """Return what was made.

        Raises:
            InputError: with all findings.
        """
        if self.findings:
            raise InputError(self.findings)
        return sum(self.parts, Program())


# --- the order of statements -------------------------------------------------------------------


def compile_definitions(definitions: Iterable[PlacedDefinition], others: Program) -> Program:
    """Return the program of some statements; queries may name the relations of other programs.

    Raises:
        InputError: with the findings of all statements.
    """
    chosen = _effective(definitions, others)
    work = Compilation(visible_catalog(others))
    for each in chosen:
        if isinstance(each.statement, nodes.CreateFunction):
            work.catalog.functions[each.name.lower()] = each.statement
    layouts = _declare_tables(work, chosen)
    compile_views(work, chosen)
    for layout, file in layouts:
        with _collecting(work):
            work.parts.append(constraint_rules(layout, work.catalog))
            _checks(work, layout, file)
    for each in chosen:
        with _collecting(work):
            _compile_rest(work, each)
    texts = tuple(
        Directive(SQL_DIRECTIVE, each.name, (("text", each.statement.text),), each.statement.span)
        for each in chosen
    )
    files = tuple(dict.fromkeys(each.file for each in chosen))
    return work.program() + Program(directives=texts, sources=files)


@contextmanager
def _collecting(work: Compilation) -> Iterator[None]:
    """Collect the errors of one statement, so that those of others are found too."""
    try:
        yield
    except InputError as error:
        work.findings += error.diagnostics


def _effective(definitions: Iterable[PlacedDefinition], others: Program) -> list[PlacedDefinition]:
    """Return the statements that count: `OR REPLACE` replaces, `IF NOT EXISTS` yields.

    Raises:
        InputError: a name is given twice.
    """
    found: dict[str, PlacedDefinition] = {}
    declared = {each.name.lower(): each for each in others.declarations}
    findings: list[Diagnostic] = []
    for each in definitions:
        statement, key = each.statement, each.name.lower()
        is_view = isinstance(statement, nodes.CreateView)
        is_replacing = nodes.replaces(statement) and key not in declared
        if (key not in found and key not in declared) or is_replacing:
            found[key] = each
        elif nodes.yields(statement) or (
            key in found and found[key].statement.text == statement.text
        ):
            continue
        else:
            earlier = found[key].statement.name.span if key in found else declared[key].span
            related = () if earlier is None else ((earlier, "the first one"),)
            cure = (
                "write `CREATE OR REPLACE VIEW`, or give it another name"
                if is_view
                else "give it another name"
            )
            text = f"There is a `{each.name}` already; case does not matter."
            findings.append(Diagnostic("C1371", text, statement.name.span, cure, related))
    if findings:
        raise InputError(findings)
    return list(found.values())


def _declare_tables(
    work: Compilation, chosen: Sequence[PlacedDefinition]
) -> list[tuple[TableLayout, SourceFile]]:
    layouts: list[tuple[TableLayout, SourceFile]] = []
    for each in chosen:
        if isinstance(each.statement, nodes.CreateTable):
            with _collecting(work):
                layout = lay_out_table(each.statement)
                directives = source_of(each.statement)
                made = Program(declarations=(layout.declaration,), directives=directives)
                work.parts.append(made)
                for definition in catalog_of(made).find(each.name):
                    work.catalog.add(definition)
                layouts.append((layout, each.file))
    return layouts


def _checks(work: Compilation, layout: TableLayout, file: SourceFile) -> None:
    """Check the defaults of a table; add its CHECKs: rows for which the condition is false."""
    number = 0
    table = layout.declaration.name
    (definition,) = (each for each in work.catalog.find(table) if each.relation == table)
    catalog = work.catalog.copy()  # tables stay as they are when a function is replaced
    catalog.functions.clear()
    for column in layout.statement.columns:
        asked = default_value(column, definition)
        if asked is not None:
            bind_query(asked[0], SqlCatalog(), file, finish=asked[1])
    for constraint in layout.statement.constraints:
        if not isinstance(constraint, nodes.CheckConstraint) or not constraint.is_enforced:
            continue
        number += 1
        name = f"{table}.check{number}"
        rows = (
            exp.select("*")
            .from_(exp.table_(table, quoted=True))
            .where(exp.not_(exp.paren(constraint.condition)))
        )
        query = bind_query(rows, catalog, file)
        work.add_view(name, query, span=constraint.span, is_constraint=True)
        called = f" {quote_message(constraint.name)}" if constraint.name else ""
        text = quote_message(" ".join(constraint.text.split()))
        shown = show_columns(layout.declaration.columns)
        message = f"CHECK{called} ({text}) of {quote_message(table)} is false for {shown}"
        work.parts.append(
            Program(reactions=(Reaction("abort", name, message, span=constraint.span),))
        )


# --- views -------------------------------------------------------------------------------------


def compile_views(work: Compilation, chosen: Sequence[PlacedDefinition]) -> None:
    """Add views, each after those that it reads; a circle of views is a recursion."""
    views = {
        each.name.lower(): each for each in chosen if isinstance(each.statement, nodes.CreateView)
    }
    reads = {
        name: [used for used in free_tables(_view(each).query) if used in views]
        for name, each in views.items()
    }
    failed: set[str] = set()
    for component in strongly_connected_components(reads):
        if any(used in failed for name in component for used in reads[name]):
            failed.update(component)  # what it reads has an error of its own
            work.refused.update((name, []) for name in component)
            continue
        is_recursive = len(component) > 1 or component[0] in reads[component[0]]
        before = len(work.findings)
        for name in component:
            with _collecting(work):
                each = views[name]
                group = [views[other] for other in component] if is_recursive else []
                _compile_view(work, each, group)
        if len(work.findings) > before:
            failed.update(component)
            work.refused |= dict.fromkeys(component, work.findings[before:])


def _view(each: PlacedDefinition) -> nodes.CreateView:
    assert isinstance(each.statement, nodes.CreateView)
    return each.statement


def _compile_view(
    work: Compilation, each: PlacedDefinition, group: Sequence[PlacedDefinition]
) -> None:
    """Add a view; those that it is in a circle with are tables of one recursion."""
    statement = _view(each)
    if group:
        catalog = work.catalog.copy()
        for other in group:
            catalog.remove(other.name)
        query = bind_query(_as_recursion(each, group), catalog, each.file)
        columns: tuple[SqlName, ...] = ()
    else:
        query = bind_query(statement.query, work.catalog, each.file)
        columns = statement.columns
    work.add_view(
        each.name,
        query,
        is_materialized=statement.is_materialized,
        columns=columns,
        span=statement.span,
    )
    if statement.is_materialized:
        output = Directive("output", each.name, statement.parameters, statement.span)
        work.parts.append(Program(directives=(output,)))


def _as_recursion(each: PlacedDefinition, group: Sequence[PlacedDefinition]) -> exp.Expr:
    """Return `WITH RECURSIVE` with the views of a circle, and all rows of one of them."""
    tables = [
        exp.CTE(
            this=_view(other).query.copy(),
            alias=exp.TableAlias(
                this=exp.to_identifier(other.name, quoted=True),
                columns=[exp.to_identifier(c.text, quoted=True) for c in _view(other).columns],
            ),
        )
        for other in group
    ]
    rows = exp.select("*").from_(exp.table_(each.name, quoted=True))
    rows.set("with_", exp.With(expressions=tables, recursive=True))
    return rows


def free_tables(tree: exp.Expr) -> Iterator[str]:
    """Yield the relations that a query names, in small letters, not those of its own `WITH`.

    >>> import sqlglot
    >>> tree = sqlglot.parse_one("WITH a AS (SELECT * FROM b) SELECT * FROM A, C")
    >>> sorted(free_tables(tree))
    ['b', 'c']
    """
    return (each.name.lower() for each in free_table_nodes(tree) if not each.args.get("db"))


def free_table_nodes(tree: exp.Expr) -> Iterator[exp.Table]:
    """Yield where a query names relations, not the tables of its own `WITH`."""
    stack = [(tree, frozenset[str]())]
    while stack:  # a chain of thousands is nested as deeply
        part, bound = stack.pop()
        is_name = isinstance(part, exp.Table) and isinstance(part.this, exp.Identifier)
        if is_name and (part.args.get("db") or part.name.lower() not in bound):
            assert isinstance(part, exp.Table)
            yield part
        below: list[tuple[exp.Expr, frozenset[str]]] = []
        with_ = part.args.get("with_")
        if isinstance(with_, exp.With):
            names = [table.alias_or_name.lower() for table in with_.expressions]
            for at, table in enumerate(with_.expressions):
                seen = names if with_.args.get("recursive") else names[:at]
                below.append((table, bound | frozenset(seen)))
            bound |= frozenset(names)
        below += [(each, bound) for each in part.iter_expressions() if each is not with_]
        stack += reversed(below)


# --- assertions, alerts ------------------------------------------------------------------------


def _compile_rest(work: Compilation, each: PlacedDefinition) -> None:
    """Add an assertion, an alert or a trigger."""
    match each.statement:
        case nodes.CreateAssertion(name=name, condition=condition, span=span):
            row = exp.select(exp.alias_(exp.Boolean(this=True), "violated")).where(
                exp.not_(exp.paren(condition))
            )
            query = bind_query(row, work.catalog, each.file)
            work.add_view(each.name, query, span=span, is_constraint=True)
            message = f"the assertion {quote_message(name.text)} is false"
            reaction = Reaction("abort", each.name, message, span=span)
            work.parts.append(Program(reactions=(reaction,)))
        case nodes.CreateAlert(message=given, options=options, query=query, span=span):
            columns = work.add_view(
                each.name, bind_query(query, work.catalog, each.file), span=span
            )
            shown = ", ".join(
                f"{{{column.name}}}" for column in columns if not set(column.name) & set("{}")
            )
            message = given if given is not None else f"{quote_message(each.name)}: {shown}"
            names = [column.name for column in columns]
            for found in PLACEHOLDER.finditer(message):
                if found[1] is not None and found[1] not in names:
                    listed = ", ".join(f"`{{{name}}}`" for name in names)
                    text = f"`{{{found[1]}}}` is not a column of `{each.name}`."
                    raise InputError.of("C1367", text, span, f"its columns are {listed}")
            parameters = tuple(
                ("IO" if option.name.lower() == "io" else option.name.lower(), option.value)
                for option in options
            )
            reaction = Reaction("alert", each.name, message, parameters, span)
            work.parts.append(Program(reactions=(reaction,)))
        case nodes.CreateTrigger():
            work.parts.append(compile_trigger(each.statement, work.catalog, each.file))
        case nodes.CreateFunction():
            if functor_of_sql(each.name.lower()) is not None or refusal_of(each.name.lower()):
                text = f"There is a function `{each.name}` already; case does not matter."
                raise InputError.of("C1371", text, each.statement.name.span, "give it another name")
            calls = each.statement.body.find_all(exp.Anonymous)
            if any(call.name.lower() in AGGREGATES for call in calls):
                text = "The body of a function is an expression of its parameters."
                cure = "write a view, which others can read, for what reads several rows"
                raise InputError.of("C1363", text, each.statement.span, cure)
            bind_query(check_function(each.statement), work.catalog, each.file)
        case nodes.CreateTable() | nodes.CreateView():
            pass


# --- files ---------------------------------------------------------------------------------------


def read_sql_files(paths: Sequence[Path], others: Program) -> Program:
    """Return the program of files of SQL, whose statements may be in any order.

    Args:
        paths: the files.
        others: the rest of the program, whose relations queries may name.

    Raises:
        InputError: with the findings of all files.
    """
    findings: list[Diagnostic] = []
    files: list[SourceFile] = []
    for path in paths:
        try:
            files.append(read_source(path))
        except InputError as error:
            findings += error.diagnostics
    if findings:
        raise InputError(findings)
    return compile_files(files, others)


def compile_files(files: Sequence[SourceFile], others: Program) -> Program:
    """Return the program of texts of SQL, whose statements may be in any order.

    Raises:
        InputError: with the findings of all texts.
    """
    definitions: list[PlacedDefinition] = []
    findings: list[Diagnostic] = []
    for file in files:
        try:
            statements = parse_statements(file)
        except InputError as error:
            findings += error.diagnostics
            continue
        for statement in statements:
            if isinstance(statement, nodes.Definition):
                definitions.append(PlacedDefinition(statement, file))
            else:
                findings.append(_not_a_definition(statement))
    if findings:
        raise InputError(findings)
    return compile_definitions(definitions, others)


def _not_a_definition(statement: nodes.Statement) -> Diagnostic:
    match statement:
        case nodes.QueryStatement() | nodes.Show():
            what, cure = "asks a question", 'ask it with `corollary sql W "SELECT …"`'
        case nodes.AlterView():
            what, cure = "alters a view", "write the `CREATE VIEW` as it is to be"
        case nodes.AlterTable():
            what, cure = "alters a table", "write the `CREATE TABLE` as it is to be"
        case nodes.Drop():
            what, cure = "drops something", "leave out the `CREATE` instead"
        case _:
            what, cure = "changes data", "make changes with `corollary shell W` or `db.sql(…)`"
    return Diagnostic(
        "C1380",
        f"A file of a program only defines things, and this statement {what}.",
        statement.span,
        cure,
    )
