"""Expressions and conditions as SQL: a value that is null where there is none, and a test for that.

The local engine's evaluator (`engines/local/evaluation`) defines what they mean: a null operand
makes the result null, a missing operand makes it missing, and missing dominates null.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from corollary.core.functors import CHECKED_SUM
from corollary.core.logic import TEXT_PREDICATES, Condition, Constant, Expression, Functor, Variable
from corollary.core.types import Type
from corollary.engines.sql import nodes
from corollary.engines.sql.dialect import FunctorForm, NotExactError, SqlDialect
from corollary.engines.sql.nodes import Node, OperatorKind

COMPARISONS: dict[str, OperatorKind] = {
    "=": exp.EQ,
    "!=": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
    "is": exp.NullSafeEQ,
}


@dataclass(frozen=True, slots=True)
class SqlExpression:
    """A value or a truth as SQL.

    Attributes:
        value: null where there is none; a truth that is null is false.
        fault: true where there is no value, and never null; None if there always is one.
        may_be_null: whether the value can be null where it is not missing.
    """

    value: Node
    fault: Node | None
    may_be_null: bool

    @property
    def tests_itself(self) -> bool:
        """Whether a value that is computed is missing where it is null, and nowhere else."""
        if not isinstance(self.fault, exp.Is) or isinstance(self.value, exp.Column):
            return False
        return self.fault.this.this is self.value


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
            return SqlExpression(dialect.constant(value, type_), None, value is None)
        case Functor(name=name, arguments=arguments):
            inputs = [lower_expression(each, values, dialect) for each in arguments]  # type: ignore[arg-type]
            types = [type_of(each) for each in arguments]  # type: ignore[arg-type]
            form = dialect.form(name, types[0])
            if name == CHECKED_SUM:
                # Aggregation leaves null for a sum that overflows: only here it is missing.
                total = inputs[0].value
                return SqlExpression(total, nodes.is_null(total), False)
            return _apply(form, inputs, types, type_)


def lower_condition(condition: Condition, values: Values, dialect: SqlDialect) -> SqlExpression:
    """Return a condition as SQL.

    Raises:
        NotExactError: a part of it has no exact form.
    """
    left = lower_expression(condition.left, values, dialect)
    right = lower_expression(condition.right, values, dialect)
    types = type_of(condition.left), type_of(condition.right)
    name = condition.operator.removeprefix("!") or condition.operator
    if name in TEXT_PREDICATES:
        form = dialect.predicates.get(name)
        if form is None:
            raise NotExactError(f"`{name}` has no exact form in SQL")
        lowered = _apply(form, [left, right], types, types[0])
        if condition.operator.startswith("!"):
            return SqlExpression(nodes.negated(lowered.value), lowered.fault, True)
        return lowered
    one, two = dialect.align(left.value, types[0], right.value, types[1])
    truth = nodes.binary(COMPARISONS[condition.operator], one, two)
    faults = [each.fault for each in (left, right) if each.fault is not None]
    return SqlExpression(truth, nodes.any_of(faults), True)


def _apply(
    form: FunctorForm, inputs: Sequence[SqlExpression], types: Sequence[Type], type_: Type
) -> SqlExpression:
    value = form.lower([each.value for each in inputs], types, type_)
    may_be_null = any(each.may_be_null for each in inputs)
    faults = [each.fault for each in inputs if each.fault is not None]
    if form.fault is not None:
        faults.append(form.fault([each.value for each in inputs], types, type_))
    elif form.is_fallible and not may_be_null:
        # Nothing else makes it null: this one test serves for all operands, too.
        return SqlExpression(value, nodes.is_null(value), False)
    elif form.is_fallible:
        present = [nodes.is_present(each.value) for each in inputs]
        own = nodes.every([*present, nodes.is_null(value)])
        assert own is not None
        faults.append(own)
    return SqlExpression(value, nodes.any_of(faults), may_be_null)
