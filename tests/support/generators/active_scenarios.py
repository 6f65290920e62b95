"""Random programs with active rules: every transaction of a database against the oracle.

The facts are there before the active rules are: most transactions then change little, as in life.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hypothesis import strategies as st

from corollary.core.arrow import to_python
from corollary.core.engine import Limits
from corollary.database.transaction import Transaction
from corollary.errors import ConstraintError, EvaluationError, LimitError
from oracles.active_rules import Operation, Outcome, evaluated, react
from oracles.evaluation import OracleError, OracleLimit, evaluate
from support.comparison import comparable
from support.generators.active_programs import ActiveProgram, active_programs
from support.generators.programs import updates
from support.maintained_database import (
    ALGORITHMS,
    MIXED,
    State,
    Step,
    algorithm_for,
    apply,
    derived_relations,
    opened,
    with_virtual,
)
from support.payload_check import check_payload

EVERY = (*ALGORITHMS, MIXED)
LIMITS = Limits(rounds=100)
SHARES = ("changed", "alerted", "triggered", "aborted", "endless", "refused")
"""What may become of a transaction: a view changed, an alert was sent, a trigger acted, …"""


@dataclass(frozen=True, slots=True)
class ActiveScenario:
    """A program with active rules and transactions; some relations are virtual."""

    program: ActiveProgram
    algorithm: str
    virtual: tuple[str, ...]
    steps: tuple[Step, ...]

    @property
    def label(self) -> str:
        """How it is counted."""
        return f"active, {self.algorithm}{', virtual' if self.virtual else ''}"


@st.composite
def active_scenarios(draw: st.DrawFn, max_steps: int = 8) -> ActiveScenario:
    """Draw a scenario."""
    program = draw(active_programs())
    steps = tuple(draw(updates(program.case, max_steps)))
    algorithm = EVERY[draw(st.integers(0, 9_999)) % len(EVERY)]
    every = derived_relations(program.case.text)
    virtual: tuple[str, ...] = ()
    if draw(st.integers(0, 2)) == 0:
        virtual = tuple(sorted(draw(st.sets(st.sampled_from(every), min_size=1))))
    return ActiveScenario(program, algorithm, virtual, steps)


def shares(counts: Counter[str]) -> str:
    """Return what became of the transactions, in percent."""
    found = (f"{name} {100 * counts[name] / max(1, counts['steps']):.0f} %" for name in SHARES)
    return f"{counts['steps']} transactions: {', '.join(found)}"


def judge_active(scenario: ActiveScenario) -> Counter[str]:
    """Hold every transaction of a scenario against the oracle; return what was covered."""
    case = scenario.program.case
    try:
        evaluate(case.text)
        evaluate(case.text, case.facts)
    except OracleError:
        return Counter(skipped=1)
    judged = JudgedActive(scenario)
    try:
        for number, step in enumerate(scenario.steps):
            if not judged.step(step, number):
                break
    finally:
        judged.db.close()
    return judged.counts


class JudgedActive:
    """A database and the base relations that the oracle says it has."""

    def __init__(self, scenario: ActiveScenario) -> None:
        self.scenario = scenario
        case = scenario.program.case
        self.text = scenario.program.text
        self.counts: Counter[str] = Counter()
        self.db = opened(case.text, scenario.algorithm, scenario.virtual, limits=LIMITS)
        apply(self.db, (case.facts, {}))
        self.db.load(text=with_virtual(self.text, scenario.virtual))
        self.base: State = {name: set(rows) for name, rows in case.facts.items()}

    def step(self, step: Step, number: int) -> bool:
        """Judge one transaction; return whether there is a sense in going on."""
        self.counts["steps"] += 1
        inserts, deletes = step
        operations: list[Operation] = [
            *(("-", name, row) for name, rows in deletes.items() for row in rows),
            *(("+", name, row) for name, rows in inserts.items() for row in rows),
        ]
        before = evaluated(self.text, self.base)
        try:
            outcome = react(self.text, self.base, operations)
        except OracleError:
            return self._judge_error(step, number, before)
        except OracleLimit:
            self._judge_refusal(step, number, LimitError)
            self.counts["endless"] += 1
        else:
            self._judge_outcome(step, number, outcome)
            self.base = outcome.base
            before = evaluated(self.text, self.base)
        self._judge_state(before)
        return True

    def _commit(self, step: Step, number: int) -> Transaction:
        algorithm = self.scenario.algorithm
        if algorithm == MIXED:
            algorithm = ALGORITHMS[(number * 5 + len(self.text)) % len(ALGORITHMS)]
        return apply(self.db, step, algorithm_for(self.scenario.program.case.text, algorithm))

    def _judge_error(self, step: Step, number: int, before: State) -> bool:
        """An instance fails; the database may not have asked for it, and then goes its own way."""
        try:
            self._commit(step, number)
        except EvaluationError:
            self.counts["refused"] += 1
            self._judge_state(before)
            return True
        except (ConstraintError, LimitError):
            pass
        self.counts["skipped"] += 1
        return False

    def _judge_refusal(self, step: Step, number: int, error: type[Exception]) -> str:
        try:
            tx = self._commit(step, number)
        except error as found:
            return str(found)
        raise AssertionError(f"not {error.__name__}, but {tx.alerts} of {step}\n{self}")

    def _judge_outcome(self, step: Step, number: int, outcome: Outcome) -> None:
        self.counts["triggered"] += bool(outcome.cascade)
        if outcome.is_aborted:
            message = self._judge_refusal(step, number, ConstraintError)
            assert any(each.message in message for each in outcome.violations), f"{message}\n{self}"
            self.counts["aborted"] += 1
            return
        tx = self._commit(step, number)
        found = [(each.event, *comparable([tuple(each.row)]), each.message) for each in tx.alerts]
        wanted = [(each.event, *comparable([each.row]), each.message) for each in outcome.alerts]
        assert sorted(found) == sorted(wanted), f"alerts {found}, not {wanted}, of {step}\n{self}"
        self.counts["alerted"] += bool(wanted)
        has_changed = False
        for name, (added, removed) in outcome.changes.items():
            change = tx.changes[name]
            got = comparable(to_python(change.added)), comparable(to_python(change.removed))
            asked = comparable(added), comparable(removed)
            assert got == asked, f"{name} changes by {got}, not {asked}, of {step}\n{self}"
            has_changed |= name not in self.scenario.program.case.base and any(asked)
        self.counts["changed"] += has_changed

    def _judge_state(self, expected: State) -> None:
        relations = self.db._state.loaded.normal.relations
        for name, rows in expected.items():
            if name in self.scenario.virtual and relations[name].is_derived:
                assert self.db._state.engine.size(name) == 0, name
            elif name in relations and not name.startswith(("ev", "alert", "abort")):
                found, wanted = (
                    comparable(to_python(self.db._state.engine.read(name))),
                    comparable(rows),
                )
                assert found == wanted, f"{name} is {found}, not {wanted}\n{self}"
        check_payload(self.db)

    def __str__(self) -> str:
        scenario = self.scenario
        return f"{scenario.algorithm}, virtual {scenario.virtual}\n{self.text}\n{self.base}"
