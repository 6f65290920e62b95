"""Why a candidate of a propagation was disqualified: the proof that it has all the same.

| the candidate might be | the proof is of the state |
|---|---|
| removed | after the change |
| added | before it |
"""

import json
from dataclasses import field, replace
from typing import Any

from corollary.core.states import State
from corollary.core.values import value_from_json
from corollary.data_class import dataclass
from corollary.database.commit import OpenTransaction
from corollary.database.counters import TraceRow
from corollary.database.state import DatabaseState
from corollary.provenance.limits import DEFAULT_LIMITS, Allowance, ProofLimits
from corollary.provenance.proof import Proof
from corollary.provenance.query_state import QueryState, query_state
from corollary.provenance.trials import transaction_state
from corollary.provenance.why import prove

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
