"""Which steps of a plan are one query: an aggregation with the join below it, and with others.

A `Derive` is *fused* with the aggregations that read its target, or with window functions, if
nothing else does: then its tuples are never made. Aggregations of the same tuples by the same keys
are a *batch*. Both hold for steps of one sequence, between which nobody writes what they read.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from corollary.core import plans
from corollary.core.logic import Constant, Variable
from corollary.core.pipeline import AntiProbe, Pipeline, Probe, Reference
from corollary.core.states import State
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.sqlgen.compiled import Summary

GroupStep = plans.Aggregate | plans.Total
"""A step that makes tuples of groups."""


@dataclass(frozen=True, slots=True)
class FusedSteps:
    """What is computed together.

    Attributes:
        derivations: the steps that are fused with aggregations, by their targets.
        windows: those that are fused with window functions, and these.
        batches: for each aggregation, by its identity, all those that are computed with it, in the
            order of the plan.
    """

    derivations: Mapping[str, plans.Derive] = field(default_factory=dict)
    windows: Mapping[str, tuple[plans.Derive, plans.Window]] = field(default_factory=dict)
    batches: Mapping[int, tuple[GroupStep, ...]] = field(default_factory=dict)

    def readers_of(self, relation: str) -> list[GroupStep]:
        """Return the aggregations of the tuples of a relation."""
        every = (each for batch in self.batches.values() for each in batch)
        return list({id(each): each for each in every if each.body.relation == relation}.values())

    def batch_from(self, step: GroupStep) -> tuple[GroupStep, ...]:
        """Return the aggregations that are computed with one, from it on."""
        batch = self.batches[id(step)]
        return batch[[id(each) for each in batch].index(id(step)) :]


def find_fused_steps(plan: plans.Plan) -> FusedSteps:
    """Return the steps of a plan that can be computed together."""
    readers = _readers(plan)
    writes = Counter(plans.relations_written(plan))
    private = {name for names in plan.locals.values() for name in names}
    derivations: dict[str, plans.Derive] = {}
    windows: dict[str, tuple[plans.Derive, plans.Window]] = {}
    batches: dict[int, tuple[GroupStep, ...]] = {}
    for steps in _sequences(plan):
        for at, step in enumerate(steps):
            if isinstance(step, plans.Derive) and _is_fusible(step, readers.get(step.target, ())):
                name = step.target
                is_own = writes[name] == 1 and name not in private
                read = {each.relation for each in sources_of(step.pipelines[0])}
                if is_own and _reaches(steps[at + 1 :], readers[name], read):
                    if isinstance(window := readers[name][0], plans.Window):
                        windows[name] = step, window
                    else:
                        derivations[name] = step
        for at, step in enumerate(steps):
            if isinstance(step, plans.Aggregate | plans.Total) and id(step) not in batches:
                batch = (step, *_similar_steps(step, steps[at + 1 :], derivations))
                batches |= {id(each): batch for each in batch}
    return FusedSteps(derivations, windows, batches)


def sources_of(pipeline: Pipeline) -> Iterator[Reference]:
    """Yield what a pipeline reads."""
    for stage in pipeline.stages:
        if isinstance(stage, Probe | AntiProbe):
            yield stage.source


def scan(step: GroupStep | plans.Window, types: Mapping[str, tuple[Type, ...]]) -> Pipeline:
    """Return the pipeline that gives the tuples of a step's body, each once."""
    row = types[step.body.relation]
    columns = tuple(Variable(f"_{at}", type_) for at, type_ in enumerate(row))
    origin = (step.windowing if isinstance(step, plans.Window) else step.aggregation).origin
    return Pipeline((Probe(step.body, columns, ()),), columns, origin, is_bag=True)


def summaries_of(step: GroupStep, types: Mapping[str, tuple[Type, ...]]) -> tuple[Summary, ...]:
    """Return what a query has to compute of each group."""
    aggregation = step.aggregation
    if isinstance(step, plans.Aggregate):
        results = types[step.target][len(aggregation.groups) :]
        return tuple(
            Summary(each.operator, each.value, result)
            for each, result in zip(aggregation.accumulators, results, strict=True)
        )
    first, body = aggregation.accumulators[0], types[step.body.relation]
    if any(body[at].is_float for at in aggregation.values):
        return (Summary(first.operator, first.value, None),)
    counted = Summary("count", first.value if first.operator == "mean" else None, None)
    return (counted, *(Summary("sum", at, None) for at in aggregation.values))


