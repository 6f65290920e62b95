"""Functional dependencies and the data: do declared ones hold, which keys does it suggest?

What the data suggests is proposed and never assumed: it may be so by chance.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from corollary.core.arrow import disagreeing
from corollary.core.program import Relation
from corollary.database.database import Database, state_of
from corollary.database.keys import dependences

if TYPE_CHECKING:
    import pyarrow as pa

WIDEST = 3
"""Keys of at most so many columns are looked for."""
FEWEST = 20
"""Fewer tuples suggest nothing."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A declared dependency that the data breaks, and how many times."""

    relation: str
    determinants: tuple[str, ...]
    dependents: tuple[str, ...]
    count: int

    def __str__(self) -> str:
        left, right = ", ".join(self.determinants), ", ".join(self.dependents)
        return f"{self.relation}({left} -> {right}) does not hold: {self.count:,} times"


@dataclass(frozen=True, slots=True)
class ProposedKey:
    """Columns without two tuples that agree in them, so far."""

    relation: str
    columns: tuple[str, ...]
    rows: int

    def __str__(self) -> str:
        return f"{self.relation} key({', '.join(self.columns)}): holds in {self.rows:,} tuples"


def broken_dependences(database: Database) -> Iterator[Broken]:
    """Yield the declared dependencies that do not hold; those of base relations always do."""
    normal = state_of(database).loaded.normal
    for each in dependences(database.program, normal):
        relation = normal.relations[each.relation]
        if not relation.is_derived or not each.dependents:
            continue
        found = disagreeing(
            database.relation(relation.name).arrow(), each.determinants, each.dependents
        )
        if found[0].num_rows:
            left, right = (
                tuple(relation.columns[at] for at in columns)
                for columns in (each.determinants, each.dependents)
            )
            yield Broken(relation.name, left, right, found[0].num_rows)


def proposed_keys(database: Database) -> Iterator[ProposedKey]:
    """Yield the smallest sets of columns that are keys of base relations, as far as data goes."""
    normal = state_of(database).loaded.normal
    known = {
        (each.relation, frozenset(each.determinants))
        for each in dependences(database.program, normal)
        if each.is_key
    }
    for name, relation in normal.relations.items():
        if relation.is_derived or not relation.is_declared or relation.arity < 2:
            continue
        table = state_of(database).engine.read(name)
        if table.num_rows < FEWEST:
            continue
        for columns in _keys(table, relation):
            if (name, frozenset(columns)) not in known:
                names = tuple(relation.columns[at] for at in columns)
                yield ProposedKey(name, names, table.num_rows)


def _keys(table: "pa.Table", relation: Relation) -> Iterator[tuple[int, ...]]:
    found: list[set[int]] = []
    for size in range(1, min(WIDEST, relation.arity - 1) + 1):
        for columns in combinations(range(relation.arity), size):
            if any(key <= set(columns) for key in found):
                continue
            names = [table.column_names[at] for at in columns]
            if table.group_by(names).aggregate([]).num_rows == table.num_rows:
                found.append(set(columns))
                yield columns
