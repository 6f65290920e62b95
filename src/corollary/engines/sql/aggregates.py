"""Aggregates as SQL, by what the dialect has for them."""

from sqlglot import exp

from corollary.core.types import Type
from corollary.engines.sql import nodes
from corollary.engines.sql.compiled import MARK, CompiledQuery, Form, OutputColumn
from corollary.engines.sql.dialect import AggregateForm, NotExactError, SqlDialect
from corollary.engines.sql.nodes import Node

SOURCE = "s"
"""The name of the rows that are grouped."""

SIGNS = (1, -1)
"""What a derivation that comes or goes counts."""


def count_rows() -> Node:
    """Return the number of rows of a group."""
    return nodes.call("COUNT", exp.Star())


def aggregate_form(operator: str, source: Type, dialect: SqlDialect) -> AggregateForm:
    """Return the form of an aggregate of values of a type.

    Raises:
        NotExactError: it has none.
    """
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
        if last.constant.value not in SIGNS:
            # The sum of another constant is rare enough to be left to the local engine.
            raise NotExactError("the sum of a constant has no exact form in SQL")
        total, groups = count_rows(), names
        if last.constant.value == -1:  # derivations that are lost
            total = nodes.binary(exp.Sub, nodes.integer(0, "BIGINT"), total)
    else:
        column = nodes.column(names[-1], SOURCE)
        total, _ = aggregate_form("sum", last.type, dialect)(column, last.type, last.type)
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
