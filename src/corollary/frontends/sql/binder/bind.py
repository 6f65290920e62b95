"""The entry point: a statement becomes a query tree."""

from collections.abc import Mapping

from sqlglot import exp

from corollary.core.logic import Value
from corollary.errors import InputError
from corollary.frontends.sql.binder.queries import QueryBinder
from corollary.frontends.sql.binder.scopes import Scope
from corollary.frontends.sql.binder.session import BindingSession
from corollary.frontends.sql.binder.widening import finished
from corollary.frontends.sql.catalog import SqlCatalog
from corollary.frontends.sql.parse import parse_statements, span_between, span_of
from corollary.frontends.sql.query_tree import Query
from corollary.source import SourceFile

_QUERIES = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)


def bind_query(
    query: str | exp.Expr,
    catalog: SqlCatalog,
    file: SourceFile | None = None,
    parameters: Mapping[str, Value] | None = None,
    *,
    takes_rows: bool = False,
) -> Query:
    """Return a query with its names, types and functions resolved.

    Args:
        query: the text of one statement, or its syntax tree, parsed by `parse_statements`.
        catalog: the relations that it may name.
        file: the text that the tree was parsed from; made from the text by default.
        parameters: the values of `:name`.
        takes_rows: whether many literals may become `ConstantRows`.

    Raises:
        InputError: it is not SQL, or something in it is unknown or refused; with its place.
    """
    if isinstance(query, str):
        file = SourceFile("query.sql", query) if file is None else file
        statements = parse_statements(file)
        if len(statements) != 1:
            message = f"One statement is expected, but there are {len(statements)}."
            place = (
                span_of(statements[1], file)
                if statements
                else span_between(file, 0, len(file.text))
            )
            raise InputError.of("C1301", message, place, "write one SELECT, WITH or VALUES")
        query = statements[0]
    assert file is not None, "a syntax tree comes with its text"
    tree: exp.Expr = query
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if not isinstance(tree, _QUERIES):
        message = "This statement is not a query."
        note = "a query begins with SELECT, WITH or VALUES"
        raise InputError.of("C1301", message, span_of(tree, file), note)
    session = _session(catalog, file, parameters, takes_rows=takes_rows)
    try:
        return finished(QueryBinder(session).bind(tree, Scope()), session)
    except RecursionError:
        note = "split it with common table expressions or views"
        message = "The statement is nested too deeply."
        raise InputError.of("C1322", message, span_of(tree, file), note) from None


def _session(
    catalog: SqlCatalog,
    file: SourceFile,
    parameters: Mapping[str, Value] | None,
    *,
    takes_rows: bool,
) -> BindingSession:
    def bind_nested(node: exp.Expr, scope: Scope) -> Query:
        return binder.bind_nested(node, scope)

    session = BindingSession(file, catalog, parameters or {}, bind_nested, takes_rows)
    binder = QueryBinder(session)
    return session
