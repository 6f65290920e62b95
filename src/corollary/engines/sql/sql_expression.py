"""A value or a truth as SQL, with a test whether there is none; functors applied to such values."""

from collections.abc import Sequence

from sqlglot import exp

from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.engines.sql import nodes
from corollary.engines.sql.dialect import FunctorForm
from corollary.engines.sql.nodes import Node


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
    form: FunctorForm, inputs: Sequence[SqlExpression], declared: Type, result: Type
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
    faults = [each.fault for each in inputs if each.fault is not None]
    if form.fault is not None:
        faults.append(form.fault([each.value for each in inputs], types, result))
    elif is_fallible and not may_be_null:
        # Nothing else makes it null: this one test serves for all operands, too.
        return SqlExpression(value, nodes.is_null(value), False, result)
    elif is_fallible:
        present = [nodes.is_present(each.value) for each in inputs]
        own = nodes.every([*present, nodes.is_null(value)])
        assert own is not None
        faults.append(own)
    return SqlExpression(value, nodes.any_of(faults), may_be_null, result)
