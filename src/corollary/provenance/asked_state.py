"""The state in which a question is asked: a program, its data, and what is known of its ranks."""

from dataclasses import dataclass, field

from corollary.analysis.strata import strata
from corollary.core.engine import Engine, Limits
from corollary.core.program import NormalProgram, Program
from corollary.core.states import State
from corollary.core.statistics import Statistics
from corollary.database.state import DatabaseState
from corollary.maintain.payload import has_ranks


@dataclass(frozen=True, slots=True)
class AskedState:
    """A program and its data in one state, in which questions are asked.

    Attributes:
        written: the program as written and checked, for the numbers of rules.
        program: its normal form.
        engine: holds the data.
        statistics: of the relations.
        commit: the number of the last commit.
        data: which state of the data is asked: OLD or NEW.
        ranked: the relations whose ranks are valid in it.
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


def asked_state(state: DatabaseState, data: State = State.NEW) -> AskedState:
    """Return the present state of a database, as questions see it."""
    program = state.loaded.normal
    ranked = state.planner.payload & frozenset(
        name
        for stratum in strata(program)
        if has_ranks(stratum, program)
        for name in stratum.relations
    )
    return AskedState(
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
