"""Relations that passes made for virtual relations only are virtual too.

An aggregate's body, its keys, the projection under a negation: none of them is stored if every
relation that reads it is virtual, and nothing declares it `stored`.
"""

from dataclasses import replace

from corollary.core.graph import reversed_arcs
from corollary.core.program import relations_read
from corollary.rewrite.translation_unit import TranslationUnit


def virtual(unit: TranslationUnit) -> None:
    """Make relations of passes virtual that only virtual ones read."""
    readers = reversed_arcs(relations_read(unit.rules, unit.aggregations))
    stored = {each.name for each in unit.declarations if each.storage == "stored"}
    has_changed = True
    while has_changed:
        has_changed = False
        for name, relation in unit.relations.items():
            above = readers.get(name, {}).keys() - {name}
            is_open = relation.is_derived and not (relation.is_declared or relation.is_virtual)
            if (
                name not in stored
                and is_open
                and above
                and all(unit.relations[each].is_virtual for each in above)
            ):
                unit.relations[name] = replace(relation, is_virtual=True)
                has_changed = True