def _readers(plan: plans.Plan) -> dict[str, list[plans.Step]]:
    """Return for each relation the steps that read it, for each reference once."""
    found: dict[str, list[plans.Step]] = {}
    for step in plans.steps_of(plan):
        if isinstance(step, plans.Loop | plans.When | plans.Within):
            references: Iterable[Reference] = (
                step.until_empty if isinstance(step, plans.Loop) else getattr(step, "nonempty", ())
            )
        else:
            references = plans.references_read(plans.Plan({"": (step,)}, {}))
        for each in references:
            found.setdefault(each.relation, []).append(step)
    return found


def _sequences(plan: plans.Plan) -> Iterator[Sequence[plans.Step]]:
    """Yield all lists of steps; procedures that the main one calls once continue its list."""
    calls = Counter(each.procedure for each in plans.steps_of(plan) if isinstance(each, plans.Call))
    joined: list[plans.Step] = []
    called = {plan.main}
    for step in plan.procedures[plan.main]:
        if isinstance(step, plans.Call) and step.argument is None and calls[step.procedure] == 1:
            joined += plan.procedures[step.procedure]
            called.add(step.procedure)
        else:
            joined.append(step)
    yield joined
    yield from (steps for name, steps in plan.procedures.items() if name not in called)
    for step in plans.steps_of(plan):
        if isinstance(step, plans.Loop | plans.When):
            yield step.steps
        elif isinstance(step, plans.Within):
            yield from (step.steps, step.otherwise or ())


def _is_fusible(step: plans.Derive, readers: Sequence[plans.Step]) -> bool:
    """Whether a step makes the rows of some aggregations or windows, and does nothing else."""
    if len(step.pipelines) != 1 or step.without or step.role is not None or not readers:
        return False
    pipeline, is_weighted = step.pipelines[0], step.reduce is plans.Reduce.SUM
    if plans.WORKING_SEPARATOR not in step.target or pipeline.is_lenient or not pipeline.stages:
        return False
    if any(isinstance(each, Probe) and each.extreme is not None for each in pipeline.stages):
        return False
    if is_weighted:
        last = pipeline.head[-1]
        if not (pipeline.is_bag and isinstance(last, Constant) and last.value == 1):
            return False
    elif step.reduce is not None or pipeline.is_bag:
        return False
    if len(readers) == 1 and isinstance(window := readers[0], plans.Window):
        return window.body.state is State.NEW and not is_weighted
    return all(_reads_all(each, is_weighted) for each in readers)


def _reads_all(step: plans.Step, is_weighted: bool) -> bool:
    if not isinstance(step, plans.Aggregate | plans.Total) or step.body.state is not State.NEW:
        return False
    return is_weighted == (isinstance(step, plans.Total) and step.is_weighted)


def _reaches(steps: Sequence[plans.Step], readers: Sequence[plans.Step], read: set[str]) -> bool:
    """Whether all readers come before a step that writes some relations."""
    left = {id(each) for each in readers}
    for step in steps:
        left.discard(id(step))
        if not left:
            return True
        if _writes_any(step, read):
            return False
    return False


def _similar_steps(
    first: GroupStep, steps: Sequence[plans.Step], derivations: Mapping[str, plans.Derive]
) -> Iterator[GroupStep]:
    """Yield the steps that aggregate the same tuples by the same keys, while these stay."""
    fused = derivations.get(first.body.relation)
    sources = [first.body] if fused is None else list(sources_of(fused.pipelines[0]))
    read = {each.relation for each in sources} | {first.body.relation}
    for step in steps:
        if (
            isinstance(step, plans.Aggregate | plans.Total)
            and step.body == first.body
            and step.aggregation.groups == first.aggregation.groups
            and not (isinstance(step, plans.Total) and step.is_weighted and fused is None)
        ):
            yield step
        if _writes_any(step, read):
            return


def _writes_any(step: plans.Step, relations: set[str]) -> bool:
    """Whether a step may write some relations; a call may write any."""
    inner = list(plans.steps_inside([step]))
    if any(isinstance(each, plans.Call | plans.PlacedCall) for each in inner):
        return True
    written = {name for each in inner for name in plans.relations_written_by(each)}
    written |= {each.source for each in inner if isinstance(each, plans.StoreRelation)}
    return not written.isdisjoint(relations)
