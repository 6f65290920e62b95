"""INSERT, DELETE and UPDATE as questions whose rows are written.

| SQL | the question has |
|---|---|
| `INSERT INTO t (b) query` | the rows to insert: all columns of `t`, null where none is given |
| `DELETE FROM t WHERE c` | the rows to delete |
| `UPDATE t SET b = e WHERE c` | the rows before, then, in further columns, the rows after |

Values that are assigned are converted as Spark's ANSI mode does: numbers to other numbers, dates to
timestamps, anything to text; text to nothing else.
"""

from sqlglot import exp

from corollary.core.types import NUMERIC, Type
from corollary.errors import InputError
from corollary.frontends.sql.binder.bind import bind_query
from corollary.frontends.sql.binder.session import type_name as sql_type
from corollary.frontends.sql.catalog import SqlCatalog, TableDefinition
from corollary.frontends.sql.query_tree import QueryColumn
from corollary.frontends.sql.statements import nodes
from corollary.frontends.sql.statements.questions import StatementPlace, visible_columns
from corollary.frontends.sql.statements.tables import find_column
from corollary.source import Span


def rows_to_insert(
    statement: nodes.Insert, table: TableDefinition, catalog: SqlCatalog, place: StatementPlace
) -> exp.Expr:
    """Return the question for the rows that an INSERT adds.

    Raises:
        InputError: there are more or fewer values than columns, or one does not fit.
    """
    names = [column.name for column in table.columns]
    targets = [find_column(table.relation, names, each) for each in statement.columns]
    if len(set(targets)) < len(targets):
        text = f"A column of `{table.relation}` is named twice."
        raise InputError.of("C1374", text, statement.columns[0].span, "name each column once")
    targets = targets or list(range(len(names)))
    given = visible_columns(bind_query(statement.query, catalog, place.file, place.parameters))
    if len(given) != len(targets):
        raise InputError.of(
            "C1374",
            f"`{table.relation}` gets {len(given)} of the {len(targets)} values that it needs.",
            statement.span,
            "give one value for each column",
        )
    for at, column in enumerate(table.columns):
        if at not in targets and not column.type.nullable:
            raise InputError.of(
                "C1374",
                f"`{column.name}` of `{table.relation}` is NOT NULL, and gets no value.",
                statement.span,
                "name it in the INSERT, and give it a value",
            )
    labels = [f"c{at}" for at in range(len(given))]
    source = exp.Subquery(
        this=statement.query,
        alias=exp.TableAlias(
            this=exp.to_identifier("given"), columns=[exp.to_identifier(each) for each in labels]
        ),
    )
    values: list[exp.Expr] = []
    for at, column in enumerate(table.columns):
        if at in targets and not _is_null(statement.query, targets.index(at)):
            number = targets.index(at)
            value: exp.Expr = exp.column(labels[number], table="given")
            value = _assigned(value, given[number].type, table, column, statement.span)
        else:
            value = exp.cast(exp.null(), spark_type(column.type))
        values.append(exp.alias_(value, column.name, quoted=True))
    return exp.select(*values, copy=False).from_(source, copy=False)


def _is_null(query: exp.Expr, number: int) -> bool:
    """Return whether a column is written as NULL, in all rows: it has no type of its own."""
    if isinstance(query, exp.Select):
        before = query.expressions[: number + 1]
        return isinstance(before[-1].unalias(), exp.Null) and not any(
            each.is_star for each in before
        )
    return isinstance(query, exp.Values) and all(
        isinstance(row, exp.Tuple)
        and number < len(row.expressions)
        and isinstance(row.expressions[number], exp.Null)
        for row in query.expressions
    )


def rows_to_delete(statement: nodes.Delete, table: TableDefinition) -> exp.Expr:
    """Return the question for the rows that a DELETE removes."""
    rows = exp.select("*").from_(_aliased(table, statement.alias))
    return rows if statement.condition is None else rows.where(statement.condition)


def rows_to_update(
    statement: nodes.UpdateStatement,
    table: TableDefinition,
    catalog: SqlCatalog,
    place: StatementPlace,
) -> exp.Expr:
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
    source = _aliased(table, statement.alias)
    before = [_column(statement.alias, name) for name in names]
    found = exp.select(*(each.copy() for each in assigned.values())).from_(source.copy())
    types = dict(
        zip(
            assigned,
            visible_columns(bind_query(found.copy(), catalog, place.file, place.parameters)),
            strict=True,
        )
    )
    after = [
        exp.cast(exp.null(), spark_type(column.type))
        if isinstance(assigned.get(at), exp.Null)
        else _assigned(assigned[at], types[at].type, table, column, statement.span)
        if at in assigned
        else _column(statement.alias, column.name)
        for at, column in enumerate(table.columns)
    ]
    labels = [f"before{at}" for at in range(len(names))] + [f"c{at}" for at in range(len(names))]
    rows = exp.select(
        *(exp.alias_(each, label) for each, label in zip([*before, *after], labels, strict=True))
    ).from_(source)
    return rows if statement.condition is None else rows.where(statement.condition)


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
    value: exp.Expr,
    given: Type,
    table: TableDefinition,
    column: QueryColumn,
    span: Span | None,
) -> exp.Expr:
    """Return a value as it is assigned to a column.

    Raises:
        InputError: the types do not fit.
    """
    wanted = column.type
    if given.with_null(True) == wanted.with_null(True):
        return value
    is_null = given.precision < 0
    is_numeric = given.kind in NUMERIC and wanted.kind in NUMERIC
    is_moment = given.is_time and wanted.is_time
    if not (is_null or is_numeric or is_moment or wanted.is_symbol):
        raise InputError.of(
            "C1374",
            f"A value of type {sql_type(given)} does not fit `{column.name}` of "
            f"`{table.relation}`, which is {sql_type(wanted)}.",
            span,
            f"write `CAST(… AS {sql_type(wanted)})`",
        )
    return exp.cast(value, spark_type(wanted))


def spark_type(type_: Type) -> exp.DataType:
    """Return a type as a cast names it."""
    return exp.DataType.build(sql_type(type_), dialect="spark")
