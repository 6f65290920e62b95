"""Random programs on random databases: the package equals the oracle."""

import pytest
from hypothesis import HealthCheck, given, settings

from corollary.core.printer import print_body, print_word
from corollary.database.program.goals import read_goal
from corollary.errors import InputError
from oracles import evaluation
from support.comparison import FAILED, body_result, judge, judge_goals, oracle_result, prepared
from support.generators.programs import Case, programs
from support.selection import examples

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@pytest.mark.smoke
@settings(max_examples=examples(25, 200), suppress_health_check=SLOW)
@given(programs())
def test_evaluation_equals_the_oracle(case: Case) -> None:
    judge(case)


@pytest.mark.slow
@settings(max_examples=examples(5, 40), suppress_health_check=SLOW)
@given(programs())
def test_goals_equal_the_oracle(case: Case) -> None:
    if judge(case) != FAILED:
        judge_goals(case, evaluation.evaluate(case.text, case.facts))


@pytest.mark.slow
@settings(max_examples=examples(5, 60), suppress_health_check=SLOW)
@given(programs(windowed=None))
def test_bodies_of_rules_are_goals(case: Case) -> None:
    """The body of a rule as a goal has the answers that the oracle gives for such a rule."""
    loaded, _ = prepared(case.text, {})
    for clause in loaded.program.clauses:
        if not clause.body or clause.is_null_safe:
            continue
        body = print_body(clause.body)
        try:
            asked = read_goal(loaded, body)
        except InputError as error:
            if {each.code for each in error.diagnostics} == {"C0905"}:
                continue  # an alternative without some variable
            raise
        names = ", ".join(map(print_word, asked.answers.columns))
        columns = zip(map(print_word, asked.answers.columns), asked.answers.types, strict=True)
        declared = ", ".join(f"{name}: {type_}" for name, type_ in columns)
        text = f"{case.text}\n.decl asked({declared})\nasked({names}) :- {body}.\n"
        expected = oracle_result(text, case.facts)
        if expected != FAILED:
            assert body_result(case.text, case.facts, body) == expected["asked"], text
