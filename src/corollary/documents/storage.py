"""Documents in a database: their nodes as base relations, and the rules of all views on them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import pyarrow as pa

from corollary.core.program import Program
from corollary.data_class import dataclass
from corollary.database.changes import Changes
from corollary.database.database import Database
from corollary.database.opening import open_database
from corollary.documents.answers.unknown import encode_label
from corollary.documents.queries.comparisons import number_of
from corollary.documents.queries.program import BASE, base_program
from corollary.documents.trees.document_tree import StoredNode
from corollary.documents.trees.forest import ROOT, TESTED, NodeKind

Rows = Sequence[tuple[Any, ...]]
TABLE_MIN_ROWS = 1000
"""From this number of rows on, they are inserted as a table of columns."""


@dataclass(slots=True)
class WriteBatch:
    """Rows to add and to remove in one transaction, by relation; the last call for a row wins."""

    added: dict[str, dict[tuple[Any, ...], None]] = field(default_factory=dict)
    removed: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)

    def add(self, relation: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Note rows to add."""
        self.added.setdefault(relation, {}).update(dict.fromkeys(rows))

    def remove(self, relation: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Note rows to remove; those that were to be added are not."""
        added, removed = self.added.get(relation, {}), self.removed.setdefault(relation, [])
        for row in rows:
            added.pop(row, None)
            removed.append(row)

    def __bool__(self) -> bool:
        return any(self.added.values()) or any(self.removed.values())


class Storage:
    """A database that holds documents, and maintains the views on them.

    Args:
        database: one without a program; a new one in memory if it is not given.
    """

    def __init__(self, database: Database | None = None) -> None:
        self.database = database or open_database(None, engine="local")
        self._program = base_program()
        with self.database.transaction() as transaction:
            transaction.set_program(self._program)

    def add_rules(self, rules: Program, batch: WriteBatch) -> None:
        """Add the rules of a view, with the rows that it needs."""
        self._program += rules
        with self.database.transaction() as transaction:
            transaction.set_program(self._program)
            for relation, rows in batch.added.items():
                transaction.insert(relation, [*rows])

    def write(self, batch: WriteBatch) -> Changes:
        """Add and remove rows in one transaction; return what has changed."""
        transaction = self.database.transaction()
        with transaction:
            for relation, rows in batch.removed.items():
                transaction.delete(relation, _table(relation, rows))
            for relation, added in batch.added.items():
                transaction.insert(relation, _table(relation, [*added]))
        return transaction.changes

    def rows(self, relation: str) -> list[tuple[Any, ...]]:
        """Return the tuples of a relation."""
        return self.database.relation(relation).rows()


def _table(relation: str, rows: Rows) -> Any:
    if len(rows) < TABLE_MIN_ROWS or relation not in BASE:
        return rows
    names = [name for name, _ in BASE[relation]]
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def numbers_of(labels: Iterable[str]) -> list[tuple[str, float]]:
    """Return the rows of `num` for the labels that spell a number or a time."""
    return [
        (encode_label(label), value)
        for label in dict.fromkeys(labels)
        if (value := number_of(label)) is not None
    ]


def facts_of(
    nodes: Iterable[StoredNode], functions: Mapping[str, int], *, has_times: bool
) -> dict[str, Rows]:
    """Return nodes as rows of the base relations.

    Args:
        nodes: the nodes.
        functions: the numbers of functions by name.
        has_times: whether it is stored when nodes came.
    """
    found: dict[str, list[tuple[Any, ...]]] = {}
    for number, parent, label, kind, arrival in nodes:
        if has_times:
            found.setdefault("arrived", []).append((number, encode_label(arrival)))
        if parent == ROOT:
            found.setdefault("root", []).append((number,))
        else:
            found.setdefault("par", []).append((parent, number))
        if kind is NodeKind.FUNCTION:
            found.setdefault("call", []).append((number, functions[label]))
            continue
        found.setdefault("lab", []).append((number, encode_label(label)))
        found.setdefault("data", []).append((number,))
        if kind in TESTED:
            found.setdefault("scalar", []).append((number, str(kind)))
    return dict(found)
