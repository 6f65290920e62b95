"""PIVOT and UNPIVOT, as the queries that they stand for.

t PIVOT (sum(x) FOR a IN (1, 2))        SELECT * EXCEPT (x, a), sum(x) FILTER (WHERE a <=> 1) …
                                        FROM t GROUP BY ALL

where a cell without rows is null; unless Spark computes the cells at once, because one of them is
neither a number nor a boolean: then it has what the aggregate is of no rows.
t UNPIVOT (v FOR name IN (a, b))        SELECT * EXCEPT (a, b), 'a' AS name, a AS v FROM t
                                        WHERE a IS NOT NULL UNION ALL …
"""

from collections.abc import Callable, Iterable
from functools import reduce

from sqlglot import exp

from corollary.core.types import SQL_NUMERIC, Type
from corollary.frontends.sql.binder.aggregates import AGGREGATES
from corollary.frontends.sql.binder.context import name_of
from corollary.frontends.sql.binder.session import BindingSession

_NULL_WITHOUT_ROWS = frozenset({"sum", "avg", "mean", "min", "max"})
_SETTINGS = ("columns", "identify_pivot_strings", "prefixed_pivot_columns", "pivot_column_naming")
"""What sqlglot notes for itself."""


TypesOf = Callable[[exp.Select], Iterable[Type]]
"""Binds a query, and returns the types of its columns."""


def without_pivots(node: exp.Expr, session: BindingSession, types_of: TypesOf) -> exp.Expr:
    """Return a source of FROM with the queries that its pivots stand for."""
    pivots, joins = node.args["pivots"], node.args.get("joins")
    found = node.copy()
    found.set("pivots", None)
    found.set("joins", None)
    for pivot in pivots:
        session.check(
            pivot, "expressions", "fields", "unpivot", "include_nulls", "alias", *_SETTINGS
        )
        chosen = pivot.args["fields"]
        if len(chosen) != 1 or not isinstance(chosen[0], exp.In) or not chosen[0].expressions:
            note = "list the values, as in `FOR a IN (1, 2)`"
            raise session.error("C1310", "PIVOT needs its values in a list.", pivot, note)
        session.check(chosen[0], "this", "expressions")
        if pivot.args.get("unpivot"):
            query = _unpivoted(found, pivot, chosen[0], session)
        else:
            query = _pivoted(found, pivot, chosen[0], session, types_of)
        found = exp.Subquery(this=query, alias=pivot.args.get("alias"))
    found.set("joins", joins)
    found.parent = node.parent  # for the place of what has none
    return found


