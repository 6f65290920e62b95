"""Running a project: sources, flows, views and what is left to Spark, in one commit; its report.

    positions of sources, offsets of flows → what is new
    → base relations: sources; then flows and what Spark computes, in the order of the project
    → views are maintained → one commit → tables are published, sinks written

A run is `intake.pipeline.run` with a follow-up. If anything fails, nothing was changed.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Any

from corollary.analysis.phrases import suggest_name
from corollary.core.graph import reachable
from corollary.data_class import dataclass
from corollary.database.changes import Changes
from corollary.database.database import Database, state_of, store_of, warehouse_of
from corollary.database.history import PIPELINE_REPORT
from corollary.database.intake.pipeline import Inputs, PipelineRun, run
from corollary.database.intake.source_guards import SourceGuards
from corollary.errors import InputError
from corollary.frontends.sql.catalog import SqlCatalog
from corollary.frontends.sql.query_tree import QueryColumn
from corollary.pipelines.compile import CompiledProject, DatasetPlan, ProjectCompiler
from corollary.pipelines.fallback import SparkFallback
from corollary.pipelines.flows import DIGEST, FlowRun, spark_key
from corollary.pipelines.graph import Dataset, DatasetKind, Flow, LoweredProject, SparkQuery
from corollary.pipelines.sinks import write_sinks
from corollary.pipelines.sources import source_program

RECOMPUTE = "recompute"


class Refreshed(StrEnum):
    """How a dataset was refreshed."""

    UNCHANGED = "unchanged"
    INCREMENTAL = "incremental"
    RECOMPUTED = "recomputed"
    APPENDED = "appended"
    SPARK = "Spark"
    VIRTUAL = "virtual"
    SKIPPED = "not asked for"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which datasets a run refreshes.

    Attributes:
        refresh: their names; all if there are none here and in `full_refresh`.
        full_refresh: those that are computed anew.
        is_full: whether all are computed anew.
    """

    refresh: tuple[str, ...] = ()
    full_refresh: tuple[str, ...] = ()
    is_full: bool = False

    def resolve(self, known: Sequence[str]) -> "tuple[frozenset[str], frozenset[str]]":
        """Return the datasets to refresh, and those of them that are computed anew.

        Raises:
            InputError: `C1726`, there is no such dataset.
        """
        by_name = {each.lower(): each for each in known}
        for each in (*self.refresh, *self.full_refresh):
            if each.lower() not in by_name:
                near = suggest_name(each, known) or f"datasets are {', '.join(known)}"
                raise InputError.of("C1726", f"There is no dataset `{each}`.", None, near)
        full = frozenset(by_name[each.lower()] for each in self.full_refresh)
        if self.is_full:
            return frozenset(known), frozenset(known)
        some = full | {by_name[each.lower()] for each in self.refresh}
        return (some or frozenset(known)), full


@dataclass(frozen=True, slots=True)
class DatasetReport:
    """What a run did to a dataset.

    Attributes:
        full_seconds: what computing it anew would take, if that is known.
    """

    name: str
    kind: str
    refreshed: Refreshed
    added: int
    removed: int
    seconds: float
    full_seconds: float | None

    def as_json(self) -> dict[str, Any]:
        """Return it as it is printed and kept."""
        return {
            "dataset": self.name,
            "kind": self.kind,
            "refreshed": str(self.refreshed),
            "added": self.added,
            "removed": self.removed,
            "seconds": round(self.seconds, 3),
            "full_seconds": None if self.full_seconds is None else round(self.full_seconds, 3),
        }


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run did.

    Attributes:
        commit: the one that it made, or the last one if nothing has changed.
        full: what computing each dataset anew took, and how many rows it had then.
    """

    commit: int | None
    is_new: bool
    seconds: float
    datasets: tuple[DatasetReport, ...]
    outcome: PipelineRun
    full: Mapping[str, tuple[float, int]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return it as it is printed."""
        return {
            "commit": self.commit,
            "changed": self.is_new,
            "seconds": round(self.seconds, 3),
            "datasets": [each.as_json() for each in self.datasets],
        }


class _ColumnsFound(Exception):  # noqa: N818 - it is none
    """Spark has said which columns a dataset has: what reads it can be lowered."""


def compile_project(
    lower: Callable[[Mapping[str, Sequence[QueryColumn]]], LoweredProject],
    database: Database,
    fallback: SparkFallback,
) -> CompiledProject:
    """Return the program of a project, and what its runs do.

    Args:
        lower: lowers the project, given the columns of datasets that are left to Spark.
        database: the warehouse.
        fallback: the Spark of the run.

    Raises:
        InputError: it does not fit together.
    """
    fallback.held = {each.name: each for each in database.program.declarations}
    fallback.digests = {
        relation: position[DIGEST]
        for relation, position in store_of(database).source_positions().values()
        if isinstance(position, dict) and DIGEST in position
    }
    known, asked = fallback.known_columns(), set[str]()

    def columns(
        dataset: Dataset, flow: Flow, query: SparkQuery, catalog: SqlCatalog
    ) -> tuple[QueryColumn, ...]:
        earlier = known.get(dataset.name)
        if earlier is None or (
            dataset.name not in asked and fallback.has_other_inputs(query, catalog)
        ):
            asked.add(dataset.name)
            known[dataset.name] = fallback.columns(dataset, flow, query, catalog)
            if known[dataset.name] != earlier:
                raise _ColumnsFound
        return known[dataset.name]

    while True:
        lowered = lower(known)
        sources = source_program(lowered.sources.values(), lowered.project)
        try:
            return ProjectCompiler(lowered, sources, columns).compile()
        except _ColumnsFound:
            continue


