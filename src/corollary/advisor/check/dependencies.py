"""Functional dependencies in the data: violations of declared ones, and proposed keys.

A key that the data suggests is proposed and never assumed: it may hold by chance.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

from corollary.core.arrow import dependency_violations
from corollary.core.program import Relation
from corollary.data_class import dataclass
from corollary.database.database import Database, state_of
from corollary.database.program.loaded_program import resolve_dependencies

if TYPE_CHECKING:
    import pyarrow as pa

PROPOSED_KEY_MAX_COLUMNS = 3
PROPOSED_KEY_MIN_TUPLES = 20
"""In smaller relations, keys hold by chance."""


@dataclass(frozen=True, slots=True)
class ViolatedDependency:
    """A declared dependency that the data violates, and the number of violations."""

    relation: str
    determinants: tuple[str, ...]
    dependents: tuple[str, ...]
    count: int

    def __str__(self) -> str:
        left, right = ", ".join(self.determinants), ", ".join(self.dependents)
        return f"{self.relation}({left} -> {right}) does not hold: {self.count:,} times"


@dataclass(frozen=True, slots=True)
class ProposedKey:
    """Columns in which no two tuples of the data agree."""

    relation: str
    columns: tuple[str, ...]
    rows: int

    def __str__(self) -> str:
        return f"{self.relation} key({', '.join(self.columns)}): holds in {self.rows:,} tuples"


def find_violated_dependencies(database: Database) -> Iterator[ViolatedDependency]:
    """Yield the declared dependencies of derived relations that do not hold.

    Those of base relations are enforced by every commit.
    """
    normal = state_of(database).loaded.normal
    for each in resolve_dependencies(database.program, normal):
        relation = normal.relations[each.relation]
        if not relation.is_derived or not each.dependents:
            continue
        found = dependency_violations(
            database.relation(relation.name).arrow(), each.determinants, each.dependents
        )
        if found[0].num_rows:
            left, right = (
                tuple(relation.columns[at] for at in columns)
                for columns in (each.determinants, each.dependents)
            )
            yield ViolatedDependency(relation.name, left, right, found[0].num_rows)


def propose_keys(database: Database) -> Iterator[ProposedKey]:
    """Yield the minimal sets of columns that are keys of base relations in the data."""
    normal = state_of(database).loaded.normal
    known = {
        (each.relation, frozenset(each.determinants))
        for each in resolve_dependencies(database.program, normal)
        if each.is_key
    }
    for name, relation in normal.relations.items():
        if relation.is_derived or not relation.is_declared or relation.arity < 2:
            continue
        table = state_of(database).engine.read(name)
        if table.num_rows < PROPOSED_KEY_MIN_TUPLES:
            continue
        for columns in _minimal_keys(table, relation):
            if (name, frozenset(columns)) not in known:
                names = tuple(relation.columns[at] for at in columns)
                yield ProposedKey(name, names, table.num_rows)


def _minimal_keys(table: "pa.Table", relation: Relation) -> Iterator[tuple[int, ...]]:
    found: list[set[int]] = []
    for size in range(1, min(PROPOSED_KEY_MAX_COLUMNS, relation.arity - 1) + 1):
        for columns in combinations(range(relation.arity), size):
            if any(key <= set(columns) for key in found):
                continue
            names = [table.column_names[at] for at in columns]
            if table.group_by(names).aggregate([]).num_rows == table.num_rows:
                found.append(set(columns))
                yield columns
