"""The few pieces that our SQL is made of, as sqlglot trees; only `SqlDialect.text` makes text.

Trees share their parts, and only new ones are changed: copies would cost more than the rest.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache, reduce
from typing import Any

from sqlglot import exp

Node = exp.Expression

OperatorKind = type[Any]
"""A class of operators between two values."""


def column(name: str, table: str) -> Node:
    """Return a column of a named table."""
    return exp.Column(
        this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(table, quoted=True)
    )


def call(name: str, *arguments: Node) -> Node:
    """Return a call of a function that sqlglot need not know."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def field(value: Node, name: str) -> Node:
    """Return a field of a struct."""
    return exp.Dot(this=value, expression=exp.to_identifier(name, quoted=True))


def binary(kind: OperatorKind, one: Node, other: Node) -> Node:
    """Return an operator between two values, in parentheses."""
    made: Any = kind(this=one, expression=other)
    return exp.Paren(this=made)


def case(*branches: tuple[Node, Node], default: Node | None = None) -> Node:
    """Return the value of the first test that is true; null without a default."""
    ifs = [exp.If(this=test, true=value) for test, value in branches]
    return exp.Case(ifs=ifs, default=default)


@lru_cache(maxsize=64)
def data_type(name: str) -> exp.DataType:
    """Return an SQL type; sqlglot parses its name."""
    return exp.DataType.build(name, udt=True)


def cast(value: Node, type_: str) -> Node:
    """Return a value as one of an SQL type."""
    return exp.Cast(this=value, to=data_type(type_))


def try_cast(value: Node, type_: str) -> Node:
    """Return a value as one of an SQL type, null where it is none."""
    # Without `safe`, sqlglot writes a plain cast for Spark.
    return exp.TryCast(this=value, to=data_type(type_), safe=True)


def integer(value: int, type_: str) -> Node:
    """Return an integer of an SQL type."""
    return exp.Cast(this=exp.Literal.string(str(value)), to=data_type(type_))


def string(value: str) -> Node:
    """Return a text."""
    return exp.Literal.string(value)


def named(value: Node, name: str) -> Node:
    """Return an item of a SELECT list, with its name."""
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def every(first: Node, *others: Node | None) -> Node:
    """Return the conjunction of tests; None is left out."""
    return _joined(exp.And, first, others)


def either(first: Node, *others: Node | None) -> Node:
    """Return the disjunction of tests; None is left out."""
    return _joined(exp.Or, first, others)


def every_of(tests: Iterable[Node | None]) -> Node | None:
    """Return the conjunction of tests; None for none."""
    return every(*found) if (found := [each for each in tests if each is not None]) else None


def any_of(tests: Iterable[Node | None]) -> Node | None:
    """Return the disjunction of tests; None for none."""
    return either(*found) if (found := [each for each in tests if each is not None]) else None


def _joined(kind: OperatorKind, first: Node, others: Iterable[Node | None]) -> Node:
    found: list[Node] = [exp.Paren(this=each) for each in (first, *others) if each is not None]
    return reduce(lambda one, two: kind(this=one, expression=two), found)


def is_null(value: Node) -> Node:
    """Return the test for null."""
    return exp.Is(this=exp.Paren(this=value), expression=exp.Null())


def is_present(value: Node) -> Node:
    """Return the test for a value."""
    return exp.Not(this=is_null(value))


def is_true(test: Node) -> Node:
    """Return a test that is false where another one is null."""
    return call("COALESCE", test, exp.Boolean(this=False))


def negated(test: Node) -> Node:
    """Return the negation of a test."""
    return exp.Not(this=exp.Paren(this=test))


def same(one: Node, other: Node, *, is_nullable: bool) -> Node:
    """Return the test whether two values are equal, null being equal to null."""
    return binary(exp.NullSafeEQ if is_nullable else exp.EQ, one, other)


def select(
    items: Sequence[Node],
    source: Node | None,
    where: Node | None = None,
    groups: Sequence[Node] = (),
) -> exp.Select:
    """Return a SELECT; without a source, of one row."""
    query = exp.Select(expressions=list(items))
    if source is not None:
        query.set("from_", exp.From(this=source))
    if where is not None:
        query.set("where", exp.Where(this=where))
    if groups:
        query.set("group", exp.Group(expressions=list(groups)))
    return query


def joined(query: exp.Select, source: Node, on: Node | None, side: str, kind: str) -> exp.Select:
    """Return a SELECT with a further source; the kind is INNER, CROSS, SEMI or ANTI."""
    query.append("joins", exp.Join(this=source, side=side or None, kind=kind, on=on))
    return query


def subquery(query: exp.Select, alias: str) -> Node:
    """Return a query as the source of another."""
    return exp.Subquery(
        this=query, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
    )


def table(name: str, alias: str) -> Node:
    """Return a table as the source of a query."""
    found = exp.Table(this=exp.to_identifier(name, quoted=True))
    found.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    return found
