"""Where a recursive table may be used in its own definition, and when its rows differ."""

from collections.abc import Collection

from corollary.frontends.sql.lowering.context import refuse
from corollary.frontends.sql.query_tree import (
    AggregateCall,
    ColumnReference,
    Exists,
    Expression,
    FunctionCall,
    JoinedSource,
    JoinKind,
    Ordered,
    Quantified,
    Query,
    RecursiveSource,
    RecursiveTable,
    Select,
    SetOperation,
    SetOperator,
    Source,
    SubquerySource,
    TableSource,
    WindowCall,
    calls_in,
    conjuncts,
    constant_of,
    walk,
)


def references(node: object, names: Collection[str]) -> list[RecursiveSource]:
    """Return the references to recursive tables below a node."""
    return [part for part in walk(node) if isinstance(part, RecursiveSource) and part.cte in names]


def check_uses(query: Query, names: Collection[str]) -> None:
    """Refuse a use of a recursive table in which more rows could make other rows wrong."""
    match query:
        case SetOperation(operator=operator, left=left, right=right):
            if operator is SetOperator.EXCEPT:
                _refuse(query, names, "inside `EXCEPT`")
            check_uses(left, names)
            check_uses(right, names)
        case Ordered(query=inner, limit=limit, offset=offset):
            if limit is not None or offset:
                _refuse(inner, names, "below `LIMIT`")
            check_uses(inner, names)
        case Select():
            is_grouped = query.group_by is not None or calls_in(
                (query.columns, query.having), AggregateCall
            )
            if is_grouped:
                _refuse(query, names, "below an aggregate")
            if calls_in(query.columns, WindowCall):
                _refuse(query, names, "below a window function")
            for _, expression in query.columns:
                _refuse(expression, names, "in a subquery of the select list")
            if query.source is not None:
                _check_source(query.source, names)
            _check_condition(query.where, names)
        case _:
            _refuse(query, names, "inside another recursion")


def _check_source(source: Source, names: Collection[str]) -> None:
    match source:
        case SubquerySource(query=query):
            check_uses(query, names)
        case JoinedSource(kind=kind, left=left, right=right, condition=condition):
            if kind is JoinKind.FULL:
                _refuse(left, names, "on a side of `FULL JOIN`")
            if kind in (JoinKind.FULL, JoinKind.LEFT, JoinKind.ANTI):
                _refuse(right, names, f"on the right side of `{kind.upper()} JOIN`")
                _refuse(condition, names, "in the condition of an outer join")
            _check_source(left, names)
            _check_source(right, names)
            _check_condition(condition, names)
        case _:
            pass


def _check_condition(condition: Expression | None, names: Collection[str]) -> None:
    for part in conjuncts(condition):
        match part:
            case Exists(query=query):
                check_uses(query, names)
            case Quantified(query=query, is_all=False, left=left):
                _refuse(left, names, "in a value that is compared")
                check_uses(query, names)
            case _:
                _refuse(part, names, "in a condition that may be negated")


def _refuse(node: object, names: Collection[str], place: str) -> None:
    for found in references(node, names):
        raise refuse(
            "C1351",
            f"The recursive table `{found.cte.rsplit('.', 1)[-1]}` cannot be used {place}.",
            found.span,
            "refer to it in the `FROM` of a branch, or compute this after the recursion",
        )


# --- rows of base and step -----------------------------------------------------------------------


def rows_differ(table: RecursiveTable) -> frozenset[int] | None:
    """Return a key of a table whose base and step never give one row; None if they may.

    A column is a constant in the base and grows in each step; or the same columns are the key of a
    table whose rows cannot be in both: `up IS NULL` in the base, `up = r.id` in the step.
    """
    (base,), (step,) = table.bases, table.steps
    if not isinstance(base, Select) or not isinstance(step, Select):
        return None
    for (_, first), (_, then) in zip(base.columns, step.columns, strict=True):
        start = constant_of(first)
        if isinstance(start, int) and _grows(then, step, table.name):
            return frozenset(range(len(table.columns)))
    for source in (part for part in walk(base.source) if isinstance(part, TableSource)):
        for other in (part for part in walk(step.source) if isinstance(part, TableSource)):
            if source.relation != other.relation or source.is_bag:
                continue
            if not _contradict(base, source, step, other):
                continue
            for key in source.keys:
                places = [_place(base, step, source, other, column) for column in sorted(key)]
                found = [place for place in places if place is not None]
                if key and len(found) == len(places):
                    return frozenset(found)
    return None


def _grows(expression: Expression, step: Select, name: str) -> bool:
    """Whether a column is a column of the recursive table plus a positive number."""
    match expression:
        case FunctionCall(functor="+", arguments=(one, other)):
            pairs = ((one, other), (other, one))
            return any(
                isinstance(number := constant_of(constant), int)
                and number > 0
                and isinstance(column, ColumnReference)
                and column.source in {each.number for each in references(step, {name})}
                for column, constant in pairs
            )
        case _:
            return False


def _place(
    base: Select, step: Select, source: TableSource, other: TableSource, column: int
) -> int | None:
    """Return the column of the result that is a column of a table in both branches."""
    for number, ((_, first), (_, then)) in enumerate(zip(base.columns, step.columns, strict=True)):
        if _is_column(first, source, column) and _is_column(then, other, column):
            return number
    return None


def _is_column(expression: Expression, source: TableSource, column: int) -> bool:
    return (
        isinstance(expression, ColumnReference)
        and expression.source == source.number
        and expression.column == column
    )


def _contradict(base: Select, source: TableSource, step: Select, other: TableSource) -> bool:
    """Whether a row of a table cannot fulfil the conditions of both branches."""
    nulls = {
        part.arguments[0].column
        for part in _conditions(base)
        if isinstance(part, FunctionCall)
        and part.functor == "is_null"
        and isinstance(part.arguments[0], ColumnReference)
        and part.arguments[0].source == source.number
    }
    return any(
        isinstance(part, FunctionCall)
        and part.functor == "eq"
        and any(_is_column(side, other, column) for side in part.arguments for column in nulls)
        for part in _conditions(step)
    )


def _conditions(select: Select) -> list[Expression]:
    """Return the conjuncts of `WHERE` and of inner joins."""
    found = list(conjuncts(select.where))
    sources: list[Source | None] = [select.source]
    while sources:
        source = sources.pop()
        if isinstance(source, JoinedSource) and source.kind is JoinKind.INNER:
            found += conjuncts(source.condition)
            sources += [source.left, source.right]
    return found
