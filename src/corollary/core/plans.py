"""Plans: procedures made of steps on named relations. Engines run them, `explain` prints them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from typing import assert_never

from corollary.core.logic import Accumulator, Aggregation, AnyAggregation, Origin, Windowing
from corollary.core.pipeline import AntiProbe, Links, Pipeline, Probe, Reference
from corollary.core.program import SubsumptionOrder
from corollary.core.states import State
from corollary.core.types import Type
from corollary.data_class import dataclass

WORKING_SEPARATOR = "•"
"""Is in the names of working relations and procedures, and in no name of a user."""


def working_relation(relation: str, role: str) -> str:
    """Return the name of the working relation with a role for a relation.

    >>> working_relation("link", "next")
    'link•next'
    """
    return f"{relation}{WORKING_SEPARATOR}{role}"


WATCHED = "watched"
"""The role under which a warehouse records the changes of a virtual relation."""


def watched_name(relation: str) -> str:
    """Return the name under which the changes of a watched virtual relation are recorded."""
    return working_relation(relation, WATCHED)


def watched_relation(name: str) -> str | None:
    """Return the virtual relation whose changes are recorded under a name, None for others."""
    relation, separator, role = name.partition(WORKING_SEPARATOR)
    return relation if separator and role == WATCHED else None


def event_relation(relation: str) -> str:
    """Return the working relation that holds the tuples of an event predicate."""
    return working_relation(relation, "event")


def effect_relation(trigger: str) -> str:
    """Return the working relation that holds the tuples a trigger adds or removes."""
    return working_relation(trigger, "effect")


MAIN = working_relation("", "main")
"""The procedure that a plan begins with."""


def procedure_name(relations: tuple[str, ...], verb: str = "") -> str:
    """Return the name of the procedure for the relations of a stratum."""
    return (
        working_relation(verb, WORKING_SEPARATOR.join(relations))
        if verb
        else WORKING_SEPARATOR.join(relations)
    )


class Role(StrEnum):
    """The role of a step's tuples in its algorithm; every role is a counter in the record."""

    APPROXIMATED = "approximated"
    FILTERED = "filtered"
    REFILTERED = "refiltered"
    DISQUALIFIED = "disqualified"
    ACTUAL = "actual"
    MEMO_HITS = "memo_hits"
    CHECKED = "checked"
    SUSPENDED = "suspended"
    RELEVANT = "relevant"
    """The updates that pass a selection; the others that led the step are irrelevant."""
    PROPAGATED = "propagated"
    """What one rule derives of a result that is counted as a whole; its leads are counted."""


class Reduce(StrEnum):
    """How tuples that differ in their last column only become one."""

    MIN = "min"
    MAX = "max"
    SUM = "sum"


@dataclass(frozen=True, slots=True)
class Derive:
    """`target` becomes the union of the pipelines' heads, minus the tuples of `without`.

    Attributes:
        reduce: how to combine the last column of tuples that agree in the others. A sum is over
            all rows of all pipelines; tuples whose sum is 0 are left out.
        role: the role of the result, counted for the relation `about`.
        is_gathering: whether the pipelines gather what other steps have derived, and no updates
            lead them.
    """

    target: str
    pipelines: tuple[Pipeline, ...]
    without: tuple[Reference, ...] = ()
    reduce: Reduce | None = None
    role: Role | None = None
    about: str = ""
    is_gathering: bool = False


@dataclass(frozen=True, slots=True)
class Extend:
    """`target` gains the tuples of `source`, none of which it has; they become its ADDED."""

    target: str
    source: str


