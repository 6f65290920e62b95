"""Expressions of Spark Connect become expressions of sqlglot, with places in the user's text."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

from pyspark.sql.connect.proto import expressions_pb2 as pb
from pyspark.sql.connect.types import parse_attr_name, proto_schema_to_pyspark_data_type
from sqlglot import exp

from corollary.errors import Diagnostic, InputError
from corollary.frontends.sql import parse
from corollary.pipelines.lowering.frames import SHOWN, identifier
from corollary.source import SourceFile, Span

_BINARY: dict[str, type[exp.Expr]] = {
    "+": exp.Add,
    "-": exp.Sub,
    "*": exp.Mul,
    "/": exp.Div,
    "%": exp.Mod,
    "==": exp.EQ,
    "=": exp.EQ,
    "<=>": exp.NullSafeEQ,
    ">": exp.GT,
    ">=": exp.GTE,
    "<": exp.LT,
    "<=": exp.LTE,
    "and": exp.And,
    "or": exp.Or,
    "&": exp.BitwiseAnd,
    "|": exp.BitwiseOr,
    "^": exp.BitwiseXor,
}
_OPERATORS = frozenset(("not", "!", "~", "isnull", "isnotnull", "in", "like", "ilike", "rlike"))
_FLAGGED = frozenset(("first", "first_value", "last", "last_value", "any_value"))
"""Aggregates whose second argument says whether nulls are passed over."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SIZED = {"byte": "TINYINT", "short": "SMALLINT", "long": "BIGINT", "float": "FLOAT"}
_CURES = {
    "common_inline_user_defined_function": (
        "A Python function",
        "write it with functions of Spark",
    ),
    "update_fields": ("`withField` and `dropFields`", "write `F.struct(…)` with all fields"),
    "named_argument_expression": ("A named argument", "give the arguments in their order"),
}


class LeftToSparkError(Exception):
    """A construct that only Spark computes; carries the reason."""

    def __init__(self, reason: Diagnostic) -> None:
        self.reason = reason


class NameResolver(ABC):
    """What the names of an expression mean."""

    @abstractmethod
    def column(self, parts: Sequence[str], plan_id: int | None, place: Span) -> exp.Expr:
        """Return what a name of a column means."""

    @abstractmethod
    def subquery(self, node: pb.SubqueryExpression, place: Span) -> exp.Expr:
        """Return the query of a DataFrame inside an expression."""


class PlainNames(NameResolver):
    """Leaves names as they are."""

    def column(self, parts: Sequence[str], _: int | None, __: Span) -> exp.Expr:
        """Return the name itself."""
        return exp.Column(this=identifier(parts[-1]))

    def subquery(self, _: pb.SubqueryExpression, place: Span) -> exp.Expr:
        """Refuse a query."""
        raise left_to_spark("A subquery in AUTO CDC", place, "use a column of the source")


def plain_expression(node: pb.Expression, file: SourceFile, span: Span) -> exp.Expr:
    """Return an expression whose names are left as they are.

    Raises:
        InputError: it has what cannot be lowered.
    """
    try:
        return ExpressionLowering(file, span, PlainNames()).lower(node)
    except LeftToSparkError as refused:
        raise InputError([refused.reason]) from None


def left_to_spark(what: str, span: Span | None, note: str) -> LeftToSparkError:
    """Return the reason why something is left to Spark."""
    return LeftToSparkError(Diagnostic("C1710", f"{what} is computed by Spark.", span, note))


