"""Functions of floats are the floats nearest to their values, which decimals of 60 digits say."""

import random
from collections.abc import Callable
from decimal import Context, Decimal, localcontext

import numpy as np
import pytest

from corollary.engines.local.evaluation.functions.doubles import FUNCTIONS

VALUES = 300


def sine(x: Decimal) -> Decimal:
    term = total = x
    place = 1
    while abs(term) > Decimal("1e-58"):
        term = -term * x * x / ((place + 1) * (place + 2))
        place += 2
        total += term
    return total


def area_tangent(x: Decimal) -> Decimal:
    return ((1 + x) / (1 - x)).ln() / 2


JUDGES: dict[str, tuple[Callable[[Decimal], Decimal], float, float]] = {
    "exp": (Decimal.exp, -740.0, 709.0),
    "expm1": (lambda x: x.exp() - 1, -40.0, 40.0),
    "ln": (Decimal.ln, 1e-3, 1e3),
    "log10": (Decimal.log10, 1e-3, 1e3),
    "log2": (lambda x: x.ln() / Decimal(2).ln(), 1e-3, 1e3),
    "log1p": (lambda x: (1 + x).ln(), -0.9, 10.0),
    "cbrt": (lambda x: (x.ln() / 3).exp(), 1e-3, 1e6),
    "sinh": (lambda x: (x.exp() - (-x).exp()) / 2, -400.0, 400.0),
    "cosh": (lambda x: (x.exp() + (-x).exp()) / 2, -400.0, 400.0),
    "tanh": (lambda x: 1 - 2 / ((2 * x).exp() + 1), -20.0, 20.0),
    "asinh": (lambda x: (x + (x * x + 1).sqrt()).ln(), -1e3, 1e3),
    "acosh": (lambda x: (x + (x * x - 1).sqrt()).ln(), 1.0, 1e3),
    "atanh": (area_tangent, -0.999, 0.999),
    "sin": (sine, -10.0, 10.0),
}


@pytest.mark.parametrize("name", JUDGES)
def test_values_are_the_nearest_floats(name: str) -> None:
    judge, low, high = JUDGES[name]
    dice = random.Random(name)
    values = np.array([dice.uniform(low, high) for _ in range(VALUES)])
    with localcontext(Context(prec=60)):
        expected = [float(judge(Decimal(each))) for each in values.tolist()]
    with np.errstate(all="ignore"):
        assert FUNCTIONS[name](values).tolist() == expected


def test_angles_are_inverse() -> None:
    """Sine and arcus, and angles that are far larger than a turn."""
    dice = random.Random(1)
    values = np.array([dice.uniform(-1.5, 1.5) for _ in range(VALUES)])
    with np.errstate(all="ignore"):
        for function, inverse in (("sin", "asin"), ("tan", "atan")):
            found = FUNCTIONS[inverse](FUNCTIONS[function](values))
            assert np.allclose(found, values, rtol=0, atol=1e-14)
        # From a table: the argument is 10^22 exactly.
        assert FUNCTIONS["sin"](np.array([1e22])).tolist() == [-0.8522008497671888]
        assert FUNCTIONS["atan2"](np.array([1.0, -1.0]), np.array([-1.0, 0.0])).tolist() == [
            2.356194490192345,
            -1.5707963267948966,
        ]
