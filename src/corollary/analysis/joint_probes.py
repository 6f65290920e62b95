"""Which probes of a plan have their keys at the same moment: they can be one request.

The *depth* of a probe is the number of requests that come before it, and its own:

    h(…) :- change(p, s), big1(p, c), big2(s, r).     big1 1, big2 1: both keys are in `change`
    h(…) :- change(p), big1(p, s), big2(s, r).        big1 1, big2 2: `s` is from `big1`

All probes of the pipelines of a step at one depth are one request. It asks for those of later steps
as well, if what leads these is there already. Steps are later ones of the same list, up to one that
calls others:

    derive gone   difference → count@old …         asks for `count` and, with it, for
    derive came   difference → !p@old …            `p`: `difference` is not written in between
    derive next   gone → q …                       not for `q`: `gone` is being derived

Steps of the main procedure maintain one stratum each. Those of which none writes what another one
reads or writes are *independent*: they go on together, and whatever all of them need next is one
request.

    v1 :- change, big1.    v2 :- change, big2.     big1 and big2, then what is known of v1 and v2
    w :- v1, big3.                                 waits for v1
"""

from collections.abc import Callable, Iterator

from corollary.core import plans
from corollary.core.logic import Variable
from corollary.core.pipeline import (
    AntiProbe,
    Compute,
    Filter,
    Pipeline,
    Probe,
    Reference,
    names_needed,
)
from corollary.core.states import State

LATER_MAX_STEPS = 32
"""No more steps are looked at for one."""

UpcomingPipeline = tuple[plans.Derive, int]
"""A pipeline: its step, and its number there."""


def upcoming_pipelines(plan: plans.Plan) -> dict[int, tuple[UpcomingPipeline, ...]]:
    """Return the pipelines of later steps that a step may ask for, by the identity of the step."""
    return {
        id(step): tuple(_upcoming(step, steps[at + 1 :][:LATER_MAX_STEPS]))
        for steps in step_lists(plan)
        for at, step in enumerate(steps)
        if isinstance(step, plans.Derive | plans.Accumulate)
    }


def step_lists(
    plan: plans.Plan, *, with_alternatives: bool = True
) -> Iterator[tuple[plans.Step, ...]]:
    """Yield every list of steps of a plan that run one after the other.

    Args:
        plan: the plan.
        with_alternatives: whether to yield what runs where steps have exceeded their budget, or
            where a change is outside of the process.
    """
    work = list(plan.procedures.values())
    while work:
        steps = work.pop()
        yield steps
        for step in steps:
            match step:
                case plans.Loop(steps=inner) | plans.When(steps=inner):
                    work.append(inner)
                case plans.Judge(steps=inner) | plans.Overrun(steps=inner):
                    work.append(inner)
                case plans.Accumulate(steps=inner) | plans.CompareWindows(steps=inner) if (
                    with_alternatives
                ):
                    work.append(inner)
                case plans.Within(steps=inner, otherwise=otherwise):
                    work.append(inner)
                    if with_alternatives and otherwise is not None:
                        work.append(otherwise)
                case _:
                    pass


def _upcoming(step: plans.Step, later: tuple[plans.Step, ...]) -> Iterator[UpcomingPipeline]:
    written = {*plans.relations_written_by(step)}
    for each in later:
        if isinstance(each, plans.Derive):
            for at, pipeline in enumerate(each.pipelines):
                if leading_relation(pipeline) not in {None, *written}:
                    yield each, at
        writes = plans.relations_written_by(each)
        if not writes:  # it calls others
            return
        written.update(writes)


def leading_relation(pipeline: Pipeline) -> str | None:
    """Return the relation that the first stage of a pipeline reads, if it reads one."""
    first = pipeline.stages[0] if pipeline.stages else None
    return first.source.relation if isinstance(first, Probe) else None


