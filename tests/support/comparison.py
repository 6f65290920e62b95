"""The package against the oracle: same tuples, or an error on both sides."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from corollary.console import SilentConsole
from corollary.core.arrow import to_python
from corollary.core.engine import Limits
from corollary.core.logic import Constant, Literal, Variable
from corollary.database.counters import ProgressRecorder
from corollary.database.engines import create_engine
from corollary.database.intake.evaluate_once import (
    evaluate_views,
    load_facts,
)
from corollary.database.program.goals import ResolvedGoal, read_goal
from corollary.database.program.loaded_program import LoadedProgram, load_program
from corollary.database.state import DatabaseState
from corollary.database.writing.inputs import FileLocations
from corollary.engines.local.engine import LocalEngine
from corollary.errors import EvaluationError
from corollary.frontends.datalog.parser import parse
from corollary.maintain.goal_evaluation import solve
from corollary.source import SourceFile
from oracles import evaluation
from support.generators.programs import Case

Rows = Mapping[str, Iterable[tuple[Any, ...]]]
FAILED = "an error"
LIMITS = Limits(rounds=2_000, tuples=500_000)


def comparable(rows: Iterable[tuple[Any, ...]]) -> list[tuple[tuple[str, str], ...]]:
    """Return rows as a sorted list in which 1, "1", 1.0 and true differ and NaN equals NaN."""
    return sorted(tuple((type(each).__name__, repr(each)) for each in row) for row in rows)


def prepared(text: str, facts: Rows) -> tuple[LoadedProgram, LocalEngine]:
    """Return a program and an engine that holds its facts, nothing evaluated yet."""
    state = _with_facts(text, facts)
    assert isinstance(state.engine, LocalEngine)
    return state.loaded, state.engine


def _with_facts(text: str, facts: Rows) -> DatabaseState:
    state = DatabaseState(create_engine(), limits=LIMITS)
    state.loaded = load_program(parse(SourceFile("random.dl", text)))
    load_facts(state, FileLocations(), None)
    for name, rows in facts.items():
        state.engine.insert(name, list(rows))
    return state


def package_result(text: str, facts: Rows, *, has_bodies: bool = True) -> dict[str, Any] | str:
    """Return every declared relation as the package evaluates it, or FAILED.

    Without bodies, nobody asks for relations that are aggregated.
    """
    state = _with_facts(text, facts)
    normal, engine = state.loaded.normal, state.engine
    bodies = set() if has_bodies else {each.body for each in normal.aggregations}
    names = [name for name, each in normal.relations.items() if each.is_declared]
    asked = [name for name in names if name not in bodies]
    try:
        asked_or_all = None if has_bodies else asked
        evaluate_views(state, asked_or_all)
    except EvaluationError:
        return FAILED
    return {name: comparable(to_python(engine.read(name))) for name in asked}


def oracle_result(text: str, facts: Rows) -> dict[str, Any] | str:
    """Return every declared relation as the oracle evaluates it, or FAILED."""
    try:
        return {name: comparable(rows) for name, rows in evaluation.evaluate(text, facts).items()}
    except evaluation.OracleError:
        return FAILED


def goal_result(text: str, facts: Rows, goal: Literal) -> list[Any] | str:
    """Return the answers of a goal by tabled evaluation, or FAILED."""
    loaded, engine = prepared(text, facts)
    return _answers(engine, ResolvedGoal(goal, loaded.normal, is_atom=True))


def body_result(text: str, facts: Rows, body: str) -> list[Any] | str:
    """Return the answers of a goal that is the body of a rule, or FAILED."""
    loaded, engine = prepared(text, facts)
    return _answers(engine, read_goal(loaded, body))


def _answers(engine: LocalEngine, goal: ResolvedGoal) -> list[Any] | str:
    answers = goal.answers
    engine.declare({answers.name: answers})
    plan = solve(goal.program, goal.literal, engine.statistics())
    try:
        engine.run(plan, ProgressRecorder(SilentConsole()), LIMITS)
    except EvaluationError:
        return FAILED
    return comparable(to_python(engine.read(answers.name)))


def judge(case: Case) -> dict[str, Any] | str:
    """Assert that package and oracle agree on a case; return what they agree on."""
    expected = oracle_result(case.text, case.facts)
    found = package_result(case.text, case.facts)
    assert found == expected, f"the package and the oracle differ\n{case.text}\n{case.facts}"
    asked = package_result(case.text, case.facts, has_bodies=False)
    if isinstance(expected, dict) and isinstance(asked, dict):
        expected = {name: expected[name] for name in asked}
    assert asked == expected, f"what is not asked for differs\n{case.text}\n{case.facts}"
    return found


def judge_goals(case: Case, expected: Mapping[str, set[tuple[Any, ...]]]) -> int:
    """Assert that goals with the first column bound, or all, give the oracle's tuples."""
    loaded, _ = prepared(case.text, case.facts)
    asked = 0
    for name, relation in loaded.normal.relations.items():
        if not relation.is_declared or not relation.types:
            continue
        variables = tuple(Variable(f"v{at}", type_) for at, type_ in enumerate(relation.types))
        rows = sorted(expected[name], key=repr)
        for row in rows[:1]:
            first = Constant(row[0], relation.types[0])
            goal = Literal(name, (first, *variables[1:]))
            wanted = [each[1:] for each in rows if same(each[0], row[0])]
            assert goal_result(case.text, case.facts, goal) == comparable(wanted), (case, goal)
            asked += 1
        goal = Literal(name, variables)
        assert goal_result(case.text, case.facts, goal) == comparable(rows), (case, goal)
    return asked


def same(one: Any, other: Any) -> bool:
    """Whether two values of one column are equal; NaN and null equal themselves."""
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other)
