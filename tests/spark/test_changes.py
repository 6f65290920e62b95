"""Cases of `tests/cases/changes` by queries of Spark, and random programs.

All cases run in partitions without a session (`tests/cases/test_changes.py`).
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from corollary.core.arrow import to_python
from corollary.core.engine import Limits
from corollary.core.recorder import CountingRecorder
from corollary.database.program.loaded_program import load_program
from corollary.engines.local.engine import LocalEngine
from corollary.engines.spark.bulk import steps
from corollary.errors import EvaluationError
from corollary.frontends.datalog.parser import parse
from corollary.maintain.algorithms import seminaive
from corollary.source import SourceFile
from support.cases.change_runs import (
    CASES,
    LIMITS,
    check_changes,
    check_state,
    name_of,
    states,
)
from support.cases.changes import FORMS, commit
from support.cases.spark_evaluation import QueryEngine
from support.comparison import comparable
from support.generators.programs import Case, programs
from support.maintained_database import opened
from support.selection import examples

MAINTAINED = [("bridge_replaced", "dred"), ("extremum_goes", "recompute")]


@pytest.mark.parametrize(("name", "algorithm"), MAINTAINED)
def test_maintenance(name: str, algorithm: str, spark: Any) -> None:
    """Relations are in partitions, and steps are queries."""
    case = next(each for each in CASES if name_of(each) == name)
    wanted = states(case)
    options = {"engine": "spark", "spark": spark, "placement": "partitions", "bulk": "always"}
    with closing(opened(case.text, algorithm, limits=LIMITS, **options)) as db:
        for part in FORMS["as written"](case):
            tx = commit(db, part.operations, algorithm)
            check_changes(tx, wanted[part.number], wanted[part.number + 1])
            check_state(db, wanted[part.number + 1], [])


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
    """What a relation leads to is looked up in partitions, whatever the sizes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "SEMI_JOIN_RATIO", 0)
        check_case(case, spark)
