"""A bag is written to in the relation of its counts; equal facts of its text add up."""

from corollary.analysis.bags import rows_name
from corollary.core.logic import Value
from corollary.rewrite.translation_unit import TranslationUnit


def bags(unit: TranslationUnit) -> None:
    """Make the relation of its counts the base of each bag."""
    unit.bags = {each.name: rows_name(each.name) for each in unit.declarations if each.is_bag}
    unit.bases = {**unit.bases, **unit.bags}
    for rows in unit.bags.values():
        if rows in unit.facts:
            unit.facts[rows] = _sum_counts(unit.facts[rows])


def _sum_counts(facts: list[tuple[Value, ...]]) -> list[tuple[Value, ...]]:
    found: dict[tuple[Value, ...], int] = {}
    for *row, copies in facts:
        assert isinstance(copies, int)
        found[tuple(row)] = found.get(tuple(row), 0) + copies
    return [(*row, copies) for row, copies in found.items()]