def run_project(
    database: Database,
    compiled: CompiledProject,
    fallback: SparkFallback,
    selection: Selection | None = None,
    guards: SourceGuards | None = None,
) -> RunReport:
    """Bring a warehouse up to date with a project; report what was done to each dataset.

    Raises:
        InputError: a source cannot be read, or rows do not fit: nothing was changed.
        ConstraintError: a constraint would not hold.
    """
    began = time.monotonic()
    project = compiled.lowered.project
    names = [each.dataset.name for each in compiled.plans]
    chosen, anew = (selection or Selection()).resolve(names)
    plans = [each for each in compiled.plans if each.dataset.name in chosen]
    state, store = state_of(database), store_of(database)
    known = store.source_positions()
    keys = {flow.key for each in compiled.plans for flow in each.flows}
    keys |= {spark_key(each) for each in compiled.plans if each.spark is not None}
    flows = FlowRun(
        state,
        store,
        warehouse_of(database),
        plans,
        anew,
        lambda plan, reading, earlier: fallback.compute(
            plan, reading, earlier, is_asked=plan.dataset.name in anew
        ),
        frozenset(each for each in known if each.startswith("flow ") and each not in keys),
    )
    before = database.commits
    inputs = Inputs(
        project.root,
        Path("/"),
        guards=guards or SourceGuards(),
        relations=_sources_of(compiled, chosen),
    )
    try:
        outcome = run(
            database,
            compiled.program,
            inputs,
            follow_up=flows.follow_up(),
        )
    finally:
        fallback.close()
    write_sinks(database, [each.dataset for each in plans], project.root)
    earlier = known.get(PIPELINE_REPORT, ("", {}))[1]
    report = _report(
        compiled, chosen, flows, outcome, database, earlier=earlier, is_first=not before
    )
    is_new = database.commits > before
    report = RunReport(
        outcome.commit, is_new, time.monotonic() - began, report.datasets, outcome, report.full
    )
    if is_new:
        kept = {**report.as_json(), "full": report.full, "project": project.name}
        with state.lock:
            store.record_positions(state, {PIPELINE_REPORT: ("", kept)})
    return report


def _sources_of(compiled: CompiledProject, chosen: frozenset[str]) -> frozenset[str]:
    """Return the relations that some datasets depend on."""
    reads: dict[str, set[str]] = {}
    lowered = compiled.lowered
    for flow in lowered.project.flows:
        query = lowered.queries[flow.name]
        reads.setdefault(flow.target, set()).update((*query.reads, *query.streams))
    for cdc in lowered.project.cdc_flows:
        reads.setdefault(cdc.target, set()).add(cdc.source)
    return frozenset(reachable(chosen, lambda name: sorted(reads.get(name, ()))))


# --- the report ----------------------------------------------------------------------------------


def _report(
    compiled: CompiledProject,
    chosen: frozenset[str],
    flows: FlowRun,
    outcome: PipelineRun,
    database: Database,
    *,
    earlier: Mapping[str, Any],
    is_first: bool,
) -> RunReport:
    full = {name: tuple(each) for name, each in dict(earlier.get("full", {})).items()}
    stats = {} if outcome.transaction is None else outcome.transaction.stats
    changes = outcome.changes
    found: list[DatasetReport] = []
    for plan in compiled.plans:
        name = plan.dataset.name
        own = [each for key, each in stats.items() if key == name or key.startswith(f"{name}.")]
        seconds = flows.seconds.get(name, 0.0) + sum(each.seconds for each in own)
        added, removed = _counts(changes, name)
        if plan.dataset.kind is DatasetKind.SINK:
            removed = 0  # those of the run before, which are written
        refreshed = _refreshed(plan, chosen, flows, added + removed, own)
        is_anew = is_first or name in flows.restarted or refreshed is Refreshed.RECOMPUTED
        size = len(database.relation(name)) if plan.dataset.kind != "temporary view" else 0
        if (is_anew or refreshed is Refreshed.SPARK) and seconds:
            full[name] = seconds, size
        estimate = None
        if name in full:
            took, rows = full[name]
            estimate = took * max(1.0, size / rows if rows else 1.0)
        found.append(
            DatasetReport(
                name, str(plan.dataset.kind), refreshed, added, removed, seconds, estimate
            )
        )
    return RunReport(None, False, 0.0, tuple(found), outcome, full)


def _counts(changes: Changes, name: str) -> tuple[int, int]:
    return changes[name].counts if name in changes else (0, 0)


def _refreshed(
    plan: DatasetPlan,
    chosen: frozenset[str],
    flows: FlowRun,
    changed: int,
    stats: Iterable[Any],
) -> Refreshed:
    name = plan.dataset.name
    if plan.dataset.kind is DatasetKind.TEMPORARY_VIEW:
        return Refreshed.VIRTUAL
    if name in flows.touched:
        if plan.spark is not None:
            return Refreshed.SPARK
        return Refreshed.RECOMPUTED if name in flows.restarted else Refreshed.APPENDED
    if not changed:
        return Refreshed.UNCHANGED if name in chosen else Refreshed.SKIPPED
    is_recomputed = any(each.algorithm == RECOMPUTE for each in stats)
    return Refreshed.RECOMPUTED if is_recomputed else Refreshed.INCREMENTAL
