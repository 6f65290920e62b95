"""Aggregations as queries: the groups by their codes, the value by what the dialect has for it."""

from collections.abc import Mapping

from sqlglot import exp

from corollary.core.logic import Aggregation
from corollary.core.pipeline import Reference
from corollary.core.types import Type
from corollary.engines.sql import nodes
from corollary.engines.sql.compiled import (
    MARK,
    CompiledQuery,
    Form,
    InputTable,
    NotCompiled,
    OutputColumn,
)
from corollary.engines.sql.dialect import AggregateForm, NotExactError, SqlDialect
from corollary.engines.sql.nodes import Node

SOURCE, TABLE = "s", "t0"


def compile_aggregation(
    aggregation: Aggregation,
    body: Reference,
    types: Mapping[str, tuple[Type, ...]],
    result: Type,
    dialect: SqlDialect,
) -> CompiledQuery | NotCompiled:
    """Return the groups and values of an aggregation as a query, or the reason why it has none.

    A value that is null is no value, except for a sum, which is null where it is too large.
    """
    try:
        return _compile(aggregation, body, types[body.relation], result, dialect)
    except NotExactError as error:
        return NotCompiled(str(error))


def _compile(
    aggregation: Aggregation,
    body: Reference,
    types: tuple[Type, ...],
    result: Type,
    dialect: SqlDialect,
) -> CompiledQuery:
    form = Form.CODE if dialect.has_codes else Form.VALUE
    columns = [(form, at) for at in aggregation.groups]
    groups = [nodes.column(f"{form}{at}", SOURCE) for at in aggregation.groups]
    mark: Node | None = None
    if aggregation.value is None:
        value = nodes.call("COUNT", exp.Star())
    else:
        source = types[aggregation.value]
        made = _form(aggregation.operator, source, dialect)
        column = nodes.column(f"{Form.VALUE}{aggregation.value}", SOURCE)
        value, mark = made(column, source, result)
        columns.append((Form.VALUE, aggregation.value))
    items = [nodes.named(each, f"h{at}") for at, each in enumerate((*groups, value))]
    if mark is not None:
        items.append(nodes.named(mark, MARK))
    query = nodes.select(items, nodes.table(TABLE, SOURCE), groups=groups)
    if not groups:  # an aggregate of no rows would be a row
        count = nodes.call("COUNT", exp.Star())
        test = nodes.binary(exp.GT, count, nodes.integer(0, "BIGINT"))
        query.set("having", exp.Having(this=test))
    keys = tuple(OutputColumn(types[at], form) for at in aggregation.groups)
    outputs = (*keys, OutputColumn(result, Form.VALUE))
    table = InputTable(TABLE, body, tuple(dict.fromkeys(columns)))
    return CompiledQuery(query, (), mark is not None, outputs, (table,))


def _form(operator: str, source: Type, dialect: SqlDialect) -> AggregateForm:
    found = dialect.aggregates.get((operator, source.kind))
    if found is None:
        raise NotExactError(f"`{operator}` of {source.kind} has no exact form in SQL")
    return found


def sum_last_column(compiled: CompiledQuery, dialect: SqlDialect) -> CompiledQuery:
    """Return a query with one row for each group that agrees in all columns but the last, its sum.

    A sum that is too large is marked.

    Raises:
        NotExactError: the dialect has no such sum.
    """
    *keys, last = compiled.outputs
    names = [f"h{at}" for at in range(sum(each.form is not None for each in compiled.outputs))]
    if last.form is None:
        assert last.constant is not None
        value = nodes.call("COUNT", exp.Star())
        if last.constant.value != 1:
            # The sum of a constant is rare enough to be left to the local engine.
            raise NotExactError("the sum of a constant has no exact form in SQL")
        total, groups = value, names
    else:
        column = nodes.column(names[-1], SOURCE)
        total, _ = _form("sum", last.type, dialect)(column, last.type, last.type)
        groups = names[:-1]
    columns = [nodes.column(name, SOURCE) for name in groups]
    items = [nodes.named(each, f"h{at}") for at, each in enumerate((*columns, total))]
    marks = [nodes.is_null(total)]
    if compiled.has_mark:
        marks.append(nodes.call("BOOL_OR", nodes.column(MARK, SOURCE)))
    mark = nodes.any_of(marks)
    assert mark is not None
    items.append(nodes.named(mark, MARK))
    query = nodes.select(items, nodes.subquery(compiled.query, SOURCE), groups=columns)
    outputs = (*keys, OutputColumn(last.type, Form.VALUE))
    return CompiledQuery(query, compiled.fault_queries, True, outputs, compiled.inputs)
