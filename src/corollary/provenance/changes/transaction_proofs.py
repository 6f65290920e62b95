"""Why a transaction was refused: proofs of what violates a constraint or a key.

They are found before the rollback, in the state that the transaction would have made, and finished
after it: what needs the state before is asked then.

Why a candidate of a propagation was disqualified: the proof that it has all the same.

| the candidate might be | the proof is of the state |
|---|---|
| removed | after the change |
| added | before it |
"""

import json
from collections.abc import Iterator
from dataclasses import field, replace
from typing import Any

from corollary.core.states import State
from corollary.core.values import format_value, value_from_json
from corollary.data_class import dataclass
from corollary.database.commit import OpenTransaction
from corollary.database.counters import TraceRow
from corollary.database.reactions.keys import Contradiction, contradictions
from corollary.database.reactions.reactions import Violation
from corollary.database.state import DatabaseState
from corollary.provenance.absences.why_not import prove_with_attempts
from corollary.provenance.changes.event_instances import EventInstances, EventTuple
from corollary.provenance.changes.why_event import (
    EventProofs,
    changed_tuples,
    find_event_proofs,
    mark_of,
)
from corollary.provenance.limits import DEFAULT_LIMITS, Allowance, ProofLimits
from corollary.provenance.nodes import ProofKind, ProofNode
from corollary.provenance.proof import Proof
from corollary.provenance.query_state import QueryState, query_state
from corollary.provenance.trials import transaction_state
from corollary.provenance.why import prove


@dataclass(frozen=True, slots=True)
class ViolationProof:
    """What violates a constraint or a key, and why it is there.

    Attributes:
        message: what is violated.
        is_pair: whether it is two tuples with one key, and not one that a rule derives.
    """

    message: str
    proof: Proof
    is_pair: bool = False


@dataclass(slots=True)
class ViolationExplainer:
    """Proves what a transaction violates; `look` is for `Transaction.inspect`.

    Args:
        state: the database; opened without optimisations that merge or specialise events, else
            those are not proved.
        limits: of the work for each violation.
    """

    state: DatabaseState
    limits: ProofLimits = DEFAULT_LIMITS
    _found: list[ViolationProof] = field(default_factory=list)
    _events: EventProofs | None = None
    _messages: list[str] = field(default_factory=list)

    def look(self, transaction: OpenTransaction) -> None:
        """Prove what is violated, as far as the state before is not needed."""
        self._found, self._events, self._messages = [], None, []
        if not transaction.outcome.failures:
            return
        asked = transaction_state(self.state, transaction)
        changed = dict(changed_tuples(asked))
        self._found = [
            self._contradiction(each, asked, changed) for each in self._contradictions(transaction)
        ]
        events: list[Violation] = []
        for each in transaction.outcome.violations:
            if each.constraint in asked.program.active.relations:
                events.append(each)
            else:
                proof = prove_with_attempts(asked, each.constraint, each.row, self.limits)
                proof = _mark_changes(proof, changed)
                self._found.append(ViolationProof(_message(each), proof))
        if events:
            self._prove_events(events, asked, transaction)

    def proofs(self) -> list[ViolationProof]:
        """Return the proofs, after the transaction was rolled back."""
        found = list(self._found)
        if self._events is not None:
            state = self.state
            with state.lock:
                proofs = self._events.proofs(query_state(state), self.limits, state.commits)
            found += map(ViolationProof, self._messages, proofs)
        return found

    # --- constraints ---------------------------------------------------------------------------

    def _prove_events(
        self, violations: list[Violation], asked: QueryState, transaction: OpenTransaction
    ) -> None:
        active = transaction.update.new.active
        rounds = transaction.rounds
        triggers = active.triggers if rounds is not None and rounds.chain else {}
        shown = [each for each in violations if each.constraint not in active.merged]
        instances = EventInstances(
            self.state, asked, transaction.update, triggers, Allowance(self.limits)
        )
        goals: list[EventTuple] = [(each.constraint, each.row) for each in shown]
        with instances.evaluate_events({name for name, _ in goals}):
            self._events = find_event_proofs(instances, goals, asked, transaction, self.limits)
        self._messages = [_message(each) for each in shown]

    # --- keys ----------------------------------------------------------------------------------

    def _contradictions(self, transaction: OpenTransaction) -> Iterator[Contradiction]:
        state, after = self.state, transaction.after
        for found, _ in contradictions(state.engine, state.loaded, after, state.limits):
            yield from found

    def _contradiction(
        self, found: Contradiction, asked: QueryState, changed: dict[EventTuple, str]
    ) -> ViolationProof:
        """Return both tuples that contradict each other, below what they agree in."""
        dependency, relation = found.dependency, found.relation
        values = ", ".join(
            f"{relation.columns[at]} = {format_value(found.rows[0][at], relation.types[at])}"
            for at in dependency.determinants
        )
        word = "key" if dependency.is_key else "dependency"
        text = f"two tuples of {relation.name} with the {word} {values}"
        root = ProofNode(0, ProofKind.COMPUTED, "", (), (), text=text, premises=(1, 2))
        nodes = [root]
        for at, row in enumerate(sorted(found.rows, key=repr), 1):
            proof = prove(asked, relation.name, row, self.limits)
            nodes.append(replace(proof.nodes[0], id=at, premises=(), notes=(), rule=None))
        proof = Proof(
            text,
            asked.commit,
            holds=True,
            height=0,
            minimal=True,
            canonical=True,
            nodes=tuple(nodes),
        )
        return ViolationProof(text, _mark_changes(proof, changed), is_pair=True)


