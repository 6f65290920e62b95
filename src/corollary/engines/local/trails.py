"""Loops that follow a trail: each round changes one column of a tuple and copies the others.

A linear recursion along a relation is of this kind, whichever algorithm makes a loop of it:

    reach(m) :- reach(n), par(n, m).      tc(x, z) :- tc(x, y), edge(y, z).

What can follow a value is then a relation of its own, here {(n, m) | par(n, m)}, whatever the tuple
that it stands in; `walk` makes it once and goes along it.

| part of the loop | here |
|---|---|
| what the last round brought: ADDED of `p•so_far`, of `p•new` | `delta` |
| what must not come again: `p•so_far`, or `p` itself | `known` |
| what grows besides, with the rank or number of a tuple behind it | `ranked` |
| what grows besides, without it | `grown` |
| working relations that a round fills for its own use | `scratch` |
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from corollary.core.pipeline import Absent, Compute, Filter, Pipeline, Probe, Reference, Stage
from corollary.core.plan import Derive, Extend, Grow, Loop, Number, Reduce, Step
from corollary.core.states import State
from corollary.core.terms import Constant, Functor, Slot, Variable
from corollary.core.types import NUMBER


@dataclass(frozen=True, slots=True)
class Trail:
    """A loop that `walk` can take.

    Attributes:
        step: derives what a round brings.
        column: the one that changes.
        is_ranked: whether tuples of `delta` have their ranks behind them.
        successors: pipelines of pairs, a value of the column and one that follows it.
    """

    step: Derive
    delta: str
    known: str
    ranked: str | None
    grown: str | None
    scratch: tuple[str, ...]
    column: int
    is_ranked: bool
    successors: tuple[Pipeline, ...]

    @property
    def sources(self) -> tuple[Reference, ...]:
        """The relations that the trail goes along."""
        return tuple(_lead(each).source for each in self.successors)


def trail_of(loop: Loop, moving: Collection[str]) -> Trail | None:
    """Return the trail that a loop follows, None if it is of another kind.

    Args:
        loop: one of a plan.
        moving: the names that stand for other tables in each invocation of their procedure.
    """
    match loop.steps:
        case (Derive() as step, Extend(target=delta, source=source), *rest) if (
            source == step.target
            and loop.until_empty == (Reference(delta, State.ADDED),)
            and not loop.limits
        ):
            trail = _kept(step, delta, rest)
        case _:
            return None
    if trail is None:
        return None
    parts = [_successors(each, trail) for each in step.pipelines]
    found = [part for part in parts if part is not None]
    written = {trail.delta, trail.known, trail.ranked, trail.grown, *trail.scratch}
    if len(found) < len(parts) or len({column for column, _ in found}) != 1:
        return None
    pipelines = tuple(pipeline for _, pipeline in found)
    read = {
        stage.source.relation
        for each in pipelines
        for stage in each.stages
        if isinstance(stage, Probe | Absent)
    }
    if read & written or (read | written) & set(moving):
        return None
    return replace(trail, column=found[0][0], successors=pipelines)


def _kept(step: Derive, delta: str, rest: list[Step]) -> Trail | None:
    """Return what a loop does with the tuples of a round, if it is one of the ways known here."""
    found, without = step.target, step.without
    trail = Trail(step, delta, delta, None, None, (found,), 0, is_ranked=False, successors=())
    match rest:
        case [] if _is_set(step) and without == (Reference(delta),):
            return trail
        case [Number(target=ranked, source=source)] if (
            source == found and _is_set(step) and without == (Reference(delta),)
        ):
            return replace(trail, ranked=ranked)
        case [Grow(relation=grown, source=source)] if (
            source == found and _is_set(step) and without == (Reference(grown),)
        ):
            return replace(trail, known=grown, grown=grown)
        case [
            Derive(target=came, pipelines=(cut,)),
            Grow(relation=ranked, source=source),
            Grow(relation=grown, source=last),
        ] if (
            (source, last) == (found, came)
            and step.reduce is Reduce.MIN
            and not without
            and _is_cut(cut, found)
        ):
            scratch = (found, came)
            return replace(
                trail, known=grown, ranked=ranked, grown=grown, scratch=scratch, is_ranked=True
            )
        case _:
            return None


def _is_set(step: Derive) -> bool:
    return step.reduce is None


def _is_cut(pipeline: Pipeline, source: str) -> bool:
    """Whether a pipeline gives the tuples of a relation without their last column."""
    match pipeline.stages:
        case (Probe(source=Reference(relation=relation), slots=slots, bound=()),):
            return relation == source and slots[:-1] == pipeline.head
        case _:
            return False


def _successors(pipeline: Pipeline, trail: Trail) -> tuple[int, Pipeline] | None:
    """Return the column that a pipeline changes, and the pipeline of its old and new values."""
    lead, *rest = pipeline.stages
    if not isinstance(lead, Probe) or lead.bound or pipeline.is_bag or pipeline.is_lenient:
        return None
    if lead.source != Reference(trail.delta, State.ADDED):
        return None
    slots, head = lead.slots, pipeline.head
    if trail.is_ranked:
        stages = _without_rank(rest, slots[-1], head, trail.known)
        if stages is None:
            return None
        rest, slots, head = stages, slots[:-1], head[:-1]
    names = [slot.name for slot in slots if isinstance(slot, Variable)]
    if len(set(names)) < len(slots):
        return None
    changed = [at for at, slot in enumerate(slots) if slot != head[at]]
    if len(changed) != 1 or not rest:
        return None
    (column,) = changed
    old, new = slots[column], head[column]
    first, tests = rest[0], rest[1:]
    if not isinstance(old, Variable) or not isinstance(new, Variable) or new in slots:
        return None
    used = {slot for stage in rest for slot in _slots(stage)}
    if used & (set(slots) - {old}) or not isinstance(first, Probe):
        return None
    if old not in first.slots or new not in first.slots or not all(map(_is_test, tests)):
        return None
    constants = tuple(at for at, slot in enumerate(first.slots) if isinstance(slot, Constant))
    pairs = (replace(first, bound=constants), *tests)
    return column, Pipeline(pairs, (old, new), pipeline.origin)


def _lead(pipeline: Pipeline) -> Probe:
    lead = pipeline.stages[0]
    assert isinstance(lead, Probe)
    return lead


def _slots(stage: Stage) -> tuple[object, ...]:
    return stage.slots if isinstance(stage, Probe | Absent) else ()


def _is_test(stage: Stage) -> bool:
    """Whether a stage finds a tuple or not, and can have no other outcome."""
    if isinstance(stage, Probe):
        return len(stage.bound) == len(stage.slots)
    return isinstance(stage, Absent)


def _without_rank(
    stages: Sequence[Stage], rank: Slot, head: tuple[Variable | Constant, ...], known: str
) -> list[Stage] | None:
    """Return stages less those that count ranks up and leave out what is known."""
    more = Functor("+", (rank, Constant(1, NUMBER)))
    counts = [each for each in stages if isinstance(each, Compute | Filter)]
    misses = [each for each in stages if each == Absent(Reference(known), head[:-1])]
    match counts:
        case [Compute(variable=variable, expression=expression)] if (
            variable == head[-1] and expression == more and len(misses) == 1
        ):
            return [each for each in stages if each not in (*counts, *misses)]
        case _:
            return None
