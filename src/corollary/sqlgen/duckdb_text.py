"""The text of our SQL trees for DuckDB.

sqlglot's own generator takes tens of milliseconds for a query with some expressions, longer than
many a query runs. Ours knows just the nodes that the compiler makes, and writes what occurs several
times once: trees share their parts.
"""

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from corollary.sqlgen.nodes import Node

_OPERATORS: dict[type[Any], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "//",
    exp.Mod: "%",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseRightShift: ">>",
    exp.DPipe: "||",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.Is: "IS",
    exp.Like: "LIKE",
    exp.And: "AND",
    exp.Or: "OR",
}


def write_duckdb(tree: Node) -> str:
    """Return a tree as DuckDB reads it."""
    return _Writer().write(tree)


class _Writer:
    def __init__(self) -> None:
        self._known: dict[int, str] = {}

    def write(self, node: Node) -> str:
        """Return the text of a node, which is made once."""
        known = self._known.get(id(node))
        if known is None:
            operator = _OPERATORS.get(type(node))
            if operator is not None:
                known = f"{self.write(node.this)} {operator} {self.write(node.expression)}"
            else:
                known = _FORMS[type(node)](self, node)
            self._known[id(node)] = known
        return known

    def list(self, items: Any) -> str:
        """Return the texts of several nodes with commas between them."""
        return ", ".join([self.write(each) for each in items])

    def column(self, node: Node) -> str:
        """Return a column of a named table."""
        return f"{_quoted(node.args['table'].this)}.{_quoted(node.this.this)}"

    def literal(self, node: Node) -> str:
        """Return a text or a number."""
        text = str(node.this)
        return "'" + text.replace("'", "''") + "'" if node.args["is_string"] else text

    def case(self, node: Node) -> str:
        """Return a choice."""
        branches = [
            f"WHEN {self.write(each.this)} THEN {self.write(each.args['true'])}"
            for each in node.args["ifs"]
        ]
        default = node.args.get("default")
        rest = "" if default is None else f" ELSE {self.write(default)}"
        return f"CASE {' '.join(branches)}{rest} END"

    def cast(self, node: Node) -> str:
        """Return a conversion, which may be tried."""
        name = "TRY_CAST" if isinstance(node, exp.TryCast) else "CAST"
        type_ = node.args["to"]
        return f"{name}({self.write(node.this)} AS {type_.args.get('kind') or type_.this.value})"

    def alias(self, node: Node) -> str:
        """Return an item of a SELECT list."""
        return f"{self.write(node.this)} AS {_quoted(node.args['alias'].this)}"

    def table(self, node: Node) -> str:
        """Return a table, or a query, as a source."""
        inner = f"({self.write(node.this)})" if isinstance(node, exp.Subquery) else ""
        return f"{inner or _quoted(node.this.this)} AS {_quoted(node.args['alias'].this.this)}"

    def select(self, node: Node) -> str:
        """Return a query."""
        arguments = node.args
        parts = ["SELECT DISTINCT" if arguments.get("distinct") else "SELECT"]
        parts.append(self.list(node.expressions))
        if source := arguments.get("from_"):
            parts.append(f"FROM {self.write(source.this)}")
        parts += [self._join(each) for each in arguments.get("joins") or ()]
        for name, words in (("where", "WHERE"), ("group", "GROUP BY"), ("having", "HAVING")):
            if found := arguments.get(name):
                text = self.list(found.expressions) if name == "group" else self.write(found.this)
                parts.append(f"{words} {text}")
        if limit := arguments.get("limit"):
            parts.append(f"LIMIT {self.write(limit.expression)}")
        return " ".join(parts)

    def _join(self, node: Node) -> str:
        words = [word for at in ("side", "kind") if (word := node.args.get(at))]
        on = node.args.get("on")
        condition = "" if on is None else f" ON {self.write(on)}"
        return f"{' '.join(words)} JOIN {self.write(node.this)}{condition}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


_FORMS: dict[type[Any], Callable[[_Writer, Any], str]] = {
    exp.Column: _Writer.column,
    exp.Literal: _Writer.literal,
    exp.Case: _Writer.case,
    exp.Cast: _Writer.cast,
    exp.TryCast: _Writer.cast,
    exp.Alias: _Writer.alias,
    exp.Table: _Writer.table,
    exp.Subquery: _Writer.table,
    exp.Select: _Writer.select,
    exp.Paren: lambda writer, node: f"({writer.write(node.this)})",
    exp.Not: lambda writer, node: f"NOT {writer.write(node.this)}",
    exp.BitwiseNot: lambda writer, node: f"~{writer.write(node.this)}",
    exp.BitwiseXor: lambda writer, node: (
        f"XOR({writer.write(node.this)}, {writer.write(node.expression)})"
    ),
    exp.Anonymous: lambda writer, node: f"{node.this}({writer.list(node.expressions)})",
    exp.Boolean: lambda _, node: "TRUE" if node.this else "FALSE",
    exp.Null: lambda _, __: "NULL",
    exp.Star: lambda _, __: "*",
}