class ExpressionLowering:
    """Lowers the expressions of one relation.

    Attributes:
        span: where the relation is made, for what has no place of its own.
    """

    def __init__(self, file: SourceFile, span: Span, names: NameResolver) -> None:
        self.file = file
        self.span = span
        self.names = names
        self.parameters: list[str] = []

    def lower(self, node: pb.Expression) -> exp.Expr:
        """Return the tree of an expression.

        Raises:
            LeftToSparkError: only Spark computes it.
            InputError: a name in it is unknown.
        """
        kind = node.WhichOneof("expr_type") or ""
        visit: Callable[[Any], exp.Expr] | None = getattr(self, f"_visit_{kind}", None)
        site = node.common.origin.python_origin.call_site
        with self._at(site):
            if visit is None:
                words = f"`{kind.replace('_', ' ')}`"
                what, note = _CURES.get(kind, (words, "write it with functions of Spark"))
                raise left_to_spark(what, self.span, note)
            found = visit(getattr(node, kind))
            if parse.FIRST not in found.meta and site:
                start, _, end = site.partition(":")
                found.meta[parse.FIRST], found.meta[parse.LAST] = int(start), int(end)
            return found

    @contextmanager
    def _at(self, site: str) -> Iterator[None]:
        before = self.span
        if site:
            start, _, end = site.partition(":")
            self.span = parse.span_between(self.file, int(start), int(end))
        try:
            yield
        finally:
            self.span = before

    def all(self, nodes: Sequence[pb.Expression]) -> list[exp.Expr]:
        """Return the trees of expressions."""
        return [self.lower(each) for each in nodes]

    # --- names ---------------------------------------------------------------------------------

    def _visit_unresolved_attribute(self, node: pb.Expression.UnresolvedAttribute) -> exp.Expr:
        parts = parse_attr_name(node.unparsed_identifier) or [node.unparsed_identifier]
        plan_id = node.plan_id if node.HasField("plan_id") else None
        return self.names.column(parts, plan_id, self.span)

    def _visit_expression_string(self, node: pb.Expression.ExpressionString) -> exp.Expr:
        return self.parsed(node.expression)

    def parsed(self, text: str) -> exp.Expr:
        """Return the tree of an expression that is given as a text of SQL."""
        file = SourceFile("SQL", f"SELECT {text}")
        try:
            (tokens,) = parse.split_statements(file)
            (tree,) = parse.parse_query(tokens, file).expressions
        except InputError as error:
            found = [Diagnostic(e.code, e.message, self.span, e.note) for e in error.diagnostics]
            raise InputError(found) from None
        return self.resolved(tree)

    def resolved(self, tree: exp.Expr) -> exp.Expr:
        """Return a tree of SQL whose names are those of the frame, without places of its own."""
        if tree.find(exp.Query):
            raise left_to_spark("A subquery in a text", self.span, "write it by `spark.sql(…)`")
        bound = {
            name.name.lower() for each in tree.find_all(exp.Lambda) for name in each.expressions
        }

        def named(node: exp.Expr) -> exp.Expr:
            node.meta.pop(parse.FIRST, None)
            node.meta.pop(parse.LAST, None)
            node.meta.pop("start", None)
            is_name = isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier)
            if is_name and not isinstance(node.parent, exp.Lambda):
                words = [node.args.get(key) for key in ("catalog", "db", "table", "this")]
                parts = [each.name for each in words if each is not None]
                if parts[0].lower() not in bound:
                    return self.names.column(parts, None, self.span)
            return node

        return tree.transform(named, copy=False)

    def _visit_alias(self, node: pb.Expression.Alias) -> exp.Expr:
        inner = self.lower(node.expr)
        if len(node.name) == 1:
            return exp.Alias(this=inner, alias=identifier(node.name[0]))
        return exp.Aliases(this=inner, expressions=[identifier(each) for each in node.name])

    def _visit_unresolved_named_lambda_variable(
        self, node: pb.Expression.UnresolvedNamedLambdaVariable
    ) -> exp.Expr:
        return exp.Column(this=identifier(node.name_parts[0]))

    def _visit_lambda_function(self, node: pb.Expression.LambdaFunction) -> exp.Expr:
        names = [identifier(each.name_parts[0]) for each in node.arguments]
        return exp.Lambda(this=self.lower(node.function), expressions=names)

    # --- literals ------------------------------------------------------------------------------

    def _visit_literal(self, node: pb.Expression.Literal) -> exp.Expr:
        kind = node.WhichOneof("literal_type") or "null"
        value = getattr(node, kind)
        match kind:
            case "null":
                return exp.Null()
            case "boolean":
                return exp.Boolean(this=value)
            case "integer":
                return number(value)
            case "byte" | "short" | "long":
                return shown(cast(number(value), _SIZED[kind]), str(value))
            case "float" | "double":
                return real(value, "DOUBLE" if kind == "double" else "FLOAT")
            case "decimal":
                return literal(Decimal(value.value))
            case "string":
                return exp.Literal.string(value)
            case "binary":
                return exp.HexString(this=value.hex())
            case "date":
                return literal(date(1970, 1, 1) + timedelta(days=value))
            case "timestamp" | "timestamp_ntz":
                moment = _EPOCH + timedelta(microseconds=value)
                return literal(moment if kind == "timestamp" else moment.replace(tzinfo=None))
            case "day_time_interval":
                return literal(timedelta(microseconds=value))
            case "year_month_interval":
                return exp.Interval(this=exp.Literal.string(str(value)), unit=exp.Var(this="MONTH"))
            case "time":
                micros = value.nano // 1000
                return literal((_EPOCH + timedelta(microseconds=micros)).time())
            case "array":
                return exp.Anonymous(
                    this="array", expressions=[*map(self._visit_literal, value.elements)]
                )
            case "map":
                pairs = zip(value.keys, value.values, strict=True)
                parts = [self._visit_literal(part) for pair in pairs for part in pair]
                return exp.Anonymous(this="map", expressions=parts)
            case _:
                pass
        raise left_to_spark(f"A literal of the kind `{kind}`", self.span, "write it otherwise")

    # --- functions -----------------------------------------------------------------------------

    def _visit_unresolved_function(self, node: pb.Expression.UnresolvedFunction) -> exp.Expr:
        return self._call(node.function_name, node.arguments, node.is_distinct)

    def _visit_call_function(self, node: pb.CallFunction) -> exp.Expr:
        return self._call(node.function_name, node.arguments, False)

    def _call(self, name: str, given: Sequence[pb.Expression], is_distinct: bool) -> exp.Expr:
        lowered, word = name.lower(), name.lower()
        if word == "count" and [e.WhichOneof("expr_type") for e in given] == ["unresolved_star"]:
            return exp.Anonymous(this="count", expressions=[exp.Star()])
        parts = self.all(given)
        if word in _BINARY or word in _OPERATORS:
            parts = [*map(in_brackets, parts)]
        match word:
            case _ if word in _BINARY and len(parts) == 2:
                left, right = parts
                return _BINARY[word](this=left, expression=right)
            case "not" | "!":
                return exp.Not(this=parts[0])
            case "negative" | "-" if len(parts) == 1:
                return exp.Anonymous(this="negative", expressions=parts)
            case "~":
                return exp.BitwiseNot(this=parts[0])
            case "isnull":
                return exp.Is(this=parts[0], expression=exp.Null())
            case "isnotnull":
                inner = exp.Is(this=parts[0], expression=exp.Null())
                return shown(exp.Not(this=inner), "")
            case "in":
                return exp.In(this=parts[0], expressions=parts[1:])
            case "like" if len(parts) == 2:
                return exp.Like(this=parts[0], expression=parts[1])
            case "ilike" if len(parts) == 2:
                return exp.ILike(this=parts[0], expression=parts[1])
            case "rlike":
                return exp.RegexpLike(this=parts[0], expression=parts[1])
            case "when":
                arms = [
                    exp.If(this=test, true=value)
                    for test, value in zip(parts[0::2], parts[1::2], strict=False)
                ]
                return exp.Case(ifs=arms, default=parts[-1] if len(parts) % 2 else None)
            case _ if word in _FLAGGED and len(parts) == 2 and isinstance(parts[1], exp.Boolean):
                call = exp.Anonymous(this=lowered, expressions=parts[:1])
                return exp.IgnoreNulls(this=call) if parts[1].this else call
            case "current_date" | "curdate" if not parts:
                return exp.CurrentDate()
            case "sum_distinct":
                is_distinct, lowered = True, "sum"
            case _:
                pass
        lowered = re.sub(r"^(starts|ends)_with$", r"\1with", lowered)
        if is_distinct:
            parts = [exp.Distinct(expressions=parts)]
        return exp.Anonymous(this=lowered, expressions=parts)

    def _visit_cast(self, node: pb.Expression.Cast) -> exp.Expr:
        inner = self.lower(node.expr)
        if node.WhichOneof("cast_to_type") == "type_str":
            words = node.type_str
        else:
            words = proto_schema_to_pyspark_data_type(node.type).simpleString()
        is_try = node.eval_mode == pb.Expression.Cast.EvalMode.EVAL_MODE_TRY
        try:
            return cast(inner, words, exp.TryCast if is_try else exp.Cast)
        except InputError as error:
            reason = Diagnostic("C1710", error.diagnostics[0].message, self.span)
            raise LeftToSparkError(reason) from None

    def _visit_unresolved_extract_value(
        self, node: pb.Expression.UnresolvedExtractValue
    ) -> exp.Expr:
        return exp.Bracket(this=self.lower(node.child), expressions=[self.lower(node.extraction)])

    def _visit_subquery_expression(self, node: pb.SubqueryExpression) -> exp.Expr:
        kinds = pb.SubqueryExpression.SubqueryType
        match node.subquery_type:
            case kinds.SUBQUERY_TYPE_SCALAR:
                return exp.Subquery(this=self.names.subquery(node, self.span))
            case kinds.SUBQUERY_TYPE_EXISTS:
                return exp.Exists(this=self.names.subquery(node, self.span))
            case kinds.SUBQUERY_TYPE_IN:
                values = self.all(node.in_subquery_values)
                left = values[0] if len(values) == 1 else exp.Tuple(expressions=values)
                query = exp.Subquery(this=self.names.subquery(node, self.span))
                return exp.In(this=left, query=query)
            case _:
                pass
        raise left_to_spark("A table as an argument", self.span, "join it")

    # --- order and windows ---------------------------------------------------------------------

    def ordered(self, node: pb.Expression.SortOrder) -> exp.Ordered:
        """Return a term of an order."""
        kinds = pb.Expression.SortOrder
        is_descending = node.direction == kinds.SortDirection.SORT_DIRECTION_DESCENDING
        is_first = node.null_ordering == kinds.NullOrdering.SORT_NULLS_FIRST
        if node.null_ordering == kinds.NullOrdering.SORT_NULLS_UNSPECIFIED:
            is_first = not is_descending
        return exp.Ordered(this=self.lower(node.child), desc=is_descending, nulls_first=is_first)

    def _visit_sort_order(self, node: pb.Expression.SortOrder) -> exp.Expr:
        return self.ordered(node)

    def _visit_window(self, node: pb.Expression.Window) -> exp.Expr:
        found = exp.Window(this=self.lower(node.window_function), over="OVER")
        if node.partition_spec:
            found.set("partition_by", self.all(node.partition_spec))
        if node.order_spec:
            found.set("order", exp.Order(expressions=[self.ordered(e) for e in node.order_spec]))
        if node.HasField("frame_spec"):
            spec = node.frame_spec
            is_rows = spec.frame_type == pb.Expression.Window.WindowFrame.FrameType.FRAME_TYPE_ROW
            start, start_side = self._bound(spec.lower, "PRECEDING")
            end, end_side = self._bound(spec.upper, "FOLLOWING")
            found.set(
                "spec",
                exp.WindowSpec(
                    kind="ROWS" if is_rows else "RANGE",
                    start=start, start_side=start_side, end=end, end_side=end_side,
                ),
            )  # fmt: skip
        return found

    def _bound(self, node: Any, side: str) -> tuple[str | exp.Expr, str | None]:
        kind = node.WhichOneof("boundary")
        if kind == "current_row":
            return "CURRENT ROW", None
        if kind == "unbounded":
            return "UNBOUNDED", side
        value = getattr(node.value.literal, node.value.literal.WhichOneof("literal_type") or "", 0)
        if not isinstance(value, int):
            raise left_to_spark("A distance that is no integer", self.span, "write an integer")
        return number(abs(value)), "PRECEDING" if value < 0 else "FOLLOWING"