def _mark_changes(proof: Proof, changed: dict[EventTuple, str]) -> Proof:
    """Return a proof in NEW with marks on the base tuples that the transaction changes."""
    nodes = tuple(replace(node, sign=mark_of(node, changed, is_new=True)) for node in proof.nodes)
    return replace(proof, nodes=nodes)


def _message(violation: Violation) -> str:
    return f"{violation.constraint}: {violation.message}"


# --- candidates that were disqualified -----------------------------------------------------------


ROW_MAX_PROOFS = 3
"""The maximum number of disqualified tuples of a row of a trace that are proved."""

Candidate = tuple[str, State, str]
"""A relation, whether it might gain or lose a tuple, and the tuple as JSON."""


@dataclass(slots=True)
class DisqualifiedProofs:
    """The proofs that disqualify candidates of one transaction; each candidate is proved once."""

    _found: dict[Candidate, Proof] = field(default_factory=dict)

    def of_row(self, row: TraceRow) -> list[Proof]:
        """Return the proofs of the first disqualified tuples of a row."""
        candidates = (_candidate(row, each) for each in row.disqualified[:ROW_MAX_PROOFS])
        found = (self._found.get(each) for each in candidates if each is not None)
        return [proof for proof in found if proof is not None]

    def find(
        self,
        state: DatabaseState,
        transaction: OpenTransaction,
        limits: ProofLimits = DEFAULT_LIMITS,
    ) -> None:
        """Find them, in the order of the trace, as long as the limits allow it.

        Args:
            state: of the database, at the state before the transaction.
            transaction: a traced one that is maintained, and not recorded yet.
            limits: of all proofs together.
        """
        allowance = Allowance(limits)
        old = replace(query_state(state, State.OLD), ranked=frozenset(), exact=frozenset())
        new = replace(transaction_state(state, transaction), commit=state.commits + 1)
        asked = {State.ADDED: old, State.REMOVED: new}
        for row in transaction.outcome.trace:
            for each in row.disqualified[:ROW_MAX_PROOFS]:
                candidate = _candidate(row, each)
                if candidate is None or candidate in self._found:
                    continue
                if allowance.is_over:
                    return
                relation, sign, _ = candidate
                proof = _prove(asked[sign], relation, each, allowance)
                if proof is not None:
                    self._found[candidate] = proof


def _candidate(row: TraceRow, values: list[Any]) -> Candidate | None:
    return None if row.sign is None else (row.relation, row.sign, json.dumps(values))


def _prove(
    asked: QueryState, relation: str, values: list[Any], allowance: Allowance
) -> Proof | None:
    """Return the proof of a tuple; None if it is not there, or nothing was found in time.

    A candidate that a stage of an algorithm has disqualified may be removed by a later one.
    """
    shape = asked.program.relations.get(relation)
    if shape is None:  # made for the plan, such as a selection that several views share
        return None
    row = tuple(map(value_from_json, values, shape.types))
    proof = prove(asked, relation, row, allowance.limits, allowance=allowance)
    return None if proof.height is None else proof
