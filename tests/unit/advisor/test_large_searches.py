"""Large programs take little time, and a limit of seconds gives what was found until then."""

from __future__ import annotations

import random
import time

import pytest

from bench.advice.large_programs import chains, scheme_of
from corollary.advisor.advise import advise
from corollary.advisor.consultation import DEFAULT_OPTIONS
from corollary.advisor.cost.exponents import Join, plan_exponents
from corollary.advisor.model.shapes import NodeShape
from corollary.advisor.render.json import advice_as_json
from corollary.advisor.render.text import report
from corollary.core.engine import Limits, within_seconds
from oracles import advice as advice_oracle


@pytest.mark.parametrize(("clauses", "literals"), [(14, 4), (12, 8)])
def test_many_clauses_take_seconds(clauses: int, literals: int) -> None:
    scheme = scheme_of(chains(clauses, literals))
    began = time.process_time()
    found = advise(scheme, DEFAULT_OPTIONS)
    assert time.process_time() - began < 10
    assert found.is_complete
    assert found.queries["q"].after.left_deep < found.queries["q"].before.left_deep


@pytest.mark.slow
def test_the_time_of_a_search_is_limited() -> None:
    scheme = scheme_of(chains(80, 14))
    began = time.process_time()
    with within_seconds(Limits(seconds=0.2)):
        found = advise(scheme, DEFAULT_OPTIONS)
    assert time.process_time() - began < 10
    assert not found.is_complete
    assert advice_as_json(found)["complete"] is False
    assert any("best that was found until then" in line for line in report(found))
    assert found.queries["q"].after.left_deep <= found.queries["q"].before.left_deep


def test_without_a_limit_it_is_complete() -> None:
    found = advise(scheme_of(chains(2, 3)), DEFAULT_OPTIONS)
    assert found.is_complete
    assert advice_as_json(found)["complete"] is True


def test_orders_that_are_found_are_the_best_ones() -> None:
    """The search by exponents, against trying every order."""
    for seed in range(150):
        dice = random.Random(seed)
        names = [f"V{at}" for at in range(dice.randint(2, 6))]
        literals = [
            ("r", tuple(dice.choice(names) for _ in range(dice.choice((1, 2, 2, 3)))))
            for _ in range(dice.randint(1, 5))
        ]
        bound = sorted({each for _, arguments in literals for each in arguments})
        head = [each for each in bound if dice.random() < 0.4]
        clause = {"head": head, "literals": literals, "joined": [], "filters": []}
        shapes = tuple(NodeShape(frozenset(arguments)) for _, arguments in literals)
        found = plan_exponents(Join(shapes, frozenset(head)))
        assert found.left_deep == advice_oracle.clause_cost(clause, {}), clause
        assert found.bushy <= found.left_deep <= found.pipelined
