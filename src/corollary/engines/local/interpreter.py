"""The interpreter of plans.

Procedures may call each other many thousand deep, so what is under way stands on a stack of its
own: one frame for every procedure, loop, branch and attempt that has begun and not ended.
"""

from collections import Counter
from collections.abc import Mapping, Sized
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, assert_never

import pyarrow as pa

from corollary.core.pipeline import Reference
from corollary.core.plan import (
    Aggregate,
    Call,
    Clear,
    Derive,
    Extend,
    Grow,
    Loop,
    Number,
    Place,
    Plan,
    Remove,
    Row,
    Settle,
    Step,
    Store,
    When,
    Within,
)
from corollary.core.recorder import Recorder
from corollary.core.states import State
from corollary.engines.local.budget import Budget, Exceeded
from corollary.errors import LimitError

Tuples = TypeVar("Tuples", bound=Sized)
"""What an engine moves between its tables: sets of tuples."""


class Holder(Protocol[Tuples]):
    """A table of an engine, as steps use it."""

    def words(self, state: State) -> Tuples:
        """Return all tuples of a state."""

    def size(self, state: State) -> int:
        """Return the number of tuples of a state."""

    def assign(self, words: Tuples) -> None:
        """Hold just these, as ADDED."""

    def clear(self) -> None:
        """Hold nothing."""

    def extend(self, words: Tuples) -> None:
        """Commit, then add tuples that are not there."""

    def replace(self, words: Tuples) -> None:
        """Make NEW equal to these."""

    def remove(self, words: Tuples) -> None:
        """Take tuples of OLD out of NEW."""

    def grow(self, words: Tuples) -> None:
        """Add tuples that are not in NEW."""

    def settle(self) -> None:
        """Strike what was removed and came back from both sides of the change."""


class Work(Protocol[Tuples]):
    """A plan with the tables it runs on: what an engine does for a step that is no control."""

    @property
    def plan(self) -> Plan:
        """What is run."""

    @property
    def tables(self) -> Mapping[str, Holder[Tuples]]:
        """The tables by name, those of the innermost invocation."""

    @property
    def budget(self) -> Budget:
        """What watches over rows and tuples."""

    @property
    def recorder(self) -> Recorder:
        """What is told of steps."""

    def enter(self, procedure: str) -> tuple[Any, ...]:
        """Give the locals of a procedure empty tables; return those they had."""

    def leave(self, procedure: str, saved: tuple[Any, ...]) -> None:
        """Give the locals of a procedure back the tables they had."""

    def derive(self, step: Derive, number: int) -> tuple[Tuples, int]:
        """Return the tuples of a step in a round, and how many led to them."""

    def aggregate(self, step: Aggregate) -> Tuples:
        """Return the tuples of a step."""

    def number(self, target: str, source: str, number: int) -> None:
        """Extend a table by the tuples of another, with a number behind each."""

    def read(self, reference: Reference) -> pa.Table:
        """Return the tuples of a relation in a state."""

    def place(self, step: Place) -> bool:
        """Run a procedure elsewhere; return whether that was done."""

    def walk(self, loop: Loop, number: int) -> int:
        """Make rounds of a loop behind the one with a number, if that is quicker; say how many."""


@dataclass(slots=True)
class _Frame:
    """Steps under way, the next one, and the number of the round they run in."""

    steps: tuple[Step, ...]
    round: int = 0
    at: int = 0


@dataclass(slots=True)
class _Invocation(_Frame):
    """The steps of a procedure, and the tables that its locals will have again."""

    procedure: str = ""
    saved: tuple[Any, ...] = ()


@dataclass(slots=True)
class _Rounds(_Frame):
    """The steps of a loop."""

    loop: Loop | None = None


@dataclass(slots=True)
class _Attempt(_Frame):
    """Steps within a budget: the rows at which they are given up, and the ceiling outside."""

    within: Within | None = None
    limit: int = 0
    outside: int = 0


