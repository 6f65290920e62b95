"""The cases of the advisor: exact exponents, degrees and columns; answers of their witnesses."""

from __future__ import annotations

import random
from typing import Any

import pytest

from corollary.advisor.model.scheme import Options
from oracles import evaluation
from support.cases.advisor import CASES, advice_for, arities, changed_program, degrees, program_of

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
TRIES = 10
VALUES = ("a", "b", "c", "paris", "home")


@every_case
def test_advice_of_the_paper(case: dict[str, Any]) -> None:
    expected = case["expected"]
    advice = advice_for(program_of(case), case["queries"])
    assert advice.is_applicable == expected["applicable"]
    for name, found in advice.queries.items():
        exponents = {
            "before": found.before.left_deep,
            "after": found.after.left_deep,
            "bushy_before": found.before.bushy,
            "pipelined_before": found.before.pipelined,
        }
        for key, value in exponents.items():
            assert value == expected.get(key, {}).get(name, value), key
    assert advice.arity.value == expected.get("ea_scheme", advice.arity.value)
    assert advice.arity.paper == expected.get("ea_paper_literal", advice.arity.paper)
    assert degrees(advice) == expected.get("mat_degrees", [])
    assert arities(advice) == expected.get("mat_arities", [])
    if "self_materialisation" in expected:
        is_itself = any(each.is_self_materialisation for each in advice.views.values())
        assert is_itself == expected["self_materialisation"]
    if "reason" in expected:
        assert [each.reason for each in advice.queries.values()] == [expected["reason"]]


@every_case
def test_smallest_selection(case: dict[str, Any]) -> None:
    expected = case["expected"]
    advice = advice_for(program_of(case), case["queries"], Options(selection="minimal"))
    known = expected.get("minimal_degrees", expected.get("mat_degrees", []))
    assert degrees(advice) == known
    for name, exponent in expected.get("after", {}).items():
        assert advice.queries[name].after.left_deep == exponent


@pytest.mark.parametrize(
    ("key", "options"),
    [
        ("extension_after", Options(partial_clusters=True)),
        ("used_scope", Options(scope="used")),
        ("absorb", Options(opaque="absorb")),
    ],
)
def test_options(key: str, options: Options) -> None:
    asked = [case for case in CASES if key in case["expected"]]
    assert asked
    for case in asked:
        wanted = case["expected"][key]
        advice = advice_for(program_of(case), case["queries"], options)
        (found,) = advice.queries.values()
        if key == "extension_after":
            assert found.after.left_deep == wanted[found.query.relation]
            assert degrees(advice) == case["witness_extension"]["degrees"]
        elif key == "used_scope":
            assert advice.is_applicable == wanted["applicable"]
            assert advice.arity.value == case["expected"]["ea_used"]
        else:
            exponents = [found.before.left_deep, found.after.left_deep]
            assert [*exponents, degrees(advice)] == wanted


def data_of(case: dict[str, Any], dice: random.Random) -> dict[str, list[tuple[str, ...]]]:
    """Random tuples that keep the functional dependencies."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for name in case["edb"]:
        shape = case["relations"][name]
        rows: list[tuple[str, ...]] = []
        for _ in range(dice.randint(0, 14)):
            row = tuple(dice.choice(VALUES) for _ in range(shape["arity"]))
            if all(
                any(row[at - 1] != other[at - 1] for at in left)
                or all(row[at - 1] == other[at - 1] for at in right)
                for left, right in shape.get("fds", ())
                for other in rows
            ):
                rows.append(row)
        found[name] = rows
    return found


def answers(case: dict[str, Any], text: str, seed: int) -> dict[str, Any]:
    found = evaluation.evaluate(text, data_of(case, random.Random(seed)))
    return {name: found[name] for name in case["queries"]}


@every_case
@pytest.mark.parametrize("selection", ["paper", "minimal"])
def test_answers_stay(case: dict[str, Any], selection: str) -> None:
    text = program_of(case)
    options = Options(selection=selection, partial_clusters=True, opaque="absorb")
    changed = changed_program(text, advice_for(text, case["queries"], options))
    for seed in range(TRIES):
        assert answers(case, changed, seed) == answers(case, text, seed)


@every_case
def test_witnesses(case: dict[str, Any]) -> None:
    """Checks the adapter and the cases: what is said to be equal is, what must differ does."""
    if case.get("oracle_skip"):
        return
    text = program_of(case)
    heads = {rule.partition("(")[0] for rule in case["rules"]}

    def with_rules(rules: list[str]) -> str:
        changed = {rule.partition("(")[0] for rule in rules}
        kept = [rule for rule in case["rules"] if rule.partition("(")[0] in heads - changed]
        return program_of(case, [*rules, *kept])

    for key in ("witness", "witness_minimal", "witness_extension"):
        if key in case:
            same = with_rules(case[key]["rules"])
            assert all(answers(case, same, n) == answers(case, text, n) for n in range(TRIES))
    for rules in case.get("must_differ", ()):
        other = with_rules(rules)
        assert any(answers(case, other, n) != answers(case, text, n) for n in range(300))