def in_brackets(node: exp.Expr) -> exp.Expr:
    """Return an operand of an operator, in brackets if it is an operator itself."""
    return (
        exp.Paren(this=node) if isinstance(node, exp.Binary | exp.Unary | exp.Predicate) else node
    )


def shown(node: exp.Expr, text: str) -> exp.Expr:
    """Return a node that Spark shows as some text in names."""
    node.meta[SHOWN] = text
    return node


def number(value: int) -> exp.Expr:
    """Return an integer, whatever its sign."""
    found = exp.Literal.number(str(abs(value)))
    return found if value >= 0 else shown(exp.Neg(this=found), str(value))


def real(value: float, type_: str) -> exp.Expr:
    """Return a number that is not exact."""
    text = repr(value)
    words = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(text)
    if words is not None:
        return shown(cast(exp.Literal.string(words), type_), words)
    inner = exp.Literal.number(repr(abs(value)))
    found = cast(inner, type_)
    return shown(found if value >= 0 and text[0] != "-" else exp.Neg(this=found), text)


def cast(node: exp.Expr, type_: str, kind: type[exp.Cast] = exp.Cast) -> exp.Expr:
    """Return a cast to a type of Spark's DDL.

    Raises:
        InputError: there is no such type here.
    """
    found = kind(this=node, to=_type(type_).copy())
    found.meta[parse.CAST] = True
    return found


