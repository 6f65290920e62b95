"""The interpreter of plans.

Procedures may call each other many thousand levels deep, more than Python's stack allows, so the
interpreter has an explicit stack: one frame for every active procedure, loop, branch and `Within`.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from heapq import heappop, heappush
from typing import Any, assert_never

import pyarrow as pa

from corollary.core import plans
from corollary.core.pipeline import Reference
from corollary.core.states import CHANGES, State
from corollary.data_class import dataclass
from corollary.engines.budget import BudgetExceeded
from corollary.engines.cycles import find_descent, group_cycle
from corollary.engines.local.prepared_plan import PreparedPlan
from corollary.engines.local.storage.runs import PendingProbe
from corollary.engines.loop_schedule import LoopSchedule, LoopSteps, analyse_loop
from corollary.errors import CorollaryError, LimitError

ASKED_MAX = 16
"""A step that has asked so often fetches itself what it needs: codes may become wider meanwhile."""


@dataclass(slots=True)
class _Frame:
    """Active steps, the index of the next one, and the number of the round they run in."""

    steps: tuple[plans.Step, ...]
    round: int = 0
    at: int = 0


@dataclass(slots=True)
class _Invocation(_Frame):
    """The steps of a procedure, and the tables that its caller has for the same locals."""

    procedure: str = ""
    saved: tuple[Any, ...] = ()


@dataclass(slots=True)
class _Rounds(_Frame):
    """The steps of a loop.

    Attributes:
        searched: the rounds that were a search along a relation.
        made: the tuples that a recursion which may never end has made.
        schedule: which steps have something to do, if there are many.
    """

    loop: plans.Loop | None = None
    searched: int = 0
    made: int = 0
    schedule: LoopSchedule | None = None


@dataclass(slots=True)
class _Attempt(_Frame):
    """The steps of a `Within`.

    Attributes:
        limit: the handled rows above which the steps are given up.
        final_limit: the same once a loop has gone round.
    """

    within: plans.Within | None = None
    limit: int = 0
    final_limit: int = 0


class Interpreter:
    """One run of a prepared plan, or of some of its steps."""

    def __init__(self, prepared: PreparedPlan, steps: tuple[plans.Step, ...] = ()) -> None:
        self._prepared = prepared
        self._tables = prepared.tables
        self._budget = prepared.budget
        self._recorder = prepared.recorder
        self._stack: list[_Frame] = [_Frame(steps)] if steps else []
        self._depths: Counter[str] = Counter()
        self._loop_steps: dict[int, LoopSteps | None] = {}
        self._endless: dict[int, bool] = {}
        self._asked = 0
        self._handled = self._budget.handled_rows
        self._has_doubt = False

    def run(self) -> None:
        """Run the main procedure."""
        self._call(plans.Call(self._prepared.plan.main))
        waiting = self._prepared.waiting_steps
        if waiting is not None:
            (frame,) = self._stack
            run_together(self._prepared, frame.steps, waiting)
            frame.at = len(frame.steps)
        self.advance()

    def advance(self) -> Sequence[PendingProbe]:
        """Run steps up to one that has to fetch something; return that, nothing at the end."""
        stack = self._stack
        while stack:
            frame = stack[-1]
            try:
                if frame.at == len(frame.steps):
                    self._finish(frame)
                    continue
                step = frame.steps[frame.at]
                if self._asked < ASKED_MAX and (asked := self._prepared.ask(step)):
                    self._asked += 1
                    self._handled = self._budget.handled_rows
                    self._has_doubt = self._prepared.swap_doubt()
                    return asked
                self._asked = 0
                if isinstance(frame, _Rounds) and frame.schedule is not None:
                    self._scheduled_step(frame, frame.schedule)
                else:
                    frame.at += 1
                    self._step(step, frame)
            except BudgetExceeded:
                self._switch()
        return ()

    def resume(self, others: int = 0) -> None:
        """Go on: what others have handled meanwhile does not count for a `Within`."""
        passed, self._handled = self._budget.handled_rows - self._handled, self._budget.handled_rows
        for frame in self._stack:
            if isinstance(frame, _Attempt):
                frame.limit += passed
                frame.final_limit += passed
        self._set_ceiling()
        self._prepared.swap_doubt(self._has_doubt)
        self._recorder.resume(self._procedure, self._handled, others)

    @property
    def _procedure(self) -> str:
        """The outermost procedure that runs, if any does."""
        calls = (each.procedure for each in self._stack if isinstance(each, _Invocation))
        return next(calls, "")

    def _set_ceiling(self) -> None:
        limits = (each.limit for each in self._stack if isinstance(each, _Attempt))
        self._budget.row_ceiling = min((*limits, self._budget.row_limit))

    # --- the stack -----------------------------------------------------------------------------

    def _call(self, call: plans.Call) -> None:
        """Begin a procedure."""
        procedure = call.procedure
        # The argument may itself be a local of this procedure: read it before the tables change.
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

    def _call_placed(self, call: plans.PlacedCall) -> None:
        if not self._prepared.run_placed_call(call):
            self._call(plans.Call(call.procedure))

    def _finish(self, frame: _Frame) -> None:
        """After the last step of a frame, begin its next round or leave it."""
        if isinstance(frame, _Rounds):
            assert frame.loop is not None
            self._recorder.round()
            self._begin_round(frame, frame.loop)
        else:
            self._leave()

    def _begin_round(self, frame: _Rounds, loop: plans.Loop) -> None:
        self._budget.is_endless = self._endless[id(loop)]
        try:
            self._run_round(frame, loop)
        finally:
            self._budget.is_endless = False

    def _run_round(self, frame: _Rounds, loop: plans.Loop) -> None:
        if frame.round == 1:
            self._pass_outset()
        rounds, is_search = self._prepared.run_narrow_rounds(loop, frame.round)
        if rounds:
            frame.round += rounds
            frame.searched += rounds if is_search else 0
            if frame.schedule is not None:
                frame.schedule.restart()
            self._recorder.round(rounds)
        schedule = frame.schedule
        ends = loop.until_empty if schedule is None else schedule.ends()
        is_done = not self._has_any(ends)
        if is_done or any(self._size(name) >= size for name, size in loop.limits):
            self._stack.pop()
            return
        frame.round += 1
        frame.at = 0
        if schedule is not None:
            schedule.begin_round()
            frame.at = schedule.next_index(0)
        if self._budget.is_endless:
            frame.made += sum(self._tables[each.relation].size(each.state) for each in ends)
        self._budget.check_rounds(frame.round, frame.searched, frame.made)

    def _leave(self) -> None:
        frame = self._stack.pop()
        if isinstance(frame, _Invocation):
            self._prepared.leave(frame.procedure, frame.saved)
            self._depths[frame.procedure] -= 1
            self._recorder.end(frame.procedure, self._budget.handled_rows)
        elif isinstance(frame, _Attempt):
            self._set_ceiling()

    def _switch(self) -> None:
        """Give up the outermost `Within` that is over its budget, and begin its alternative."""
        self._budget.release_batches()
        # Outermost: once an enclosing attempt is over its limit, the alternative of an inner one
        # would be given up at its first row.
        depth, attempt = next(
            (depth, frame)
            for depth, frame in enumerate(self._stack)
            if isinstance(frame, _Attempt) and self._budget.handled_rows > frame.limit
        )
        within = attempt.within
        assert within is not None
        while len(self._stack) > depth:
            self._leave()
        began = attempt.final_limit - within.budget
        self._recorder.switch(within, self._budget.handled_rows - began)
        if within.otherwise is None:
            raise LimitError(
                f"maintaining `{within.about}` takes more than {within.budget} rows, and the option"
                " `--strict` forbids to recompute it; nothing was changed\n"
                "  = leave out `--strict`, or split the transaction"
            )
        self._stack.append(_Frame(within.otherwise, attempt.round))

    # --- steps ---------------------------------------------------------------------------------

    def _step(self, step: plans.Step, frame: _Frame) -> None:
        match step:  # the steps of small changes first: each case takes time
            case plans.Derive():
                self._assign(step, *self._prepared.derive(step, frame.round))
            case plans.When(nonempty=nonempty, steps=steps):
                if self._has_any(nonempty):
                    self._stack.append(_Frame(steps, frame.round))
            case plans.Within():
                self._try(step, frame.round)
            case plans.Call():
                self._call(step)
            case plans.Remove(relation=relation, source=source):
                self._tables[relation].remove(self._words(source))
            case plans.Add(relation=relation, source=source):
                self._tables[relation].add(self._words(source))
            case plans.Extend(target=target, source=source):
                self._tables[target].extend(self._words(source))
            case plans.CancelOut(relation=relation):
                self._tables[relation].cancel_out()
            case plans.Accumulate() | plans.CompareWindows():
                self._take_change(step, frame.round)
            case plans.ReadTotals() | plans.Total() | plans.Aggregate() | plans.Window():
                self._compute(step)
            case plans.ExtendWithRound(target=target, source=source):
                self._prepared.extend_with_round(target, source, frame.round)
            case (
                plans.Improve()
                | plans.Judge()
                | plans.Overrun()
                | plans.FindDescent()
                | plans.CheckAcyclic()
                | plans.Choose()
            ):
                self._recursion_step(step, frame.round)
            case plans.Clear(relations=relations):
                for relation in relations:
                    self._tables[relation].clear()
            case plans.StoreRelation(relation=relation, source=source):
                self._tables[relation].replace(self._words(source))
                self._tables[source].clear()
            case plans.Loop():
                self._loop(step)
            case plans.PlacedCall():
                self._call_placed(step)
            case plans.RecordTrace():
                self._row(step, frame.round)
            case _:
                assert_never(step)

    def _recursion_step(self, step: plans.RecursionStep, number: int) -> None:
        """Run a step of recursion through subsumption, aggregates or choices."""
        match step:
            case plans.CheckAcyclic(suspects=names, is_counted=is_counted):
                suspects = sum(map(self._size, names))
                if number > suspects if is_counted else suspects:
                    raise group_cycle(step, self._prepared.plan.types, self._prepared.read)
            case plans.Choose(target=target, source=source):
                self._budget.count_step_rows(self._size(source))
                self._tables[target].assign(self._prepared.compute(step))
            case plans.Improve(source=source):
                size = self._size(source)
                self._budget.count_step_rows(size)
                self._assign(step, self._prepared.compute(step), size)
            case plans.Judge(steps=steps):
                if self._prepared.swap_doubt():
                    self._stack.append(_Frame(steps, number))
            case plans.Overrun(relations=relations, steps=steps):
                excess = number - sum(map(self._size, relations))
                if excess > 0 and excess & (excess - 1) == 0:
                    self._stack.append(_Frame(steps, number))
            case plans.FindDescent():
                find_descent(step, self._prepared.read)
            case _:
                assert_never(step)

    def _scheduled_step(self, frame: _Rounds, schedule: LoopSchedule) -> None:
        """Run a step of a long loop, and go on to the next one that has something to do."""
        index = frame.at
        self._step(frame.steps[index], frame)
        made = schedule.made(index)
        if made is not None:
            schedule.finish_step(index, made, self._has_any((made,)))
        frame.at = schedule.next_index(index + 1)

    def _compute(
        self, step: plans.Aggregate | plans.Window | plans.Total | plans.ReadTotals
    ) -> None:
        source = step.totals if isinstance(step, plans.ReadTotals) else step.body
        size = self._tables[source.relation].size(source.state)
        self._budget.count_step_rows(size)
        self._assign(step, self._prepared.compute(step), size)

    def _take_change(self, step: plans.Accumulate | plans.CompareWindows, number: int) -> None:
        """Run a step that follows a change, or its smaller steps if the change is elsewhere."""
        if isinstance(step, plans.Accumulate):
            size = self._size(step.change)
            self._budget.count_step_rows(2 * size)
            if step.about:
                self._recorder.touched(step.about, size)
            is_done = self._prepared.accumulate(step)
        else:
            size = sum(self._tables[step.body].size(state) for state in CHANGES)
            self._budget.count_step_rows(2 * size)
            if is_done := self._prepared.compare_windows(step):
                self._recorder.touched(step.windowing.relation, size)
        if not is_done:
            self._stack.append(_Frame(step.steps, number))

    def _words(self, relation: str) -> Any:
        return self._tables[relation].contents()

    def _size(self, relation: str) -> int:
        return self._tables[relation].size(State.NEW)

    def _has_any(self, references: Iterable[Reference]) -> bool:
        return any(self._tables[each.relation].size(each.state) for each in references)

    def _assign(self, step: plans.Evaluation, words: Any, read: int) -> None:
        self._tables[step.target].assign(words)
        self._budget.check_totals()
        self._recorder.step(step, len(words), read)

    def _loop(self, loop: plans.Loop) -> None:
        if id(loop) not in self._loop_steps:
            self._loop_steps[id(loop)] = analyse_loop(loop)
            self._endless[id(loop)] = any(
                pipeline.origin.may_never_end
                for step in plans.steps_inside(loop.steps)
                if isinstance(step, plans.Derive)
                for pipeline in step.pipelines
            )
        steps = self._loop_steps[id(loop)]
        schedule = None if steps is None else LoopSchedule(steps)
        rounds = _Rounds(loop.steps, loop=loop, schedule=schedule)
        self._stack.append(rounds)
        self._begin_round(rounds, loop)

    def _try(self, within: plans.Within, number: int) -> None:
        handled = self._budget.handled_rows
        final_limit = handled + within.budget
        limit = final_limit if within.outset is None else handled + within.outset
        self._stack.append(_Attempt(within.steps, number, 0, within, limit, final_limit))
        self._set_ceiling()

    def _pass_outset(self) -> None:
        """Let the innermost `Within` use its whole budget: the first round of a loop is over."""
        attempt = next((each for each in reversed(self._stack) if isinstance(each, _Attempt)), None)
        if attempt is not None and attempt.limit != attempt.final_limit:
            attempt.limit = attempt.final_limit
            self._set_ceiling()

    def _row(self, row: plans.RecordTrace, number: int) -> None:
        def read(references: tuple[Reference, ...]) -> tuple[pa.Table, ...]:
            return tuple(self._prepared.read(each) for each in references)

        relations = {
            "updates": read(row.updates),
            "approximation": read(row.approximation),
            "disqualified": read(row.disqualified),
            "actual": read(row.actual),
        }
        self._recorder.row(row, relations, number)


def run_together(
    prepared: PreparedPlan, steps: Sequence[plans.Step], waiting: Sequence[Collection[int]]
) -> None:
    """Run steps, `waiting` of which wait for each; what all of them need next is one request.

    If some fail, the error is that of the first in the list, as if they had run in its order.
    """
    left = Counter(later for each in waiting for later in each)
    ready = [at for at in range(len(steps)) if not left[at]]
    runs: dict[int, Interpreter] = {}
    asked: dict[int, Sequence[PendingProbe]] = {}
    failure: CorollaryError | None = None
    while ready or asked:
        if not ready:
            ready = sorted(asked)
            runs[ready[0]].resume(len(ready) - 1)  # the request counts for it
            probe, *others = (each for at in ready for each in asked.pop(at))
            probe.fetch_with(others)
        at = heappop(ready)
        run = runs.setdefault(at, Interpreter(prepared, (steps[at],)))
        run.resume()
        try:
            needed = run.advance()
        except CorollaryError as error:
            failure = error
            ready = [each for each in ready if each < at]
            asked = {each: probes for each, probes in asked.items() if each < at}
            continue
        if needed:
            asked[at] = needed
            continue
        for later in waiting[at]:
            left[later] -= 1
            if not left[later]:
                heappush(ready, later)
    if failure is not None:
        raise failure
