"""Whether steps of a plan will be bulk, and why not: what `explain` prints."""

from collections.abc import Callable, Iterable

from corollary.core.engine import BULK_MIN_TUPLES, BulkMode
from corollary.core.pipeline import Pipeline, Reference
from corollary.core.plans import Aggregate, CompareWindows, Derive, Plan, Reduce, Total, Window
from corollary.engines.local.bulk import fusion
from corollary.engines.local.bulk.estimates import computes_values
from corollary.engines.local.evaluation.pipelines import copied_reference
from corollary.sqlgen.compiled import NotCompiled

BULK = "bulk"

SizeOf = Callable[[Reference], int | None]
"""Returns the number of tuples of a relation in a state, None if it is not known."""


class BulkNotes:
    """What is said of the steps of one plan.

    Args:
        plan: the plan.
        mode: which steps are bulk.
        size_of: the sizes of relations, as far as they are known.
    """

    def __init__(self, plan: Plan, mode: BulkMode, size_of: SizeOf) -> None:
        self._types = plan.types
        self._mode = mode
        self._size_of = size_of
        self._fused = fusion.find_fused_steps(plan)

    def note(self, step: Derive | fusion.GroupStep | Window | CompareWindows) -> str:
        """Return `bulk`, or why a step is not; nothing for windows, and what few tuples lead."""
        if self._mode is BulkMode.NEVER or isinstance(step, Window | CompareWindows):
            return ""
        if not isinstance(step, Derive):
            return self._group_note(step)
        readers = self._readers(step)
        if readers and self._is_fused(step, readers):
            return f"{BULK}, one query with {', '.join(each.target for each in readers)}"
        leads = filter(None, (each.first_source for each in step.pipelines))
        if not self._is_large(leads):
            return ""
        parts = [self._pipeline_reason(each, step) for each in step.pipelines]
        reasons = {each: None for each in parts if each}
        if not reasons:
            return BULK
        prefix = "not bulk" if len(reasons) == len(parts) or all(parts) else "partly bulk"
        return f"{prefix}: {'; '.join(reasons)}"

    def _is_large(self, references: Iterable[Reference]) -> bool:
        return self._mode is BulkMode.ALWAYS or any(
            (self._size_of(each) or 0) >= BULK_MIN_TUPLES for each in references
        )

    # --- aggregations --------------------------------------------------------------------------

    def _readers(self, step: Derive) -> list[fusion.GroupStep]:
        """Return the aggregations that are fused with a derivation."""
        if self._fused.derivations.get(step.target) is not step:
            return []
        return self._fused.readers_of(step.target)

    def _is_fused(self, step: Derive, readers: Iterable[fusion.GroupStep]) -> bool:
        (pipeline,) = step.pipelines
        if pipeline.first_source is None or not self._is_large(fusion.sources_of(pipeline)):
            return False
        return not any(self._group_reason(each, pipeline) for each in readers)

    def _group_note(self, step: fusion.GroupStep) -> str:
        derive = self._fused.derivations.get(step.body.relation)
        if derive is not None and self._is_fused(derive, self._readers(derive)):
            return BULK
        if isinstance(step, Total) and step.is_weighted:
            return ""
        if not self._is_large([step.body]):
            return ""
        reason = self._group_reason(step, fusion.scan(step, self._types))
        return f"not bulk: {reason}" if reason else BULK

    def _group_reason(self, step: Aggregate | Total, rows: Pipeline) -> str:
        from corollary.sqlgen.duckdb_dialect import DUCKDB
        from corollary.sqlgen.groups import GroupedRows, compile_groups

        head = self._types[step.body.relation]
        grouped = GroupedRows(rows, head, step.aggregation.groups)
        summaries = [fusion.summaries_of(step, self._types)]
        found = compile_groups(grouped, summaries, self._types, DUCKDB, lambda _: 0)
        return found.reason if isinstance(found, NotCompiled) else ""

    # --- pipelines -----------------------------------------------------------------------------

    def _pipeline_reason(self, pipeline: Pipeline, step: Derive) -> str:
        from corollary.sqlgen.duckdb_dialect import DUCKDB
        from corollary.sqlgen.pipelines import compile_pipeline

        sums_last = step.reduce is Reduce.SUM
        if copied_reference(pipeline) is not None and not sums_last:
            return "it only copies"
        if pipeline.first_source is None:
            return "it reads no relation"
        if self._mode is BulkMode.AUTO and not computes_values(pipeline):
            return "it computes nothing"
        found = compile_pipeline(
            pipeline,
            self._types,
            self._types[step.target],
            DUCKDB,
            lambda _: 0,
            sums_last=sums_last,
        )
        return found.reason if isinstance(found, NotCompiled) else ""
