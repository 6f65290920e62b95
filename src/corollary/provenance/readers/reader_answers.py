"""Why and why not, for readers: the answers of a database that has what they may see.

What is given there is `sealed`: the reader does not learn whether it was given in truth, or derived
by rules that it may not see, nor from whom, where and since when.
"""

from dataclasses import replace
from typing import Any

from corollary.database.access.reader import Reader
from corollary.database.database import state_of, store_of
from corollary.database.program.goals import goal_relations
from corollary.provenance.absences.why_not import why_not, with_attempts
from corollary.provenance.asked_state import asked_state
from corollary.provenance.limits import ProofLimits
from corollary.provenance.nodes import Attempt, ProofKind, ProofNode, ProofRule
from corollary.provenance.proof import Absence, Proof
from corollary.provenance.readers.granted_state import GrantedState, granted_state
from corollary.provenance.why import why


def reader_why(reader: Reader, goal: str, *, at: Any, limits: ProofLimits) -> Proof:
    """Return why a tuple holds, as far as a reader may see it."""
    seen = reader if at is None else reader.at(at)
    with granted_state(seen, _granted_relations(seen, goal)) as granted:
        state = state_of(granted.database)
        proof = why(state, goal, limits)
        if proof.holds:
            asked = asked_state(state)
            others = tuple(with_attempts(asked, each, limits) for each in proof.others)
            proof = replace(with_attempts(asked, proof, limits), others=others)
        return _sealed_proof(proof, granted, seen.commits)


def reader_why_not(
    reader: Reader, goal: str, *, at: Any, insertions: int | None, limits: ProofLimits
) -> Absence:
    """Return why a tuple does not hold, as far as a reader may see it."""
    seen = reader if at is None else reader.at(at)
    with granted_state(seen, _granted_relations(seen, goal)) as granted:
        database = granted.database
        found = why_not(
            state_of(database),
            store_of(database),
            goal,
            insertions=insertions or 0,
            limits=limits,
        )
    made = found.insertions
    return replace(
        found,
        commit=seen.commits,
        attempts=tuple(_numbered(each, granted) for each in found.attempts),
        # There may be others, in relations that the reader may not see.
        insertions=None if made is None else replace(made, complete=False),
        nodes=tuple(_sealed(each, granted) for each in found.nodes),
        rules=_rules(found.rules.values(), granted),
    )


def _granted_relations(reader: Reader, goal: str) -> list[str]:
    """Return the relations of a goal.

    Raises:
        AccessError: one was not granted to the reader.
        InputError: one does not exist.
    """
    found = list(goal_relations(goal))
    for name in found:
        reader.relation(name)
    return found


def _sealed_proof(proof: Proof, granted: GrantedState, commit: int) -> Proof:
    return replace(
        proof,
        commit=commit,
        nodes=tuple(_sealed(each, granted) for each in proof.nodes),
        rules=_rules(proof.rules.values(), granted),
        others=tuple(_sealed_proof(each, granted, commit) for each in proof.others),
    )


def _sealed(node: ProofNode, granted: GrantedState) -> ProofNode:
    """Return a node with the reader's numbers of rules; what is given is sealed."""
    kind = ProofKind.SEALED if node.kind is ProofKind.BASE else node.kind
    rule = None if node.rule is None else granted.numbers[node.rule]
    attempts = tuple(_numbered(each, granted) for each in node.attempts)
    return replace(node, kind=kind, rule=rule, attempts=attempts, sources=())


def _numbered(attempt: Attempt, granted: GrantedState) -> Attempt:
    return replace(attempt, rule=granted.numbers[attempt.rule])


def _rules(rules: Any, granted: GrantedState) -> dict[int, ProofRule]:
    """Return rules by the reader's numbers, without their places."""
    return {
        granted.numbers[each.number]: ProofRule(granted.numbers[each.number], each.text)
        for each in rules
    }
