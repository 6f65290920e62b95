"""Goals: the same answers as a full evaluation, without computing what was not asked."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest

from corollary.core.arrow import to_python
from corollary.core.logic import Variable
from corollary.core.plans import MAIN, WORKING_SEPARATOR, Plan, working_relation
from corollary.core.recorder import CountingRecorder
from corollary.database.program.goals import read_goal
from corollary.errors import InputError
from corollary.maintain.goal_evaluation import solve
from corollary.maintain.solve import GOAL_RELATION
from oracles import evaluation
from support.comparison import LIMITS, Rows, prepared
from support.maintained_database import SAME_GENERATION

Answer = tuple[set[tuple[Any, ...]], CountingRecorder, Plan]


def ask(text: str, facts: Rows, goal_text: str) -> Answer:
    loaded, engine = prepared(text, facts)
    goal = read_goal(loaded, goal_text)
    answers = goal.answers
    engine.declare({answers.name: answers})
    plan = solve(goal.program, goal.literal, engine.statistics())
    tally = CountingRecorder()
    engine.run(plan, tally, LIMITS)
    rows = list(to_python(engine.read(answers.name)))
    assert len(rows) == len(set(rows))
    return set(rows), tally, plan


def wanted(text: str, facts: Rows, goal_text: str) -> set[tuple[Any, ...]]:
    """The answers by the oracle: the goal's tuples, one column per variable."""
    loaded, _ = prepared(text, {})
    goal = read_goal(loaded, goal_text).literal
    found = set()
    for row in evaluation.evaluate(text, facts)[goal.relation]:
        bound: dict[str, Any] = {}
        for slot, value in zip(goal.slots, row, strict=True):
            if isinstance(slot, Variable):
                if bound.setdefault(slot.name, value) != value:
                    break
            elif hasattr(slot, "value") and slot.value != value:
                break
        else:
            found.add(tuple(bound.values()))
    return found


def family(letter: str, depth: int) -> dict[str, list[tuple[str, str]]]:
    """A ladder: up to a common level, flat at the top, down again."""
    names = [f"{letter}{at}" for at in range(depth)]
    up = list(pairwise(names))
    return {
        "up": up,
        "flat": [(name, name) for name in names[1:]],
        "down": [(two, one) for one, two in up] + [(two, one + "'") for one, two in up],
    }


def merged(*parts: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {name: [row for part in parts for row in part[name]] for name in parts[0]}


def test_same_generation_stays_in_the_family() -> None:
    ours, others = family("a", 6), family("b", 60)
    rows, tally, plan = ask(SAME_GENERATION, merged(ours, others), 'sg("a0", y)')
    alone, counted, _ = ask(SAME_GENERATION, ours, 'sg("a0", y)')
    assert rows == alone == wanted(SAME_GENERATION, ours, 'sg("a0", y)')
    assert rows
    assert not [name for name in plan.types if name.startswith("sg^ff")]
    assert tally.derived == counted.derived
    assert tally.derived[working_relation("sg^bf", "asked")] <= 2 * 6


CLOSURES = {
    "left": "tc(x, z) :- tc(x, y), edge(y, z).",
    "right": "tc(x, z) :- edge(x, y), tc(y, z).",
    "non-linear": "tc(x, z) :- tc(x, y), tc(y, z).",
}
CLOSURE = """
.decl edge(x: number, y: number)
.decl tc(x: number, y: number)
tc(x, y) :- edge(x, y).
"""
TWO_CHAINS = {"edge": [(at, at + 1) for at in (*range(10), *range(100, 200))]}


@pytest.mark.parametrize("name", CLOSURES)
def test_a_closure_is_computed_for_its_source_only(name: str) -> None:
    rows, tally, _ = ask(CLOSURE + CLOSURES[name], TWO_CHAINS, "tc(3, y)")
    assert rows == {(at,) for at in range(4, 11)}
    assert (
        tally.derived[working_relation("tc^bf", "asked")]
        == {"left": 1, "right": 1, "non-linear": 8}[name]
    )
    assert tally.derived[working_relation("tc^bf", "found")] <= 8 * 7 / 2
    if name != "non-linear":
        assert tally.derived[working_relation("tc^bf", "found")] == 7


@pytest.mark.parametrize("name", CLOSURES)
@pytest.mark.parametrize(
    "goal", ["tc(3, y)", "tc(x, 7)", "tc(3, 7)", "tc(7, 3)", "tc(x, y)", "tc(x, x)", "tc(_, y)",
             "tc(_, _)", "tc(3, _)", "tc(_, 7)", "tc(99, y)"],
)  # fmt: skip
def test_closure_goals(name: str, goal: str) -> None:
    text = CLOSURE + CLOSURES[name]
    facts = {"edge": [(1, 2), (2, 3), (3, 1), (3, 4), (4, 5), (5, 6), (6, 7), (8, 8)]}
    assert ask(text, facts, goal)[0] == wanted(text, facts, goal)


def test_a_bound_goal_has_one_empty_answer_or_none() -> None:
    text = CLOSURE + CLOSURES["left"]
    assert ask(text, TWO_CHAINS, "tc(3, 7)")[0] == {()}
    assert ask(text, TWO_CHAINS, "tc(7, 3)")[0] == set()


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        ("edge(3, y)", {(4,)}),
        ("edge(x, 4)", {(3,)}),
        ("edge(3, 4)", {()}),
        ("edge(3, 5)", set()),
        ("edge(x, x)", set()),
        ("edge(199, y)", {(200,)}),
    ],
)
def test_base_relations_are_looked_up(goal: str, expected: set[tuple[int, ...]]) -> None:
    rows, tally, plan = ask(CLOSURE + CLOSURES["left"], TWO_CHAINS, goal)
    assert rows == expected
    assert set(tally.derived) == {GOAL_RELATION}
    assert list(plan.procedures) == [MAIN]


