"""Few tuples are handled one by one, many as vectors: both give what recomputation gives."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import corollary
from corollary.core.arrow import to_python
from corollary.core.states import State
from corollary.engines.local.evaluation import derivation, row_stages
from corollary.engines.local.evaluation.aggregation import accumulate
from corollary.engines.local.evaluation.aggregation.accumulate import accumulate_rows
from corollary.engines.local.storage import table
from corollary.engines.local.storage.rows import permutation
from corollary.errors import LimitError
from support.generators.scenarios import Scenario, judge, scenarios, unhurried
from support.maintained_database import MIXED, Judged
from support.selection import examples

ALGORITHMS = ("auto", "counting", "epf", "ranked", "dred", MIXED)
EXAMPLES = examples(2, 40)
MUTANT_EXAMPLES = 60


def run_scenarios(count: int) -> None:
    """Judge random programs and their changes."""

    @unhurried(count)
    @given(scenarios(ALGORITHMS, with_rules=True))
    def run(scenario: Scenario) -> None:
        judge(scenario)

    run()


@pytest.mark.smoke
@pytest.mark.parametrize("few", [0, 1, 64])
def test_maintained_is_recomputed(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_stages, "FEW_TUPLES", few)
    run_scenarios(EXAMPLES)


@pytest.mark.parametrize("few", [0, 64])
def test_probes_by_fewer_columns(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_stages, "FEW_TUPLES", few)
    monkeypatch.setattr(table, "PARTIAL_MIN_TUPLES", 0)
    for limit in ("PARTIAL_MAX_TUPLES", "SCANNED_MAX_DISTINCT"):
        monkeypatch.setattr(table, limit, 1 << 20)
    run_scenarios(EXAMPLES)
    judged = Judged(
        """
.decl e(x: number, y: number, z: number)
.decl f(x: number)
.decl p(x: number, y: number)
p(x, y) :- f(x), e(x, y, 3).
""",
        "auto",
    )
    judged.step(({"e": {(1, 2, 3), (1, 4, 5), (2, 2, 3), (2, 3, 4)}, "f": {(1,)}}, {}))
    judged.step(({"e": {(2, 9, 3), (2, 8, 1)}, "f": {(2,)}}, {"e": {(1, 2, 3)}}))
    judged.db.close()


EXPRESSIONS = (
    "a + b",
    "a - b",
    "a * b",
    "a * to_decimal(n, 0)",
    "multiply(a, b, 5)",
    "multiply(a, b, 4)",
    "to_decimal(a, 3)",
    "to_decimal(b, 2)",
    "to_decimal(n * n - n, 2)",
    "if(is_null(a), b, to_decimal(n, 3))",
)
"""Of `a` with two digits, `b` with three and `n` with none."""


def decimals(digits: int) -> st.SearchStrategy[Decimal | None]:
    """Small ones, some at the end of what is in a code, some with too many digits for a product."""
    units = st.one_of(
        st.integers(-1000, 1000), st.integers(-(2**62), 2**62), st.integers(-(10**25), 10**25)
    )
    return st.none() | units.map(lambda each: Decimal(each).scaleb(-digits))


@unhurried(EXAMPLES)
@given(
    st.lists(
        st.tuples(decimals(2), decimals(3), st.none() | st.integers(-(2**31), 2**31 - 1)),
        min_size=1,
        max_size=4,
    )
)
def test_arithmetic_of_rows_is_that_of_vectors(
    rows: list[tuple[Decimal | None, Decimal | None, int | None]],
) -> None:
    rules = [
        f"v({at}, i, to_string(x)) :- t(i, a, b, n), x = {each}.\n"
        for at, each in enumerate(EXPRESSIONS)
    ] + [
        "w(i, x) :- t(i, a, b, n), x = a + b.\n",
        "w(i, x) :- t(i, a, b, n), x = to_decimal(n, 3).\n",
    ]
    text = """
        .decl t(i: number, a: decimal(30,2)?, b: decimal(30,3)?, n: number?)
        .decl v(at: number, i: number, x: symbol?)
        .decl w(i: number, x: decimal(7,3)?)
    """ + "".join(rules)
    answers = []
    for few in (64, 0):
        with (
            pytest.MonkeyPatch.context() as patch,
            corollary.open(None, engine="local") as opened,
        ):
            patch.setattr(row_stages, "FEW_TUPLES", few)
            opened.load(text=text)
            faults = []
            for at, row in enumerate(rows):
                try:
                    with opened.transaction() as transaction:
                        transaction.insert("t", [(at, *row)])
                except corollary.EvaluationError as error:
                    faults.append(str(error))
            rows_of = (to_python(opened.relation(each).arrow()) for each in ("v", "w"))
            answers.append((faults, *rows_of))
    assert answers[0] == answers[1]


# --- mutants -------------------------------------------------------------------------------------


def new_as_old(self: table.Table, order: Any, key: Any, state: State, most: int) -> Any:
    """A probe of NEW does not see the rows of a loose change."""
    return matches(self, order, key, State.OLD if state is State.NEW else state, most)


def every_row(rows: Any, order: Any, key: Any) -> Any:
    """All rows of a loose change match."""
    return [row for row in map(permutation(order), rows) if len(row) >= len(key)]


def sums_of_nothing(rows: Any, target: Any, dictionary: Any) -> Any:
    """A group whose sum is 0 stays, as 1."""
    found = sum_rows(rows, target, dictionary)
    one = dictionary.encode_integer(1, target.types[-1])
    return found or [(*row[:-1], one) for row in rows]


def nothing_goes(*arguments: Any) -> Any:
    """No key goes."""
    came, _ = accumulate_rows(*arguments)
    return came, []


def no_row(self: table.Table, row: Any, state: State) -> bool:
    """No tuple is known."""
    return False


matches, sum_rows = table.Table.matching_rows, derivation.sum_rows

MUTANTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "NEW as OLD": (table.Table, "matching_rows", new_as_old),
    "every row": (table, "matching", every_row),
    "sums of nothing": (derivation, "sum_rows", sums_of_nothing),
    "nothing goes": (accumulate, "accumulate_rows", nothing_goes),
    "no row is known": (table.Table, "has_row", no_row),
}


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_fail(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_stages, "FEW_TUPLES", 64)
    monkeypatch.setattr(*MUTANTS[mutant])
    with pytest.raises((AssertionError, ExceptionGroup, LimitError)):
        run_scenarios(MUTANT_EXAMPLES)