@lru_cache(maxsize=256)
def _type(text: str) -> exp.Expr:
    file = SourceFile("type", text)
    (tokens,) = parse.split_statements(file)
    found = parse.parse_type(tokens, file)
    for part in found.walk():
        part.meta.clear()
    return found


def literal(value: object) -> exp.Expr:
    """Return a value of Python as a literal."""
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int():
            return number(value)
        case float():
            return real(value, "DOUBLE")
        case datetime():
            moment = value.replace(tzinfo=None).isoformat(" ")
            return cast(
                exp.Literal.string(moment), "TIMESTAMP" if value.tzinfo else "TIMESTAMP_NTZ"
            )
        case Decimal():
            _, digits, exponent = value.as_tuple()
            scale = max(0, -int(exponent))
            type_ = f"DECIMAL({max(len(digits), scale)}, {scale})"
            return shown(cast(exp.Literal.string(str(value)), type_), str(value))
        case date():
            return shown(cast(exp.Literal.string(value.isoformat()), "DATE"), f"DATE '{value}'")
        case time():
            return cast(exp.Literal.string(value.isoformat()), "TIME")
        case timedelta():
            micros = value // timedelta(microseconds=1)
            seconds = f"{'-' if micros < 0 else ''}{abs(micros) // 10**6}.{abs(micros) % 10**6:06}"
            return exp.Interval(this=exp.Literal.string(seconds), unit=exp.Var(this="SECOND"))
        case bytes():
            return exp.HexString(this=value.hex())
        case dict():
            parts = [literal(part) for pair in value.items() for part in pair]
            return exp.Anonymous(this="map", expressions=parts)
        case list():
            return exp.Anonymous(this="array", expressions=[*map(literal, value)])
        case _:
            return exp.Literal.string(str(value))
