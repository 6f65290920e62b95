"""Place the strata of a program: on the driver, or partitioned over tasks."""

from collections.abc import Mapping
from dataclasses import replace

from corollary.analysis.pivots import pivots
from corollary.analysis.strata import Stratum, strata
from corollary.core.engine import Engine
from corollary.core.logic import Rule, rules_by_head
from corollary.core.plans import PlacedCall, Placement, procedure_name
from corollary.core.program import NormalProgram
from corollary.data_class import dataclass
from corollary.rewrite.partitions import partition_program


@dataclass(frozen=True, slots=True)
class PlacedPrograms:
    """The programs of OLD and NEW, rewritten for their partitions, and the placed strata.

    Attributes:
        places: by procedure; strata that are not listed run on the driver.
    """

    before: NormalProgram
    after: NormalProgram
    places: Mapping[str, PlacedCall]


def place_strata(engine: Engine, before: NormalProgram, after: NormalProgram) -> PlacedPrograms:
    """Let an engine place the strata of NEW, and rewrite both programs for the partitions."""
    places = {}
    old_rules = rules_by_head(before.rules)
    new_rules = old_rules if before is after else rules_by_head(after.rules)
    for stratum in strata(after):
        is_stored = all(after.relations[name].is_stored for name in stratum.relations)
        rules = dict.fromkeys(
            rule for name in stratum.relations for rule in old_rules.get(name, ())
        )
        # Rules that the transaction removes are evaluated too, so the pivot has to suit them.
        both = replace(stratum, rules=tuple(rules | dict.fromkeys(stratum.rules)))
        if not is_stored:
            continue
        pivot = pivots(both)
        below = {each.relation for rule in both.rules for each in rule.literals}
        below |= _aggregated_relations(stratum, after, new_rules)
        placement = engine.placement(
            stratum.relations, sorted(below - set(stratum.relations)), has_pivot=pivot is not None
        )
        if placement is not Placement.DRIVER:
            name = procedure_name(stratum.relations)
            assert pivot is not None, "only such a stratum is partitioned"
            places[name] = PlacedCall(name, placement, tuple(pivot.items()))
    by_relation = {
        name: dict(each.columns)
        for each in places.values()
        if each.placement is Placement.TASKS
        for name, _ in each.columns
    }
    if not by_relation:
        return PlacedPrograms(before, after, places)
    old = partition_program(before, by_relation)
    new = old if before is after else partition_program(after, by_relation)
    return PlacedPrograms(old, new, places)


def _aggregated_relations(
    stratum: Stratum, program: NormalProgram, rules: Mapping[str, list[Rule]]
) -> set[str]:
    """Return the relations that the aggregates of a stratum read, through inlined bodies."""
    bodies = {each.body for each in stratum.aggregations}
    inlined = {name for name in bodies if program.relations[name].is_inlined}
    read = (rule.literals for name in inlined for rule in rules.get(name, ()))
    return bodies - inlined | {each.relation for literals in read for each in literals}
