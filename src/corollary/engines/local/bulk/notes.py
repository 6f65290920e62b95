"""Whether steps of a plan will be bulk, and why not: what `explain` prints."""

from collections.abc import Callable, Mapping

from corollary.core.engine import BULK_MIN_TUPLES, BulkMode
from corollary.core.pipeline import Pipeline, Probe, Reference
from corollary.core.plans import Aggregate, Derive, Reduce
from corollary.core.types import Type
from corollary.engines.local.bulk.estimates import computes_values
from corollary.engines.local.evaluation.pipelines import copied_reference
from corollary.engines.sql.compiled import NotCompiled

BULK = "bulk"

SizeOf = Callable[[Reference], int | None]
"""Returns the number of tuples of a relation in a state, None if it is not known."""


def bulk_note(
    step: Derive | Aggregate,
    types: Mapping[str, tuple[Type, ...]],
    mode: BulkMode,
    size_of: SizeOf,
) -> str:
    """Return `bulk`, or why a step is not; nothing for a step that is led by few tuples.

    Args:
        step: the step.
        types: the column types of every relation of the plan.
        mode: which steps are bulk.
        size_of: the sizes of relations, as far as they are known.
    """
    if mode is BulkMode.NEVER:
        return ""
    leads = [step.body] if isinstance(step, Aggregate) else map(_lead, step.pipelines)
    is_large = mode is BulkMode.ALWAYS or any(
        (size_of(lead) or 0) >= BULK_MIN_TUPLES for lead in leads if lead is not None
    )
    if not is_large:
        return ""
    if isinstance(step, Aggregate):
        parts = [_aggregation_reason(step, types)]
    else:
        parts = [_pipeline_reason(each, step, types, mode) for each in step.pipelines]
    reasons = {each: None for each in parts if each}
    if not reasons:
        return BULK
    prefix = "not bulk" if len(reasons) == len(parts) or all(parts) else "partly bulk"
    return f"{prefix}: {'; '.join(reasons)}"


def _lead(pipeline: Pipeline) -> Reference | None:
    return next((each.source for each in pipeline.stages if isinstance(each, Probe)), None)


def _aggregation_reason(step: Aggregate, types: Mapping[str, tuple[Type, ...]]) -> str:
    from corollary.engines.sql.aggregates import compile_aggregation
    from corollary.engines.sql.duckdb_dialect import DUCKDB

    result = types[step.target][-1]
    found = compile_aggregation(step.aggregation, step.body, types, result, DUCKDB)
    return found.reason if isinstance(found, NotCompiled) else ""


def _pipeline_reason(
    pipeline: Pipeline, step: Derive, types: Mapping[str, tuple[Type, ...]], mode: BulkMode
) -> str:
    from corollary.engines.sql.duckdb_dialect import DUCKDB
    from corollary.engines.sql.pipelines import compile_pipeline

    sums_last = step.reduce is Reduce.SUM
    if copied_reference(pipeline) is not None and not sums_last:
        return "it only copies"
    if _lead(pipeline) is None:
        return "it reads no relation"
    if mode is BulkMode.AUTO and not computes_values(pipeline):
        return "it computes nothing"
    head = types[step.target]
    found = compile_pipeline(pipeline, types, head, DUCKDB, lambda _: 0, sums_last=sums_last)
    return found.reason if isinstance(found, NotCompiled) else ""
