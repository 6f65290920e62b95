"""Changes that are tried out: done in a transaction that is inspected and rolled back."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from corollary.core.program import Program
from corollary.core.states import State
from corollary.database.access.principals import OWNER
from corollary.database.commit import OpenTransaction, TransactionRequest, rehearse
from corollary.database.intake.operations import Operation
from corollary.database.program.parts import MANUAL_PART
from corollary.database.state import DatabaseState
from corollary.database.store import Store
from corollary.provenance.asked_state import AskedState
from corollary.provenance.limits import DRY_RUN_ROWS, Allowance
from corollary.provenance.nodes import BaseChange, CutReason, Row

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
        inspect: Callable[[AskedState, OpenTransaction], Found],
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
        inspect: Callable[[AskedState, OpenTransaction], Found],
        edit: Callable[[Program], Program] | None = None,
    ) -> Found:
        """Do the same with many tuples: signs, relations and rows; deletions come first."""
        self.runs += 1
        self.allowance.budget.spent += DRY_RUN_ROWS
        found: list[Found] = []

        def look(transaction: OpenTransaction) -> None:
            found.append(inspect(asked_transaction(self._state, transaction), transaction))

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
        normal = self._state.loaded.normal
        base = normal.bases.get(relation, relation)
        for part in normal.parts.get(base, {MANUAL_PART: base}):
            yield Operation(State.REMOVED, relation, rows, part)


def asked_transaction(state: DatabaseState, transaction: OpenTransaction) -> AskedState:
    """Return the NEW state of a transaction that is not recorded or rolled back yet."""
    program = transaction.after.normal
    return AskedState(
        transaction.after.program,
        program,
        state.engine,
        state.planner.query_statistics(program),
        state.commits,
        limits=state.limits,
    )
