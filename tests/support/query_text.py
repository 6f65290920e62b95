"""Query trees as text, one line each, and the relations that queries in tests may name."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any, assert_never

from sqlglot import exp

from corollary.core.types import Type
from corollary.errors import InputError
from corollary.frontends.datalog import parse
from corollary.frontends.sql import query_tree as tree
from corollary.frontends.sql.binder.bind import bind_query
from corollary.frontends.sql.catalog import SqlCatalog, catalog_of
from corollary.frontends.sql.parse import parse_query, span_between, split_statements
from corollary.source import SourceFile, Span

DECLARATIONS = """
.type Name <: symbol
.decl t(k: number, a: number?, s: Name?, d: date, m: decimal(12,2), f: float, ts: timestamp?,
  b: bool) key(k)
.decl u(a: number?, c: number, w: symbol)
.decl edge(x: symbol, y: symbol)
.decl Mixed(Id: number, ID: number)
.decl big(n: unsigned)
"""
CATALOG: SqlCatalog = catalog_of(parse(SourceFile("declarations.dl", DECLARATIONS)))


def parse_text(file: SourceFile) -> exp.Expr:
    """Return the tree of a text that is one statement."""
    found = split_statements(file)
    if len(found) != 1:
        raise InputError.of("C1301", "One statement is expected.", span_between(file, 0, 0))
    return parse_query(found[0], file)


def bind_text(
    text: str,
    parameters: Mapping[str, Any] | None = None,
    name: str = "query.sql",
    catalog: SqlCatalog = CATALOG,
) -> tree.Query:
    """Return a query, bound."""
    file = SourceFile(name, text)
    return bind_query(parse_text(file), catalog, file, parameters)


def expression_text(node: tree.Expression) -> str:
    match node:
        case tree.ColumnReference():
            mark = "?" if node.type.nullable else ""
            return f"{'^' * node.depth}{node.source}.{node.column}{mark}"
        case tree.ConstantValue():
            value = node.value
            return f"{value}" if isinstance(value, Decimal) else repr(value)
        case tree.FunctionCall():
            return f"{node.functor}({expressions_text(node.arguments)})"
        case tree.AggregateCall():
            inner = ("distinct " if node.is_distinct else "") + expressions_text(node.arguments)
            test = f" if {expression_text(node.condition)}" if node.condition else ""
            return f"{node.name}[{inner}{test}]"
        case tree.WindowCall():
            order = ", ".join(map(order_text, node.order))
            parts = [expressions_text(node.arguments), expressions_text(node.partition), order]
            return f"{node.name}<{' | '.join([*parts, frame_text(node.frame)])}>"
        case tree.ScalarSubquery():
            return f"value({query_text(node.query)})"
        case tree.Exists():
            return f"exists({query_text(node.query)})"
        case tree.Quantified():
            word = "all" if node.is_all else "any"
            left = expressions_text(node.left)
            return f"({left} {node.comparison} {word} ({query_text(node.query)}))"
        case _:
            assert_never(node)


def expressions_text(nodes: tuple[tree.Expression, ...]) -> str:
    return ", ".join(map(expression_text, nodes))


def order_text(item: tree.OrderItem) -> str:
    direction = " desc" if item.is_descending else ""
    nulls = "" if item.nulls_first != item.is_descending else " nulls swapped"
    return expression_text(item.expression) + direction + nulls


def frame_text(frame: tree.WindowFrame | None) -> str:
    if frame is None:
        return "-"
    word = "rows" if frame.is_rows else "range"
    start = frame.start_offset if frame.start is tree.FrameBound.OFFSET else frame.start
    end = frame.end_offset if frame.end is tree.FrameBound.OFFSET else frame.end
    return f"{word} {start}..{end}"


def source_text(node: tree.Source) -> str:
    match node:
        case tree.TableSource():
            return f"{node.relation}#{node.number}"
        case tree.SubquerySource():
            name = f"{node.cte} = " if node.cte else ""
            return f"({name}{query_text(node.query)})#{node.number}"
        case tree.RecursiveSource():
            return f"recursive {node.cte}#{node.number}"
        case tree.RangeSource():
            return f"range({', '.join(map(expression_text, node.arguments))})#{node.number}"
        case tree.JoinedSource():
            test = f" on {expression_text(node.condition)}" if node.condition else ""
            return f"({source_text(node.left)} {node.kind} {source_text(node.right)}{test})"
        case _:
            assert_never(node)


def columns_text(columns: tuple[tree.QueryColumn, ...]) -> str:
    return ", ".join(f"{column.name}: {column.type}" for column in columns)


def query_text(node: tree.Query) -> str:
    match node:
        case tree.Select():
            return select_text(node)
        case tree.SetOperation():
            word = f"{node.operator}{' all' if node.is_all else ''}"
            columns = columns_text(node.columns)
            return f"({query_text(node.left)} {word} {query_text(node.right)} -> {columns})"
        case tree.Values():
            rows = ", ".join(f"({expressions_text(row)})" for row in node.rows)
            return f"values {rows} -> {columns_text(node.columns)}"
        case tree.Ordered():
            terms = ", ".join(
                f"{column}{' desc' if down else ''}{'' if first != down else ' nulls swapped'}"
                for column, down, first in node.order
            )
            return (
                f"ordered({query_text(node.query)}) by [{terms}] limit {node.limit} "
                f"offset {node.offset} width {node.width}"
            )
        case tree.WithRecursive():
            return f"with {'; '.join(map(table_text, node.tables))} in {query_text(node.query)}"
        case _:
            assert_never(node)


def table_text(table: tree.RecursiveTable) -> str:
    bases = " + ".join(map(query_text, table.bases)) or "-"
    steps = " + ".join(map(query_text, table.steps))
    word = "all" if table.is_all else "distinct"
    return f"{table.name}({columns_text(table.columns)}) {word} = {bases} then {steps}"


def select_text(node: tree.Select) -> str:
    items = ", ".join(f"{c.name}: {c.type} = {expression_text(e)}" for c, e in node.columns)
    parts = ["select", "distinct"] if node.is_distinct else ["select"]
    parts.append(items)
    if node.source is not None:
        parts += ["from", source_text(node.source)]
    if node.where is not None:
        parts += ["where", expression_text(node.where)]
    if node.group_by is not None:
        parts.append(f"group [{expressions_text(node.group_by)}]")
    if node.grouping_sets is not None:
        parts.append(f"sets {[sorted(each) for each in node.grouping_sets]}")
    if node.having is not None:
        parts += ["having", expression_text(node.having)]
    return " ".join(parts)


def nodes_of(node: Any) -> Iterator[Any]:
    """Yields the dataclasses in a tree, itself first; types and places are left out."""
    if isinstance(node, tuple | list):
        for each in node:
            yield from nodes_of(each)
    elif is_dataclass(node) and not isinstance(node, Type | Span):
        yield node
        for field in fields(node):
            yield from nodes_of(getattr(node, field.name))
