"""The few pieces that our SQL is made of, as sqlglot trees; text is made by `text_of` alone."""

from collections.abc import Iterable, Sequence
from functools import reduce

from sqlglot import exp

from corollary.core.logic import Value
from corollary.core.types import Kind, Type
from corollary.core.values import format_value as value_text
from corollary.engines.spark.sql.columns import UNIT, names_of, sql_type

Node = exp.Expression


def text_of(query: Node) -> str:
    """Return a query as Spark reads it."""
    return query.sql(dialect="spark")


def column(name: str, table: str | None = None) -> exp.Column:
    """Return a column, perhaps of a named table."""
    of = None if table is None else exp.to_identifier(table, quoted=True)
    return exp.Column(this=exp.to_identifier(name, quoted=True), table=of)


def call(name: str, *arguments: Node) -> Node:
    """Return a call of a function that sqlglot need not know."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def named(node: Node, name: str) -> Node:
    """Return a node of a SELECT list, with its name."""
    return exp.Alias(this=node, alias=exp.to_identifier(name, quoted=True))


def cast(node: Node, type_: Type) -> Node:
    """Return a value as one of a type."""
    return exp.Cast(this=node, to=exp.DataType.build(sql_type(type_), dialect="spark"))


def number(value: int) -> Node:
    """Return an integer."""
    literal = exp.Literal.number(abs(value))
    return exp.Neg(this=literal) if value < 0 else literal


def constant(value: Value, type_: Type) -> Node:
    """Return a value of a type."""
    if value is None:
        return cast(exp.Null(), type_)
    if type_.kind is Kind.BOOL:
        return exp.Boolean(this=bool(value))
    text = value_text(value, type_)
    return cast(exp.Literal.string(text), type_)


def every(nodes: Iterable[Node]) -> Node | None:
    """Return the conjunction of conditions, None for none."""
    found: list[Node] = [exp.Paren(this=node) for node in nodes]
    return reduce(lambda one, two: exp.And(this=one, expression=two), found) if found else None


def any_of(nodes: Iterable[Node]) -> Node | None:
    """Return the disjunction of conditions, None for none."""
    found: list[Node] = [exp.Paren(this=node) for node in nodes]
    return reduce(lambda one, two: exp.Or(this=one, expression=two), found) if found else None


def is_null(node: Node) -> Node:
    """Return the test for null."""
    return exp.Is(this=exp.Paren(this=node), expression=exp.Null())


def is_present(node: Node) -> Node:
    """Return the test for a value."""
    return exp.Not(this=is_null(node))


def negated(node: Node) -> Node:
    """Return the negation of a condition."""
    return exp.Not(this=exp.Paren(this=node))


def same(one: Node, other: Node, *, is_nullable: bool = True) -> Node:
    """Return the test whether two values are equal, null being equal to null.

    Args:
        one: a value.
        other: another one.
        is_nullable: whether both may be null; if not, the plain test does, and joins are faster.
    """
    kind = exp.NullSafeEQ if is_nullable else exp.EQ
    return kind(this=one, expression=other)


def select(
    nodes: Sequence[Node],
    source: Node,
    where: Node | None = None,
    *,
    is_distinct: bool = False,
    groups: Sequence[Node] = (),
    having: Node | None = None,
) -> exp.Select:
    """Return a SELECT."""
    query = exp.Select(expressions=list(nodes))
    query.set("from_", exp.From(this=source))
    if where is not None:
        query.set("where", exp.Where(this=where))
    if groups:
        query.set("group", exp.Group(expressions=list(groups)))
    if having is not None:
        query.set("having", exp.Having(this=having))
    if is_distinct:
        query.set("distinct", exp.Distinct())
    return query


def joined(query: exp.Select, source: Node, on: Node | None, kind: str) -> exp.Select:
    """Return a SELECT with a further source; the kind is INNER, CROSS, SEMI or ANTI."""
    side = "LEFT" if kind in ("SEMI", "ANTI") else None
    query.append("joins", exp.Join(this=source, side=side, kind=kind, on=on))
    return query


def of(query: Node, alias: str) -> Node:
    """Return a query as the source of another."""
    return exp.Subquery(
        this=query, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
    )


def view(name: str, alias: str) -> Node:
    """Return a view as the source of a query."""
    table = exp.Table(this=exp.to_identifier(name, quoted=True))
    table.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    return table


def union(queries: Sequence[Node]) -> Node:
    """Return all rows of several queries."""
    return reduce(
        lambda one, two: exp.Union(this=one, expression=two, distinct=False), list(queries)
    )


def true() -> Node:
    """Return what holds."""
    return exp.Boolean(this=True)


def nothing(types: Sequence[Type]) -> exp.Select:
    """Return a query for a relation that is empty."""
    nodes = [
        named(cast(exp.Null(), type_), name)
        for name, type_ in zip(names_of(types), types, strict=False)
    ]
    return select(nodes or [column(UNIT, "e")], of(unit(), "e"), exp.Boolean(this=False))


def unit() -> exp.Select:
    """Return one row that says nothing."""
    return exp.Select(expressions=[named(exp.Boolean(this=True), UNIT)])


def columns_of(types: Sequence[Type], table: str) -> list[Node]:
    """Return all columns of a relation in a named table."""
    return [column(name, table) for name in names_of(types)]


def all_same(types: Sequence[Type], one: str, other: str, nulls: Sequence[bool]) -> Node:
    """Return the test whether the tuples of two named tables are equal.

    Args:
        types: of the columns.
        one: a table.
        other: another one.
        nulls: which columns may be null in both.
    """
    pairs = zip(columns_of(types, one), columns_of(types, other), nulls, strict=True)
    found = every(same(left, right, is_nullable=may) for left, right, may in pairs)
    assert found is not None
    return found
