"""Functors that decide themselves what null and missing values mean, as SQL: logic and choice.

A missing value is null, with a test beside it that says so. A choice is missing where what it
chooses is; where a test of it is missing, nothing is chosen.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from sqlglot import exp

from corollary.core.functors.catalog import COMPARISON_OPERATORS
from corollary.core.logic import Constant, Expression
from corollary.core.types import BOOL, NUMBER, Type
from corollary.data_class import dataclass
from corollary.engines.sql import nodes
from corollary.engines.sql.decimal_bounds import narrow_result
from corollary.engines.sql.dialect import SqlDialect
from corollary.engines.sql.nodes import Node
from corollary.engines.sql.sql_expression import SqlExpression, apply_form
from corollary.sqlgen.templates import COMPARISONS

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
    arguments: Sequence[Expression]
    inputs: Sequence[SqlExpression]
    type: Type
    dialect: SqlDialect

    @property
    def faults(self) -> list[Node]:
        """The tests whether arguments are missing."""
        return [each.fault for each in self.inputs if each.fault is not None]

    def truth(self, test: Node, *, may_be_null: bool, fault: Node | None) -> SqlExpression:
        """Return a test as a value of the type `bool`."""
        return SqlExpression(self.dialect.from_test(test), fault, may_be_null, BOOL)

    def test(self, value: SqlExpression) -> Node:
        """Return a value of the type `bool` as a test; null stays null."""
        return self.dialect.to_test(value.value)


def compare(operator: str, left: SqlExpression, right: SqlExpression, dialect: SqlDialect) -> Node:
    """Return the test whether a comparison holds."""
    one, two = dialect.align(left.value, left.type, right.value, right.type)
    return nodes.binary(COMPARISONS[operator], one, two)


def _unless(faults: Iterable[Node], value: Node) -> Node:
    """Return a value, null where a test for a missing one is true."""
    missing = nodes.any_of(faults)
    return value if missing is None else nodes.case((nodes.negated(missing), value))


def _comparison(call: Application) -> SqlExpression:
    left, right = call.inputs
    test = compare(COMPARISON_OPERATORS[call.name], left, right, call.dialect)
    may_be_null = left.may_be_null or right.may_be_null
    return call.truth(test, may_be_null=may_be_null, fault=nodes.any_of(call.faults))


def _same(call: Application) -> SqlExpression:
    one, two = call.inputs
    test = _unless(call.faults, compare("is", one, two, call.dialect))
    return call.truth(test, may_be_null=False, fault=nodes.any_of(call.faults))


def _is_null(call: Application) -> SqlExpression:
    test = _unless(call.faults, nodes.is_null(call.inputs[0].value))
    return call.truth(test, may_be_null=False, fault=nodes.any_of(call.faults))


def _logic(join: Callable[[Iterable[Node]], Node | None]) -> Callable[[Application], SqlExpression]:
    """SQL has the same logic; a missing value is null there, and counts where the result is."""

    def lower(call: Application) -> SqlExpression:
        test = join([call.test(each) for each in call.inputs])
        assert test is not None
        missing = nodes.any_of(call.faults)
        fault = None if missing is None else nodes.every([missing, nodes.is_null(test)])
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
        if call.arguments[at] != Constant(None, call.arguments[at].type)
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
        faults = [each.fault for each in values if each.fault is not None]
        value = _unless(faults, nodes.call(function, *(each.value for each in values)))
        may_be_null = all(each.may_be_null for each in values)
        return SqlExpression(value, nodes.any_of(faults), may_be_null, type_)

    return lower


def _null_if(call: Application) -> SqlExpression:
    one, two = call.inputs
    ways = [compare("=", one, two, call.dialect)]
    ways += [each.fault for each in (two,) if each.fault is not None]
    is_lost = nodes.any_of(ways)
    assert is_lost is not None
    nothing = call.dialect.constant(None, one.type)
    value = nodes.case((is_lost, nothing), default=one.value)
    return SqlExpression(value, nodes.any_of(call.faults), True, one.type)


CHOICE_FORMS: dict[str, Callable[[Application], SqlExpression]] = {
    **dict.fromkeys(COMPARISON_OPERATORS, _comparison),
    "same": _same,
    "is_null": _is_null,
    "and": _logic(nodes.every),
    "or": _logic(nodes.any_of),
    "not": _not,
    "if": _if,
    "coalesce": _coalesce,
    "greatest": _extreme("GREATEST"),
    "least": _extreme("LEAST"),
    "null_if": _null_if,
}
"""How these functors are written in every dialect."""
