"""Holds attempts against the oracle: no instance of a rule fails in less, and all are counted."""

from __future__ import annotations

import random
from collections import Counter

from corollary.provenance.absences.why_not import absence
from corollary.provenance.nodes import Attempt
from corollary.provenance.query_state import query_state
from oracles.evaluation import OracleError
from oracles.provenance import Derivations, Fact, RuleAbsence, is_fact
from support.generators.programs import Case
from support.maintained_database import apply, derived_relations, opened
from support.provenance.asking import PATIENT

DISTANCE_MAX = 3
TUPLES = 3
"""Of each relation."""


def judge_absences(case: Case) -> Counter[str]:
    """Ask why tuples of a simple program do not hold; return what was covered."""
    counts: Counter[str] = Counter()
    try:
        truth = Derivations(case.text, case.facts)
    except OracleError:
        return counts
    rules = [number for number, rule in enumerate(truth.program.rules) if not is_fact(rule)]
    db = opened(case.text)
    try:
        apply(db, ({name: rows for name, rows in case.facts.items() if rows}, {}))
        for goal in _absent_tuples(truth, derived_relations(case.text)):
            counts["absences"] += 1
            found: dict[int, list[Attempt]] = {}
            for attempt in absence(query_state(db._state), *goal, PATIENT).attempts:
                found.setdefault(rules[attempt.rule - 1], []).append(attempt)
            wanted: dict[int, list[RuleAbsence]] = {}
            for each in truth.nearest(goal):
                wanted.setdefault(each.rule, []).append(each)
            for rule, nearest in wanted.items():
                if all(0 < (each.distance or 0) <= DISTANCE_MAX for each in nearest):
                    counts["rules"] += 1
                    _judge(found.get(rule, []), nearest, f"{goal} in\n{case.text}\n{case.facts}")
    finally:
        db.close()
    return counts


def _judge(found: list[Attempt], wanted: list[RuleAbsence], place: str) -> None:
    """Compare the attempts of a rule: alternatives of a disjunction are rules by themselves."""
    shown = {(each.distance, each.count) for each in found}
    expected = {(each.distance, len(each.attempts)) for each in wanted}
    assert shown == expected, f"{shown} instead of {expected}: {place}"
    for attempt in found:
        assert len(attempt.failing) == attempt.distance, place


def _absent_tuples(truth: Derivations, relations: tuple[str, ...]) -> list[Fact]:
    """Return some tuples of known values that are not there."""
    generator = random.Random(len(relations))
    found = []
    for name in relations:
        domains = [truth.domain(type_.name) for type_ in truth.oracle.columns[name]]
        for _ in range(TUPLES if all(domains) else 0):
            row = tuple(generator.choice(values) for values in domains)
            if row not in truth.relations[name]:
                found.append((name, row))
    return found
