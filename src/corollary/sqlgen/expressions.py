"""Expressions and conditions as SQL: a value that is null where there is none, and a test for that.

The local engine's evaluator (`engines/local/evaluation`) defines what they mean: a null operand
makes the result null, a missing operand makes it missing, and missing dominates null.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from corollary.core import logic
from corollary.core.functors.catalog import COMPARISON_OPERATORS
from corollary.core.functors.conversions import CHECKED_SUM
from corollary.core.functors.lambdas import is_lambda, is_parameter
from corollary.core.types import BOOL, NUMBER, Type
from corollary.core.user_functors.user_functor import UserCall
from corollary.data_class import dataclass
from corollary.sqlgen import nodes
from corollary.sqlgen.dialect import (
    NotExactError,
    SqlDialect,
    SqlTemplate,
    narrow_constant,
    narrow_result,
)
from corollary.sqlgen.nodes import Node
from corollary.sqlgen.templates import COMPARISONS


@dataclass(frozen=True, slots=True)
class SqlExpression:
    """A value or a truth as SQL.

    Attributes:
        value: null where there is none; a truth that is null is false.
        fault: true where there is no value, and never null; None if there always is one.
        may_be_null: whether the value can be null where it is not missing.
        type: what the value can be at most: a decimal may have fewer digits than inference says.
    """

    value: Node
    fault: Node | None
    may_be_null: bool
    type: Type

    @property
    def tests_itself(self) -> bool:
        """Whether a value that is computed is missing where it is null, and nowhere else."""
        if not isinstance(self.fault, exp.Is) or isinstance(self.value, exp.Column):
            return False
        return self.fault.this.this is self.value


def apply_form(
    form: SqlTemplate, inputs: Sequence[SqlExpression], declared: Type, result: Type
) -> SqlExpression:
    """Return a form of some operands.

    Args:
        form: how the functor is written.
        inputs: the operands.
        declared: the type of the result; more digits than it has are an overflow.
        result: what the result can be at most.
    """
    types = [each.type for each in inputs]
    value = form.lower([each.value for each in inputs], types, result)
    is_fallible = form.is_fallible and (form.can_fail is None or form.can_fail(types, declared))
    may_be_null = any(each.may_be_null for each in inputs)
    faults = [each.fault for each in inputs]
    if form.fault is not None:
        faults.append(form.fault([each.value for each in inputs], types, result))
    elif is_fallible and not may_be_null:
        # Nothing else makes it null: this one test serves for all operands, too.
        return SqlExpression(value, nodes.is_null(value), False, result)
    elif is_fallible:
        present = (nodes.is_present(each.value) for each in inputs)
        faults.append(nodes.every(*present, nodes.is_null(value)))
    return SqlExpression(value, nodes.any_of(faults), may_be_null, result)


_FALSE, _TRUE = exp.Boolean(this=False), exp.Boolean(this=True)


@dataclass(frozen=True, slots=True)
class Application:
    """A functor with its arguments.

    Attributes:
        arguments: as the rule has them; literals are constants here.
        inputs: the same as SQL.
        type: the type of the result.
    """

    name: str
    arguments: Sequence[logic.Expression]
    inputs: Sequence[SqlExpression]
    type: Type
    dialect: SqlDialect

    @property
    def fault(self) -> Node | None:
        """The test whether an argument is missing."""
        return nodes.any_of(each.fault for each in self.inputs)

    def truth(self, test: Node, *, may_be_null: bool, fault: Node | None) -> SqlExpression:
        """Return a test as a value of the type `bool`."""
        value = self.dialect.from_test(exp.Paren(this=test))  # it may become an operand
        return SqlExpression(value, fault, may_be_null, BOOL)

    def test(self, value: SqlExpression) -> Node:
        """Return a value of the type `bool` as a test; null stays null."""
        return self.dialect.to_test(value.value)


def compare(operator: str, left: SqlExpression, right: SqlExpression, dialect: SqlDialect) -> Node:
    """Return the test whether a comparison holds."""
    one, two = dialect.align(left.value, left.type, right.value, right.type)
    return nodes.binary(COMPARISONS[operator], one, two)


def _unless(missing: Node | None, value: Node) -> Node:
    """Return a value, null where a test for a missing one is true."""
    return value if missing is None else nodes.case((nodes.negated(missing), value))


def _comparison(call: Application) -> SqlExpression:
    left, right = call.inputs
    test = compare(COMPARISON_OPERATORS[call.name], left, right, call.dialect)
    may_be_null = left.may_be_null or right.may_be_null
    return call.truth(test, may_be_null=may_be_null, fault=call.fault)


def _same(call: Application) -> SqlExpression:
    one, two = call.inputs
    test = _unless(call.fault, compare("is", one, two, call.dialect))
    return call.truth(test, may_be_null=False, fault=call.fault)


def _is_null(call: Application) -> SqlExpression:
    test = _unless(call.fault, nodes.is_null(call.inputs[0].value))
    return call.truth(test, may_be_null=False, fault=call.fault)


def _logic(join: Callable[..., Node]) -> Callable[[Application], SqlExpression]:
    """SQL has the same logic; a missing value is null there, and counts where the result is."""

    def lower(call: Application) -> SqlExpression:
        test = join(*map(call.test, call.inputs))
        fault = None if call.fault is None else nodes.every(call.fault, nodes.is_null(test))
        may_be_null = any(each.may_be_null for each in call.inputs)
        return call.truth(test, may_be_null=may_be_null, fault=fault)

    return lower


def _not(call: Application) -> SqlExpression:
    (value,) = call.inputs
    test = nodes.negated(call.test(value))
    return call.truth(test, may_be_null=value.may_be_null, fault=value.fault)


def _arms(call: Application, places: Sequence[int]) -> tuple[list[SqlExpression], Type]:
    """Return arguments with the type that the choice between them has at most."""
    found = [call.inputs[at] for at in places]
    if not call.type.is_decimal:
        return found, call.type
    # Null has no digits.
    sized = [
        each.type
        for at, each in zip(places, found, strict=True)
        if call.arguments[at] != logic.Constant(None, call.arguments[at].type)
    ]
    result = narrow_result("max", sized, call.type) if sized else call.type
    return [_scaled(each, result, call.dialect) for each in found], result


def _scaled(value: SqlExpression, type_: Type, dialect: SqlDialect) -> SqlExpression:
    """Return a decimal in the form of a type, which has room for its digits before the point."""
    if value.type.scale == type_.scale:
        name = dialect.type_name(type_)
        is_same = dialect.type_name(value.type) == name
        made = value.value if is_same else nodes.cast(value.value, name)
        return replace(value, value=made, type=type_)
    scale = SqlExpression(dialect.constant(type_.scale, NUMBER), None, False, NUMBER)
    form = dialect.form("to_decimal", value.type)
    return apply_form(form, [value, scale], type_, type_)


Branch = tuple[Node, Node | None, Node]
"""A test, the test whether what it chooses is missing, and what it chooses."""


def _choose(
    branches: Sequence[Branch], default: SqlExpression, type_: Type, *, may_be_null: bool
) -> SqlExpression:
    value = nodes.case(*((test, made) for test, _, made in branches), default=default.value)
    fault: Node | None = None
    if default.fault is not None or any(missing is not None for _, missing, _ in branches):
        tests = [(test, _FALSE if missing is None else missing) for test, missing, _ in branches]
        fault = nodes.case(*tests, default=default.fault or _FALSE)
    return SqlExpression(value, fault, may_be_null, type_)


def _if(call: Application) -> SqlExpression:
    count = len(call.inputs)
    places = [*range(1, count, 2), count - 1]
    (*values, default), type_ = _arms(call, places)
    nothing = call.dialect.constant(None, type_)
    branches: list[Branch] = []
    for test, value in zip(call.inputs[:-1:2], values, strict=True):
        if test.fault is not None:
            branches.append((test.fault, _TRUE, nothing))
        branches.append((call.test(test), value.fault, value.value))
    may_be_null = any(each.may_be_null for each in (*values, default))
    return _choose(branches, default, type_, may_be_null=may_be_null)


def _coalesce(call: Application) -> SqlExpression:
    (*values, default), type_ = _arms(call, range(len(call.inputs)))
    nothing = call.dialect.constant(None, type_)
    branches: list[Branch] = []
    for value in values:
        if value.fault is not None:
            branches.append((value.fault, _TRUE, nothing))
        branches.append((nodes.is_present(value.value), None, value.value))
    may_be_null = all(each.may_be_null for each in (*values, default))
    return _choose(branches, default, type_, may_be_null=may_be_null)


def _extreme(function: str) -> Callable[[Application], SqlExpression]:
    """SQL passes over null, too."""

    def lower(call: Application) -> SqlExpression:
        values, type_ = _arms(call, range(len(call.inputs)))
        fault = nodes.any_of(each.fault for each in values)
        value = _unless(fault, nodes.call(function, *(each.value for each in values)))
        may_be_null = all(each.may_be_null for each in values)
        return SqlExpression(value, fault, may_be_null, type_)

    return lower


def _null_if(call: Application) -> SqlExpression:
    one, two = call.inputs
    is_lost = nodes.either(compare("=", one, two, call.dialect), two.fault)
    nothing = call.dialect.constant(None, one.type)
    value = nodes.case((is_lost, nothing), default=one.value)
    return SqlExpression(value, call.fault, True, one.type)


CHOICE_FORMS: dict[str, Callable[[Application], SqlExpression]] = {
    **dict.fromkeys(COMPARISON_OPERATORS, _comparison),
    "same": _same,
    "is_null": _is_null,
    "and": _logic(nodes.every),
    "or": _logic(nodes.either),
    "not": _not,
    "if": _if,
    "coalesce": _coalesce,
    "greatest": _extreme("GREATEST"),
    "least": _extreme("LEAST"),
    "null_if": _null_if,
}
"""How these functors are written in every dialect."""


Values = Mapping[str, SqlExpression]
"""The variables of an expression as SQL."""


def lower_expression(
    expression: logic.Expression, values: Values, dialect: SqlDialect
) -> SqlExpression:
    """Return an expression as SQL.

    Forms repeat their operands, so the SQL of nested functors grows with the power of their depth:
    who has nested ones computes the inner ones first, and passes them as variables.

    Args:
        expression: what to compute.
        values: its variables.
        dialect: the engine that computes it.

    Raises:
        NotExactError: a part of it has no exact form.
    """
    type_ = logic.type_of(expression)
    match expression:
        case logic.Variable(name=name):
            return values[name]
        case logic.Constant(value=value):
            narrow = narrow_constant(expression, type_)
            return SqlExpression(dialect.constant(value, narrow), None, value is None, narrow)
        case UserCall(name=name):
            raise NotExactError(f"`{name}` is a Python function")
        case logic.Functor() if is_lambda(expression) or is_parameter(expression):
            raise NotExactError("a lambda is applied by the evaluator of the package")
        case logic.Functor(name=name, arguments=arguments):
            inputs = [lower_expression(each, values, dialect) for each in arguments]  # type: ignore[arg-type]
            choice = CHOICE_FORMS.get(name)
            if choice is not None:
                return choice(Application(name, arguments, inputs, type_, dialect))  # type: ignore[arg-type]
            form = dialect.form(name, inputs[0].type)
            if name == CHECKED_SUM:
                # Aggregation leaves null for a sum that overflows: only here it is missing.
                total = inputs[0].value
                return SqlExpression(total, nodes.is_null(total), False, inputs[0].type)
            result = narrow_result(name, [each.type for each in inputs], type_)
            return apply_form(form, inputs, type_, result)


def lower_condition(
    condition: logic.Condition, values: Values, dialect: SqlDialect
) -> SqlExpression:
    """Return a condition as SQL.

    Raises:
        NotExactError: a part of it has no exact form.
    """
    left = lower_expression(condition.left, values, dialect)
    right = lower_expression(condition.right, values, dialect)
    name = condition.operator.removeprefix("!") or condition.operator
    if name in logic.TEXT_PREDICATES:
        form = dialect.predicates.get(name)
        if form is None:
            raise NotExactError(f"`{name}` has no exact form in SQL")
        lowered = apply_form(form, [left, right], BOOL, BOOL)
        if condition.operator.startswith("!"):
            return SqlExpression(nodes.negated(lowered.value), lowered.fault, True, BOOL)
        return lowered
    truth = compare(condition.operator, left, right, dialect)
    return SqlExpression(truth, nodes.any_of((left.fault, right.fault)), True, BOOL)
