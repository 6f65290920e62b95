"""DuckDB: which functors it computes exactly as we do, and how.

Values are native integers, floats and texts (`duckdb_types`); columns that no expression reads are
codes. `TRY` gives null where an operator raises.
"""

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from corollary.core.totals import WORD_BITS, word_count
from corollary.core.types import PRIMITIVES, Kind, Type
from corollary.sqlgen import duckdb_decimals as decimals
from corollary.sqlgen import nodes
from corollary.sqlgen.dialect import (
    AggregateForm,
    DialectName,
    NotExactError,
    SqlDialect,
    SqlTemplate,
    aggregate,
    contains,
    extreme,
    float_operator,
)
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
    """Writes our SQL trees for DuckDB.

    sqlglot's own generator takes tens of milliseconds for a query with some expressions, longer
    than many a query runs. Ours knows just the nodes that the compiler makes, and writes what
    occurs several times once: trees share their parts.
    """

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


# --- conversions and texts -----------------------------------------------------------------------


def _from_test(test: Node) -> Node:
    return nodes.cast(test, decimals.BIGINT)


def _to_test(value: Node) -> Node:
    return nodes.binary(exp.NEQ, value, nodes.integer(0, decimals.BIGINT))


def _matches(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    pattern, text = arguments
    if isinstance(pattern, exp.Literal):
        # A constant pattern is compiled when the query is, and would make all of it fail.
        import re2

        try:
            options = re2.Options()
            options.log_errors = False
            re2.compile(pattern.this, options)
        except re2.error:
            raise NotExactError("the pattern is invalid") from None
    return decimals.attempt(nodes.call("REGEXP_FULL_MATCH", text, pattern))


def _is_invalid(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:
    """A pattern is invalid whatever the text is, even null."""
    pattern, text = arguments
    found = _matches([pattern, nodes.call("COALESCE", text, nodes.string(""))], types, result)
    return nodes.every(nodes.is_present(pattern), nodes.is_null(found))


def _like(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    """DuckDB refuses a pattern with nothing behind its last backslash."""
    text, pattern = arguments
    if not isinstance(pattern, exp.Literal):
        raise NotExactError("`like` of a computed pattern has no exact form in SQL")
    written = str(pattern.this)
    if "\\" not in written:
        return _from_test(nodes.binary(exp.Like, text, pattern))
    if (len(written) - len(written.rstrip("\\"))) % 2:
        raise NotExactError("`like` of a pattern that ends with one backslash has no exact form")
    return _from_test(nodes.call("LIKE_ESCAPE", text, pattern, nodes.string("\\")))


def _round_integer(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    places = int(arguments[1].this.this)
    if places < 0:
        raise NotExactError("`round_to` of a number to tens has no exact form in SQL")
    return arguments[0]


def _within_bits(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    value, bound = arguments[0], 1 << (int(arguments[1].this.this) - 1)
    inside = nodes.every(
        nodes.binary(exp.GTE, value, nodes.integer(-bound, decimals.BIGINT)),
        nodes.binary(exp.LTE, value, nodes.integer(bound - 1, decimals.BIGINT)),
    )
    return nodes.case((inside, value))


# --- aggregates ----------------------------------------------------------------------------------


def _total(value: Node, source: Type) -> Node:
    """Return the sum, an integer of 128 bits; null if there is no value."""
    if source.is_decimal:
        return decimals.total_of_decimals(value, source)
    return nodes.call("SUM", value)


def _sum(value: Node, source: Type, result: Type) -> tuple[Node, Node | None]:
    """A sum that is too large for its type is null: the rule that reads it decides."""
    total = nodes.call("COALESCE", _total(value, source), decimals.ZERO)
    if result.is_decimal:
        # There are fewer than 10^19 values.
        return decimals.within_digits(total, source.precision + 19, result), None
    return nodes.try_cast(total, decimals.type_name(result)), None


def _mean(value: Node, source: Type, result: Type) -> tuple[Node, Node | None]:  # noqa: ARG001
    """One correctly rounded division, where sum and count are floats without rounding."""
    if 10**source.scale > decimals.EXACT_FLOAT_MAX:
        raise NotExactError(f"`mean` of {source} has no exact form in SQL")
    total = _total(value, source)
    count = nodes.binary(exp.Mul, nodes.call("COUNT", value), decimals.unit(source.scale))
    most = nodes.integer(decimals.EXACT_FLOAT_MAX, decimals.HUGEINT)
    is_exact = nodes.every(
        nodes.binary(exp.LTE, nodes.call("ABS", total), most), nodes.binary(exp.LTE, count, most)
    )
    quotient = nodes.binary(
        exp.Div, nodes.cast(total, decimals.DOUBLE), nodes.cast(count, decimals.DOUBLE)
    )
    mean = nodes.case((is_exact, quotient))
    return mean, nodes.every(nodes.is_present(total), nodes.is_null(mean))


def _words(value: Node, source: Type) -> list[Node]:
    """Return the sums of the upper and of the lower 32 bits; 0 if there is no value."""
    if word_count(source) != 2:
        return decimals.words_of_long_decimals(value, word_count(source))
    mask = nodes.integer((1 << WORD_BITS) - 1, decimals.type_name(source))
    lower = nodes.call(
        "COALESCE", nodes.call("SUM", nodes.binary(exp.BitwiseAnd, value, mask)), decimals.ZERO
    )
    total = nodes.call("COALESCE", _total(value, source), decimals.ZERO)
    unit_ = nodes.integer(1 << WORD_BITS, decimals.HUGEINT)
    upper = nodes.binary(exp.IntDiv, nodes.binary(exp.Sub, total, lower), unit_)
    return [nodes.cast(upper, decimals.BIGINT), nodes.cast(lower, decimals.BIGINT)]


_INTEGRAL = (Kind.NUMBER, Kind.UNSIGNED)
_FLOAT_OPERATORS = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul, "/": exp.Div}

FUNCTORS: dict[tuple[str, Kind], SqlTemplate] = {
    **{(name, Kind.FLOAT): float_operator(made) for name, made in _FLOAT_OPERATORS.items()},
    ("+", Kind.DECIMAL): decimals.sum_of_decimals("+", exp.Add),
    ("-", Kind.DECIMAL): decimals.sum_of_decimals("-", exp.Sub),
    ("*", Kind.DECIMAL): decimals.product_of_decimals,
    ("/", Kind.DECIMAL): SqlTemplate(decimals.quotient_of_decimals, is_fallible=True),
    ("neg", Kind.DECIMAL): SqlTemplate(decimals.negate_decimal),
    **{("min", kind): extreme(is_larger=False) for kind in PRIMITIVES},
    **{("max", kind): extreme(is_larger=True) for kind in PRIMITIVES},
    ("min", Kind.DECIMAL): decimals.extreme_decimal(is_larger=False),
    ("max", Kind.DECIMAL): decimals.extreme_decimal(is_larger=True),
    **{(name, Kind.DECIMAL): SqlTemplate(decimals.decimal_text) for name in ("to_string", "show")},
    ("to_number", Kind.DECIMAL): decimals.decimal_to(decimals.BIGINT),
    ("to_unsigned", Kind.DECIMAL): decimals.decimal_to(decimals.UBIGINT),
    ("to_float", Kind.DECIMAL): SqlTemplate(decimals.decimal_to_float, is_fallible=True),
    **{("to_decimal", kind): decimals.to_decimal for kind in (*_INTEGRAL, Kind.DECIMAL)},
    ("like", Kind.SYMBOL): SqlTemplate(_like),
    ("multiply", Kind.DECIMAL): decimals.product_of_decimals,
    ("fit", Kind.DECIMAL): decimals.fit_decimal,
    ("round_to", Kind.DECIMAL): decimals.round_decimal,
    **{("round_to", kind): SqlTemplate(_round_integer) for kind in _INTEGRAL},
    ("abs", Kind.DECIMAL): SqlTemplate(decimals.absolute_decimal),
    ("to_integer", Kind.NUMBER): SqlTemplate(_within_bits, is_fallible=True),
}

_SUMMED = (Kind.NUMBER, Kind.UNSIGNED, Kind.DECIMAL)
AGGREGATES: dict[tuple[str, Kind], AggregateForm] = {
    **{("sum", kind): _sum for kind in _SUMMED},
    **{("mean", kind): _mean for kind in _SUMMED},
    **{("min", kind): aggregate("MIN") for kind in PRIMITIVES},
    **{("max", kind): aggregate("MAX") for kind in PRIMITIVES},
}

DUCKDB = SqlDialect(
    DialectName.DUCKDB,
    has_codes=True,
    type_name=decimals.type_name,
    constant=decimals.constant,
    functors=FUNCTORS,
    predicates={
        "match": SqlTemplate(_matches, is_fallible=True, fault=_is_invalid),
        "contains": SqlTemplate(contains),
    },
    align=decimals.align,
    from_test=_from_test,
    to_test=_to_test,
    semi_join=("", "SEMI"),
    anti_join=("", "ANTI"),
    aggregates=AGGREGATES,
    totals=dict.fromkeys(_SUMMED, _words),
    write=write_duckdb,
)
