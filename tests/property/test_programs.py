"""Random programs on random databases: the package equals the oracle."""

from hypothesis import HealthCheck, given, settings

from oracles import evaluation
from support.comparison import FAILED, judge, judge_goals
from support.generators.programs import Case, programs
from support.selection import examples

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@settings(max_examples=examples(60, 200), suppress_health_check=SLOW)
@given(programs())
def test_evaluation_equals_the_oracle(case: Case) -> None:
    judge(case)


@settings(max_examples=examples(10, 40), suppress_health_check=SLOW)
@given(programs())
def test_goals_equal_the_oracle(case: Case) -> None:
    if judge(case) != FAILED:
        judge_goals(case, evaluation.evaluate(case.text, case.facts))
