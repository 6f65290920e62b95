"""What SHOW, DESCRIBE and EXPLAIN answer, and the table that CREATE TABLE … AS makes."""

import re
from collections.abc import Iterable, Iterator

from sqlglot import exp

from corollary.core.functors.catalog import functor_of_sql
from corollary.core.printer import print_declaration
from corollary.core.program import Program, sql_texts
from corollary.frontends.sql.binder.aggregates import AGGREGATES
from corollary.frontends.sql.binder.functions.table import INTERNAL, function_names, refusal_of
from corollary.frontends.sql.binder.session import type_name
from corollary.frontends.sql.binder.special_calls import SPECIAL_CALLS
from corollary.frontends.sql.binder.windows import WINDOW_FUNCTIONS
from corollary.frontends.sql.catalog import SqlCatalog, TableDefinition, visible_catalog
from corollary.frontends.sql.query_tree import Query
from corollary.frontends.sql.statements import nodes
from corollary.frontends.sql.statements.constraints import find_table
from corollary.frontends.sql.statements.kept_texts import kept_definitions
from corollary.frontends.sql.statements.questions import StatementPlace, visible_columns
from corollary.frontends.sql.statements.tokens import SqlName

_NAMES = {
    nodes.Shown.TABLES: ("namespace", "tableName", "isTemporary"),
    nodes.Shown.VIEWS: ("namespace", "viewName", "isTemporary"),
    nodes.Shown.COLUMNS: ("col_name",),
    nodes.Shown.DESCRIPTION: ("col_name", "data_type", "comment"),
    nodes.Shown.DETAILS: ("col_name", "data_type", "comment"),
    nodes.Shown.PROPERTIES: ("key", "value"),
    nodes.Shown.DEFINITION: ("createtab_stmt",),
    nodes.Shown.FUNCTIONS: ("function",),
    nodes.Shown.FUNCTION: ("function_desc",),
    nodes.Shown.PLAN: ("plan",),
}
"""The columns of the answers, which are Spark's."""


def metadata_query(
    statement: nodes.Show, program: Program, plan: str, place: StatementPlace
) -> exp.Expr:
    """Return the query whose answer a statement shows, in order.

    Raises:
        InputError: the relation is unknown, or the query does not fit the program.
    """
    catalog = visible_catalog(program)
    rows: list[tuple[object, ...]]
    match statement.shown:
        case nodes.Shown.PLAN:
            rows = [(plan.strip(),)]
        case nodes.Shown.TABLES | nodes.Shown.VIEWS:
            rows = [("", name, False) for name in _listed(statement, catalog, program)]
        case nodes.Shown.FUNCTIONS:
            rows = [(name,) for name in _matching(statement.pattern, sorted(_functions()))]
        case nodes.Shown.FUNCTION:
            rows = [(line,) for line in _described(statement)]
        case nodes.Shown.DEFINITION:
            assert statement.relation is not None
            table = find_table(catalog, statement.relation.text, statement.relation.span)
            rows = [(_definition(program, table.relation),)]
        case _ if statement.query is not None:
            columns = visible_columns(place.bind(statement.query, catalog))
            rows = [(each.name, each.type.catalog_name, None) for each in columns]
        case _:
            assert statement.relation is not None
            table = find_table(catalog, statement.relation.text, statement.relation.span)
            kept = kept_definitions(program)
            made = next((each.statement for each in kept if each.name == table.relation), None)
            rows = list(_table_rows(statement, table, made))
    names = _NAMES[statement.shown]
    cells = rows or [(None,) * len(names)]
    values = exp.Values(
        expressions=[
            exp.Tuple(expressions=[exp.convert(each) for each in (at, *row)])
            for at, row in enumerate(cells)
        ],
        alias=exp.TableAlias(
            this=exp.to_identifier("shown"),
            columns=[exp.to_identifier(each) for each in ("number", *names)],
        ),
    )
    found = exp.select(*names).from_(values).order_by("number")
    return found if rows else found.where("false")


