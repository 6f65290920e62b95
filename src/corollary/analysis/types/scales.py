"""Scales: the digits after the point of computed decimals and of decimal literals.

An operation on decimals has the largest scale of its operands. A literal has the scale that its
position needs. Where none is needed it has the digits it is written with, and as the side of a
comparison at least the digits of the other side.
"""

from decimal import Decimal

from corollary.analysis.types.constraints import TypeConstraints
from corollary.analysis.types.mismatch import scale_mismatch
from corollary.analysis.types.unify import Reason
from corollary.core.logic import Constant, Functor, Value
from corollary.core.types import DECIMAL_MAX_DIGITS, Kind


def scales(constraints: TypeConstraints) -> None:
    """Find the scale of every decimal node; where two disagree, add a finding."""
    unifier = constraints.unifier
    constants = [
        (constant, node)
        for constant, node in constraints.constants
        if unifier.kind(node) is Kind.DECIMAL and constant.value is not None
    ]
    if not constants and not any(
        unifier.kind(node) is Kind.DECIMAL for _, node, _ in constraints.computed
    ):
        return
    written = {
        node: min(digits(constant.value), DECIMAL_MAX_DIGITS) for constant, node in constants
    }
    # Literals are fixed as late as possible: first what follows from declared columns, with the
    # written digits as operands only; then comparisons; then the literals nothing else decides.
    _compute(constraints, written)
    _compare(constraints, written)
    for constant, node in constants:
        if unifier.partial_type(node).scale is None:
            reason = Reason("this literal", constant.span)
            unifier.assign_scale(node, DECIMAL_MAX_DIGITS, written[node], reason)
    _compute(constraints, {})


def _compute(constraints: TypeConstraints, written: dict[int, int]) -> None:
    """Give computed nodes their scale until nothing more follows; keep those without one."""
    unifier = constraints.unifier
    waiting = [entry for entry in constraints.computed if unifier.kind(entry[1]) is Kind.DECIMAL]
    while True:
        unknown = []
        for functor, node, arguments in waiting:
            known = [unifier.partial_type(argument).scale for argument in arguments]
            found = [
                written.get(argument) if scale is None else scale
                for argument, scale in zip(arguments, known, strict=True)
            ]
            certain = [scale for scale in found if scale is not None]
            if len(certain) < len(found):
                unknown.append((functor, node, arguments))
                continue
            scale = max(certain, default=0)
            reason = Reason(f"the result of `{functor.name}`", functor.span)
            if not unifier.assign_scale(node, _precision(functor), scale, reason):
                finding = scale_mismatch(functor, scale, unifier.partial_type(node))
                constraints.findings.append(finding)
        if len(unknown) == len(waiting):
            break
        waiting = unknown
    constraints.computed[:] = waiting


def _precision(functor: Functor) -> int:
    """Return how many digits the result of a functor may have."""
    match functor:
        case Functor(name="fit", arguments=(_, Constant(value=int(digits)))):
            return digits
        case _:
            return DECIMAL_MAX_DIGITS


def _compare(constraints: TypeConstraints, written: dict[int, int]) -> None:
    unifier = constraints.unifier
    for pair in constraints.compared:
        for node, other in (pair, pair[::-1]):
            scale = unifier.partial_type(other).scale
            if node in written and scale is not None and unifier.partial_type(node).scale is None:
                unifier.assign_scale(node, DECIMAL_MAX_DIGITS, max(scale, written[node]), None)


def digits(value: Value) -> int:
    """Return how many digits a literal has after the point.

    >>> digits(Decimal("12.50"))
    2
    """
    if isinstance(value, float):
        value = Decimal(repr(value))
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        return max(0, -exponent) if isinstance(exponent, int) else 0
    return 0
