"""Why a commit has added or removed a tuple: the least of its changes that do it.

Added: the absence before the commit, and the proof in the state before with the cause done to it.
Removed: the proof before, and the absence after. Tuples of a proof that the other state does not
have are marked, and so are absent ones that it has.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import closing, suppress
from dataclasses import replace

import pyarrow as pa

from corollary.analysis.relevance import BOTH_SIGNS
from corollary.core.arrow import from_python
from corollary.core.graph import reachable
from corollary.core.plans import watched_name
from corollary.core.program import NormalProgram, relations_read
from corollary.core.states import State
from corollary.database.commit import OpenTransaction
from corollary.database.program.loaded_program import LoadedProgram
from corollary.database.state import DatabaseState
from corollary.database.store import MemoryStore
from corollary.database.warehouse_store import WarehouseStore
from corollary.errors import InputError, LimitError
from corollary.provenance.absences.why_not import (
    absence,
    prove_with_attempts,
    read_tuple,
    whole_tuples,
)
from corollary.provenance.changes.causes import (
    CauseLimitError,
    CausingChanges,
    LeastCause,
    LeastCauseSearch,
    causing_changes,
)
from corollary.provenance.changes.event_instances import EventInstances
from corollary.provenance.changes.recorded_commit import RecordedCommit, recorded_commit
from corollary.provenance.changes.why_event import EventProofs, find_event_proofs
from corollary.provenance.limits import DEFAULT_LIMITS, Allowance, ProofLimits
from corollary.provenance.nodes import BaseChange, Cause, ProofCut, ProofKind, Row
from corollary.provenance.proof import Absence, ChangeExplanation, Proof
from corollary.provenance.query_state import QueryState
from corollary.provenance.rule_query import tuples_there
from corollary.provenance.trials import Found, Trials, user_names
from corollary.warehouse.copies import minus

LISTED_MAX_CHANGES = 1_000
"""If a commit has more changes that can matter, not all sets of a size are tried."""


def why_changed(
    store: WarehouseStore,
    now: DatabaseState,
    goal: str,
    sign: State,
    *,
    commit: int | None = None,
    limits: ProofLimits = DEFAULT_LIMITS,
) -> ChangeExplanation:
    """Return why a commit has added a tuple, or removed it.

    Args:
        store: of the warehouse.
        now: the present state.
        goal: one atom with a value for each column, such as `link("a", "d")`.
        sign: whether the tuple was added or removed.
        commit: the number of the commit; the last one that did it if it is not given.
        limits: of the work.

    Raises:
        InputError: the goal does not fit the program, or the commit has not done it.
        WarehouseError: the commit, or the one before, is not kept.
    """
    number = commit
    if number is None:
        number = last_change(store, goal, sign, now.loaded)
        if number is None:
            raise _no_change(goal, sign, None, None)
    recorded = recorded_commit(store, number, now)
    with closing(recorded.before):
        program = recorded.after if sign is State.ADDED else recorded.before.loaded
        relation, row = read_tuple(program, goal)
        search = _Explanation(recorded, relation, row, sign, limits)
        if not search.has_happened():
            last = last_change(store, goal, sign, program)
            raise _no_change(goal, sign, number, last)
        return search.explain(goal)


def last_change(store: WarehouseStore, goal: str, sign: State, loaded: LoadedProgram) -> int | None:
    """Return the last commit that is kept and has recorded that it changed a tuple so."""
    relation, row = read_tuple(loaded, goal)
    shape = loaded.normal.relations[relation]
    wanted = from_python([row], shape)
    catalog = store.warehouse.catalog
    latest = catalog.latest_commit()
    first, last = int(catalog.meta("oldest")) - 1, 0 if latest is None else latest.number
    counts = loaded.normal.bags.get(relation, relation)
    found = [
        each
        for name in dict.fromkeys((counts, watched_name(counts)))
        for each in catalog.changes(max(first, 0), last, name)
    ]
    for number, stored in sorted(found, key=lambda each: -each[0]):
        delta = store.warehouse.read_change(stored)
        came, went = (_has_row(each, wanted) for each in (delta.added, delta.removed))
        # In counts of copies, a row that is in both has only more of them, or fewer.
        if (came, went) == (sign is State.ADDED, sign is State.REMOVED):
            return number
    return None


def _has_row(table: pa.Table, wanted: pa.Table) -> bool:
    """Whether a table has a row, perhaps with further columns."""
    if table.num_columns < wanted.num_columns or not len(table):
        return False
    rows = table.select(range(wanted.num_columns)).rename_columns(wanted.column_names)
    return not len(minus(wanted, rows))


def _no_change(goal: str, sign: State, number: int | None, last: int | None) -> InputError:
    verb = "added" if sign is State.ADDED else "removed"
    command = f"why-{verb}"
    if number is None:
        message = f"No commit that is kept has recorded that `{goal.strip()}` was {verb}."
        cure = f"name the commit, as in `corollary {command} W '{goal.strip()}' --commit 7`"
    else:
        message = f"Commit {number} has not {verb} `{goal.strip()}`."
        cure = "no commit that is kept has recorded that it did"
        if last is not None:
            cure = f"commit {last} has: ask with `--commit {last}`"
    return InputError.of("C1422", message, None, cure)


class _Explanation:
    """The search for the cause of one change."""

    def __init__(
        self, recorded: RecordedCommit, relation: str, row: Row, sign: State, limits: ProofLimits
    ) -> None:
        self._recorded = recorded
        self._relation = relation
        self._row = row
        self._sign = sign
        self._limits = limits
        self._allowance = Allowance(limits)
        self._trials = Trials(recorded.before, MemoryStore(), self._allowance)
        self._absence_after: Absence | None = None
        self._was_cut = False
        self._trigger: EventProofs | None = None
        below = _below(recorded.before.loaded.normal, relation)
        below |= _below(recorded.after.normal, relation)
        self._below = below
        users = {**user_names(recorded.before.loaded.normal), **user_names(recorded.after.normal)}
        self._bases = {users.get(name, name) for name in below}
        self._rules = [
            change
            for change, clause in recorded.clauses.items()
            if any(head.relation in below for head in clause.heads)
        ]

    # --- has it happened, and by what ----------------------------------------------------------

    def has_happened(self) -> bool:
        """Return whether the commit has done it; note what may have caused it."""
        before = self._recorded.before
        was_there = self._is_there(self._recorded.asked_before())
        needed = set(self._below)
        if self._recorded.triggers:
            needed |= {name for name, _ in before.loaded.normal.active.marked.values()}
        for name in needed & before.loaded.normal.relations.keys():
            if before.loaded.normal.relations[name].is_virtual:
                before.watch(name, BOTH_SIGNS)
        edit = self._recorded.edit(self._recorded.clauses)
        operations = self._recorded.operations()
        is_there, self._likely = self._trials.run_tables(operations, self._look, edit)
        return (was_there, is_there) == (self._sign is State.REMOVED, self._sign is State.ADDED)

    def _look(self, asked: QueryState, transaction: OpenTransaction) -> tuple[bool, CausingChanges]:
        """Look at the state after the whole commit."""
        is_there = self._is_there(asked)
        likely = CausingChanges((), is_complete=False)
        if is_there is (self._sign is State.ADDED):
            update = transaction.update
            if self._relation in {**update.old.relations, **update.new.relations}:
                change = self._relation, self._sign
                with suppress(LimitError):
                    likely = causing_changes(
                        self._recorded.before, update, change, self._row, self._allowance
                    )
            with suppress(LimitError):
                self._trigger = self._trigger_proof(asked, transaction)
            if self._sign is State.REMOVED and self._relation in asked.program.relations:
                after = self._recorded.asked_after(asked)
                self._absence_after = absence(after, self._relation, self._row, self._limits)
        return is_there, likely

    def _trigger_proof(self, asked: QueryState, transaction: OpenTransaction) -> EventProofs | None:
        """Return how a trigger has added the tuple, if one has."""
        recorded = self._recorded
        effect = self._relation, State.ADDED
        names = [name for name, each in recorded.triggers.items() if each == effect]
        if self._sign is not State.ADDED or not names:
            return None
        after = recorded.asked_after(asked)
        instances = EventInstances(
            recorded.before, after, transaction.update, recorded.triggers, self._allowance
        )
        goals = [(names[0], self._row)]
        with instances.evaluate_events(names):
            if self._row not in instances.tuples(names[0]):
                return None
            found = find_event_proofs(instances, goals, after, transaction, self._limits)
        return replace(found, marked={**found.marked, names[0]: effect})

    def _is_there(self, asked: QueryState) -> bool:
        relation = asked.program.relations.get(self._relation)
        if relation is None or relation.arity != len(self._row):
            return False
        (is_there,) = tuples_there(asked, self._relation, [self._row])
        return is_there

    # --- the least cause -----------------------------------------------------------------------

    def explain(self, goal: str) -> ChangeExplanation:
        """Return the explanation."""
        every = None
        if self._recorded.count(self._bases) <= LISTED_MAX_CHANGES:
            every = [*self._recorded.members(self._bases), *self._rules]
        tries = self._limits.dry_runs - self._trials.runs
        likely = [*self._rules, *self._likely.changes]
        if every is not None:
            likely = [each for each in likely if each in set(every)]
        if not self._does(frozenset(likely)):
            likely = every if every is not None else self._recorded.members(self._bases)
        least = LeastCauseSearch(self._does_once, every, likely, tries).run()
        causes = tuple(self._causes(least))
        cuts = () if least.is_minimal and not self._was_cut else (self._cut(),)
        if self._sign is State.ADDED:
            before: Proof | Absence = self._before_added(goal)
            after: Proof | Absence = self._after_added(goal, least.changes)
        else:
            before = self._before_removed(goal, least.changes)
            after = self._after_removed(goal)
        sign = "+" if self._sign is State.ADDED else "-"
        return ChangeExplanation(
            goal,
            self._recorded.number,
            sign,
            causes,
            least.is_smallest,
            before,
            after,
            cuts,
            self._allowance.used,
        )

    def _does_once(self, changes: frozenset[BaseChange]) -> bool:
        if self._trials.is_exhausted:
            raise CauseLimitError
        return self._does(changes)

    def _does(self, changes: Collection[BaseChange]) -> bool:
        """Return whether changes alone do what the commit did."""
        try:
            is_there = self._after(changes, lambda asked, _: self._is_there(asked))
        except (InputError, LimitError):  # rules that do not fit without others, an overflow
            return False
        return is_there is (self._sign is State.ADDED)

    def _after(
        self, changes: Collection[BaseChange], look: Callable[[QueryState, OpenTransaction], Found]
    ) -> Found:
        """Return what is found where some changes were done to the state before."""
        tuples = [each for each in changes if each not in self._recorded.clauses]
        return self._trials.run(tuples, look, self._recorded.edit(changes))

    def _causes(self, least: LeastCause) -> Iterator[Cause]:
        """Yield the changes of a cause; whether each is necessary is tried out."""
        for change in least.changes:
            self._was_cut = self._was_cut or self._trials.is_exhausted
            yield Cause(change, not self._was_cut and self._is_necessary(change, least))

    def _is_necessary(self, change: BaseChange, least: LeastCause) -> bool:
        rules = [each for each in self._recorded.clauses if each != change]
        operations = self._recorded.operations(without=change)
        try:
            is_there = self._trials.run_tables(
                operations,
                lambda asked, _: self._is_there(asked),
                self._recorded.edit([*rules, *(c for c in least.changes if c != change)]),
            )
        except (InputError, LimitError):
            return False
        return is_there is not (self._sign is State.ADDED)

    def _cut(self) -> ProofCut:
        return ProofCut(self._trials.reason, None, self._trials.runs)

    # --- before and after ----------------------------------------------------------------------

    def _before_added(self, goal: str) -> Absence:
        asked = self._recorded.asked_before()
        if self._relation not in asked.program.relations:
            return Absence(goal, asked.commit)
        return absence(asked, self._relation, self._row, self._limits, goal)

    def _after_added(self, goal: str, cause: Collection[BaseChange]) -> Proof:
        """Return the proof in the state before with the cause done to it, what is new marked.

        Of a tuple that a trigger has added, it is the trigger's rule, and what set it off.
        """
        if self._trigger is not None:
            before, number = self._recorded.asked_before(), self._recorded.number
            return self._trigger.proofs(before, self._limits, number)[0]

        def look(asked: QueryState, _: OpenTransaction) -> Proof:
            after = self._recorded.asked_after(asked)
            return prove_with_attempts(after, self._relation, self._row, self._limits, goal)

        return mark_changes(self._after(cause, look), self._recorded.asked_before(), "+")

    def _before_removed(self, goal: str, cause: Collection[BaseChange]) -> Proof:
        """Return the proof before, with what the cause breaks marked."""
        asked = self._recorded.asked_before()
        proof = prove_with_attempts(asked, self._relation, self._row, self._limits, goal)
        return self._after(cause, lambda after, _: mark_changes(proof, after, "-"))

    def _after_removed(self, goal: str) -> Absence:
        if self._absence_after is None:
            return Absence(goal, self._recorded.number)
        return replace(self._absence_after, goal=goal)


def mark_changes(proof: Proof, other: QueryState, sign: str) -> Proof:
    """Return a proof with marks on what is otherwise in another state.

    Args:
        proof: the proof.
        other: the state to compare with.
        sign: the mark of tuples that the other state does not have; absent ones that it has get
            the opposite.
    """
    opposite = "-" if sign == "+" else "+"
    shown = (ProofKind.BASE, ProofKind.DERIVED, ProofKind.CHAIN)
    marks: dict[int, str] = {}
    for node in proof.nodes:
        if node.kind in shown and node.relation not in other.program.relations:
            marks[node.id] = sign
    for kinds, is_kept, mark in ((shown, True, sign), ((ProofKind.ABSENT,), False, opposite)):
        for name, nodes in whole_tuples(other.program, proof.nodes, kinds).items():
            there = tuples_there(other, name, [each.row for each in nodes])
            marks |= {
                each.id: mark
                for each, is_in in zip(nodes, there, strict=True)
                if is_in is not is_kept
            }
    marked = tuple(replace(node, sign=marks.get(node.id, "")) for node in proof.nodes)
    return replace(proof, nodes=marked)


def _below(program: NormalProgram, relation: str) -> set[str]:
    """Return a relation, and all that it is derived from."""
    reads = relations_read(program.rules, program.aggregations)
    return set(reachable([relation], lambda name: reads.get(name, ())))
