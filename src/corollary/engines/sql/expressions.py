"""Expressions and conditions as SQL: a value that is null where there is none, and a test for that.

The local engine's evaluator (`engines/local/evaluation`) defines what they mean: a null operand
makes the result null, a missing operand makes it missing, and missing dominates null.
"""

from collections.abc import Mapping

from corollary.core.functors.conversions import CHECKED_SUM
from corollary.core.logic import TEXT_PREDICATES, Condition, Constant, Expression, Functor, Variable
from corollary.core.types import BOOL, Type
from corollary.core.user_functors.user_functor import UserCall
from corollary.engines.sql import nodes
from corollary.engines.sql.choices import CHOICE_FORMS, Application, compare
from corollary.engines.sql.decimal_bounds import narrow_constant, narrow_result
from corollary.engines.sql.dialect import NotExactError, SqlDialect
from corollary.engines.sql.sql_expression import SqlExpression, apply_form


def type_of(expression: Expression) -> Type:
    """Return the type that inference gave to an expression."""
    assert expression.type is not None, f"{expression} has no type"
    return expression.type


Values = Mapping[str, SqlExpression]
"""The variables of an expression as SQL."""


def lower_expression(expression: Expression, values: Values, dialect: SqlDialect) -> SqlExpression:
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
    type_ = type_of(expression)
    match expression:
        case Variable(name=name):
            return values[name]
        case Constant(value=value):
            narrow = narrow_constant(expression, type_)
            return SqlExpression(dialect.constant(value, narrow), None, value is None, narrow)
        case UserCall(name=name):
            raise NotExactError(f"`{name}` is a Python function")
        case Functor(name=name, arguments=arguments):
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


def lower_condition(condition: Condition, values: Values, dialect: SqlDialect) -> SqlExpression:
    """Return a condition as SQL.

    Raises:
        NotExactError: a part of it has no exact form.
    """
    left = lower_expression(condition.left, values, dialect)
    right = lower_expression(condition.right, values, dialect)
    name = condition.operator.removeprefix("!") or condition.operator
    if name in TEXT_PREDICATES:
        form = dialect.predicates.get(name)
        if form is None:
            raise NotExactError(f"`{name}` has no exact form in SQL")
        lowered = apply_form(form, [left, right], BOOL, BOOL)
        if condition.operator.startswith("!"):
            return SqlExpression(nodes.negated(lowered.value), lowered.fault, True, BOOL)
        return lowered
    truth = compare(condition.operator, left, right, dialect)
    faults = [each.fault for each in (left, right) if each.fault is not None]
    return SqlExpression(truth, nodes.any_of(faults), True, BOOL)
