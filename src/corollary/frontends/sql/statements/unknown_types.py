"""Statements of clients of PostgreSQL, typed by its rules.

PostgreSQL gives a text or parameter without a type that of what it is compared with or written to,
divides integers without a rest, and counts the days between dates. Corollary's SQL does none of it
by itself: the binder finds out where, and casts, `DIV` and `DATEDIFF` say so.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, partial

from sqlglot import exp

from corollary.core.types import SYMBOL, Type, decimal
from corollary.errors import InputError
from corollary.frontends.sql import parse
from corollary.frontends.sql.binder.bind import bind_tree, binding_session
from corollary.frontends.sql.binder.expressions import ExpressionBinder, row_parts
from corollary.frontends.sql.binder.scopes import Scope
from corollary.frontends.sql.binder.session import BindingSession, UnknownTypes
from corollary.frontends.sql.binder.values.common_types import is_untyped
from corollary.frontends.sql.binder.values.conversions import convert
from corollary.frontends.sql.binder.widening import finished
from corollary.frontends.sql.catalog import SqlCatalog
from corollary.frontends.sql.statements.writes import EXCLUDED, spark_type
from corollary.source import SourceFile

STEPS_PER_TOKEN = 5
"""So many steps binding may take; ordinary statements take one or two."""
NUMERIC = decimal(38, 10)
"""What a text is read as where a decimal is wanted: it may have more digits than that one."""


def type_statement(
    text: str, catalog: SqlCatalog, declared: Mapping[str, Type]
) -> tuple[exp.Expr, Mapping[str, Type]]:
    """Return a statement with the casts that it needs, and the types of its parameters.

    What is wrong with the statement is told by whoever runs it; types that were found before that
    was noticed count.

    Args:
        text: the statement, in Corollary's SQL.
        catalog: the relations that it may name.
        declared: the types of parameters that the client has said.

    Raises:
        InputError: it is not SQL.
    """
    file = SourceFile("statement.sql", text)
    (tokens,) = parse.split_statements(file)
    tree = parse.parse_query(tokens, file)
    unknown, steps_max = (
        UnknownTypes(dict(declared)),
        parse.STEPS_MIN + STEPS_PER_TOKEN * len(tokens),
    )
    session = binding_session(file, catalog, {}, unknown=unknown, steps_max=steps_max)
    with suppress(InputError, RecursionError):
        _bind(tree, session)
    return _with_types(tree, unknown), unknown.parameters


def _bind(tree: exp.Expr, session: BindingSession) -> None:
    """Find out the types of a statement."""
    match tree:
        case exp.Insert():
            targets = list(_target_types(tree, session.catalog))
            if isinstance(tree.expression, exp.Values):
                _bind_rows(tree.expression, targets, session)
            else:
                bind_tree(tree.expression, session, partial(finished, targets=targets))
            if tree.args.get("conflict") is not None:
                _bind_conflict(tree, session)
        case exp.Update():
            assigned = [each for each in tree.expressions if isinstance(each, exp.EQ)]
            types = _column_types(tree.this, session.catalog)
            targets = [types.get(each.this.name.lower(), SYMBOL) for each in assigned]
            found = _found_rows(tree, [each.expression for each in assigned])
            bind_tree(found, session, partial(finished, targets=targets))
        case exp.Delete():
            bind_tree(_found_rows(tree, [exp.Star()]), session)
        case _:
            bind_tree(tree, session)


def _bind_conflict(tree: exp.Insert, session: BindingSession) -> None:
    """Bind what DO UPDATE assigns to rows of the table, beside those that were to be inserted."""
    table = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    types = _column_types(table, session.catalog)
    assigned = [each for each in tree.args["conflict"].expressions if isinstance(each, exp.EQ)]
    found = exp.select(*(each.expression.copy() for each in assigned)).from_(table.copy())
    other = exp.Table(this=table.this.copy())
    other.set("alias", exp.TableAlias(this=exp.to_identifier(EXCLUDED, quoted=True)))
    found.append("joins", exp.Join(this=other, kind="CROSS"))
    where = tree.args["conflict"].args.get("where")
    found.set("where", None if where is None else where.copy())
    targets = [types.get(each.this.name.lower(), SYMBOL) for each in assigned]
    if targets:
        bind_tree(found, session, partial(finished, targets=targets))


def _bind_rows(values: exp.Values, targets: list[Type], session: BindingSession) -> None:
    """Bind the rows of `VALUES` one by one: each value has the type of its column."""
    binder = ExpressionBinder(session, Scope(), "VALUES")
    for row in values.expressions:
        for part, target in zip(row_parts(row), targets, strict=False):
            if isinstance(part, exp.Literal) and not part.is_string:
                continue  # thousands of numbers have their type
            found = binder.bind(part)
            if is_untyped(found):
                convert(found, target)


def _found_rows(tree: exp.Update | exp.Delete, values: list[exp.Expr]) -> exp.Select:
    """Return the query of some values of the rows that a write finds."""
    found = exp.Select(expressions=[each.copy() for each in values])
    found.set("from_", exp.From(this=tree.this.copy()))
    where = tree.args.get("where")
    found.set("where", None if where is None else where.copy())
    return found


def _target_types(tree: exp.Insert, catalog: SqlCatalog) -> Iterator[Type]:
    """Yield the types of the columns that an INSERT fills, in the order of its values."""
    if not isinstance(tree.this, exp.Schema):
        yield from _column_types(tree.this, catalog).values()
        return
    types = _column_types(tree.this.this, catalog)
    for each in tree.this.expressions:
        if each.name.lower() not in types:
            return
        yield types[each.name.lower()]


def _column_types(table: exp.Expr, catalog: SqlCatalog) -> dict[str, Type]:
    found = catalog.find(table.name)
    return {each.name.lower(): each.type for each in found[0].columns} if found else {}


def _with_types(tree: exp.Expr, unknown: UnknownTypes) -> exp.Expr:
    """Return a statement whose texts are cast to their types, and whose integers are divided."""
    cast_type = cache(spark_type)

    def typed(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Div | exp.Sub):
            begin = parse.offsets_of(node.expression)
            if begin is not None and begin[0] in unknown.divisions:
                if isinstance(node, exp.Div):
                    return exp.IntDiv(this=node.this, expression=node.expression)
                return exp.Anonymous(this="DATEDIFF", expressions=[node.this, node.expression])
        elif isinstance(node, exp.Literal) and node.is_string:
            type_ = unknown.texts.get(node.meta.get(parse.FIRST, -1))
            if type_ is not None and not type_.is_symbol and not isinstance(node.parent, exp.Cast):
                wanted = NUMERIC if type_.is_decimal else type_
                return exp.Cast(this=node.copy(), to=cast_type(wanted).copy())
        return node

    return parse.rewrite_tree(tree, typed)
