"""A forecast as text: how a change would be maintained, before there is one."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from corollary.analysis.joint_probes import count_requests, step_lists
from corollary.analysis.relevance import BOTH_SIGNS, NO_SIGNS, Signs
from corollary.analysis.strata import Stratum, strata
from corollary.core import plans
from corollary.core.engine import Residency
from corollary.core.pipeline import AntiProbe, Pipeline, Probe, Reference
from corollary.core.program import NormalProgram
from corollary.core.states import CHANGES, State
from corollary.core.titles import show_titles
from corollary.data_class import dataclass
from corollary.explain.plan import (
    INDENT,
    StepNote,
    plan_as_json,
    print_pipeline,
    print_procedures,
    print_strata,
)

SIGN_PREFIXES = {State.ADDED: "+", State.REMOVED: "−"}
DELTA_NAMES = {State.ADDED: "add", State.REMOVED: "rem"}

REMOTE_PLACEMENTS: Mapping[str, str] = {
    plans.Placement.TASKS: "partitioned, in one Spark job",
    plans.Placement.ROUNDS: "what it reads does not fit into a worker; each round asks tasks",
    "partitions": "tasks are asked for what a step looks up",
}

StoringStep = plans.StoreRelation | plans.Remove | plans.Add | plans.CancelOut | plans.Accumulate
"""The steps that write what is stored."""


@dataclass(frozen=True, slots=True)
class StratumForecast:
    """How a stratum will be maintained.

    Attributes:
        algorithm: the algorithm.
        reason: why it was chosen.
        cost: the estimated number of rows it handles; None without an estimate.
        budget: the number of rows after which the stratum is recomputed instead; None for never.
        is_autonomous: whether the change and the stored view alone determine the view's change.
        placement: where it will run.
    """

    relations: tuple[str, ...]
    algorithm: str
    reason: str
    cost: int | None
    budget: int | None
    is_autonomous: bool
    placement: str


@dataclass(frozen=True, slots=True)
class DeltaPipeline:
    """A delta pipeline: the candidate changes of a rule's head by a change of one literal."""

    rule: str
    sign: State
    place: int
    pipeline: Pipeline

    @property
    def name(self) -> str:
        """The name, as in `rem_2`."""
        return f"{DELTA_NAMES[self.sign]}_{self.place + 1}"


@dataclass(frozen=True, slots=True)
class Forecast:
    """How a change of base relations will be maintained.

    Attributes:
        changes: the number of tuples that base relations gain and lose.
        candidates: every relation that may change, with the signs.
        relevant: every relation whose changes are needed, with the signs.
        is_guessed: whether sizes are guesses, because nothing was measured.
        program: the optimised program, with copies of views for constants that are watched.
        places: where stored relations are, and why, unless they are where the engine is.
    """

    changes: Mapping[str, Mapping[State, int]]
    candidates: Signs
    relevant: Signs
    strata: tuple[StratumForecast, ...]
    deltas: tuple[DeltaPipeline, ...]
    plan: plans.Plan
    is_guessed: bool
    program: NormalProgram
    places: Mapping[str, Residency]


WAYS = {
    "totals": "totals of the touched groups",
    "groups": "totals of the touched groups",
    "ranked": "the change, round by round",
    "aggregates": "the touched windows",
    "recompute": "computed anew",
}
"""What algorithms do, by name, for docs/sql.md, too; others take the change alone."""

CHANGE, COPIES = "the change alone", "the change, with counts of copies"


def way_of(relation: str, algorithm: str) -> str:
    """Return how a part of a view follows a change, in words."""
    has_copies = ".rows" in relation or algorithm == "counting"
    return COPIES if has_copies else WAYS.get(algorithm, CHANGE)


def print_view_maintenance(name: str, policy: str, parts: Sequence[StratumForecast]) -> str:
    """Return how the parts of a view follow a change of one row in each table, as a table."""
    lines = [f"{name}: refresh policy {policy}"]
    for each in parts:
        cost = "" if each.cost is None else f"; about {each.cost:,} rows"
        if each.algorithm == "recompute":
            falls = "always"
        elif each.budget is None:
            falls = "never"
        else:
            falls = f"where it would handle more than {each.budget:,} rows"
        way = way_of(each.relations[0], each.algorithm)
        lines.append(f"{each.relations[0]}: {way} ({each.algorithm}: {each.reason}){cost}")
        lines.append(f"{INDENT}computed anew: {falls}")
    return "\n".join(lines)