def waiting_steps(plan: plans.Plan) -> tuple[frozenset[int], ...]:
    """Return for each step of the main procedure the later ones that wait for it.

    A step that writes what another one reads or writes comes before or after it, as in the list.
    """
    found: list[set[int]] = []
    written: dict[str, int] = {}
    """By relation the last step that writes it."""
    readers: dict[str, set[int]] = {}
    """By relation the steps that read what that one wrote."""
    is_traced = any(isinstance(step, plans.RecordTrace) for step in plans.steps_of(plan))
    for at, step in enumerate(plan.procedures[plan.main]):
        part = part_of(plan, step)
        reads = {each.relation for each in plans.references_read(part)}
        writes = {*plans.relations_written(part)}
        writes |= {
            each.source for each in plans.steps_of(part) if isinstance(each, plans.StoreRelation)
        }
        before = {written[name] for name in reads | writes if name in written}
        before = before.union(*(readers.pop(name, ()) for name in writes))
        if is_traced and at:  # the rows of a trace are in the order of the list
            before.add(at - 1)
        for each in before:
            found[each].add(at)
        found.append(set())
        written |= dict.fromkeys(writes, at)
        for name in reads - writes:
            readers.setdefault(name, set()).add(at)
    return tuple(map(frozenset, found))


def part_of(plan: plans.Plan, step: plans.Step) -> plans.Plan:
    """Return a plan with one step, and with the procedures that it calls."""
    found = {plan.main: (step,), **plans.called_procedures(plan, (step,))}
    local = {name: names for name, names in plan.locals.items() if name in found}
    return plans.Plan(found, {}, main=plan.main, locals=local)


def count_requests(plan: plans.Plan, is_remote: Callable[[Reference], bool]) -> int:
    """Return how many requests the steps of a plan make, if each runs once and within its budget.

    Args:
        plan: the plan.
        is_remote: whether the tuples of a reference are outside of this process.
    """
    main = plan.procedures[plan.main]
    before = [0] * len(main)
    """For each step of the main procedure the requests until it begins."""
    most = 0
    for at, waiting in enumerate(waiting_steps(plan)):
        ended = before[at] + _count_own_requests(part_of(plan, main[at]), is_remote)
        most = max(most, ended)
        for each in waiting:
            before[each] = max(before[each], ended)
    return most


def _count_own_requests(plan: plans.Plan, is_remote: Callable[[Reference], bool]) -> int:
    """Return how many requests steps make that run one after the other."""
    upcoming = upcoming_pipelines(plan)
    total = 0
    for steps in step_lists(plan, with_alternatives=False):
        asked: dict[int, int] = {}
        """By pipeline the depth down to which earlier steps have asked for it."""
        for step in steps:
            if isinstance(step, plans.Accumulate):
                count = int(is_remote(Reference(step.relation, State.OLD)))
            elif isinstance(step, plans.Derive):
                depths = [
                    depth - asked.get(id(pipeline), 0)
                    for pipeline in step.pipelines
                    if (depth := probe_depth(pipeline, is_remote))
                ]
                count = max(0, *depths, 0) + any(map(is_remote, step.without))
            else:
                continue
            total += count
            for later, at in upcoming[id(step)] if count else ():
                known = id(later.pipelines[at])
                asked[known] = max(count, asked.get(known, 0))
    return total


def probe_depth(pipeline: Pipeline, is_remote: Callable[[Reference], bool]) -> int:
    """Return how many requests a pipeline makes, one after the other."""
    depths: dict[str, int] = {}
    """By variable the number of requests before it has a value."""
    deepest = 0
    for stage in pipeline.stages:
        depth = max((depths.get(name, 0) for name in names_needed(stage)), default=0)
        match stage:
            case Probe(source=source, slots=slots):
                # A join with what is here waits for the joins before it.
                depth = depth + 1 if is_remote(source) else deepest
                deepest = max(deepest, depth)
                for slot in slots:
                    if isinstance(slot, Variable):
                        depths.setdefault(slot.name, depth)
            case AntiProbe(source=source):
                deepest = max(deepest, depth + is_remote(source))
            case Compute(variable=variable):
                depths.setdefault(variable.name, depth)
            case Filter():
                pass
    return deepest
