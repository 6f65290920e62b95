"""Asks random questions of databases in random states, and judges the answers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from corollary.database.database import Database
from corollary.database.transaction import Transaction
from corollary.provenance.limits import ProofLimits
from corollary.provenance.proof import Proof
from corollary.provenance.query_state import query_state
from corollary.provenance.why import prove
from oracles.provenance import Derivations, Fact
from support.generators.scenarios import Scenario, scenarios
from support.generators.scenarios import judge as judge_scenario
from support.maintained_database import Judged, apply, derived_relations, opened
from support.provenance.judge import ProofJudge

PATIENT = ProofLimits(seconds=3_600.0)
"""Time decides nothing: a busy machine is no difference."""

TIGHT = (
    ProofLimits(seconds=3_600.0, expanded=1),
    ProofLimits(seconds=3_600.0, expanded=3, instances=2),
    ProofLimits(seconds=3_600.0, instances=1),
    ProofLimits(seconds=3_600.0, nodes=2),
)
"""Limits that leave something out even in small databases."""

QUESTIONS = 4
"""After each transaction."""


def scenarios_to_ask() -> st.SearchStrategy[Scenario]:
    """Return scenarios in which rules come and go, some with virtual relations.

    They are without windows: the oracle of proofs has none.
    """
    return st.one_of(
        scenarios(with_rules=True, windowed=None),
        scenarios(with_rules=True, with_virtual=True, windowed=None),
        scenarios(windowed=None),
    )


def ask(db: Database, fact: Fact, limits: ProofLimits = PATIENT) -> Proof:
    """Return the proof of a tuple."""
    return prove(query_state(db._state), fact[0], fact[1], limits)


def facts_of(truth: Derivations, derived: tuple[str, ...], seed: int) -> list[Fact]:
    """Return the derived tuples, in a random order."""
    found = [
        (name, row)
        for name in sorted(truth.relations)
        if name in derived
        for row in sorted(truth.relations[name], key=repr)
    ]
    random.Random(seed).shuffle(found)
    return found


class Asking:
    """Judges what a database answers after each of its transactions.

    Attributes:
        counts: what was judged.
    """

    def __init__(self, questions: int = QUESTIONS) -> None:
        self.counts: Counter[str] = Counter()
        self._questions = questions

    def __call__(self, judged: Judged, transaction: Transaction | None) -> None:
        """Ask after a transaction."""
        truth = Derivations(judged.text, judged.base)
        judge = ProofJudge(truth)
        facts = facts_of(truth, derived_relations(judged.text), len(judged.text))
        for number, fact in enumerate(facts[: self._questions]):
            try:
                self._judge(judged, judge, fact, number)
            except AssertionError as error:
                raise AssertionError(f"{fact} in\n{judged}\n{error}") from error
        self.counts += judge.counts

    def _judge(self, judged: Judged, judge: ProofJudge, fact: Fact, number: int) -> None:
        proof = ask(judged.db, fact)
        judge.judge(proof, fact)
        limits = TIGHT[number % len(TIGHT)]
        judge.judge(ask(judged.db, fact, limits), fact, is_whole=False)
        if number == 0:
            # What ranks are known decides about time, and about nothing else.
            self._same(proof, judged, fact, self._without_ranks)
            self._same(proof, judged, fact, self._fresh)

    def _same(
        self,
        proof: Proof,
        judged: Judged,
        fact: Fact,
        other: Callable[[Judged, Fact], Proof],
    ) -> None:
        found, again = (_without_places(each) for each in (proof, other(judged, fact)))
        assert again == found, f"{again}\n{found}"
        self.counts["asked again"] += 1

    @staticmethod
    def _without_ranks(judged: Judged, fact: Fact) -> Proof:
        """Return the proof if no rank is known."""
        asked = replace(query_state(judged.db._state), ranked=frozenset(), exact=frozenset())
        return prove(asked, fact[0], fact[1], PATIENT)

    @staticmethod
    def _fresh(judged: Judged, fact: Fact) -> Proof:
        """Return the proof in a database that was filled at once."""
        db = opened(judged.text, "auto", judged.virtual)
        try:
            apply(db, ({name: rows for name, rows in judged.base.items() if rows}, {}))
            return ask(db, fact)
        finally:
            db.close()


def _without_places(proof: Proof) -> Any:
    """Return a proof as JSON, without commit, work, and places of rules, which may differ."""
    rules = {number: replace(rule, file=None, line=None) for number, rule in proof.rules.items()}
    return replace(proof, commit=0, rules=rules, work=None).to_json()


def judge_answers(scenario: Scenario) -> Counter[str]:
    """Ask after each transaction of a scenario; return what was covered."""
    asking = Asking()
    judge_scenario(scenario, between=asking)
    return asking.counts
