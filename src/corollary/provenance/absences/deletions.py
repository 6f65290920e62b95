"""Deletions that make a tuple true, where one blocking tuple is all that is in its way.

One base tuple of each proof of the blocking tuple has to go. Sets of deletions are extended by the
base tuples of a proof that still holds without them, the smaller sets first; so every set that is
enough is met, unless a smaller one is.
"""

from collections.abc import Iterator

from corollary.core.logic import Literal
from corollary.database.commit import OpenTransaction
from corollary.errors import InputError, LimitError
from corollary.provenance.absences.insertions import (
    BaseSet,
    InsertionSearch,
    TrialLimitError,
    WorkingSets,
    find_insertions,
)
from corollary.provenance.absences.missing_premises import Tuple
from corollary.provenance.absences.nearest import NearInstance, nearest_instances
from corollary.provenance.absences.rule_parts import row_of
from corollary.provenance.asked_state import AskedState
from corollary.provenance.limits import Allowance
from corollary.provenance.nodes import BaseChange, InsertionSets, ProofCut, ProofKind
from corollary.provenance.trials.base_relations import insertable_relations
from corollary.provenance.trials.trials import Trials
from corollary.provenance.why import prove


def find_changes(
    asked: AskedState, goal: Tuple, trials: Trials, allowance: Allowance, max_size: int
) -> InsertionSearch:
    """Return the smallest sets of insertions, and of deletions, that make a tuple true.

    Args:
        asked: the state in which the tuple is not there.
        goal: the tuple.
        trials: tries out changes of that state.
        allowance: what is left of the limits.
        max_size: the maximum size of a set.
    """
    found = find_insertions(asked, goal, trials, allowance, max_size)
    sets = list(found.sets.sets)
    works = WorkingSets(goal, trials)
    for blocker in blocking_tuples(asked, goal, allowance):
        try:
            for each in _deletions(asked, blocker, works, trials, max_size):
                ordered = tuple(sorted(each, key=lambda change: (change.relation, repr(change))))
                if ordered not in sets:
                    sets.append(ordered)
        except TrialLimitError:
            found.cuts.append(ProofCut(trials.reason, None, trials.runs))
            break
    size = min(map(len, sets), default=None)
    return InsertionSearch(InsertionSets(tuple(sets), size, found.sets.complete), found.cuts)


def blocking_tuples(asked: AskedState, goal: Tuple, allowance: Allowance) -> list[Tuple]:
    """Return the tuples that alone keep a rule from deriving a tuple."""
    relation, row = goal
    (found,), _ = nearest_instances(asked, relation, [row], allowance)
    blockers: dict[Tuple, None] = {}
    for nearest in found:
        for instance in nearest.shown:
            if nearest.distance == 1:
                for blocker in _blocker(nearest.rule.literals, instance):
                    blockers[blocker] = None
    return list(blockers)


def _blocker(literals: tuple[Literal, ...], instance: NearInstance) -> Iterator[Tuple]:
    """Yield the tuple that blocks an instance in which one part fails, if a tuple does."""
    (at,) = instance.failing
    if at < len(literals) and literals[at].negated:
        values = {name: value for name, (value, _) in instance.bindings.items()}
        row = row_of(literals[at], values)
        if row is not None:
            yield literals[at].relation, row


def _deletions(
    asked: AskedState, blocker: Tuple, works: WorkingSets, trials: Trials, max_size: int
) -> list[BaseSet]:
    """Return the smallest sets of deletions that are enough, against one blocking tuple."""
    level: dict[BaseSet, None] = {
        frozenset((each,)): None for each in _leaves(asked, blocker, trials.allowance)
    }
    for size in range(1, max_size + 1):
        found = [each for each in level if works(each)]
        if found or size == max_size:
            return found
        larger: dict[BaseSet, None] = {}
        for each in level:
            if trials.is_exhausted:
                raise TrialLimitError

            def leaves(state: AskedState, _: OpenTransaction) -> list[BaseChange]:
                return list(_leaves(state, blocker, trials.allowance))

            try:
                for leaf in trials.run(sorted(each, key=repr), leaves):
                    larger[each | {leaf}] = None
            except (InputError, LimitError):  # such as a value that overflows
                continue
        level = larger
    return []


def _leaves(asked: AskedState, fact: Tuple, allowance: Allowance) -> Iterator[BaseChange]:
    """Yield the base tuples of the proof of a tuple, as deletions."""
    with allowance.part(1.0) as part:
        proof = prove(asked, *fact, allowance=part)
    names = set(insertable_relations(asked.program).values())
    for node in proof.nodes:
        if node.id in proof.tuples and node.kind is ProofKind.BASE and node.relation in names:
            yield BaseChange("-", node.relation, node.row, node.types)
