"""Documents in a database: their nodes as base relations, and the rules of all views on them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from corollary.core.program import Program
from corollary.database.changes import Changes
from corollary.database.database import Database
from corollary.database.opening import open_database
from corollary.documents.forest import ROOT, Kind
from corollary.documents.nodes import Placed
from corollary.documents.program import BASE, base_program
from corollary.documents.unknown import stored

Rows = Sequence[tuple[Any, ...]]
MANY = 1000
"""From so many rows on, a table of columns is handed over."""


@dataclass(slots=True)
class Batch:
    """Rows that come and go together, by relation; what is said last of a row, holds."""

    added: dict[str, dict[tuple[Any, ...], None]] = field(default_factory=dict)
    removed: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)

    def add(self, relation: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Note rows that come."""
        self.added.setdefault(relation, {}).update(dict.fromkeys(rows))

    def remove(self, relation: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Note rows that go; those that were to come, do not."""
        coming, gone = self.added.get(relation, {}), self.removed.setdefault(relation, [])
        for row in rows:
            coming.pop(row, None)
            gone.append(row)

    def __bool__(self) -> bool:
        return any(self.added.values()) or any(self.removed.values())


class Storage:
    """A database that holds documents, and keeps the views on them true.

    Args:
        database: one without a program; a new one in memory if it is not given.
    """

    def __init__(self, database: Database | None = None) -> None:
        self.database = database or open_database(None, engine="local")
        self._program = base_program()
        with self.database.transaction() as transaction:
            transaction.set_program(self._program)

    def define(self, rules: Program, batch: Batch) -> None:
        """Put the rules of a further view into force, with the rows that it needs."""
        self._program += rules
        with self.database.transaction() as transaction:
            transaction.set_program(self._program)
            for relation, rows in batch.added.items():
                transaction.insert(relation, [*rows])

    def write(self, batch: Batch) -> Changes:
        """Let rows come and go, in one transaction; return what has changed."""
        transaction = self.database.transaction()
        with transaction:
            for relation, rows in batch.removed.items():
                transaction.delete(relation, _table(relation, rows))
            for relation, coming in batch.added.items():
                transaction.insert(relation, _table(relation, [*coming]))
        return transaction.changes

    def rows(self, relation: str) -> list[tuple[Any, ...]]:
        """Return the tuples of a relation."""
        return self.database.relation(relation).rows()


def _table(relation: str, rows: Rows) -> Any:
    if len(rows) < MANY or relation not in BASE:
        return rows
    names = [name for name, _ in BASE[relation]]
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def facts_of(placed: Iterable[Placed], functions: Mapping[str, int]) -> dict[str, Rows]:
    """Return nodes as rows of the base relations.

    Args:
        placed: the nodes.
        functions: the numbers of functions by name.
    """
    found: dict[str, list[tuple[Any, ...]]] = {}
    for number, parent, label, kind in placed:
        if parent == ROOT:
            found.setdefault("root", []).append((number,))
        else:
            found.setdefault("par", []).append((parent, number))
        if kind is Kind.FUNCTION:
            found.setdefault("call", []).append((number, functions[label]))
            continue
        found.setdefault("lab", []).append((number, stored(label)))
        found.setdefault("data", []).append((number,))
        if kind is Kind.TEXT:
            found.setdefault("text", []).append((number,))
    return dict(found)
