"""Few tuples are handled one by one, many as vectors: both give what recomputation gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from corollary.core.states import State
from corollary.engines.local import prepared_plan
from corollary.engines.local.evaluation import derivation, row_stages
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
    "nothing goes": (prepared_plan, "accumulate_rows", nothing_goes),
    "no row is known": (table.Table, "has_row", no_row),
}


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_fail(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_stages, "FEW_TUPLES", 64)
    monkeypatch.setattr(*MUTANTS[mutant])
    with pytest.raises((AssertionError, ExceptionGroup, LimitError)):
        run_scenarios(MUTANT_EXAMPLES)