@dataclass(frozen=True, slots=True)
class ExtendWithRound:
    """`target` gains `source`, each tuple with the number of the round (0 outside loops) added."""

    target: str
    source: str


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`target` becomes the groups and values of an aggregation of `body`."""

    target: str
    aggregation: Aggregation
    body: Reference
    without: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class Window:
    """`target` becomes the rows of `body`, each with the values of its window functions."""

    target: str
    windowing: Windowing
    body: Reference
    without: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class CompareWindows:
    """`added` and `removed` become the rows that a change of `body` gives, with their values.

    Attributes:
        body: a stored relation, whose change is open.
        order: its columns in the order of the windows: partition, order, all others.
        columns: those of its columns that somebody reads, or that tell rows apart; the others are
            null in `added` and `removed`.
        steps: the same for all rows of the partitions that the change touches, for a body that is
            outside of the process.
    """

    added: str
    removed: str
    windowing: Windowing
    body: str
    order: tuple[int, ...]
    columns: tuple[int, ...]
    steps: tuple["Step", ...]


def aggregation_step(
    target: str,
    aggregation: AnyAggregation,
    body: Reference,
    without: tuple[Reference, ...] = (),
) -> Aggregate | Window:
    """Return the step that computes an aggregation of `body`."""
    if isinstance(aggregation, Windowing):
        return Window(target, aggregation, body, without)
    return Aggregate(target, aggregation, body, without)


@dataclass(frozen=True, slots=True)
class Total:
    """`target` becomes the running totals of an aggregation of `body` (`core/totals.py`).

    Attributes:
        is_weighted: whether the last column of `body` says how often each tuple counts; a tuple
            that is taken away counts negatively.
    """

    target: str
    aggregation: Aggregation
    body: Reference
    is_weighted: bool = False


@dataclass(frozen=True, slots=True)
class ReadTotals:
    """`target` becomes the groups and values that running totals say.

    Attributes:
        terms: the types of the columns that were aggregated.
    """

    target: str
    aggregation: Aggregation
    totals: Reference
    terms: tuple[Type, ...]

    def term_of(self, accumulator: Accumulator) -> Type:
        """Return the type of the column that an accumulator aggregates."""
        assert accumulator.value is not None
        return self.terms[self.aggregation.values.index(accumulator.value)]


@dataclass(frozen=True, slots=True)
class Accumulate:
    """Add the last columns of `change` to those of the tuples of `relation` with the same key.

    A key is all columns before. One that is new gets a tuple with its change, and one whose first
    sum is 0 goes.

    Attributes:
        change: has each key once.
        additive: how many columns are added.
        steps: the same in smaller steps, for a change that is outside of the process.
        came, gone: receive the keys that are new, and those that go, if they are asked for.
        about: the relation whose touched groups are counted by the keys, if any.
    """

    relation: str
    change: str
    additive: int
    steps: tuple["Step", ...]
    came: str = ""
    gone: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class Improve:
    """`target` becomes the best tuples of `source` that no tuple of `rivals` covers.

    The first `arity` columns are compared; others, such as a rank, only go along.
    """

    target: str
    source: str
    rivals: str
    order: SubsumptionOrder
    arity: int


@dataclass(frozen=True, slots=True)
class Judge:
    """Run the steps if an expression of a deferred pipeline had no value: they decide about it."""

    steps: tuple["Step", ...]


@dataclass(frozen=True, slots=True)
class Overrun:
    """Run the steps, at growing distances, if there were more rounds than there are tuples."""

    relations: tuple[str, ...]
    steps: tuple["Step", ...]


@dataclass(frozen=True, slots=True)
class FindDescent:
    """Raise an error if links lead from a key back to it: its value improves without end."""

    links: tuple[Links, ...]


@dataclass(frozen=True, slots=True)
class Clear:
    """Working relations become empty."""

    relations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoreRelation:
    """The NEW state of `relation` becomes the working relation `source`."""

    relation: str
    source: str


@dataclass(frozen=True, slots=True)
class Remove:
    """The NEW state of `relation` loses the tuples of `source`, which are in OLD and NEW."""

    relation: str
    source: str


@dataclass(frozen=True, slots=True)
class Add:
    """The NEW state of `relation` gains the tuples of `source`, which are not in NEW.

    Tuples removed before may be among them; ADDED and REMOVED then overlap until `CancelOut`.
    """

    relation: str
    source: str


@dataclass(frozen=True, slots=True)
class CancelOut:
    """Tuples that are both ADDED and REMOVED in `relation` are in neither from now on."""

    relation: str


@dataclass(frozen=True, slots=True)
class Choose:
    """`target` becomes tuples of `source` of which no two agree on a domain, as many as possible.

    The least tuple comes first, then the least of those that agree with none before, and so on.
    """

    target: str
    source: str
    domains: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class CheckAcyclic:
    """Fail with a cycle of `pairs` if there are suspects.

    Attributes:
        suspects: working relations of keys of groups.
        pairs: the relations of a group's key and the key of one that it reads, each with the
            relations whose groups these are.
        origin: the rule that a message is about.
        is_counted: whether a round with a number larger than that of the suspects shows the cycle;
            otherwise a single suspect does.
    """

    suspects: tuple[str, ...]
    pairs: tuple[tuple[str, str, Reference], ...]
    origin: Origin
    is_counted: bool


@dataclass(frozen=True, slots=True)
class Loop:
    """Repeat the steps while any of `until_empty` has tuples (tested before every round)."""

    steps: tuple["Step", ...]
    until_empty: tuple[Reference, ...]
    limits: tuple[tuple[str, int], ...] = ()
    """Working relations and the number of tuples at which the loop may stop (`.limitsize`)."""


@dataclass(frozen=True, slots=True)
class When:
    """Run the steps if any of the relations has tuples."""

    nonempty: tuple[Reference, ...]
    steps: tuple["Step", ...]


@dataclass(frozen=True, slots=True)
class Within:
    """Run the steps; if they handle more than `budget` rows, stop and run `otherwise` instead.

    `otherwise` starts from whatever the steps left, so it has to reset that first; None fails.

    Attributes:
        outset: the rows that the steps may handle until a loop has gone round once; None for as
            many as the budget. The first round tells how many the others will handle.
    """

    budget: int
    steps: tuple["Step", ...]
    otherwise: tuple["Step", ...] | None
    about: str = ""
    outset: int | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """Run a procedure; the first of its locals is its parameter and gets the argument's tuples."""

    procedure: str
    argument: str | None = None


