"""Whether a pipeline derives no head twice, as the tables are now.

A head has one derivation if it says which tuple every probe finds. It does so step by step: where
the values that are known so far are unique in a table, they say the others of its columns.
"""

from collections.abc import Mapping

from corollary.core.logic import variables_of
from corollary.core.pipeline import Compute, Pipeline, Probe, bound_columns, is_range, slot_names
from corollary.engines.local.storage.table import Table


def has_distinct_rows(pipeline: Pipeline, tables: Mapping[str, Table]) -> bool:
    """Return whether every head of a pipeline is derived once.

    Only keys that are the first columns of a table are found, since its tuples are sorted by them.
    """
    known = slot_names(pipeline.head)
    probes = [stage for stage in pipeline.stages if isinstance(stage, Probe)]
    computed = [stage for stage in pipeline.stages if isinstance(stage, Compute)]
    if any(is_range(stage.expression) for stage in computed):
        return False
    while probes:
        for stage in computed:
            if {each.name for each in variables_of(stage.expression)} <= known:
                known.add(stage.variable.name)
        found = next((each for each in probes if _is_determined(each, known, tables)), None)
        if found is None:
            return False
        probes.remove(found)
        known |= slot_names(found.slots)
    return True


def _is_determined(stage: Probe, known: set[str], tables: Mapping[str, Table]) -> bool:
    """Whether at most one tuple agrees with the known values."""
    columns = bound_columns(stage.slots, known)
    length = next((at for at in range(len(stage.slots)) if at not in columns), None)
    if length is None:
        return True
    if not length:
        return False
    return tables[stage.source.relation].is_key(length, stage.source.state)
