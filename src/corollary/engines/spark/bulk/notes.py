"""Which steps of a plan Spark SQL will compute, and why: what `explain` prints."""

from collections.abc import Callable, Iterable, Sequence

from corollary.core.engine import BulkMode
from corollary.core.pipeline import Pipeline, Reference
from corollary.core.plans import CompareWindows, Derive, Plan, Total, Window
from corollary.engines.local.bulk.fusion import GroupStep, sources_of
from corollary.engines.local.bulk.notes import BulkNotes, SizeOf
from corollary.engines.spark.bulk.step_queries import derive_query, group_query, window_query
from corollary.sqlgen.compiled import NotCompiled

SPARK_SQL = "Spark SQL"


class SparkNotes(BulkNotes):
    """What is said of the steps of one plan, some of which read partitioned relations.

    Args:
        plan: the plan.
        mode: which steps are bulk.
        size_of: the sizes of relations, as far as they are known.
        in_partitions: whether a relation is in partitions.
    """

    def __init__(
        self, plan: Plan, mode: BulkMode, size_of: SizeOf, in_partitions: Callable[[str], bool]
    ) -> None:
        super().__init__(plan, mode, size_of)
        self._in_partitions = in_partitions

    def note(self, step: Derive | GroupStep | Window | CompareWindows) -> str:
        """Return `Spark SQL` and why, or why not; nothing for a step that looks little up.

        Of windows that are compared, where their rows are if that is in partitions.
        """
        if isinstance(step, CompareWindows):
            return self._why([Reference(step.body)]) if self._in_partitions(step.body) else ""
        if isinstance(step, Derive):
            pipelines = [each for each in step.pipelines if self._partitioned(sources_of(each))]
            if self._mode is BulkMode.NEVER or not pipelines:
                return super().note(step)
            return self._derive_note(step, pipelines)
        derive = self._fused_with(step.body.relation)
        if derive is not None and self.note(derive).startswith(f"{SPARK_SQL}, one query"):
            return f"{SPARK_SQL}, one query with {derive.target}"
        if self._mode is BulkMode.NEVER or not self._partitioned([step.body]):
            return super().note(step)
        if not self._is_large([step.body]) or (isinstance(step, Total) and step.is_weighted):
            return ""
        return self._said(self._reason(step, None), self._why([step.body]))

    def _derive_note(self, step: Derive, pipelines: list[Pipeline]) -> str:
        leads = (each.first_source for each in pipelines)
        is_large = any(each is None or self._is_large([each]) for each in leads)
        if not is_large or not self._types[step.target]:
            return ""
        why = self._why(source for each in pipelines for source in sources_of(each))
        readers = self._fused_readers(step)
        if readers and not any(self._reason(each, step.pipelines[0]) for each in readers):
            names = ", ".join(each.target for each in readers)
            return f"{SPARK_SQL}, one query with {names}: {why}"
        if step.reduce is not None and len(self._types[step.target]) == 1:
            return self._said("its only column is summed", why)
        found = derive_query(step, self._types, {})
        return self._said(found.reason if isinstance(found, NotCompiled) else "", why)

    def _fused_with(self, relation: str) -> Derive | None:
        """Return the step that derives a relation, if it is fused with those that read it."""
        found, _ = self._fused.windows.get(relation, (None, None))
        return self._fused.derivations.get(relation, found)

    def _fused_readers(self, step: Derive) -> Sequence[GroupStep | Window]:
        """Return the aggregations or window functions that are fused with a derivation."""
        if self._fused_with(step.target) is not step:
            return []
        if step.target in self._fused.windows:
            return self._fused.windows[step.target][1:]
        return self._fused.readers_of(step.target)

    def _reason(self, step: GroupStep | Window, rows: Pipeline | None) -> str:
        """Return why an aggregation or window functions have no query."""
        if isinstance(step, Window):
            found = window_query(step, rows, self._types)
        else:
            found = group_query([step], rows, self._types)
        return found.reason if isinstance(found, NotCompiled) else ""

    def _said(self, reason: str, why: str) -> str:
        return f"not {SPARK_SQL}: {reason}" if reason else f"{SPARK_SQL}: {why}"

    def _why(self, sources: Iterable[Reference]) -> str:
        names = self._partitioned(sources)
        told = ", ".join(f"`{each}`" for each in names)
        return f"{told} {'is' if len(names) == 1 else 'are'} in partitions"

    def _partitioned(self, sources: Iterable[Reference]) -> list[str]:
        return list(
            dict.fromkeys(each.relation for each in sources if self._in_partitions(each.relation))
        )
