"""The rows of groups that aggregates are values of: their number, and some of them.

Of `min` and `max` those that attain the value are shown, of `count` the first ones, of `sum` and
`mean` the largest ones, and the sum of the others. All groups of an aggregate are read at once, by
a pipeline that is led by their keys; rows are counted and chosen by vectors.
"""

import math
from collections.abc import Sequence
from contextlib import closing
from decimal import Decimal
from itertools import chain, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import from_python, nullary_table, single_array, sort_rows, to_python
from corollary.core.arrow_buffers import fixed_values, index_array, python_array
from corollary.core.logic import Aggregation, AnyAggregation, Literal, Value, Variable
from corollary.data_class import dataclass
from corollary.provenance.instances import Fact
from corollary.provenance.limits import Allowance
from corollary.provenance.nodes import Row
from corollary.provenance.query_state import QueryState
from corollary.provenance.rule_query import RuleQueries, RuleQuery

SHOWN_ROWS = 10
_SHOWN_EXTREMES = 3
"""The maximum number of rows that are shown of a group, and of those that attain an extreme."""

COPIES_SHOWN_ROWS = 3
"""The same where rows are copies of a row of a bag."""


def value_column(aggregation: Aggregation, row: Row) -> int:
    """Return the column of the value that is asked for: the others of several are null."""
    first = len(aggregation.groups)
    known = (at for at in range(first, len(row)) if row[at] is not None)
    null = (at for at, each in enumerate(aggregation.accumulators, first) if each.is_nullable)
    return next(chain(known, null), first)


@dataclass(frozen=True, slots=True)
class GroupRows:
    """A group.

    Attributes:
        aggregation: what aggregates it.
        rows: those that are shown.
        total: how many there are; of `min` and `max`, of those that attain the value `attained`.
        attained: of `min` and `max`, how many rows attain the value; None for the others.
        rest: of `sum` and `mean`, the sum of the rows that are not shown.
    """

    aggregation: AnyAggregation
    rows: tuple[Fact, ...]
    total: int
    attained: int | None
    rest: Value


def find_groups(
    asked: QueryState,
    aggregation: AnyAggregation,
    groups: Sequence[Row],
    allowance: Allowance,
    most: int,
) -> dict[Row, GroupRows]:
    """Return the rows of some groups."""
    body = asked.program.relations[aggregation.body]
    keys = tuple(body.types[at] for at in aggregation.groups)
    row = tuple(Variable(f"_{at}", type_) for at, type_ in enumerate(body.types))
    wanted = tuple(row[at] for at in aggregation.groups)
    query = RuleQuery(wanted, (asked.goal(Literal(body.name, row)),), row)
    values = {
        number: tuple(group[at] for at in aggregation.keys) for number, group in enumerate(groups)
    }
    with closing(RuleQueries(asked, f"{aggregation.relation} groups", keys, [query])) as queries:
        found = queries.run(values, allowance)
    members = _split(found[0], len(groups)) if found else [from_python([], body)] * len(groups)
    return {
        group: _group(aggregation, group, rows, most)
        for group, rows in zip(groups, members, strict=True)
    }


def _split(table: pa.Table, count: int) -> list[pa.Table]:
    """Return the rows of each group, whose number is in the first column of a table."""
    numbers = fixed_values(single_array(table.column(0)), "i8")
    order = np.argsort(numbers, kind="stable")
    rows = table.take(index_array(order)).remove_column(0)
    bounds = np.searchsorted(numbers[order], np.arange(count + 1)).tolist()
    return [_slice(rows, start, end) for start, end in pairwise(bounds)]


def _slice(rows: pa.Table, start: int, end: int) -> pa.Table:
    # As a slice, a table without columns would lose its rows.
    return rows.slice(start, end - start) if rows.num_columns else nullary_table(end - start)


def _group(aggregation: AnyAggregation, group: Row, members: pa.Table, most: int) -> GroupRows:
    if not isinstance(aggregation, Aggregation):
        own = group[: members.num_columns]
        others = (row for row in to_python(sort_rows(members).slice(0, most)) if row != own)
        facts = tuple((aggregation.body, row) for row in (own, *others))[:most]
        return GroupRows(aggregation, facts, int(members.num_rows), None, None)
    column = value_column(aggregation, group)
    accumulator, value = aggregation.accumulators[column - len(aggregation.groups)], group[column]
    operator, at = accumulator.operator, accumulator.value
    attained, rest = None, None
    if at is None:
        chosen = sort_rows(members)
    elif accumulator.is_extreme:
        chosen = sort_rows(members.filter(_attains(members.column(at), value)))
        attained, most = int(chosen.num_rows), min(most, _SHOWN_EXTREMES)
    else:
        valued = members.filter(members.column(at).is_valid())
        chosen = sort_rows(valued, [(at, True)])
    shown = to_python(chosen.slice(0, most)) if chosen.num_columns else to_python(chosen)[:most]
    if at is not None and operator in ("sum", "mean"):
        rest = _rest(operator, value, [row[at] for row in shown], chosen.column(at).slice(most))
    facts = tuple((aggregation.body, row) for row in shown)
    return GroupRows(aggregation, facts, int(members.num_rows), attained, rest)


def _attains(column: pa.ChunkedArray, value: Value) -> pa.ChunkedArray:
    """Return the mask of the rows with a value."""
    if value is None:
        return column.is_null()
    if isinstance(value, float) and math.isnan(value):
        return pc.is_nan(column)
    return pc.equal(column, python_array([value], column.type)[0])


def _rest(operator: str, value: Value, shown: Sequence[Value], others: pa.ChunkedArray) -> Value:
    """Return the sum of the rows that are not shown: exact, but for floats."""
    if operator == "sum" and isinstance(value, int | Decimal):
        return value - sum(each for each in shown if isinstance(each, int | Decimal))
    if pa.types.is_floating(others.type):
        return math.fsum(fixed_values(single_array(others), "f8").tolist())
    numbers = (each for each in others.to_pylist() if isinstance(each, int | Decimal))
    return sum(numbers, start=Decimal(0) if pa.types.is_decimal(others.type) else 0)
