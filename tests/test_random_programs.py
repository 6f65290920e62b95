"""Random programs on random databases: the package equals the oracle."""

from hypothesis import HealthCheck, given, settings

import oracle
from judgement import FAILED, judge, judge_goals
from programs import Case, programs

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@settings(max_examples=200, suppress_health_check=SLOW)
@given(programs())
def test_evaluation_equals_the_oracle(case: Case) -> None:
    judge(case)


@settings(max_examples=40, suppress_health_check=SLOW)
@given(programs())
def test_goals_equal_the_oracle(case: Case) -> None:
    if judge(case) != FAILED:
        judge_goals(case, oracle.evaluate(case.text, case.facts))
