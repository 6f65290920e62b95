"""Changes that are tried out: done in a transaction that is inspected and rolled back."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from corollary.analysis.today import TODAY_RELATION
from corollary.core.program import NormalProgram, Program
from corollary.core.states import State
from corollary.database.access.principals import OWNER
from corollary.database.commit import OpenTransaction, TransactionRequest, rehearse
from corollary.database.database import Database, state_of
from corollary.database.intake.dry_run import try_out
from corollary.database.intake.pipeline import PipelineRun
from corollary.database.pending_commit import DeferredOperations
from corollary.database.program.loaded_program import Fact, read_facts
from corollary.database.program.parts import MANUAL_PART
from corollary.database.state import DatabaseState
from corollary.database.store import Store
from corollary.database.writing.operations import Operation
from corollary.provenance.limits import DRY_RUN_ROWS, Allowance
from corollary.provenance.nodes import BaseChange, CutReason, Row
from corollary.provenance.query_state import QueryState, query_state
from corollary.provenance.rule_query import tuples_there

Found = TypeVar("Found")

LATE_RUNS = 4
"""So many changes are tried out even if the work is over: an answer with none says nothing."""


class Trials:
    """Tries out changes of one state, as often as the limits allow.

    Attributes:
        allowance: what is left of the limits.
        runs: how many were tried.
    """

    def __init__(self, state: DatabaseState, store: Store, allowance: Allowance) -> None:
        self._state = state
        self._store = store
        self.allowance = allowance
        self.runs = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether nothing more may be tried."""
        is_late = self.allowance.is_over and self.runs >= LATE_RUNS
        return is_late or self.runs >= self.allowance.limits.dry_runs

    @property
    def reason(self) -> CutReason:
        """Why nothing more may be tried."""
        return self.allowance.reason if self.allowance.is_over else CutReason.DRY_RUNS

    def run(
        self,
        changes: Iterable[BaseChange],
        inspect: Callable[[QueryState, OpenTransaction], Found],
        edit: Callable[[Program], Program] | None = None,
    ) -> Found:
        """Do some changes, return what is found in the state that they make, and roll back.

        Args:
            changes: of base tuples.
            inspect: is called with the state that they make.
            edit: of the program, if that changes too.
        """
        rows: dict[tuple[str, str], list[Row]] = {}
        for each in changes:
            rows.setdefault((each.op, each.relation), []).append(each.row)
        return self.run_tables(((*key, each) for key, each in rows.items()), inspect, edit)

    def run_tables(
        self,
        changes: Iterable[tuple[str, str, Any]],
        inspect: Callable[[QueryState, OpenTransaction], Found],
        edit: Callable[[Program], Program] | None = None,
    ) -> Found:
        """Do the same with many tuples: signs, relations and rows; deletions come first."""
        self.runs += 1
        self.allowance.budget.spent += DRY_RUN_ROWS
        found: list[Found] = []

        def look(transaction: OpenTransaction) -> None:
            found.append(inspect(transaction_state(self._state, transaction), transaction))

        operations = [each for change in changes for each in self._operations(*change)]
        operations.sort(key=lambda each: each.sign is State.ADDED)
        rehearse(
            self._state,
            self._store,
            TransactionRequest(
                OWNER,  # only the answer shows what was tried
                operations=operations,
                edits=[] if edit is None else [edit],
                is_dry=True,
                inspect=look,
            ),
        )
        return found[0]

    def _operations(self, op: str, relation: str, rows: Any) -> Iterator[Operation]:
        """Yield what one change does; a deletion is from all parts of a relation."""
        if op == "+":
            yield Operation(State.ADDED, relation, rows)
            return
        yield from _removals(self._state.loaded.normal, relation, rows)


def transaction_state(state: DatabaseState, transaction: OpenTransaction) -> QueryState:
    """Return the NEW state of a transaction that is not recorded or rolled back yet."""
    program = transaction.after.normal
    return QueryState(
        transaction.after.program,
        program,
        state.engine,
        state.planner.query_statistics(program),
        state.commits,
        limits=state.limits,
    )


# --- the base relations of a program, as users write to them -------------------------------------


def user_names(program: NormalProgram) -> dict[str, str]:
    """Return the users' names of relations that hold base tuples for derived ones."""
    users = {base: name for name, base in program.bases.items()}
    return {base: users.get(name, name) for base, name in users.items()}


def insertable_relations(program: NormalProgram) -> dict[str, str]:
    """Return the base relations that tuples can be inserted into, with the users' names."""
    users = user_names(program)
    return {
        name: users.get(name, name)
        for name, relation in program.relations.items()
        if not relation.is_derived
        and name != TODAY_RELATION
        and name not in program.constants
        and name not in program.bags.values()
        and (relation.is_declared or name in users)
    }


# --- what would happen without a base tuple, or with one that is not there: a dry run ------------


def what_if(database: Database, fact: str) -> PipelineRun:
    """Return what a dry run finds if a base tuple is deleted, or inserted if it is not there.

    A tuple is deleted whoever asserts it: the program text, sources and manual writes. Of a
    relation with copies, one copy is deleted.

    Args:
        database: nothing in it is changed.
        fact: a base tuple, such as `cable("a", "b")`; or several, with full stops between them.

    Raises:
        InputError: it is not a tuple of a base relation.
    """
    state = state_of(database)
    with state.lock:
        database.refresh()
        facts = read_facts(state.loaded, fact, "the tuple")
        operations = [each for one in facts for each in _operations(state, one)]
        transaction = database.transaction(is_dry=True)
        transaction.read(lambda: DeferredOperations(operations, {}))
        return PipelineRun(transaction, plan=try_out(database, transaction))


def _operations(state: DatabaseState, fact: Fact) -> list[Operation]:
    """Return the deletion of a tuple from all parts that may have it; or its insertion."""
    relation, row = fact
    normal = state.loaded.normal
    base = normal.bases.get(relation, relation)
    place = relation if base in normal.bags.values() else base
    (is_there,) = tuples_there(query_state(state), place, [row])
    if not is_there:
        return [Operation(State.ADDED, relation, [row])]
    return list(_removals(normal, relation, [row]))


def _removals(normal: NormalProgram, relation: str, rows: Any) -> Iterator[Operation]:
    """Yield the deletions of tuples from all parts of a relation."""
    base = normal.bases.get(relation, relation)
    for part in normal.parts.get(base, {MANUAL_PART: base}):
        yield Operation(State.REMOVED, relation, rows, part)
