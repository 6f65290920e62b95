"""Recognizing linear loops: each round changes one column of a tuple and copies the others.

A linear recursion along a relation is such a loop, in the plan of any maintenance algorithm:

    reach(m) :- reach(n), par(n, m).      tc(x, z) :- tc(x, y), edge(y, z).

The successors of a value then do not depend on the rest of its tuple. They are a relation of their
own, here {(n, m) | par(n, m)}, that `breadth_first` reads once and searches.

| part of the loop | here |
|---|---|
| the tuples of the last round: ADDED of `p•so_far`, of `p•new` | `delta` |
| the tuples not to be derived again: `p•so_far`, or `p` itself | `known` |
| the relation that grows along, with a tuple's rank or round as last column | `ranked` |
| the relation that grows along, without it | `grown` |
| working relations that live for one round | `scratch` |
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from corollary.core.logic import Constant, Functor, Slot, Variable
from corollary.core.pipeline import AntiProbe, Compute, Filter, Pipeline, Probe, Reference, Stage
from corollary.core.plans import Add, Derive, Extend, ExtendWithRound, Loop, Reduce, Step
from corollary.core.states import State
from corollary.core.types import NUMBER
from corollary.data_class import dataclass
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.runs import sort_distinct
from corollary.engines.local.storage.table import Table


@dataclass(frozen=True, slots=True)
class LoopTargets:
    """What a loop writes the tuples of a round to.

    Attributes:
        step: derives the tuples of a round.
        is_ranked: whether the last column of `delta` is the rank.
    """

    step: Derive
    delta: str
    known: str
    ranked: str | None
    grown: str | None
    scratch: tuple[str, ...]
    is_ranked: bool

    @property
    def written(self) -> set[str | None]:
        """The relations that it writes."""
        return {self.delta, self.known, self.ranked, self.grown, *self.scratch}


@dataclass(frozen=True, slots=True)
class LinearLoop:
    """A loop that can be run as breadth-first search.

    Attributes:
        targets: what it writes to.
        column: the one that changes.
        successors: pipelines of pairs: a value of the column, and one that follows it.
    """

    targets: LoopTargets
    column: int
    successors: tuple[Pipeline, ...]

    @property
    def sources(self) -> tuple[Reference, ...]:
        """The relations that the loop reads successors from."""
        return tuple(_lead(each).source for each in self.successors)


def find_linear_loop(loop: Loop, procedure_locals: Collection[str]) -> LinearLoop | None:
    """Return a loop as a linear one, or None if it is of another kind.

    Args:
        loop: of a plan.
        procedure_locals: the locals of procedures, whose tables are replaced at each invocation.
    """
    targets = find_targets(loop)
    if targets is None:
        return None
    parts = [_successors(each, targets) for each in targets.step.pipelines]
    found = [part for part in parts if part is not None]
    written = targets.written
    if len(found) < len(parts) or len({column for column, _ in found}) != 1:
        return None
    pipelines = tuple(pipeline for _, pipeline in found)
    read = {
        stage.source.relation
        for each in pipelines
        for stage in each.stages
        if isinstance(stage, Probe | AntiProbe)
    }
    if read & written or (read | written) & set(procedure_locals):
        return None
    return LinearLoop(targets, found[0][0], pipelines)


def find_targets(loop: Loop) -> LoopTargets | None:
    """Return which relations a loop writes the tuples of a round to, if in a known way."""
    match loop.steps:
        case (Derive() as step, Extend(target=delta, source=source), *rest) if (
            source == step.target
            and loop.until_empty == (Reference(delta, State.ADDED),)
            and not loop.limits
        ):
            return _match_targets(step, delta, rest)
        case _:
            return None


def _match_targets(step: Derive, delta: str, rest: list[Step]) -> LoopTargets | None:
    found, without = step.target, step.without
    linear = LoopTargets(step, delta, delta, None, None, (found,), is_ranked=False)
    match rest:
        # Semi-naive evaluation without ranks.
        case [] if step.reduce is None and without == (Reference(delta),):
            return linear
        # Semi-naive evaluation, the round being the rank.
        case [ExtendWithRound(target=ranked, source=source)] if (
            source == found and step.reduce is None and without == (Reference(delta),)
        ):
            return replace(linear, ranked=ranked)
        # Insertion into a stored relation without ranks.
        case [Add(relation=grown, source=source)] if (
            source == found and step.reduce is None and without == (Reference(grown),)
        ):
            return replace(linear, known=grown, grown=grown)
        # Insertion into a stored relation with ranks, which are computed in the pipelines.
        case [
            Derive(target=unranked, pipelines=(projection,)),
            Add(relation=ranked, source=source),
            Add(relation=grown, source=last),
        ] if (
            (source, last) == (found, unranked)
            and step.reduce is Reduce.MIN
            and not without
            and _drops_last_column(projection, found)
        ):
            scratch = (found, unranked)
            return replace(
                linear, known=grown, ranked=ranked, grown=grown, scratch=scratch, is_ranked=True
            )
        case _:
            return None


def _drops_last_column(pipeline: Pipeline, source: str) -> bool:
    """Return whether a pipeline copies the tuples of a relation without their last column."""
    match pipeline.stages:
        case (Probe(source=Reference(relation=relation), slots=slots, bound=()),):
            return relation == source and slots[:-1] == pipeline.head
        case _:
            return False


def _successors(pipeline: Pipeline, linear: LoopTargets) -> tuple[int, Pipeline] | None:
    """Return the column that a pipeline changes, and a pipeline of its old and new values."""
    found = row_steps(pipeline, linear)
    if found is None:
        return None
    rest, slots, head = found
    changed = [at for at, slot in enumerate(slots) if slot != head[at]]
    if len(changed) != 1 or not rest:
        return None
    (column,) = changed
    old, new = slots[column], head[column]
    first, tests = rest[0], rest[1:]
    if not isinstance(old, Variable) or not isinstance(new, Variable) or new in slots:
        return None
    # The other stages may read nothing of the tuple but the old value.
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
    return stage.slots if isinstance(stage, Probe | AntiProbe) else ()


def _is_test(stage: Stage) -> bool:
    """Return whether a stage only looks up a tuple: it binds nothing and cannot fail."""
    if isinstance(stage, Probe):
        return len(stage.bound) == len(stage.slots)
    return isinstance(stage, AntiProbe)


def write_rounds(
    targets: LoopTargets,
    tables: Mapping[str, Table],
    columns: Sequence[Codes],
    ranks: Codes,
    last: int,
) -> None:
    """Write the tuples of several rounds to the tables of a loop.

    Args:
        targets: the relations.
        tables: by name.
        columns: of the tuples, in the order of rounds.
        ranks: theirs, as codes.
        last: the index of the first tuple of the last round.
    """
    count = len(ranks)
    numbered = [*columns, ranks]
    delta = tables[targets.delta]
    delta_columns = numbered if targets.is_ranked else columns
    # Twice, so that ADDED is the last round only, as after a round of steps.
    for first, end in ((0, last), (last, count)):
        part = [column[first:end] for column in delta_columns]
        delta.extend(sort_distinct(delta.pack(part, end - first)))
    if targets.ranked is not None:
        table = tables[targets.ranked]
        words = sort_distinct(table.pack(numbered, count))
        table.add(words) if targets.is_ranked else table.extend(words)
    if targets.grown is not None:
        table = tables[targets.grown]
        table.add(sort_distinct(table.pack(columns, count)))
    for name in targets.scratch:
        tables[name].clear()


def row_steps(
    pipeline: Pipeline, targets: LoopTargets
) -> tuple[Sequence[Stage], tuple[Slot, ...], tuple[Variable | Constant, ...]] | None:
    """Return what a pipeline does to each tuple of a round, without the rank.

    These are the stages after the one that reads the tuple, its slots, which are different, and the
    head; None if the pipeline reads anything else first.
    """
    lead, *stages = pipeline.stages
    if not isinstance(lead, Probe) or lead.bound or pipeline.is_bag or pipeline.is_lenient:
        return None
    if lead.source != Reference(targets.delta, State.ADDED):
        return None
    slots, head = lead.slots, pipeline.head
    if targets.is_ranked:
        others = _without_rank(stages, slots[-1], head, targets.known)
        if others is None:
            return None
        stages, slots, head = others, slots[:-1], head[:-1]
    names = [slot.name for slot in slots if isinstance(slot, Variable)]
    return None if len(set(names)) < len(slots) else (stages, slots, head)


def _without_rank(
    stages: Sequence[Stage], rank: Slot, head: tuple[Variable | Constant, ...], known: str
) -> list[Stage] | None:
    """Return stages without the ones that add 1 to the rank and that exclude known tuples."""
    next_rank = Functor("+", (rank, Constant(1, NUMBER)))
    computed = [each for each in stages if isinstance(each, Compute | Filter)]
    excluded = [each for each in stages if each == AntiProbe(Reference(known), head[:-1])]
    match computed:
        case [Compute(variable=variable, expression=expression)] if (
            variable == head[-1] and expression == next_rank and len(excluded) == 1
        ):
            return [each for each in stages if each not in (*computed, *excluded)]
        case _:
            return None
