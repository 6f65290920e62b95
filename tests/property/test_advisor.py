"""Advice for random programs: the quick part of the fuzz; `make fuzz` goes on with 2,000."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from oracles import evaluation
from support.advice.obligations import WAYS, judge
from support.cases.advisor import advice_for, changed_program, checked_of
from support.generators.advisor_programs import program
from support.generators.programs import Case, programs
from support.selection import examples, sampled

PROGRAMS = 80
BATCH = 20


@pytest.mark.slow
@pytest.mark.parametrize("first", sampled(range(0, PROGRAMS, BATCH), 4))
def test_random_programs(first: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(first, first + BATCH):
        judge(program(seed), seed, counts)
    assert counts["applicable"] > BATCH // 2  # of four ways each
    assert counts["as good as possible"] > counts["searched exhaustively"] // 2


@pytest.mark.slow
@given(programs())
@settings(
    max_examples=examples(12, 40),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),
)
def test_programs_with_everything_in_them(case: Case) -> None:
    """The language's own random programs, every derived relation a query: answers stay."""
    try:
        before = evaluation.evaluate(case.text, case.facts)
    except (evaluation.OracleError, evaluation.OracleLimit):
        return
    signatures = checked_of(case.text).signatures.values()
    names = [each.name for each in signatures if each.is_derived and not each.is_event]
    for options in WAYS[1:3]:
        changed = changed_program(case.text, advice_for(case.text, names, options))
        after = evaluation.evaluate(changed, case.facts)
        assert {name: after[name] for name in names} == {name: before[name] for name in names}
