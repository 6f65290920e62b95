"""Random expressions with nulls and faults: DuckDB computes what the local engine computes."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.core.logic import Condition, Expression, Functor, Variable, variables_of
from corollary.core.printer import print_condition, print_term
from corollary.core.types import Kind
from corollary.engines.sql.dialect import NotExactError
from corollary.engines.sql.duckdb_dialect import DUCKDB
from support.duckdb_expressions import duckdb_truths, duckdb_values
from support.sql_expressions import (
    Outcome,
    Rows,
    differences,
    local_truths,
    local_values,
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


def _check(
    text: str, variables: list[Variable], rows: Rows, *outcomes: Outcome, is_exact: bool
) -> None:
    found = list(differences(*outcomes, is_exact=is_exact))
    if found:
        values = shown(rows, found[0], [each.name for each in variables])
        ours, theirs = ((each.codes[found[0]], each.missing[found[0]]) for each in outcomes)
        pytest.fail(f"{text} for {values}: {ours} here, {theirs} there")


def _compare(expression: Expression, rows: Rows) -> None:
    is_exact = not CAUTIOUS & set(_forms(expression))
    ours, theirs = local_values(expression, rows), duckdb_values(expression, rows)
    variables = list(variables_of(expression))
    _check(print_term(expression), variables, rows, ours, theirs, is_exact=is_exact)


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
    condition: Condition = random_condition(generator, DUCKDB, depth=2)
    rows = random_rows(generator, ROWS)
    try:
        theirs = duckdb_truths(condition, rows)
    except NotExactError:
        return
    sides = (condition.left, condition.right)
    is_exact = not CAUTIOUS & {form for side in sides for form in _forms(side)}
    variables = [each for side in sides for each in variables_of(side)]
    ours = local_truths(condition, rows)
    _check(print_condition(condition), variables, rows, ours, theirs, is_exact=is_exact)