def print_forecast(forecast: Forecast, note: StepNote | None = None) -> str:
    """Return a forecast as text: candidates, algorithms, delta pipelines, the plan."""
    program = forecast.program
    changes = ", ".join(
        f"{SIGN_PREFIXES[sign]}{name} ({count:,} {'tuple' if count == 1 else 'tuples'})"
        for name, each in forecast.changes.items()
        for sign, count in each.items()
    )
    sizes = "guessed, without facts" if forecast.is_guessed else "measured"
    lines = [
        *print_strata(program),
        "",
        f"changes: {changes}; sizes are {sizes}",
        f"candidates: {_signed(forecast.candidates, program)}",
        f"relevant: {_signed(forecast.relevant, program)}",
        "",
    ]
    for name, (place, reason) in forecast.places.items():
        lines.append(f"relation {name}: in {place}, {reason}")
    if probes := partition_probes(forecast):
        total = sum(probes.values())
        many = "once" if total == 1 else f"up to {total} times"
        asked = ", ".join(f"{name} {count}" for name, count in sorted(probes.items()))
        jobs = count_requests(forecast.plan, _is_partitioned(forecast))
        how = (
            f"in {'one job' if jobs == 1 else f'up to {jobs} jobs'}, in each round of a loop again"
        )
        lines += [f"partitions are asked {many} ({asked}), {how}", ""]
    for stratum in strata(program):
        lines += _decision_lines(stratum, forecast)
    if forecast.deltas:
        lines += ["", "delta pipelines"]
    rule = None
    for delta in forecast.deltas:
        if delta.rule != rule:
            lines.append(f"{INDENT}{delta.rule}")
            rule = delta.rule
        lines.append(f"{2 * INDENT}{delta.name}: {print_pipeline(delta.pipeline)}")
    text = "\n".join([*lines, *print_procedures(forecast.plan, note)])
    return show_titles(text, program)


def partition_probes(forecast: Forecast) -> Counter[str]:
    """Return how many steps of the plan ask for tuples of each relation in partitions."""
    is_partitioned = _is_partitioned(forecast)
    return Counter(
        source.relation.partition(plans.WORKING_SEPARATOR)[0]
        for steps in step_lists(forecast.plan, with_alternatives=False)
        for step in steps
        if isinstance(step, plans.Derive)
        for source in (*_sources(step), *step.without)
        if is_partitioned(source)
    )


def _sources(step: plans.Derive) -> Iterator[Reference]:
    for pipeline in step.pipelines:
        for stage in pipeline.stages:
            if isinstance(stage, Probe | AntiProbe):
                yield stage.source


def _is_partitioned(forecast: Forecast) -> Callable[[Reference], bool]:
    """Return what says whether the tuples of a reference are in partitions."""
    inside = {name for name, each in forecast.places.items() if each.place == "partitions"}
    steps = (each for each in plans.steps_of(forecast.plan) if not isinstance(each, StoringStep))
    here = {name for each in steps for name in plans.relations_written_by(each)}
    # The payload of a relation is where that is; what a plan works with is on the driver.
    return lambda source: (
        source.relation.partition(plans.WORKING_SEPARATOR)[0] in inside
        and source.relation not in here
        and source.state not in CHANGES
    )


def _signed(signs: Signs, program: NormalProgram) -> str:
    """Return relations with their signs, in the order of the program."""
    listed = (
        f"{'±' if signs[name] == BOTH_SIGNS else SIGN_PREFIXES[next(iter(signs[name]))]}{name}"
        for name in program.relations
        if signs.get(name) and name not in program.constants
    )
    return ", ".join(listed) or "none"


def _decision_lines(stratum: Stratum, forecast: Forecast) -> list[str]:
    names = ", ".join(stratum.relations)
    found = [each for each in forecast.strata if each.relations == stratum.relations]
    if not found:
        is_reached = any(forecast.candidates.get(name, NO_SIGNS) for name in stratum.relations)
        why = "nobody asks for its changes" if is_reached else "the change does not reach it"
        return [f"stratum {names}: none, {why}"]
    (decision,) = found
    lines = [f"stratum {names}: {decision.algorithm}, {decision.reason}"]
    if remote := REMOTE_PLACEMENTS.get(decision.placement):
        lines.append(f"{INDENT}placed in {decision.placement}: {remote}")
    if decision.cost is not None:
        lines.append(f"{INDENT}estimated cost: {decision.cost:,} rows")
    if decision.budget is not None:
        lines.append(f"{INDENT}given up for recompute beyond {decision.budget:,} rows")
    if decision.is_autonomous:
        lines.append(f"{INDENT}self-maintainable: no base relation is needed")
    return lines


def forecast_as_json(forecast: Forecast, note: StepNote | None = None) -> dict[str, Any]:
    """Return a forecast as a JSON document, with the members of `plan_as_json`."""
    program = forecast.program
    document = {
        "changes": {name: _counts(each) for name, each in forecast.changes.items()},
        "guessed": forecast.is_guessed,
        "candidates": _lists(forecast.candidates),
        "relevant": _lists(forecast.relevant),
        **(
            {
                "places": {
                    name: {"place": place, "reason": reason}
                    for name, (place, reason) in forecast.places.items()
                },
                "partition_probes": partition_probes(forecast).total(),
                "partition_jobs": count_requests(forecast.plan, _is_partitioned(forecast)),
            }
            if forecast.places
            else {}
        ),
        "choices": [
            {
                "relations": list(each.relations),
                "algorithm": each.algorithm,
                "placement": each.placement,
                "reason": each.reason,
                "cost": each.cost,
                "budget": each.budget,
                "self_maintainable": each.is_autonomous,
            }
            for each in forecast.strata
        ],
        "deltas": [
            {"rule": each.rule, "name": each.name, "pipeline": print_pipeline(each.pipeline)}
            for each in forecast.deltas
        ],
        **plan_as_json(forecast.plan, program, note),
    }
    return show_titles(document, program)


def _counts(change: Mapping[State, int]) -> dict[str, int]:
    return {str(sign): count for sign, count in change.items()}


def _lists(signs: Signs) -> dict[str, list[str]]:
    return {name: sorted(map(str, each)) for name, each in sorted(signs.items()) if each}