class Interpreter:
    """One run of a prepared plan."""

    def __init__(self, prepared: Work[Tuples]) -> None:
        self._prepared: Work[Any] = prepared
        self._tables = prepared.tables
        self._budget = prepared.budget
        self._recorder = prepared.recorder
        self._stack: list[_Frame] = []
        self._depths: Counter[str] = Counter()

    def run(self) -> None:
        """Run the main procedure."""
        self._call(Call(self._prepared.plan.main))
        stack = self._stack
        while stack:
            frame = stack[-1]
            try:
                if frame.at == len(frame.steps):
                    self._finish(frame)
                else:
                    step = frame.steps[frame.at]
                    frame.at += 1
                    self._step(step, frame)
            except Exceeded:
                self._switch()

    # --- the stack -----------------------------------------------------------------------------

    def _call(self, call: Call) -> None:
        """Begin a procedure; the argument is read before the locals change their tables."""
        procedure = call.procedure
        argument = None if call.argument is None else self._words(call.argument)
        saved = self._prepared.enter(procedure)
        if argument is not None:
            self._tables[self._prepared.plan.locals[procedure][0]].assign(argument)
        steps = self._prepared.plan.procedures[procedure]
        self._stack.append(_Invocation(steps, procedure=procedure, saved=saved))
        self._depths[procedure] += 1
        self._budget.check_rounds(self._depths[procedure])
        self._budget.check_totals()
        self._recorder.procedure(procedure)

    def _finish(self, frame: _Frame) -> None:
        """The steps of a frame have ended: begin the next round, or leave."""
        if isinstance(frame, _Rounds):
            assert frame.loop is not None
            self._recorder.round()
            self._begin_round(frame, frame.loop)
        else:
            self._leave()

    def _begin_round(self, frame: _Rounds, loop: Loop) -> None:
        if walked := self._prepared.walk(loop, frame.round):
            frame.round += walked
            self._recorder.round(walked)
        has_more = self._has_any(loop.until_empty)
        if not has_more or any(self._size(name) >= size for name, size in loop.limits):
            self._stack.pop()
            return
        frame.round += 1
        frame.at = 0
        self._budget.check_rounds(frame.round)

    def _leave(self) -> None:
        frame = self._stack.pop()
        if isinstance(frame, _Invocation):
            self._prepared.leave(frame.procedure, frame.saved)
            self._depths[frame.procedure] -= 1
            self._recorder.end(frame.procedure, self._budget.handled)
        elif isinstance(frame, _Attempt):
            self._budget.ceiling = frame.outside

    def _switch(self) -> None:
        """Give up the outermost steps that are over their budget, for what stands in for them."""
        self._budget.release()
        place = next(
            at
            for at, frame in enumerate(self._stack)
            if isinstance(frame, _Attempt) and self._budget.handled > frame.limit
        )
        attempt = self._stack[place]
        assert isinstance(attempt, _Attempt)
        within = attempt.within
        assert within is not None
        while len(self._stack) > place:
            self._leave()
        self._recorder.switch(within)
        if within.otherwise is None:
            raise LimitError(
                f"maintaining `{within.about}` takes more than {within.budget} rows, and the option"
                " `--strict` forbids to recompute it; nothing was changed\n"
                "  = leave out `--strict`, or split the transaction"
            )
        self._stack.append(_Frame(within.otherwise, attempt.round))

    # --- steps ---------------------------------------------------------------------------------

    def _step(self, step: Step, frame: _Frame) -> None:
        match step:
            case Derive():
                self._assign(step, *self._prepared.derive(step, frame.round))
            case When(nonempty=nonempty, steps=steps):
                if self._has_any(nonempty):
                    self._stack.append(_Frame(steps, frame.round))
            case Extend(target=target, source=source):
                self._tables[target].extend(self._words(source))
            case Number(target=target, source=source):
                self._prepared.number(target, source, frame.round)
            case Aggregate(body=body):
                led = self._tables[body.relation].size(body.state)
                self._budget.handle(led)
                self._assign(step, self._prepared.aggregate(step), led)
            case Clear(relations=relations):
                for relation in relations:
                    self._tables[relation].clear()
            case Store(relation=relation, source=source):
                self._tables[relation].replace(self._words(source))
                self._tables[source].clear()
            case Remove(relation=relation, source=source):
                self._tables[relation].remove(self._words(source))
            case Grow(relation=relation, source=source):
                self._tables[relation].grow(self._words(source))
            case Settle(relation=relation):
                self._tables[relation].settle()
            case Loop():
                self._loop(step)
            case Within():
                self._try(step, frame.round)
            case Call():
                self._call(step)
            case Place(procedure=procedure):
                if not self._prepared.place(step):
                    self._call(Call(procedure))
            case Row():
                self._row(step)
            case _:
                assert_never(step)

    def _words(self, relation: str) -> Any:
        return self._tables[relation].words(State.NEW)

    def _size(self, relation: str) -> int:
        return self._tables[relation].size(State.NEW)

    def _has_any(self, references: tuple[Reference, ...]) -> bool:
        return any(self._tables[each.relation].size(each.state) for each in references)

    def _assign(self, step: Derive | Aggregate, words: Any, led: int) -> None:
        self._tables[step.target].assign(words)
        self._budget.check_totals()
        self._recorder.step(step, len(words), led)

    def _loop(self, loop: Loop) -> None:
        rounds = _Rounds(loop.steps, loop=loop)
        self._stack.append(rounds)
        self._begin_round(rounds, loop)

    def _try(self, within: Within, number: int) -> None:
        outside = self._budget.ceiling
        limit = self._budget.handled + within.budget
        self._budget.ceiling = min(outside, limit)
        self._stack.append(_Attempt(within.steps, number, 0, within, limit, outside))

    def _row(self, row: Row) -> None:
        def read(references: tuple[Reference, ...]) -> tuple[pa.Table, ...]:
            return tuple(self._prepared.read(each) for each in references)

        relations = {
            "updates": read(row.updates),
            "approximation": read(row.approximation),
            "disqualified": read(row.disqualified),
            "actual": read(row.actual),
        }
        self._recorder.row(row, relations)
