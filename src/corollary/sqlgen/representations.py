"""In which forms a pipeline needs its variables: as codes, as values, or as both."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import assert_never

from corollary.core import logic
from corollary.core.functors import catalog, conversions, spec
from corollary.core.pipeline import AntiProbe, Compute, Filter, Pipeline, Probe
from corollary.sqlgen.compiled import Representation
from corollary.sqlgen.dialect import NotExactError

Needs = frozenset[tuple[Representation, str]]
"""Variables in the forms that are needed."""


def copied_variable(expression: logic.Expression) -> logic.Variable | None:
    """Return the variable that an expression is equal to wherever it has a value, if any."""
    match expression:
        case logic.Variable():
            return expression
        case logic.Functor(name=conversions.CHECKED_SUM, arguments=(logic.Variable() as total,)):
            return total
        case _:
            return None


def is_strict(condition: logic.Condition) -> bool:
    """Whether a condition is null where a variable of it is."""
    signatures = (
        catalog.signature_of(part)
        for side in (condition.left, condition.right)
        for part in logic.subterms(side)
        if isinstance(part, logic.Functor)
    )
    return all(each is not None and each.nullness is spec.Nullness.STRICT for each in signatures)


def inner_functors(expressions: Iterable[logic.Expression]) -> list[logic.Functor]:
    """Return the functors that are arguments of others, not those inside them."""
    return [
        argument
        for each in expressions
        if isinstance(each, logic.Functor)
        for argument in each.arguments
        if isinstance(argument, logic.Functor)
    ]


def replace_inner(
    expressions: Iterable[logic.Expression], variables: Iterable[logic.Variable]
) -> tuple[logic.Expression, ...]:
    """Return expressions with variables in the place of their inner functors."""
    new = iter(variables)
    return tuple(
        replace(
            each,
            arguments=tuple(
                next(new) if isinstance(argument, logic.Functor) else argument
                for argument in each.arguments
            ),
        )
        if isinstance(each, logic.Functor)
        else each
        for each in expressions
    )


def looked_up_names(pipeline: Pipeline) -> set[str]:
    """Return the variables that stages look up in relations, under their own or another name."""
    found: set[str] = set()
    for stage in reversed(pipeline.stages):
        match stage:
            case Probe(slots=slots) | AntiProbe(slots=slots):
                found |= {slot.name for slot in slots if isinstance(slot, logic.Variable)}
            case Compute(variable=variable, expression=expression):
                copied = copied_variable(expression)
                if copied is not None and variable.name in found:
                    found.add(copied.name)
            case Filter():
                pass
            case _:
                assert_never(stage)
    return found


class VariableRepresentations:
    """The forms of the variables of a pipeline.

    Args:
        pipeline: the pipeline.
        has_codes: whether relations come as codes.
        values: the columns of the head whose values are needed.
    """

    def __init__(self, pipeline: Pipeline, *, has_codes: bool, values: Collection[int]) -> None:
        self._pipeline = pipeline
        self._has_codes = has_codes
        self._values = values
        self._coded: set[str] = set()
        self._find_coded()

    def _find_coded(self) -> None:
        """Find the variables that have a code: those that a probe binds, and their aliases."""
        bound: set[str] = set()
        for stage in self._pipeline.stages:
            match stage:
                case Probe(slots=slots):
                    for slot in slots:
                        if isinstance(slot, logic.Variable) and slot.name not in bound:
                            bound.add(slot.name)
                            if self._has_codes:
                                self._coded.add(slot.name)
                case Compute(variable=variable, expression=expression):
                    if isinstance(expression, logic.Functor) and expression.name == "range":
                        raise NotExactError("`range` has no exact form in SQL")
                    bound.add(variable.name)
                    copied = copied_variable(expression)
                    if copied is not None and copied.name in self._coded:
                        self._coded.add(variable.name)
                case AntiProbe() | Filter():
                    pass
                case _:
                    assert_never(stage)

    def form(self, name: str) -> Representation:
        """Return the form in which a variable is carried from stage to stage."""
        return Representation.CODE if name in self._coded else Representation.VALUE

    def head_representation(self, column: int) -> Representation:
        """Return the form of a variable in a column of the head."""
        slot = self._pipeline.head[column]
        if column in self._values or not isinstance(slot, logic.Variable):
            return Representation.VALUE
        return self.form(slot.name)

    def _slot_needs(self, slots: Iterable[logic.Slot]) -> Needs:
        return frozenset(
            (self.form(slot.name), slot.name) for slot in slots if isinstance(slot, logic.Variable)
        )

    def _value_needs(self, *expressions: logic.Expression) -> Needs:
        return frozenset(
            (Representation.VALUE, variable.name)
            for each in expressions
            for variable in logic.variables_of(each)
        )

    def needs(self) -> list[Needs]:
        """Return for each stage the variables, in their forms, that are needed after it."""
        head = self._pipeline.head
        needed: Needs = frozenset(
            (self.head_representation(at), slot.name)
            for at, slot in enumerate(head)
            if isinstance(slot, logic.Variable)
        )
        result: list[Needs] = []
        for stage in reversed(self._pipeline.stages):
            result.append(needed)
            match stage:
                case Probe(slots=slots) | AntiProbe(slots=slots):
                    needed |= self._slot_needs(slots)
                case Filter(condition=condition):
                    if self.is_compared_by_code(condition):
                        sides = (condition.left, condition.right)
                        needed |= self._slot_needs(
                            each for each in sides if isinstance(each, logic.Variable)
                        )
                    else:
                        needed |= self._value_needs(condition.left, condition.right)
                case Compute(variable=variable, expression=expression):
                    copied = copied_variable(expression)
                    if copied is None:
                        needed |= self._value_needs(expression)
                    else:
                        forms = {form for form, name in needed if name == variable.name}
                        forms.add(self.form(copied.name))
                        needed |= {(form, copied.name) for form in forms}
                case _:
                    assert_never(stage)
        return result[::-1]

    def is_compared_by_code(self, condition: logic.Condition) -> bool:
        """Whether codes decide a condition: it is about equality in one domain."""
        left, right = condition.left, condition.right
        if condition.operator not in ("=", "!=", "is") or isinstance(left, logic.Functor):
            return False
        if (
            isinstance(right, logic.Functor)
            or logic.type_of(left).domain != logic.type_of(right).domain
        ):
            return False
        variables = [each for each in (left, right) if isinstance(each, logic.Variable)]
        return bool(variables) and all(each.name in self._coded for each in variables)