RICH = """
.decl edge(x: number, y: number)
.decl node(x: number)
.decl tc(x: number, y: number)
.decl apart(x: number, y: number)
.decl reached(x: number, n: number)
.decl far(x: number, m: number)
.decl odd(x: number, y: number)
.decl even(x: number, y: number)
.decl any()
.decl note(x: number, t: symbol?)
.decl twin(x: number, y: number)
node(x) :- edge(x, _) ; edge(_, x).
tc(x, y) :- edge(x, y).
tc(x, z) :- tc(x, y), edge(y, z).
apart(x, y) :- node(x), node(y), !tc(x, y), !tc(y, x), x != y.
reached(x, n) :- node(x), n = count : { tc(x, y) }.
far(x, m) :- node(x), m = max y * 2 : { tc(x, y), y > x }.
odd(x, y) :- edge(x, y).
odd(x, z) :- even(x, y), edge(y, z).
even(x, z) :- odd(x, y), edge(y, z).
any() :- apart(_, _).
note(1, "a"). note(2, null). note(x, "b") :- tc(x, 5).
twin(x, y) :- reached(x, n), reached(y, n), x < y.
"""
GOALS = (
    "apart(1, y)", "apart(x, 2)", "apart(x, y)", "apart(1, 8)", "apart(x, x)",
    "reached(1, n)", "reached(x, 0)", "reached(7, 0)", "reached(9, n)", "reached(x, n)",
    "far(1, m)", "far(x, 14)", "far(7, m)", "far(x, _)",
    "odd(1, y)", "even(1, y)", "even(x, 5)", "odd(x, x)", "even(1, 1)",
    "any()", "note(x, null)", 'note(x, "b")', "note(2, t)", "note(x, t)",
    "twin(3, y)", "twin(x, y)", "node(5)", "node(x)",
)  # fmt: skip


@pytest.mark.parametrize("goal", GOALS)
def test_negation_aggregates_and_mutual_recursion(goal: str) -> None:
    facts = {"edge": [(1, 2), (2, 3), (3, 1), (3, 5), (5, 7), (8, 9), (9, 8), (4, 4)]}
    assert ask(RICH, facts, goal)[0] == wanted(RICH, facts, goal)


def asked_relations(plan: Plan) -> Iterable[str]:
    return {
        name.split(WORKING_SEPARATOR)[0]
        for name in plan.types
        if name.endswith(f"{WORKING_SEPARATOR}calls")
    }


def test_calls_bind_keys_of_aggregates_not_their_values() -> None:
    _, tally, plan = ask(RICH, TWO_CHAINS, "reached(3, n)")
    assert {"reached^bf", "reached.aggregate1^bf", "tc^bf"} <= set(asked_relations(plan))
    assert not any(name.endswith("^ff") for name in asked_relations(plan))
    assert tally.derived[working_relation("tc^bf", "asked")] == 1
    assert tally.derived[working_relation("tc^bf", "found")] == 7


def test_a_negated_literal_is_asked_bound() -> None:
    _, tally, plan = ask(RICH, {"edge": TWO_CHAINS["edge"][:30]}, "apart(3, 5)")
    # tc(3, 5) begins with tc(3, y): what is bound of it decides.
    assert {name for name in asked_relations(plan) if name.startswith("tc^")} == {"tc^bf"}
    assert tally.derived[working_relation("tc^bf", "asked")] == 1


DESCENT = """
.decl edge(x: number, y: number, w: number)
.decl d(s: number, y: number, c: number)
d(s, s, 0) :- edge(s, _, _).
d(s, y, c + w) :- d(s, x, c), edge(x, y, w).
d(s, y, a) <= d(s, y, b) :- b <= a.
"""


def test_endless_descent_is_found_where_it_is_asked_for() -> None:
    facts = {"edge": [(0, 1, 5), (1, 2, 1), (2, 1, -2), (7, 8, 1), (8, 7, -1)]}
    assert ask(DESCENT, facts, "d(7, y, c)")[0] == {(7, 0), (8, 1)}
    with pytest.raises(InputError, match=r"C0812.*1 → 2 → 1"):
        ask(DESCENT, facts, "d(0, y, c)")
    with pytest.raises(InputError, match="C0812"):
        ask(DESCENT, facts, "d(x, y, c)")
