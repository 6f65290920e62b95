"""Random expressions with nulls and faults: DuckDB computes what the local engine computes."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.core.logic import Condition, Expression, Functor, variables_of
from corollary.core.printer import print_condition, print_term
from corollary.core.types import Kind
from corollary.engines.sql.compiled import NotCompiled
from corollary.engines.sql.duckdb_dialect import DUCKDB
from support.sql.duckdb import duckdb_outcome
from support.sql.expressions import (
    Rows,
    differences,
    local_outcome,
    random_application,
    random_condition,
    random_expression,
    random_rows,
    shown,
)

ROWS = 200
CAUTIOUS = {("/", Kind.DECIMAL), ("to_float", Kind.DECIMAL)}
"""Forms that give up for some operands that have a value."""


def _forms(expression: Expression) -> Iterator[tuple[str, Kind]]:
    if isinstance(expression, Functor):
        first = expression.arguments[0]
        assert isinstance(first, Expression)
        assert first.type is not None
        yield expression.name, first.type.kind
        for each in expression.arguments:
            assert isinstance(each, Expression)
            yield from _forms(each)


def _compare(compared: Expression | Condition, rows: Rows) -> None:
    """Compare what both engines compute; conditions with invalid patterns are not handed over."""
    theirs = duckdb_outcome(compared, rows)
    if isinstance(theirs, NotCompiled):
        assert "pattern" in theirs.reason
        return
    is_condition = isinstance(compared, Condition)
    sides = (compared.left, compared.right) if is_condition else (compared,)
    is_exact = not CAUTIOUS & {form for side in sides for form in _forms(side)}
    ours = local_outcome(compared, rows)
    for row in differences(ours, theirs, is_exact=is_exact):
        text = print_condition(compared) if is_condition else print_term(compared)
        names = [each.name for side in sides for each in variables_of(side)]
        here, there = ((each.codes[row], each.missing[row]) for each in (ours, theirs))
        pytest.fail(f"{text} for {shown(rows, row, names)}: {here} here, {there} there")


@pytest.mark.parametrize(("name", "kind"), sorted(DUCKDB.functors))
def test_each_form(name: str, kind: Kind) -> None:
    """A functor by itself agrees in every row; if it is not cautious, it finds every value."""
    generator = random.Random(f"{name} {kind}")
    for _ in range(3):
        expression = random_application(generator, DUCKDB, name, kind, depth=1)
        _compare(expression, random_rows(generator, ROWS))


@given(st.integers(0, 2**32))
@settings(max_examples=60)
def test_expressions(seed: int) -> None:
    """Nested expressions agree."""
    generator = random.Random(seed)
    expression = random_expression(generator, DUCKDB, generator.choice(list(Kind)), depth=3)
    _compare(expression, random_rows(generator, ROWS))


@given(st.integers(0, 2**32))
@settings(max_examples=60)
def test_conditions(seed: int) -> None:
    """Comparisons, `match` and `contains` agree."""
    generator = random.Random(seed)
    _compare(random_condition(generator, DUCKDB, depth=2), random_rows(generator, ROWS))
