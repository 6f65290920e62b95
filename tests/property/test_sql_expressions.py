"""Random expressions with nulls and faults: DuckDB computes what the local engine computes."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.core.logic import Condition, Expression, Functor, variables_of
from corollary.core.printer import print_condition, print_term
from corollary.core.types import PRIMITIVES, Kind
from corollary.sqlgen.compiled import NotCompiled
from corollary.sqlgen.duckdb_dialect import DUCKDB
from support.selection import examples
from support.sql.duckdb import duckdb_outcome
from support.sql.expressions import (
    Rows,
    aligns_decimals,
    applicable,
    differences,
    local_outcome,
    random_application,
    random_condition,
    random_expression,
    random_rows,
    shown,
)

ROWS = 200
CAUTIOUS = {"/", "to_float"}
"""Forms that give up for some decimals that have a value, as choices of different digits do."""

REFUSED = (
    r"the pattern is invalid|`(/|to_float)` of decimal.*,\d\d\)|`multiply` to decimal"
    r"|`round_to` of (a number to tens|decimal)"
)
"""What is not handed over: invalid patterns, and decimals with too many digits after the point."""

DECIMAL_TRIES = examples(1, 12)
"""Decimals of all lengths need more tries than other kinds."""


def _is_exact(expression: Expression) -> bool:
    """Whether SQL finds every value: not of long decimals, if something has more than 128 bits."""
    if not isinstance(expression, Functor):
        return True
    operands = [each for each in expression.arguments if isinstance(each, Expression)]
    if aligns_decimals(expression):
        return False
    types = [each.type for each in operands if each.type is not None]
    if types[0].kind is Kind.DECIMAL and expression.name in CAUTIOUS:
        return False
    is_long = any(
        type_.is_long_decimal and not isinstance(each, Functor)
        for each, type_ in zip(operands, types, strict=True)
    )
    return not is_long and all(map(_is_exact, operands))


def _compare(compared: Expression | Condition, rows: Rows) -> None:
    """Compare what both engines compute, if it is handed over."""
    theirs = duckdb_outcome(compared, rows)
    if isinstance(theirs, NotCompiled):
        assert re.match(REFUSED, theirs.reason)
        return
    is_condition = isinstance(compared, Condition)
    sides = (compared.left, compared.right) if is_condition else (compared,)
    is_exact = all(map(_is_exact, sides))
    ours = local_outcome(compared, rows)
    for row in differences(ours, theirs, is_exact=is_exact):
        text = print_condition(compared) if is_condition else print_term(compared)
        names = [each.name for side in sides for each in variables_of(side)]
        here, there = ((each.codes[row], each.missing[row]) for each in (ours, theirs))
        pytest.fail(f"{text} for {shown(rows, row, names)}: {here} here, {there} there")


@pytest.mark.parametrize(("name", "kind"), applicable(DUCKDB))
def test_each_form(name: str, kind: Kind) -> None:
    """A functor by itself agrees in every row; if it is not cautious, it finds every value."""
    generator = random.Random(f"{name} {kind}")
    for _ in range(DECIMAL_TRIES if kind is Kind.DECIMAL else examples(1, 3)):
        expression = random_application(generator, DUCKDB, name, kind, depth=1)
        _compare(expression, random_rows(generator, ROWS))


@pytest.mark.smoke
@given(st.integers(0, 2**32))
@settings(max_examples=examples(25, 60))
def test_expressions(seed: int) -> None:
    """Nested expressions agree."""
    generator = random.Random(seed)
    expression = random_expression(generator, DUCKDB, generator.choice(PRIMITIVES), depth=3)
    _compare(expression, random_rows(generator, ROWS))


@pytest.mark.smoke
@given(st.integers(0, 2**32))
@settings(max_examples=examples(25, 60))
def test_conditions(seed: int) -> None:
    """Comparisons, `match` and `contains` agree."""
    generator = random.Random(seed)
    _compare(random_condition(generator, DUCKDB, depth=2), random_rows(generator, ROWS))
