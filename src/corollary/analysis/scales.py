"""The digits behind the point of computed decimals and of decimal literals.

An operation on decimals has the largest scale of its operands. A literal has the scale that its
place asks for; where nothing asks, as an operand, it has the digits it is written with; against
another side of a comparison it has at least the digits of that side.
"""

from decimal import Decimal

from corollary.analysis import mismatch
from corollary.analysis.infer import Inference
from corollary.analysis.unify import Reason
from corollary.core.terms import Value
from corollary.core.types import MAXIMAL_PRECISION, Kind


def scales(inference: Inference) -> None:
    """Find the scale of every decimal node, and note where two do not agree."""
    unifier = inference.unifier
    constants = [
        (constant, node)
        for constant, node in inference.constants
        if unifier.kind(node) is Kind.DECIMAL and constant.value is not None
    ]
    if not constants and not any(
        unifier.kind(node) is Kind.DECIMAL for _, node, _ in inference.computed
    ):
        return
    written = {node: min(digits(constant.value), MAXIMAL_PRECISION) for constant, node in constants}
    _compute(inference, written)
    _compare(inference, written)
    for constant, node in constants:
        if unifier.known(node).scale is None:
            reason = Reason("this literal", constant.span)
            unifier.scale(node, MAXIMAL_PRECISION, written[node], reason)
    _compute(inference, {})


def _compute(inference: Inference, written: dict[int, int]) -> None:
    """Give computed nodes their scale, until nothing more follows; the known ones are done."""
    unifier = inference.unifier
    waiting = [entry for entry in inference.computed if unifier.kind(entry[1]) is Kind.DECIMAL]
    while True:
        still = []
        for functor, node, arguments in waiting:
            known = [unifier.known(argument).scale for argument in arguments]
            found = [
                written.get(argument) if scale is None else scale
                for argument, scale in zip(arguments, known, strict=True)
            ]
            certain = [scale for scale in found if scale is not None]
            if len(certain) < len(found):
                still.append((functor, node, arguments))
                continue
            scale = max(certain)
            reason = Reason(f"the result of `{functor.name}`", functor.span)
            if not unifier.scale(node, MAXIMAL_PRECISION, scale, reason):
                finding = mismatch.between_scales(functor, scale, unifier.known(node))
                inference.findings.append(finding)
        if len(still) == len(waiting):
            break
        waiting = still
    inference.computed[:] = waiting


def _compare(inference: Inference, written: dict[int, int]) -> None:
    unifier = inference.unifier
    for pair in inference.compared:
        for node, other in (pair, pair[::-1]):
            scale = unifier.known(other).scale
            if node in written and scale is not None and unifier.known(node).scale is None:
                unifier.scale(node, MAXIMAL_PRECISION, max(scale, written[node]), None)


def digits(value: Value) -> int:
    """Return how many digits a literal has behind the point.

    >>> digits(Decimal("12.50"))
    2
    """
    if isinstance(value, float):
        value = Decimal(repr(value))
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        return max(0, -exponent) if isinstance(exponent, int) else 0
    return 0
