"""The cases of `tests/cases/changes` on Spark, and random ones: what changes is what must.

A selection always runs, and a sample of all cases with all algorithms that Spark SQL is for.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from corollary.core.arrow import to_python
from corollary.core.engine import Limits
from corollary.core.recorder import CountingRecorder
from corollary.database.program.loaded_program import load_program
from corollary.engines.local.engine import LocalEngine
from corollary.errors import EvaluationError
from corollary.frontends.datalog.parser import parse
from corollary.maintain.algorithms import seminaive
from corollary.source import SourceFile
from support.cases.change_runs import (
    CASES,
    LIMITS,
    State,
    algorithm_of,
    check_changes,
    check_failure,
    check_state,
    name_of,
    states,
)
from support.cases.changes import FORMS, ChangeCase, asserted, commit
from support.cases.spark_evaluation import QueryEngine
from support.comparison import comparable
from support.generators.programs import Case, programs
from support.maintained_database import opened
from support.selection import examples

pytestmark = pytest.mark.spark

QUICK = {
    ("cycle_supports_itself", "ranked"),
    ("bridge_replaced", "dred"),
    ("two_derivations", "counting"),
    ("extremum_goes", "recompute"),
}
ALGORITHMS = ("auto", "recompute", "dred", "counting", "ranked")
"""PF and EPF would be a query for each invocation: they are not for Spark SQL."""

RUNS = [
    pytest.param(
        case,
        algorithm,
        id=f"{name_of(case)}-{algorithm}",
        marks=() if (name_of(case), algorithm) in QUICK else pytest.mark.matrix(120),
    )
    for case in CASES
    for algorithm in ALGORITHMS
]


@pytest.mark.parametrize(("case", "algorithm"), RUNS)
def test_maintenance(case: ChangeCase, algorithm: str, spark: Any) -> None:
    wanted = states(case)
    db = opened(case.text, algorithm, limits=LIMITS, engine="spark", spark=spark)
    base: State = {name: set() for name in case.types}
    for part in FORMS["as written"](case):
        own = algorithm_of(algorithm, part.number, case.text)
        if error := case.expected[part.number].error:
            check_failure(db, part, error, own)
            continue
        tx = commit(db, part.operations, own)
        before, base = base, asserted(base, part.operations)
        check_changes(tx, wanted[part.number], wanted[part.number + 1])
        plain = {name: rows for name, rows in base.items() if name not in wanted[0]}
        check_changes(tx, before, plain)
        check_state(db, wanted[part.number + 1], [])
    db.close()


# ---------------------------------------------------------------------------------- random programs


def evaluated(case: Case, engine: Any) -> dict[str, Any] | str:
    """Every relation of a random program, or that an expression has no value."""
    normal = load_program(parse(SourceFile("program", case.text))).normal
    engine.declare(normal.relations)
    for name, rows in normal.facts.items():
        engine.insert(name, rows)
    for name, some in case.facts.items():
        engine.insert(normal.bases.get(name, name), sorted(some, key=repr))
    try:
        engine.run(
            seminaive.plan_program(normal, engine.statistics()),
            CountingRecorder(),
            Limits(rounds=200),
        )
    except EvaluationError as error:
        return error.diagnostics[0].code
    return {name: comparable(to_python(engine.read(name))) for name in normal.relations}


def check_case(case: Case, spark: Any) -> None:
    engine = QueryEngine(spark)
    assert evaluated(case, engine) == evaluated(case, LocalEngine())
    engine.close()


@settings(max_examples=examples(1, 2), suppress_health_check=list(HealthCheck))
@given(case=programs())
def test_random_programs_give_the_same_on_both_engines(case: Case, spark: Any) -> None:
    check_case(case, spark)


@pytest.mark.long
@settings(max_examples=examples(25, 60), suppress_health_check=list(HealthCheck))
@given(case=programs())
def test_more_random_programs_give_the_same_on_both_engines(case: Case, spark: Any) -> None:
    check_case(case, spark)
