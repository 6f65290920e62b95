"""SELECT blocks: plain, grouped, and with windows."""

from corollary.core.logic import Term, Variable
from corollary.frontends.sql.lowering.blocks import ResultColumn, emit_block
from corollary.frontends.sql.lowering.bodies import RuleBody
from corollary.frontends.sql.lowering.context import LoweredQuery, ViewLowering
from corollary.frontends.sql.lowering.grouping import (
    Groups,
    group_storage,
    is_null_without_rows,
)
from corollary.frontends.sql.lowering.tree_walk import calls_in, has_subquery
from corollary.frontends.sql.lowering.windows import add_windows
from corollary.frontends.sql.query_tree import (
    AggregateCall,
    ColumnReference,
    Expression,
    Query,
    Select,
    WindowCall,
)


def is_grouped(select: Select) -> bool:
    """Whether the rows of a block are groups."""
    return select.group_by is not None or bool(
        calls_in((select.columns, select.having), AggregateCall)
    )


def define_select(
    lowering: ViewLowering, select: Select, relation: str, body: RuleBody, *, storage: str
) -> LoweredQuery:
    """Make the rules of a block."""
    has_windows = bool(calls_in(select.columns, WindowCall))
    is_set = body.is_set or select.is_distinct
    body.is_set = is_set and not has_windows  # a window sees each copy of a row
    if is_grouped(select):
        storage = group_storage(lowering) if storage == "virtual" else storage
        body = _grouped_body(lowering, select, relation, body)
        lowering.add_condition(select.having, body)
    else:
        lowering.open_select(select, body)
    if has_windows:
        add_windows(lowering, select, body)
        body.is_set = is_set
    columns = [
        ResultColumn(column.name, lowering.term(expression, body), column.type)
        for column, expression in select.columns
    ]
    return emit_block(lowering, relation, body, columns, storage=storage, span=select.span)


def _make_groups(lowering: ViewLowering, select: Select, relation: str, rows: RuleBody) -> Groups:
    """Return the groups of a block, with the totals of all its aggregates."""
    lowering.open_select(select, rows)
    keys = [
        ResultColumn(_name(lowering, key), lowering.term(key, rows), key.type)
        for key in select.group_by or ()
    ]
    groups = Groups(lowering, relation, rows, keys)
    for call in calls_in((select.columns, select.having), AggregateCall):
        assert isinstance(call, AggregateCall)
        groups.add(call)
    return groups


def _name(lowering: ViewLowering, expression: Expression) -> str:
    """Return a name for a key."""
    if isinstance(expression, ColumnReference):
        term = lowering.columns[expression.source][expression.column]
        return lowering.draft.hint(term) if isinstance(term, Variable) else "key"
    return "key"


def _grouped_body(
    lowering: ViewLowering, select: Select, relation: str, body: RuleBody
) -> RuleBody:
    """Return a body whose rows are the groups of a block."""
    rows = body.empty_copy(is_set=False)
    groups = _make_groups(lowering, select, relation, rows)
    body.terms.update(groups.terms)
    for key, variable in zip(select.group_by or (), groups.variables, strict=True):
        body.terms[key] = variable
        if isinstance(key, ColumnReference):
            lowering.columns[key.source][key.column] = variable
    is_read_again = bool(calls_in(select.columns, WindowCall)) or any(
        has_subquery(each) for each in (select.having, *(each for _, each in select.columns))
    )
    if not groups.keys:
        body.choose(groups.alternatives(groups.to_relation()), lowering.cut)
    elif is_read_again or not _shows_keys(select):
        body.items.append(groups.to_relation())
    else:
        body.items += groups.items()
    body.values += groups.totals
    body.witnesses += groups.variables
    groups.note_totals(body)
    return body


def _shows_keys(select: Select) -> bool:
    """Whether all keys are columns of the result, so that its rows are the groups."""
    shown = [expression for _, expression in select.columns]
    return all(key in shown for key in select.group_by or ())


def single_row(
    lowering: ViewLowering, query: Query, body: RuleBody, *, drops_null: bool
) -> Term | None:
    """Return the value of a block that is one group, and so has always one row."""
    if (
        not isinstance(query, Select)
        or query.group_by
        or query.grouping_sets is not None
        or query.having is not None
        or not calls_in(query.columns, AggregateCall)
        or calls_in(query.columns, WindowCall)
        or len(query.columns) != 1
    ):
        return None
    rows = lowering.inner_body(query, body, is_set=False)
    relation = lowering.draft.relation("q")
    groups = _make_groups(lowering, query, relation, rows)
    literal = groups.to_relation()
    ((_, expression),) = query.columns
    alternatives = groups.alternatives(literal)
    if drops_null and is_null_without_rows(expression):
        alternatives = alternatives[:1]
    body.choose(alternatives, lowering.cut, groups.totals)
    groups.note_totals(body)
    return lowering.term(expression, body, terms=groups.terms, drops_null=drops_null)
