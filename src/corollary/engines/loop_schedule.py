"""Which steps of a long loop have something to do in a round.

Where thousands of relations are mutually recursive, few of them have new tuples in one round. A
step whose input is empty, and whose result is already, would change nothing: it is left out.
"""

from heapq import heapify, heappop, heappush
from typing import assert_never

from corollary.core.pipeline import Pipeline, Probe, Reference
from corollary.core.plans import Add, Derive, Extend, ExtendWithRound, Loop
from corollary.core.states import State

LONG_LOOP_STEPS = 32
"""The least number of steps for which the bookkeeping pays."""

ScheduledStep = Derive | Extend | ExtendWithRound | Add
"""The steps that change nothing if what they read is empty, and what they made is."""


class LoopSteps:
    """What the steps of a loop read and write.

    Attributes:
        count: the number of steps.
        made: what each step makes anew; None if it only adds.
        concerned: for each relation, the steps to run when it has got tuples: those that read them,
            and those that may make it empty again.
        always: the steps to run in every round.
        ends: what keeps the loop going while it has tuples.
    """

    def __init__(self, loop: Loop, steps: tuple[ScheduledStep, ...]) -> None:
        self.count = len(steps)
        self.made = [_made(step) for step in steps]
        self.concerned: dict[str, list[int]] = {}
        self.always: list[int] = []
        self.ends = frozenset(loop.until_empty)
        written = {each.relation for each in self.made if each is not None}
        assigned = {step.target for step in steps if isinstance(step, Derive)}
        for index, step in enumerate(steps):
            inputs: set[str | None] = (
                {_driver(each, written, assigned) for each in step.pipelines}
                if isinstance(step, Derive)
                else {step.source}
            )
            if None in inputs:
                self.always.append(index)
            made = self.made[index]
            for relation in inputs if made is None else {made.relation, *inputs}:
                if relation is not None:
                    self.concerned.setdefault(relation, []).append(index)


def _made(step: ScheduledStep) -> Reference | None:
    match step:
        case Derive(target=target):
            return Reference(target, State.NEW)
        case Extend(target=target) | ExtendWithRound(target=target):
            return Reference(target, State.ADDED)
        case Add():
            return None
        case _:
            assert_never(step)


def _driver(pipeline: Pipeline, written: set[str], assigned: set[str]) -> str | None:
    """Return a relation of the loop without whose new tuples a pipeline derives nothing."""
    for stage in pipeline.stages:
        if isinstance(stage, Probe) and stage.source.relation in written:
            is_new = stage.source.state is State.ADDED
            is_assigned = stage.source.relation in assigned and stage.source.state is State.NEW
            if is_new or is_assigned:
                return stage.source.relation
    return None


def analyse_loop(loop: Loop) -> LoopSteps | None:
    """Return what the steps of a loop read and write; None if all of them are run each time."""
    steps = tuple(step for step in loop.steps if isinstance(step, ScheduledStep))
    if len(steps) < LONG_LOOP_STEPS or len(steps) < len(loop.steps):
        return None
    made = LoopSteps(loop, steps)
    return made if made.ends <= set(made.made) else None


class LoopSchedule:
    """The steps to run, while a loop is executed."""

    def __init__(self, steps: LoopSteps) -> None:
        self._steps = steps
        self._now: list[int] = []
        self._later: set[int] = set(range(steps.count))
        self._filled: set[Reference] = set(steps.ends)

    def restart(self) -> None:
        """Forget everything: the tables have been changed by others than the steps."""
        self._later = set(range(self._steps.count))
        self._filled = set(self._steps.ends)

    def begin_round(self) -> None:
        """Begin a round."""
        self._now = [*self._later, *self._steps.always]
        heapify(self._now)
        self._later = set()

    def next_index(self, least: int) -> int:
        """Return the index of the next step that has something to do, or the number of steps."""
        while self._now and self._now[0] < least:
            heappop(self._now)
        return self._now[0] if self._now else self._steps.count

    def made(self, index: int) -> Reference | None:
        """Return what a step makes anew, if it does."""
        return self._steps.made[index]

    def finish_step(self, index: int, made: Reference, has_tuples: bool) -> None:
        """Note whether there are tuples in what a step has made."""
        if not has_tuples:
            self._filled.discard(made)
            return
        self._filled.add(made)
        for each in self._steps.concerned[made.relation]:
            if each > index:
                heappush(self._now, each)
            else:
                self._later.add(each)

    def ends(self) -> frozenset[Reference]:
        """Return what may keep the loop going."""
        return self._steps.ends & self._filled
