"""The state in which is asked: a program, its data, and what is known of its ranks."""

from dataclasses import field, replace

from corollary.analysis.relevance import BOTH_SIGNS
from corollary.analysis.strata import strata
from corollary.core import logic
from corollary.core.arrow import sort_rows, to_python
from corollary.core.engine import Engine, Limits
from corollary.core.pipeline import Reference
from corollary.core.plans import working_relation
from corollary.core.program import NormalProgram, Program
from corollary.core.recorder import CountingRecorder
from corollary.core.states import State
from corollary.core.statistics import Statistics
from corollary.data_class import dataclass
from corollary.database.program.goals import answer_relation
from corollary.database.state import DatabaseState
from corollary.maintain.draft import Draft
from corollary.maintain.payload import Payload, has_ranks, is_by_value
from corollary.maintain.sip import Goal
from corollary.maintain.solve import answer_goal
from corollary.maintain.update import Update
from corollary.provenance.nodes import Row


@dataclass(frozen=True, slots=True)
class QueryState:
    """A program and its data in one state, in which is asked.

    Attributes:
        written: the program as written and checked, for the numbers of rules.
        program: its normal form.
        engine: holds the data.
        statistics: of the relations.
        commit: the number of the last commit.
        data: which state of the data is read: OLD or NEW.
        ranked: the relations whose ranks are valid in it, and are not values.
        exact: those of them whose ranks are least heights inside of their strata.
        limits: of one run of the engine.
    """

    written: Program
    program: NormalProgram
    engine: Engine
    statistics: Statistics
    commit: int
    data: State = State.NEW
    ranked: frozenset[str] = frozenset()
    exact: frozenset[str] = frozenset()
    limits: Limits = field(default_factory=Limits)

    def goal(self, literal: logic.Literal) -> Goal:
        """Return a literal that is read in this state."""
        return Goal(literal, Reference(literal.relation, self.data))

    def draft(self) -> Draft:
        """Return the draft of a plan that reads this state."""
        program = self.program
        # What may have changed is asked for by the rules of OLD, on the data of OLD.
        changed = (
            {name: BOTH_SIGNS for name, each in program.relations.items() if not each.is_derived}
            if self.data is State.OLD
            else {}
        )
        return Draft(Update(program, program, changed, self._statistics_with_ranks()))

    def _statistics_with_ranks(self) -> Statistics:
        """Return the statistics, those of ranks too: they have one for each tuple."""
        rows, distinct = dict(self.statistics.rows), dict(self.statistics.distinct)
        for name in self.ranked:
            rank = working_relation(name, Payload.RANK)
            if name in rows:
                rows[rank] = rows[name]
            if name in distinct:
                distinct[rank] = distinct[name]
        return replace(self.statistics, rows=rows, distinct=distinct)


def query_state(state: DatabaseState, data: State = State.NEW) -> QueryState:
    """Return the present state of a database, for queries."""
    program = state.loaded.normal
    types = {name: each.types for name, each in program.relations.items()}
    ranked = state.planner.payload & frozenset(
        name
        for stratum in strata(program)
        if has_ranks(stratum, program) and not is_by_value(stratum, types)
        for name in stratum.relations
    )
    return QueryState(
        state.loaded.checked.program,
        program,
        state.engine,
        state.planner.query_statistics(program),
        state.commits,
        data,
        ranked,
        state.planner.exact & ranked,
        state.limits,
    )


def matching_rows(asked: QueryState, literal: logic.Literal) -> list[Row]:
    """Return the tuples of a relation that match a literal, in their order."""
    shape = asked.program.relations[literal.relation]
    slots = tuple(
        slot if isinstance(slot, logic.Constant) else logic.Variable(_name(slot, at), type_)
        for at, (slot, type_) in enumerate(zip(literal.slots, shape.types, strict=True))
    )
    goal = logic.Literal(literal.relation, slots)
    answers = answer_relation(goal)
    plan = answer_goal(
        asked.program,
        goal,
        asked.statistics,
        lambda name: asked.program.relations[name].is_stored,
        asked.data,
    )
    asked.engine.declare({answers.name: answers})
    try:
        asked.engine.run(plan, CountingRecorder(), asked.limits)
        rows = to_python(sort_rows(asked.engine.read(answers.name)))
    finally:
        asked.engine.drop([answers.name])
    names = list(answers.columns)
    return [
        tuple(
            slot.value if isinstance(slot, logic.Constant) else row[names.index(slot.name)]
            for slot in slots
        )
        for row in rows
    ]


def _name(slot: logic.Slot, at: int) -> str:
    return slot.name if isinstance(slot, logic.Variable) else f"_{at}"