class Placement(StrEnum):
    """Where the procedure of a stratum runs."""

    DRIVER = "driver"
    TASKS = "tasks"
    """Partition by partition, each task with a copy of what else the stratum reads."""
    ROUNDS = "rounds"
    """On the driver, with all that is large in partitions: those are asked in each round."""


@dataclass(frozen=True, slots=True)
class PlacedCall:
    """Call the procedure of a stratum in a placement; an engine with one placement just calls it.

    Attributes:
        columns: the relations of the stratum, with the column that tasks partition each by.
    """

    procedure: str
    placement: Placement
    columns: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class RecordTrace:
    """Record one row of the papers' tables: the current tuples of these relations."""

    rule: str
    updates: tuple[Reference, ...]
    approximation: tuple[Reference, ...]
    disqualified: tuple[Reference, ...]
    actual: tuple[Reference, ...]
    about: str = ""
    sign: State | None = None
    """Whether the relation `about` gains or loses tuples."""
    source: str = ""
    """The relation of the updates, where a working relation holds them."""
    stage: str = ""
    """The stage of an algorithm that has several, such as `overestimate`."""


RecursionStep = Improve | Judge | Overrun | FindDescent | CheckAcyclic | Choose
"""The steps of recursion through subsumption, aggregates or choices."""

Step = (
    Derive
    | Extend
    | ExtendWithRound
    | Aggregate
    | Window
    | CompareWindows
    | Total
    | ReadTotals
    | Accumulate
    | RecursionStep
    | Clear
    | StoreRelation
    | Remove
    | Add
    | CancelOut
    | Loop
    | When
    | Within
    | Call
    | PlacedCall
    | RecordTrace
)


Computation = Aggregate | Window | Total | ReadTotals | Improve | Choose
"""The steps that compute tuples of those of one relation, or two."""

Evaluation = Derive | Aggregate | Window | Total | ReadTotals | Improve
"""The steps that compute tuples; a recorder gets the size of their results."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Procedures by name, and the column types of every relation they name.

    Attributes:
        main: the procedure to run.
        orders: for each relation, the column orders in which pipelines probe it.
        locals: the working relations that every invocation of a procedure has for itself; all
            others live as long as the plan runs.
    """

    procedures: Mapping[str, tuple[Step, ...]]
    types: Mapping[str, tuple[Type, ...]]
    orders: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    main: str = MAIN
    locals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def steps_of(plan: Plan) -> Iterator[Step]:
    """Yield every step of every procedure, those inside others included."""
    for steps in plan.procedures.values():
        yield from steps_inside(steps)


def steps_inside(steps: Iterable[Step], *, with_fallbacks: bool = True) -> Iterator[Step]:
    """Yield steps, and those inside them, perhaps without what is done beyond a budget."""
    work = [*steps][::-1]
    while work:
        step = work.pop()
        yield step
        match step:
            case Loop(steps=steps) | When(steps=steps) | Judge(steps=steps) | Overrun(steps=steps):
                work.extend(reversed(steps))
            case Accumulate(steps=steps) | CompareWindows(steps=steps):
                work.extend(reversed(steps))
            case Within(steps=steps, otherwise=otherwise):
                work.extend(
                    reversed((*steps, *(otherwise if otherwise and with_fallbacks else ())))
                )
            case _:
                pass


