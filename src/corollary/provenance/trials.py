"""Changes that are tried out: done in a transaction that is inspected and rolled back."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from corollary.core.logic import NO_RULE, Literal, Variable
from corollary.core.pipeline import Reference
from corollary.core.plans import working_relation
from corollary.core.program import Program, Relation
from corollary.core.recorder import CountingRecorder
from corollary.core.states import State
from corollary.core.types import NUMBER
from corollary.database.commit import CommitRequest, OpenTransaction, rehearse
from corollary.database.intake.operations import Operation
from corollary.database.program.parts import MANUAL_PART
from corollary.database.state import DatabaseState
from corollary.database.store import Store
from corollary.maintain.draft import Body
from corollary.maintain.sip import Goal
from corollary.provenance.absences.nearest import NUMBER_VARIABLE, new_draft, wanted_relation
from corollary.provenance.asked_state import AskedState
from corollary.provenance.limits import Allowance
from corollary.provenance.nodes import BaseChange, Row

Found = TypeVar("Found")


class Trials:
    """Tries out changes of one state, as often as the limits allow.

    Attributes:
        runs: how many were tried.
    """

    def __init__(self, state: DatabaseState, store: Store, allowance: Allowance) -> None:
        self._state = state
        self._store = store
        self._allowance = allowance
        self.runs = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether nothing more may be tried."""
        is_late = self._allowance.seconds <= 0
        return is_late or self.runs >= self._allowance.limits.dry_runs

    def run(
        self,
        changes: Iterable[BaseChange],
        inspect: Callable[[AskedState, OpenTransaction], Found],
        edit: Callable[[Program], Program] | None = None,
    ) -> Found:
        """Do some changes, return what is found in the state that they make, and roll back.

        Args:
            changes: of base tuples; a deletion is from all parts of a relation.
            inspect: is called with the state that they make.
            edit: of the program, if that changes too.
        """
        self.runs += 1
        found: list[Found] = []

        def look(transaction: OpenTransaction) -> None:
            found.append(inspect(asked_transaction(self._state, transaction), transaction))

        rehearse(
            self._state,
            self._store,
            CommitRequest(
                operations=list(self._operations(changes)),
                edits=[] if edit is None else [edit],
                is_dry=True,
                inspect=look,
            ),
        )
        return found[0]

    def _operations(self, changes: Iterable[BaseChange]) -> Iterator[Operation]:
        normal = self._state.loaded.normal
        for each in changes:
            if each.op == "+":
                yield Operation(State.ADDED, each.relation, [each.row])
            else:
                base = normal.bases.get(each.relation, each.relation)
                for part in normal.parts.get(base, {MANUAL_PART: base}):
                    yield Operation(State.REMOVED, each.relation, [each.row], part)


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


def tuples_there(
    asked: AskedState, relation: str, rows: Sequence[Row], allowance: Allowance
) -> list[bool]:
    """Return for each tuple whether a relation, stored or virtual, has it."""
    if not rows:
        return []
    found = Relation(working_relation(relation, "there"), ("number",), (NUMBER,), is_derived=False)
    engine = asked.engine
    with wanted_relation(asked, relation, rows) as wanted:
        engine.declare({found.name: replace(found, is_declared=False)})
        try:
            draft = new_draft(asked)
            draft.types |= {wanted.name: wanted.types, found.name: found.types}
            types = wanted.types[1:]
            row = tuple(Variable(f"_{at}", type_) for at, type_ in enumerate(types))
            lead = Goal(Literal(wanted.name, (NUMBER_VARIABLE, *row)), Reference(wanted.name))
            goal = Goal(Literal(relation, row), Reference(relation, asked.data))
            body = Body((NUMBER_VARIABLE,), (lead, goal), (), NO_RULE, lead)
            plan = draft.finish(draft.derive(found.name, [body]))
            engine.run(plan, CountingRecorder(), allowance.bounded(asked.limits))
            numbers = set(engine.read(found.name).column(0).to_pylist())
        finally:
            engine.drop([found.name])
    return [number in numbers for number in range(len(rows))]
