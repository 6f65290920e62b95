"""What counts and totals should be beside the relations of a warehouse, where they are not.

Ranks are left out: many are well-founded, and which came about depends on the order of changes.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from corollary.analysis.strata import strata
from corollary.console import Console
from corollary.core.engine import Limits
from corollary.core.recorder import CountingRecorder
from corollary.core.states import State
from corollary.database.state import DatabaseState
from corollary.database.warehouse_store import WarehouseStore
from corollary.engines.local.engine import LocalEngine
from corollary.maintain.maintenance import plan_payload_rebuild
from corollary.maintain.payload import payload_kind, payload_relations
from corollary.maintain.update import Update
from corollary.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    import pyarrow as pa


def wrong_payload(
    warehouse: Warehouse, number: int, console: Console
) -> "Iterator[tuple[str, int, int, pa.Table]]":
    """Yield the relations of payload at a commit that are wrong though they count as valid.

    Each comes with the number of tuples that it lacks, of those it should not have, and with the
    tuples that it should have.

    Raises:
        WarehouseError: something is damaged that the commit needs.
    """
    state = DatabaseState(LocalEngine(), console=console)
    WarehouseStore(warehouse).restore(state, number)
    program, engine = state.loaded.normal, state.engine
    update = Update(program, program, {}, engine.statistics())
    for stratum in strata(program):
        kind = payload_kind(stratum, program)
        is_valid = state.planner.payload >= set(stratum.relations)
        if kind is None or not kind.is_determined or not is_valid:
            continue
        engine.run(plan_payload_rebuild(stratum, update), CountingRecorder(), Limits())
        for relation in payload_relations(stratum, program):
            name = relation.name
            missing, extra = engine.size(name, State.ADDED), engine.size(name, State.REMOVED)
            if missing or extra:
                yield name, missing, extra, engine.read(name)
        engine.rollback()
