"""INSERT, DELETE and UPDATE as questions whose rows are written.

| SQL | the question has |
|---|---|
| `INSERT INTO t (b) query` | the rows to insert: all columns of `t`, null where none is given |
| `DELETE FROM t WHERE c` | the rows to delete |
| `UPDATE t SET b = e WHERE c` | the rows before, then, in further columns, the rows after |

Values that are assigned are converted as Spark's ANSI mode does: numbers to other numbers, dates to
timestamps, anything to text; text to nothing else.
"""

from dataclasses import replace

from sqlglot import exp

from corollary.core.types import NUMERIC, Type
from corollary.errors import InputError
from corollary.frontends.sql.binder.bind import Finish
from corollary.frontends.sql.binder.session import BindingSession
from corollary.frontends.sql.binder.session import type_name as sql_type
from corollary.frontends.sql.binder.values.conversions import cast
from corollary.frontends.sql.binder.widening import finished, wrapped
from corollary.frontends.sql.catalog import TableDefinition
from corollary.frontends.sql.query_tree import (
    ColumnReference,
    ConstantValue,
    Expression,
    Query,
    QueryColumn,
    Select,
)
from corollary.frontends.sql.statements import nodes
from corollary.frontends.sql.statements.questions import visible_columns
from corollary.frontends.sql.statements.tables import find_column
from corollary.source import Span


def rows_to_insert(statement: nodes.Insert, table: TableDefinition) -> Finish:
    """Return what makes rows of a table of the rows that an INSERT gives.

    Raises:
        InputError: there are more or fewer values than columns, or one does not fit.
    """
    names = [column.name for column in table.columns]
    targets = [find_column(table.relation, names, each) for each in statement.columns]
    if len(set(targets)) < len(targets):
        text = f"A column of `{table.relation}` is named twice."
        raise InputError.of("C1374", text, statement.columns[0].span, "name each column once")
    targets = targets or list(range(len(names)))

    def finish(query: Query, session: BindingSession) -> Query:
        given = visible_columns(query)
        if len(given) != len(targets):
            raise InputError.of(
                "C1374",
                f"`{table.relation}` gets {len(given)} of the {len(targets)} values that it needs.",
                statement.span,
                "give one value for each column",
            )
        query = finished(query, session, [table.columns[at].type for at in targets])
        source = wrapped(query, session.next_source())
        columns = []
        for at, column in enumerate(table.columns):
            if at in targets:
                number = targets.index(at)
                type_ = source.columns[number].type
                reference = ColumnReference(source.number, number, type_, span=statement.span)
                value = _assigned(reference, table, column, statement.span)
            elif column.type.nullable:
                value = ConstantValue(None, column.type)
            else:
                raise InputError.of(
                    "C1374",
                    f"`{column.name}` of `{table.relation}` is NOT NULL, and gets no value.",
                    statement.span,
                    "name it in the INSERT, and give it a value",
                )
            columns.append((QueryColumn(column.name, value.type), value))
        return Select(tuple(columns), source, span=query.span)

    return finish


def rows_to_delete(statement: nodes.Delete, table: TableDefinition) -> exp.Expr:
    """Return the question for the rows that a DELETE removes."""
    rows = exp.select("*").from_(_aliased(table, statement.alias))
    return rows if statement.condition is None else rows.where(statement.condition)


def rows_to_update(
    statement: nodes.UpdateStatement, table: TableDefinition
) -> tuple[exp.Expr, Finish]:
    """Return the question for the rows that an UPDATE replaces, each beside the new one.

    Raises:
        InputError: a value does not fit.
    """
    names = [column.name for column in table.columns]
    assigned: dict[int, exp.Expr] = {}
    for name, value in statement.assignments:
        at = find_column(table.relation, names, name)
        if at in assigned:
            text = f"`{name.text}` is assigned twice."
            raise InputError.of("C1374", text, name.span, "assign each column once")
        assigned[at] = value
    values = [*(_column(statement.alias, name) for name in names), *assigned.values()]
    labels = [exp.alias_(each, f"c{at}") for at, each in enumerate(values)]
    rows = exp.select(*labels).from_(_aliased(table, statement.alias))
    if statement.condition is not None:
        rows = rows.where(statement.condition)

    def finish(query: Query, session: BindingSession) -> Query:
        targets = [*range(len(names)), *assigned]
        query = finished(query, session, [table.columns[at].type for at in targets])
        assert isinstance(query, Select)
        before, given = query.columns[: len(names)], query.columns[len(names) :]
        after = list(before)
        for at, (_, value) in zip(assigned, given, strict=True):
            found = _assigned(value, table, table.columns[at], statement.span)
            after[at] = QueryColumn(f"after{at}", found.type), found
        return replace(query, columns=(*before, *after))

    return rows, finish


def _aliased(table: TableDefinition, alias: str) -> exp.Table:
    return exp.Table(
        this=exp.to_identifier(table.relation, quoted=True),
        alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)),
    )


def _column(table: str, name: str) -> exp.Expr:
    return exp.Column(
        this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(table, quoted=True)
    )


def _assigned(
    value: Expression, table: TableDefinition, column: QueryColumn, span: Span | None
) -> Expression:
    """Return a value as it is assigned to a column.

    Raises:
        InputError: the types do not fit.
    """
    given, wanted = value.type, column.type
    if given.with_null(True) == wanted.with_null(True):
        return value
    is_numeric = given.logical_kind in NUMERIC and wanted.logical_kind in NUMERIC
    is_moment = given.is_time and wanted.is_time
    is_fitting = is_numeric or is_moment or wanted.is_symbol
    found = cast(value, wanted.with_null(False), 64) if is_fitting else None
    if found is None:
        raise InputError.of(
            "C1374",
            f"A value of type {sql_type(given)} does not fit `{column.name}` of "
            f"`{table.relation}`, which is {sql_type(wanted)}.",
            span,
            f"write `CAST(… AS {sql_type(wanted)})`",
        )
    return found


def spark_type(type_: Type) -> exp.DataType:
    """Return a type as a cast names it."""
    return exp.DataType.build(sql_type(type_), dialect="spark")
