"""Expressions: from sqlglot's nodes to `query_tree`.

Each kind of node has a method, which names the arguments of the node that it has looked at; any
other argument, and any other node, is refused.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from sqlglot import exp

from corollary.core.engine import check_deadline
from corollary.core.functors.catalog import COMPARISON_OPERATORS
from corollary.core.types import BOOL, DATE, SYMBOL, Type
from corollary.frontends.sql.binder.aggregates import AGGREGATES, aggregate_call
from corollary.frontends.sql.binder.context import ExpressionContext, name_of
from corollary.frontends.sql.binder.functions import check_accepted, function_call
from corollary.frontends.sql.binder.functions.arguments import literal_text
from corollary.frontends.sql.binder.functions.array_functions import element_of
from corollary.frontends.sql.binder.functions.map_functions import value_of
from corollary.frontends.sql.binder.lambdas import (
    LAMBDA_FUNCTIONS,
    bind_lambda_call,
    has_lambda,
    with_numbered_parameters,
)
from corollary.frontends.sql.binder.names import field_named, resolve_column
from corollary.frontends.sql.binder.session import UNTYPED
from corollary.frontends.sql.binder.special_calls import (
    SPECIAL_CALLS,
    SPECIAL_NODES,
    bind_cast,
    negative_literal,
)
from corollary.frontends.sql.binder.values import literals
from corollary.frontends.sql.binder.values.common_types import common_type, is_untyped
from corollary.frontends.sql.binder.values.conversions import convert
from corollary.frontends.sql.binder.values.intervals import combine, interval_literal
from corollary.frontends.sql.binder.values.operators import (
    aligned,
    choose,
    compare,
    condition,
    connect,
    negate,
    negative,
)
from corollary.frontends.sql.binder.widening import with_types
from corollary.frontends.sql.binder.windows import WINDOW_FUNCTIONS, window_call
from corollary.frontends.sql.parse import FIRST, offsets_of
from corollary.frontends.sql.query_tree import (
    ConstantValue,
    Exists,
    Expression,
    FunctionCall,
    Quantified,
    QueryColumn,
    ScalarSubquery,
    UnknownValue,
    output_columns,
)
from corollary.sqlgen.templates import COMPARISONS

_COMPARED = {COMPARISONS[sign]: name for name, sign in COMPARISON_OPERATORS.items()}
ARITHMETIC = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "DIV",
}


class ExpressionBinder(ExpressionContext):
    """Binds the expressions of one clause; `_visit_x` reads the nodes of sqlglot's class `X`."""

    __slots__ = ()

    def bind(self, node: exp.Expr) -> Expression:
        """Return the expression of a node."""
        check_deadline()
        self.session.count_steps(1)
        if self.keys is not None and not isinstance(node, exp.Paren | exp.Literal):
            key = self._find_key(node)
            if key is not None:
                return key
        kind = type(node)
        if kind in ARITHMETIC:
            return self._arithmetic(node, ARITHMETIC[kind])
        if kind in _COMPARED:
            return self._comparison(node, _COMPARED[kind])
        visit = getattr(self, f"_visit_{kind.__name__.lower()}", None)
        if visit is not None:
            found: Expression = visit(node)
            return found
        special = SPECIAL_NODES.get(kind)
        if special is None:
            raise self.session.unsupported(node)
        return special(self, node)

    def _find_key(self, node: exp.Expr) -> Expression | None:
        """Return what a key of the grouping became, if the node is one."""
        assert self.keys is not None
        if not self.keys or node.find(exp.Query, exp.Window) or self._has_aggregate(node):
            return None
        if isinstance(node, exp.Anonymous | exp.Column) or node.find(exp.Column):
            plain = replace(self.ungrouped("GROUP BY"), aliases=(), parameters=self.parameters)
            found = plain.try_bind(node)
            if found is None or found in self.keys or not has_lambda(found):
                return None if found is None else self.keys.get(found)
            # The names of parameters do not matter.
            same = with_numbered_parameters(found)
            numbered = ((with_numbered_parameters(key), key) for key in self.keys)
            return next((self.keys[key] for each, key in numbered if each == same), None)
        return None

    @staticmethod
    def _has_aggregate(node: exp.Expr) -> bool:
        return any(name_of(each) in AGGREGATES for each in node.find_all(exp.Anonymous))

    # --- names and literals --------------------------------------------------------------------

    def _visit_paren(self, node: exp.Paren) -> Expression:
        self.session.check(node, "this")
        return self.bind(node.this)

    def _visit_column(self, node: exp.Column) -> Expression:
        return resolve_column(self, node)

    def _visit_identifier(self, node: exp.Identifier) -> Expression:
        """Return what sqlglot takes for a parameter, since a lambda around has one of this name."""
        return resolve_column(self, exp.Column(this=node))

    def _visit_literal(self, node: exp.Literal) -> Expression:
        if node.is_string:
            found = literals.text_literal(node.this, node, self.session)
            if self.session.unknown is None:
                return found
            settle = partial(self.session.unknown.texts.setdefault, node.meta[FIRST])
            return UnknownValue(found.value, UNTYPED, found.span, settle=settle)
        return literals.number_literal(node.this, node, self.session)

    def _visit_hexstring(self, node: exp.HexString) -> Expression:
        return literals.binary_literal(node.this, node, self.session)

    def _visit_rawstring(self, node: exp.RawString) -> Expression:
        return literals.text_literal(node.this, node, self.session)

    def _visit_null(self, node: exp.Null) -> Expression:
        return ConstantValue(None, UNTYPED, self.session.span(node))

    def _visit_boolean(self, node: exp.Boolean) -> Expression:
        return ConstantValue(bool(node.this), BOOL, self.session.span(node))

    def _visit_placeholder(self, node: exp.Placeholder) -> Expression:
        self.session.check(node, "this")
        name = str(node.this or "")
        if not name:
            raise self.session.error(
                "C1321", "A parameter has no name.", node, "write it as `:name`"
            )
        if self.session.unknown is not None:
            return self._unknown_parameter(name, self.session.unknown.parameters, node)
        if name not in self.session.parameters:
            known = ", ".join(f"`:{each}`" for each in sorted(self.session.parameters))
            note = f"values are given for {known}" if known else f"give one, as in `{name}=5`"
            raise self.session.error("C1321", f"The parameter `:{name}` has no value.", node, note)
        value = self.session.parameters[name]
        found = literals.value_literal(value, self.session.span(node))
        if found is None:
            message = f"The value of `:{name}` has no type in SQL: {type(value).__name__}."
            note = "give a number, text, date, timestamp, boolean or None"
            raise self.session.error("C1321", message, node, note)
        return found

    def _unknown_parameter(self, name: str, types: dict[str, Type], node: exp.Expr) -> Expression:
        """Return a parameter that has no value yet, and a type if one is known."""
        span = self.session.span(node)
        if name in types:
            return ConstantValue(None, types[name], span)
        return UnknownValue(None, UNTYPED, span, settle=partial(types.setdefault, name))

    def _visit_interval(self, node: exp.Interval) -> Expression:
        return interval_literal(node, self.session)

    def _visit_bracket(self, node: exp.Bracket) -> Expression:
        self.session.check(node, "this", "expressions")
        if len(node.expressions) != 1:
            raise self.session.unsupported(node)
        site = self.site(node, node.this, *node.expressions, name="[]")
        value, inside = self.bind(node.this), self.bind(node.expressions[0])
        if value.type.is_struct:
            return field_named(value, literal_text(inside, site), site)
        if value.type.is_map:
            return value_of([value, inside], site)
        if not value.type.is_array:
            raise self.session.unsupported(node)
        return element_of(value, inside, site)

    def _visit_dot(self, node: exp.Dot) -> Expression:
        self.session.check(node, "this", "expression")
        if not isinstance(node.expression, exp.Identifier):
            raise self.session.unsupported(node.expression)
        return field_named(self.bind(node.this), node.expression.name, self.site(node))

    def _visit_currentdate(self, node: exp.CurrentDate) -> Expression:
        self.session.check(node)
        return FunctionCall("today", (), DATE, self.session.span(node))

    def _visit_cast(self, node: exp.Cast) -> Expression:
        return bind_cast(self, node)

    # --- operators -----------------------------------------------------------------------------

    def _arithmetic(self, node: exp.Expr, sign: str) -> Expression:
        self.session.check(node, "this", "expression", "typed", "safe")
        left, right = node.this, node.args["expression"]
        site = self.site(node, left, right)
        one, two = self.bind(left), self.bind(right)
        unknown = self.session.unknown
        if sign == "/" and unknown is not None and _are_integers(one, two):
            unknown.divisions.add((offsets_of(right) or (-1,))[0])
            sign = "DIV"
        if sign == "-" and unknown is not None and one.type.is_date and two.type.is_date:
            unknown.divisions.add((offsets_of(right) or (-1,))[0])
            return self.bind(
                exp.Anonymous(this="DATEDIFF", expressions=[left.copy(), right.copy()])
            )
        return combine(sign, one, two, site)

    def _visit_neg(self, node: exp.Neg) -> Expression:
        self.session.check(node, "this")
        inner = node.this
        if isinstance(inner, exp.Literal) and not inner.is_string and inner.this == str(2**63):
            return literals.value_literal(-(2**63), self.session.span(node))  # type: ignore[return-value]
        literal = negative_literal(self, inner) if isinstance(inner, exp.Cast) else None
        return literal or negative(self.bind(inner), self.site(node, inner))

    def _comparison(self, node: exp.Expr, functor: str) -> Expression:
        self.session.check(node, "this", "expression")
        left, right = node.this, node.args["expression"]
        if isinstance(left, exp.Any | exp.All):
            note = "write the subquery on the right side"
            raise self.session.error("C1310", "ANY and ALL stand on the right side.", left, note)
        if isinstance(right, exp.Any | exp.All):
            self.session.check(right, "this")
            is_all = isinstance(right, exp.All)
            return self._quantified(node, left, functor, is_all, right.this)
        return self._compare_parts(node, left, right, functor)

    def _compare_parts(
        self, node: exp.Expr, left: exp.Expr, right: exp.Expr, functor: str
    ) -> Expression:
        if isinstance(right, exp.Predicate) and not isinstance(right, exp.SubqueryPredicate):
            # Spark reads comparisons from left to right, sqlglot by precedence.
            message = "A comparison follows another one."
            raise self.session.error("C1310", message, node, "write parentheses")
        lefts, rights = row_parts(left), row_parts(right)
        if len(lefts) == 1 and len(rights) == 1:
            site = self.site(node, left, right)
            return compare(functor, self.bind(left), self.bind(right), site)
        if len(lefts) != len(rights) or functor not in ("eq", "ne", "same"):
            return compare(functor, self.bind(left), self.bind(right), self.site(node, left, right))
        tests: list[Expression] = []
        for one, two in zip(lefts, rights, strict=True):
            both = self.bind(one), self.bind(two)
            # Rows are structs, in which null is equal to null.
            each = "same" if any(part.type.nullable for part in both) else "eq"
            tests.append(compare(each, *both, self.site(node, one, two)))
        found = connect("and", tests, self.session.span(node))
        return negate(found, self.session.span(node)) if functor == "ne" else found

    def _visit_nullsafeeq(self, node: exp.NullSafeEQ) -> Expression:
        self.session.check(node, "this", "expression")
        return self._compare_parts(node, node.this, node.args["expression"], "same")

    def _visit_nullsafeneq(self, node: exp.NullSafeNEQ) -> Expression:
        self.session.check(node, "this", "expression")
        found = self._compare_parts(node, node.this, node.args["expression"], "same")
        return negate(found, self.session.span(node))

    def _visit_and(self, node: exp.And | exp.Or) -> Expression:
        word = type(node).__name__.upper()
        parts: list[exp.Expr] = []
        pending: list[exp.Expr] = [node]
        while pending:  # a chain of thousands is nested as deeply on its left
            part = pending.pop()
            if type(part) is type(node):
                self.session.check(part, "this", "expression")
                pending += [part.args["expression"], part.this]
            else:
                parts.append(part)
        tests = [self._truth(part, f"`{word}`") for part in parts]
        return connect(word.lower(), tests, self.session.span(node))

    def _visit_not(self, node: exp.Not) -> Expression:
        self.session.check(node, "this")
        return negate(self._truth(node.this, "`NOT`"), self.session.span(node))

    def _truth(self, node: exp.Expr, what: str) -> Expression:
        """Return an operand of logic, which a text may stand for."""
        found = self.bind(node)
        if found.type.is_symbol:
            found = convert(found, BOOL)
        return condition(found, self.site(node), what)

    def _visit_is(self, node: exp.Is) -> Expression:
        self.session.check(node, "this", "expression")
        span, asked = self.session.span(node), node.args["expression"]
        if isinstance(asked, exp.Not):
            inner = exp.Is(this=node.this.copy(), expression=asked.this.copy())
            return negate(self._is_test(node.this, inner.expression, node), span)
        return self._is_test(node.this, asked, node)

    def _is_test(self, operand: exp.Expr, asked: exp.Expr, node: exp.Expr) -> Expression:
        span = self.session.span(node)
        found = self.bind(operand)
        if isinstance(asked, exp.Null):
            if is_untyped(found):
                found = convert(found, SYMBOL)
            return FunctionCall("is_null", (found,), BOOL, span)
        if isinstance(asked, exp.Boolean):
            test = condition(found, self.site(operand), "`IS TRUE`")
            return FunctionCall("same", (test, self._visit_boolean(asked)), BOOL, span)
        raise self.session.unsupported(asked)

    def _visit_between(self, node: exp.Between) -> Expression:
        self.session.check(node, "this", "low", "high")
        value, low, high = node.this, node.args["low"], node.args["high"]
        tests = [
            compare("ge", self.bind(value), self.bind(low), self.site(node, value, low)),
            compare("le", self.bind(value), self.bind(high), self.site(node, value, high)),
        ]
        return connect("and", tests, self.session.span(node))

    def _visit_in(self, node: exp.In) -> Expression:
        self.session.check(node, "this", "expressions", "query")
        query = node.args.get("query")
        if query is not None:
            return self._quantified(node, node.this, "eq", False, query)
        if not node.expressions:
            raise self.session.error("C1315", "`IN` has no values.", node, "write at least one")
        if len(row_parts(node.this)) > 1:
            tests = [self._compare_parts(node, node.this, each, "eq") for each in node.expressions]
            return connect("or", tests, self.session.span(node))
        site = self.site(node, node.this, *node.expressions)
        values = [self.bind(each) for each in (node.this, *node.expressions)]
        value, *others = aligned(values, site, "`IN`", by_name=False)
        span = self.session.span(node)
        known = [each for each in others if not _is_null(each)]
        column = QueryColumn("value", value.type.with_null(False))
        rows = None
        if not self.parameters:  # which no subquery can name
            rows = self.session.constant_rows([(each,) for each in known], (column,), span)
        if rows is None:
            return connect("or", [compare("eq", value, each, site) for each in others], span)
        is_in = Quantified((value,), "eq", False, rows, BOOL.with_null(value.type.nullable), span)
        nulls = [compare("eq", value, each, site) for each in others if _is_null(each)]
        return connect("or", [is_in, *nulls[:1]], span)

    # --- choices -------------------------------------------------------------------------------

    def _visit_case(self, node: exp.Case) -> Expression:
        self.session.check(node, "this", "ifs", "default")
        branches: list[tuple[Expression, exp.Expr]] = []
        for arm in node.args["ifs"]:
            self.session.check(arm, "this", "true")
            if node.this is None:
                test = self.bind_condition(arm.this, "`WHEN`")
            else:
                site = self.site(arm, node.this, arm.this)
                test = compare("eq", self.bind(node.this), self.bind(arm.this), site)
            branches.append((test, arm.args["true"]))
        return self._choice(branches, node.args.get("default"), node)

    def _visit_if(self, node: exp.If) -> Expression:
        self.session.check(node, "this", "true", "false")
        if node.args.get("false") is None:
            message = "`if` takes three arguments."
            raise self.session.error("C1306", message, node, "write `if(c, x, NULL)`")
        test = self.bind_condition(node.this, "`IF`")
        return self._choice([(test, node.args["true"])], node.args.get("false"), node)

    def _choice(
        self,
        branches: Sequence[tuple[Expression, exp.Expr]],
        default: exp.Expr | None,
        node: exp.Expr,
    ) -> Expression:
        arms = [self.bind(arm) for _, arm in branches]
        last = self.bind(default) if default is not None else ConstantValue(None, UNTYPED)
        parts = [arm for _, arm in branches] + ([default] if default is not None else [])
        *values, last = aligned([*arms, last], self.site(node, *parts), "`CASE`")
        tests = [test for test, _ in branches]
        type_ = common_type([*values, last])
        if type_ is None or type_.precision < 0:
            return last
        pairs = list(zip(tests, values, strict=True))
        return choose(pairs, last, type_, self.session.span(node))

    # --- subqueries ----------------------------------------------------------------------------

    def _visit_subquery(self, node: exp.Expr) -> Expression:
        query = self.nested(node)
        columns = output_columns(query)
        if len(columns) != 1:
            message = f"A subquery in place of a value has one column, but this has {len(columns)}."
            raise self.session.error("C1315", message, node, "select one column")
        return ScalarSubquery(query, columns[0].type.with_null(True), self.session.span(node))

    def _visit_exists(self, node: exp.Exists) -> Expression:
        self.session.check(node, "this")
        return Exists(self.nested(node.this), BOOL, self.session.span(node))

    def _quantified(
        self, node: exp.Expr, left: exp.Expr, functor: str, is_all: bool, query_node: exp.Expr
    ) -> Expression:
        lefts = [self.bind(each) for each in row_parts(left)]
        query = self.nested(query_node)
        columns = output_columns(query)
        if len(columns) != len(lefts):
            count, wanted = len(columns), len(lefts)
            message = f"The number of columns, {count}, is not that of the values, {wanted}."
            note = "select as many columns as there are values"
            raise self.session.error("C1315", message, node, note)
        if len(lefts) > 1 and (functor, is_all) not in (("eq", False), ("ne", True)):
            note = "write `(a, b) IN (SELECT …)` or `(a, b) NOT IN (SELECT …)`"
            raise self.session.error("C1310", "Rows can only be compared by `IN`.", node, note)
        site, types = self.site(node, *row_parts(left)), []
        values: list[Expression] = []
        for value, column in zip(lefts, columns, strict=True):
            stand_in = ConstantValue(None, column.type)
            both = aligned((value, stand_in), site, "A comparison with a subquery", by_name=False)
            values.append(convert(both[0], SYMBOL) if is_untyped(both[0]) else both[0])
            types.append(SYMBOL if is_untyped(both[0]) else both[0].type)
        query = with_types(query, types, self.session)
        is_nullable = any(value.type.nullable for value in values) or any(
            column.type.nullable for column in output_columns(query)
        )
        return Quantified(
            tuple(values),
            functor,
            is_all,
            query,
            BOOL.with_null(is_nullable),
            self.session.span(node),
        )

    # --- functions -----------------------------------------------------------------------------

    def _visit_anonymous(self, node: exp.Anonymous) -> Expression:
        name = name_of(node)
        self.session.check(node, "this", "expressions")
        if name in AGGREGATES:
            return aggregate_call(self, node)
        if name in WINDOW_FUNCTIONS:
            note = f"write `{name}(…) OVER (PARTITION BY … ORDER BY …)`"
            raise self.session.error("C1316", f"`{name}` needs a window.", node, note)
        special = bind_lambda_call if name in LAMBDA_FUNCTIONS else SPECIAL_CALLS.get(name)
        if special is not None:
            found = special(self, node)
            if found is not None:
                return found
        parts = tuple(node.expressions)
        site = self.site(node, *parts, name=name)
        check_accepted(name, site)
        return function_call(name, [self.bind(each) for each in parts], site)

    def _visit_filter(self, node: exp.Expr) -> Expression:
        return aggregate_call(self, node)

    def _visit_window(self, node: exp.Window) -> Expression:
        return window_call(self, node)

    # Nodes that are read alike.
    _visit_trycast = _visit_cast
    _visit_withingroup = _visit_ignorenulls = _visit_respectnulls = _visit_filter
    _visit_or = _visit_and
    _visit_select = _visit_subquery


def row_parts(node: exp.Expr) -> list[exp.Expr]:
    """Return the parts of a row `(a, b)`; anything else is its only part."""
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


def _are_integers(one: Expression, other: Expression) -> bool:
    """Whether both are integers, if one of them may be of the type `unknown`."""
    both = [each for each in (one, other) if not is_untyped(each)]
    return bool(both) and all(each.type.is_number for each in both)


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, ConstantValue) and expression.value is None
