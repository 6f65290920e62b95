"""What relations should hold that are computed from others, and the counts and totals beside them.

| relation | is computed from |
|---|---|
| the part of the program text | the facts in the text |
| a base relation with several parts | the union of its parts; of a bag, the sums of their counts |
| a derived relation | base relations, by the rules |
"""

from collections.abc import Iterator, Mapping

import pyarrow as pa

from corollary.analysis.strata import strata
from corollary.console import Console
from corollary.core.arrow import from_python, nullary_table, schema_of
from corollary.core.engine import Limits
from corollary.core.graph import reachable
from corollary.core.program import NormalProgram, Relation, relations_read
from corollary.core.recorder import CountingRecorder
from corollary.core.states import State
from corollary.database.counters import ProgressRecorder
from corollary.database.program.parts import TEXT_PART
from corollary.database.state import DatabaseState
from corollary.database.warehouse_store import WarehouseStore
from corollary.engines.local.engine import LocalEngine
from corollary.maintain.algorithms import seminaive
from corollary.maintain.maintenance import plan_payload_rebuild
from corollary.maintain.payload import payload_kind, payload_relations
from corollary.maintain.update import Update
from corollary.warehouse.copies import distinct, sum_counts
from corollary.warehouse.warehouse import Warehouse


def is_computed(program: NormalProgram, name: str) -> bool:
    """Whether a relation is computed from others; the program may lack its rules."""
    relation = program.relations[name]
    texts = (by_part.get(TEXT_PART) for by_part in program.parts.values())
    return relation.is_derived or len(program.parts.get(name, ())) > 1 or name in texts


def expected_contents(
    program: NormalProgram, state: Mapping[str, pa.Table], console: Console
) -> dict[str, pa.Table] | None:
    """Return what all relations that are computed from others should hold.

    Returns:
        None if a relation that they are computed from is not in `state`.
    """
    bases: dict[str, pa.Table] = {}
    for name, relation in program.relations.items():
        if relation.is_derived or is_computed(program, name):
            continue
        if name not in state:
            return None
        bases[name] = state[name]
    made: dict[str, pa.Table] = {}
    counted = {program.bases[bag] for bag in program.bags}
    for base, by_part in program.parts.items():
        for part, at in by_part.items():
            if part == TEXT_PART:
                made[at] = from_python(program.facts.get(base, ()), program.relations[at])
        if len(by_part) > 1:
            every = [made[at] if at in made else bases[at] for at in by_part.values()]
            combine = sum_counts if base in counted else _union
            made[base] = combine(every, program.relations[base])
    engine = recompute(program, {**bases, **made}, console)
    for name, relation in program.relations.items():
        if relation.is_derived and not relation.is_virtual:
            made[name] = engine.read(name)
    return made


def _union(tables: list[pa.Table], relation: Relation) -> pa.Table:
    if not relation.arity:
        return nullary_table(int(any(each.num_rows for each in tables)))
    schema = schema_of(relation)
    return distinct(pa.concat_tables([each.cast(schema) for each in tables]))


def recompute(
    program: NormalProgram, bases: Mapping[str, pa.Table], console: Console
) -> LocalEngine:
    """Return an engine with every stored relation of a program, computed from base relations."""
    program = program.restricted_to(_needed_views(program))
    engine = LocalEngine()
    engine.declare(program.relations)
    for name, relation in program.relations.items():
        if not relation.is_derived and name in bases:
            engine.insert(name, bases[name])
    engine.commit()
    engine.run(
        seminaive.plan_program(program, engine.statistics()), ProgressRecorder(console), Limits()
    )
    return engine


def _needed_views(program: NormalProgram) -> set[str]:
    """Return the stored views of a program, and those that they are computed from."""
    reads = relations_read(program.rules, program.aggregations)
    stored = (name for name, relation in program.relations.items() if relation.is_stored)
    wanted = reachable(stored, lambda name: reads.get(name, ()))
    return {name for name in wanted if program.relations[name].is_derived}


def wrong_payload(
    warehouse: Warehouse, number: int, console: Console
) -> "Iterator[tuple[str, int, int, pa.Table]]":
    """Yield the relations of payload at a commit that are wrong though they count as valid.

    Ranks are left out: many are well-founded, and which came about depends on the order of changes.

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