def _table_rows(
    statement: nodes.Show, table: TableDefinition, made: nodes.Definition | None
) -> Iterator[tuple[object, ...]]:
    """Yield what is said of a table; as Spark does it, with sections where more is asked."""
    created = made if isinstance(made, nodes.CreateTable) else None
    if statement.shown is nodes.Shown.PROPERTIES:
        given = created.properties if created is not None else ()
        found = {each.name: each.value for each in given}
        yield from ((name, found[name]) for name in _matching(statement.pattern, sorted(found)))
        return
    columns = {} if created is None else {each.name.text: each for each in created.columns}
    comments = {name: each.comment or None for name, each in columns.items()}
    width = len(_NAMES[statement.shown])
    for each in table.columns:
        yield (each.name, each.type.catalog_name, comments.get(each.name))[:width]
    if statement.shown is not nodes.Shown.DETAILS:
        return
    types = {each.name: each.type.catalog_name for each in table.columns}
    defaults = [
        (name, types[name], each.default.text)
        for name, each in columns.items()
        if each.default is not None
    ]
    if defaults:
        yield from (("", "", ""), ("# Column Default Values", "", ""), *defaults)
    yield from (
        ("", "", ""),
        ("# Detailed Table Information", "", ""),
        ("Name", table.relation, ""),
    )
    if isinstance(made, nodes.CreateView):
        yield "Type", "MATERIALIZED_VIEW" if made.is_materialized else "VIEW", ""
        yield "View Text", made.text, ""
        return
    yield "Type", "TABLE", ""
    if created is not None and created.comment:
        yield "Comment", created.comment, ""
    if created is not None and created.properties:
        listed = ", ".join(f"{each.name}={each.value}" for each in created.properties)
        yield "Table Properties", f"[{listed}]", ""


def _listed(statement: nodes.Show, catalog: SqlCatalog, program: Program) -> list[str]:
    """Return the relations that a pattern of Spark describes: `*` is any text, `|` is or."""
    names = catalog.names()
    if statement.shown is nodes.Shown.VIEWS:
        kept = kept_definitions(program)
        views = {each.name for each in kept if isinstance(each.statement, nodes.CreateView)}
        names = [name for name in names if name in views]
    return _matching(statement.pattern, names)


def _matching(written: str, names: Iterable[str]) -> list[str]:
    choices = [re.escape(each).replace(r"\*", ".*") for each in written.split("|")]
    pattern = re.compile("|".join(f"(?:{each})" for each in choices), re.IGNORECASE)
    return [name for name in names if pattern.fullmatch(name)]


def _functions() -> set[str]:
    """Return the names of all functions, aggregates and window functions."""
    names = {*function_names(), *SPECIAL_CALLS, *AGGREGATES, *WINDOW_FUNCTIONS}
    return {each for each in names if not each.startswith("•")} - INTERNAL


def _described(statement: nodes.Show) -> Iterator[str]:
    """Yield what is said of a function: its name, and what it gives or why it is refused."""
    assert statement.relation is not None
    name = statement.relation.text.lower()
    reason, spec = refusal_of(name), functor_of_sql(name)
    is_known = reason is not None or name in _functions()
    yield f"Function: {name}{'' if is_known else ' not found.'}"
    if reason is not None:
        yield f"Refused: it {reason[0]}; {reason[1]}"
    elif spec is not None and spec.doc:
        yield f"Usage: {name}({', '.join(spec.arguments)}) - {spec.doc}"


def _definition(program: Program, relation: str) -> str:
    """Return the statement that made a relation, or its declaration."""
    text = sql_texts(program).get(relation)
    if text is not None:
        return text
    declared = (each for each in program.declarations if each.name == relation)
    return "\n".join(map(print_declaration, declared))


def table_like(name: SqlName, query: Query) -> str:
    """Return the CREATE TABLE of a table with the columns of a question, all of them nullable."""
    columns = [
        exp.ColumnDef(
            this=exp.to_identifier(each.name, quoted=True),
            kind=exp.DataType.build(type_name(each.type), dialect="spark"),
        )
        for each in visible_columns(query)
    ]
    schema = exp.Schema(this=exp.table_(name.text, quoted=True), expressions=columns)
    return exp.Create(this=schema, kind="TABLE").sql("spark")
