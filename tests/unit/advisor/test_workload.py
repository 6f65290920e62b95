"""The choice for a workload against trying every subset, and the large search against the exact."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from corollary.advisor.advise import advise
from corollary.advisor.cost.estimates import Estimator
from corollary.advisor.cost.relation_sizes import RelationSizes
from corollary.advisor.model.scheme import Options
from corollary.advisor.model.shapes import NodeShapes
from corollary.advisor.search import workload as workload_module
from corollary.advisor.search.workload import QueryDemand, Workload
from support.cases.advisor import scheme_of
from support.generators.advisor_programs import program
from support.selection import examples


def random_workload(seed: int) -> Workload:
    dice = random.Random(seed)
    made = program(seed)
    scheme = scheme_of(made.text(), ["q"])
    rows = {name: dice.randint(1, 10_000) for name in made.arities}
    distinct = {
        name: tuple(dice.randint(1, rows[name]) for _ in range(arity))
        for name, arity in made.arities.items()
    }
    sizes = RelationSizes(rows, distinct, row_bytes=dict.fromkeys(rows, 16.0))
    updates = {name: 10.0 ** dice.randint(-2, 4) for name in made.arities}
    budget = 10.0 ** dice.randint(1, 7)
    options = Options(selection="budget", updates=updates, budget_bytes=budget)
    advice = advise(scheme, Options(partial_clusters=True))
    found = advice.queries["q"]
    pool = {
        found.rewriter.forms.key(node): node
        for folded in found.decision.clauses
        for root in folded.roots()
        for node in root.nodes()
    }
    estimator = Estimator(scheme, NodeShapes(scheme), sizes)
    wish = frozenset(found.decision.stored)
    demand = QueryDemand(
        found.decision.clauses, found.rewriter, dice.choice((0.1, 1.0, 50.0)), wish
    )
    return Workload([demand], pool, estimator, options)


def best_subset(workload: Workload) -> float:
    budget = workload.options.budget_bytes or 0.0
    return max(
        workload.value(frozenset(chosen))
        for size in range(len(workload.pool) + 1)
        for chosen in combinations(workload.pool, size)
        if workload.size(chosen) <= budget
    )


def test_branch_and_bound_finds_the_best_subset() -> None:
    gains = 0
    for seed in range(examples(20, 60)):
        workload = random_workload(seed)
        if len(workload.pool) > 8:
            continue
        chosen = workload.choose()
        assert workload.size(chosen) <= (workload.options.budget_bytes or 0.0)
        assert workload.value(chosen) == pytest.approx(best_subset(workload))
        gains += workload.value(chosen) > 0
    assert gains > 2


def test_the_large_search_never_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload_module, "BRANCH_AND_BOUND_MAX_VIEWS", 0)
    for seed in range(examples(15, 40)):
        workload = random_workload(seed)
        chosen = workload.choose()
        assert workload.value(chosen) >= 0
        assert workload.size(chosen) <= (workload.options.budget_bytes or 0.0)