def called_procedures(
    plan: Plan, steps: Iterable[Step], *, with_placed: bool = True
) -> dict[str, tuple[Step, ...]]:
    """Return the procedures that steps call, and these in turn, perhaps without placed calls."""
    calls = Call | PlacedCall if with_placed else Call
    found: dict[str, tuple[Step, ...]] = {}
    work = [steps]
    while work:
        for step in steps_inside(work.pop()):
            if isinstance(step, calls) and step.procedure not in found:
                found[step.procedure] = plan.procedures[step.procedure]
                work.append(found[step.procedure])
    return found


def pipelines_of(plan: Plan, *, with_fallbacks: bool = True) -> Iterator[Pipeline]:
    """Yield every pipeline of a plan, perhaps without those that run beyond a budget."""
    for steps in plan.procedures.values():
        for step in steps_inside(steps, with_fallbacks=with_fallbacks):
            if isinstance(step, Derive):
                yield from step.pipelines


def references_read(plan: Plan) -> Iterator[Reference]:
    """Yield the references that the steps of a plan read, with repetitions."""
    for step in steps_of(plan):
        match step:
            case Derive(pipelines=pipelines, without=without):
                yield from without
                for pipeline in pipelines:
                    for stage in (*pipeline.stages, *pipeline.judge):
                        if isinstance(stage, Probe | AntiProbe):
                            yield stage.source
            case Aggregate(body=body, without=without) | Window(body=body, without=without):
                yield from (body, *without)
            case Total(body=source) | ReadTotals(totals=source):
                yield source
            case Accumulate() | CompareWindows():
                yield from _read_for_change(step)
            case Improve(source=source, rivals=rivals):
                yield from (Reference(source), Reference(rivals))
            case Overrun(relations=names):
                yield from map(Reference, names)
            case FindDescent(links=links):
                yield from (Reference(each.relation) for each in links)
            case (
                Extend(source=source)
                | ExtendWithRound(source=source)
                | StoreRelation(source=source)
                | Choose(source=source)
                | Remove(source=source)
                | Add(source=source)
            ):
                yield Reference(source)
            case Loop(until_empty=references, limits=limits):
                yield from references
                yield from (Reference(name) for name, _ in limits)
            case When(nonempty=references):
                yield from references
            case CheckAcyclic(suspects=suspects, pairs=pairs):
                yield from (Reference(name) for name in suspects)
                yield from (source for _, _, source in pairs)
            case Call(argument=str() as argument):
                yield Reference(argument)
            case RecordTrace():
                for references in (step.updates, step.approximation, step.disqualified):
                    yield from references
                yield from step.actual
            case Call() | PlacedCall() | Within() | Clear() | CancelOut() | Judge():
                pass
            case _:
                assert_never(step)


def _read_for_change(step: Accumulate | CompareWindows) -> Iterator[Reference]:
    """Yield the references that a step reads that takes a change into account."""
    if isinstance(step, Accumulate):
        yield from (Reference(step.relation, State.OLD), Reference(step.change))
    else:
        yield from (Reference(step.body, state) for state in State)


def relations_written(plan: Plan) -> Iterator[str]:
    """Yield the relations that the steps of a plan write, with repetitions."""
    for names in plan.locals.values():
        yield from names
    for step in steps_of(plan):
        yield from relations_written_by(step)


def relations_written_by(step: Step) -> tuple[str, ...]:
    """Return the relations that a step writes, but for those of the steps inside it."""
    match step:
        case Derive(target=name) | Aggregate(target=name) | Window(target=name):
            return (name,)
        case Total(target=name) | ReadTotals(target=name) | Improve(target=name):
            return (name,)
        case Extend(target=name) | ExtendWithRound(target=name) | Choose(target=name):
            return (name,)
        case StoreRelation(relation=name) | Remove(relation=name) | Add(relation=name):
            return (name,)
        case CancelOut(relation=name):
            return (name,)
        case Accumulate(relation=name, came=came, gone=gone):
            return (name, *(each for each in (came, gone) if each))
        case CompareWindows(added=added, removed=removed):
            return (added, removed)
        case Clear(relations=names):
            return names
        case Loop() | When() | Within() | Call() | PlacedCall() | RecordTrace():
            return ()
        case CheckAcyclic() | Judge() | Overrun() | FindDescent():
            return ()
        case _:
            assert_never(step)