def _parts(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


def _other_columns(columns: Iterable[exp.Expr]) -> exp.Star:
    names = {each.name.lower(): each for each in columns}
    return exp.Star(except_=[each.copy() for each in names.values()])


def _pivoted(
    source: exp.Expr, pivot: exp.Expr, chosen: exp.In, session: BindingSession, types_of: TypesOf
) -> exp.Expr:
    keys = _parts(chosen.this)
    aggregates = pivot.expressions
    alone = exp.Select(
        expressions=[each.copy() for each in aggregates], from_=exp.From(this=source.copy())
    )
    is_null = all(each.is_bool or each.logical_kind in SQL_NUMERIC for each in types_of(alone))
    columns = [each for part in (*keys, *aggregates) for each in part.find_all(exp.Column)]
    items: list[exp.Expr] = [_other_columns(columns)]
    for value in chosen.expressions:
        alias, given = value.args.get("alias"), value
        if isinstance(value, exp.PivotAlias):
            given = value.this
        parts = _parts(given)
        if len(parts) != len(keys):
            message = f"PIVOT has {len(keys)} columns, and this has {len(parts)} values."
            raise session.error("C1315", message, value, "write a value for each column")
        name = alias.name if alias is not None else _value_name(given, session)
        tests: list[exp.Expr] = [
            exp.NullSafeEQ(this=key.copy(), expression=part.copy())
            for key, part in zip(keys, parts, strict=True)
        ]
        test = reduce(lambda one, other: exp.And(this=one, expression=other), tests)
        for aggregate in aggregates:
            called = aggregate.this if isinstance(aggregate, exp.Alias) else aggregate
            shown = aggregate.alias or " ".join(session.text(called).split())
            full = name if len(aggregates) == 1 else f"{name}_{shown}"
            cell = _filtered(called, test, session, is_null=is_null)
            items.append(exp.alias_(cell, full, quoted=True))
    return exp.Select(expressions=items, from_=exp.From(this=source), group=exp.Group(all=True))


def _filtered(
    called: exp.Expr, test: exp.Expr, session: BindingSession, *, is_null: bool
) -> exp.Expr:
    """Return an expression of aggregates of the rows with a test, perhaps null without such."""

    def filtered(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Anonymous) or name_of(part) not in AGGREGATES:
            return part
        return exp.Filter(this=part.copy(), expression=exp.Where(this=test.copy()))

    found = called.transform(filtered)
    if found.find(exp.Filter) is None:
        raise session.error("C1310", "PIVOT needs an aggregate.", called, "write `sum(x)`")
    if not is_null or (isinstance(called, exp.Anonymous) and name_of(called) in _NULL_WITHOUT_ROWS):
        return found
    rows = exp.Anonymous(this="count_if", expressions=[test.copy()])
    has_rows = exp.GT(this=rows, expression=exp.Literal.number(0))
    return exp.If(this=has_rows, true=found, false=exp.Null())


def _value_name(value: exp.Expr, session: BindingSession) -> str:
    """Return the name that Spark gives the column of a value."""
    match value:
        case exp.Tuple():
            return f"{{{', '.join(_value_name(each, session) for each in value.expressions)}}}"
        case exp.Literal():
            return str(value.this)
        case exp.Neg(this=exp.Literal(is_string=False)):
            return f"-{value.this.this}"
        case exp.Null() | exp.Boolean():
            return value.sql().lower()
        case exp.Cast(this=exp.Literal()):
            return str(value.this.this)
        case _:
            note = "write a literal, or give it a name: `value AS name`"
            raise session.error("C1310", "This value of PIVOT has no name.", value, note)


def _unpivoted(
    source: exp.Expr, pivot: exp.Expr, chosen: exp.In, session: BindingSession
) -> exp.Expr:
    names = [each for part in pivot.expressions for each in _parts(part)]
    groups = [
        (_parts(each.this if isinstance(each, exp.PivotAlias) else each), each.args.get("alias"))
        for each in chosen.expressions
    ]
    others = _other_columns(each for columns, _ in groups for each in columns)
    is_table = isinstance(source, exp.Table)
    table = source if is_table else exp.Table(this=exp.to_identifier("unpivoted"))
    branches: list[exp.Expr] = []
    for (columns, alias), place in zip(groups, chosen.expressions, strict=True):
        if len(columns) != len(names):
            message = f"UNPIVOT has {len(names)} names, and this has {len(columns)} columns."
            raise session.error("C1315", message, place, "write a column for each name")
        label = alias.name if alias is not None else "_".join(each.name for each in columns)
        items = [
            others.copy(),
            exp.alias_(exp.Literal.string(label), chosen.this.name, quoted=True),
            *(
                exp.alias_(column.copy(), name.name, quoted=True)
                for column, name in zip(columns, names, strict=True)
            ),
        ]
        branch = exp.Select(expressions=items, from_=exp.From(this=table.copy()))
        if not pivot.args.get("include_nulls"):
            tests: list[exp.Expr] = [
                exp.Not(this=exp.Is(this=each.copy(), expression=exp.Null())) for each in columns
            ]
            test = reduce(lambda one, other: exp.Or(this=one, expression=other), tests)
            branch.set("where", exp.Where(this=test))
        branches.append(branch)
    query = reduce(
        lambda one, other: exp.Union(this=one, expression=other, distinct=False), branches
    )
    if not is_table:  # once for all branches
        rows = exp.Select(expressions=[exp.Star()], from_=exp.From(this=source))
        alias = exp.TableAlias(this=exp.to_identifier("unpivoted"))
        query.set("with_", exp.With(expressions=[exp.CTE(this=rows, alias=alias)]))
    return query
