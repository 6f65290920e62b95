"""Several documents in one database, with the same views on each of them.

Nodes are rows of base relations, and views are rules. Nodes and functions have numbers of their own
throughout the database; so the rules need not know which document a node belongs to, and one
transaction can change many documents at once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import count
from typing import Any

import pyarrow as pa

from corollary.core.program import Program
from corollary.data_class import dataclass
from corollary.database.changes import Change, Changes
from corollary.database.database import Database
from corollary.database.opening import open_database
from corollary.documents.answers.unknown import EncodedRow, decode_label, encode_label
from corollary.documents.queries.comparisons import ClockTest, number_of
from corollary.documents.queries.joins import build_shape, duplicates
from corollary.documents.queries.parse import parse_query
from corollary.documents.queries.pattern import DocumentQuery
from corollary.documents.queries.program import BASE, base_program, compile_query, query_node_name
from corollary.documents.queries.shape import QueryShape
from corollary.documents.trees.document_tree import StoredNode
from corollary.documents.trees.forest import ROOT, TESTED, NodeKind
from corollary.documents.types.function_types import FunctionType
from corollary.documents.types.satisfiability import can_bring
from corollary.errors import Diagnostic, Severity

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
    """A database that holds documents, and maintains the views on them."""

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
    """Return nodes as rows of the base relations."""
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


# --- documents and views -------------------------------------------------------------------------


@dataclass(slots=True)
class MaintainedQuery:
    """A query that is maintained on all documents of a collection.

    Attributes:
        name: what the names of its relations begin with.
        query: as it was written.
        shape: the form that is compiled to rules.
        rules: how it is maintained.
        sure, possible: for the root of each document, the answers.
        candidates: the numbers of the functions that may still matter.
        warnings: what may be wrong about the query.
    """

    name: str
    query: DocumentQuery
    shape: QueryShape
    rules: Program
    sure: dict[int, set[EncodedRow]] = field(default_factory=dict)
    possible: dict[int, set[EncodedRow]] = field(default_factory=dict)
    candidates: set[int] = field(default_factory=set)
    warnings: tuple[Diagnostic, ...] = ()

    def apply_changes(self, changes: Changes) -> set[int]:
        """Follow changes of the relations; return the roots of the documents that they affect."""
        touched = _apply_change(self.sure, changes.get(f"{self.name}_sure"))
        touched |= _apply_change(self.possible, changes.get(f"{self.name}_possible"))
        change = changes.get(f"{self.name}_candidate")
        if change is not None and any(change.counts):
            self.candidates -= {number for (number,) in _rows(change.removed)}
            self.candidates |= {number for (number,) in _rows(change.added)}
        return touched


def _apply_change(answers: dict[int, set[EncodedRow]], change: Change | None) -> set[int]:
    if change is None or not any(change.counts):
        return set()
    touched = set()
    for root, *labels in _rows(change.removed):
        answers[root].discard(tuple(labels))
        if not answers[root]:
            del answers[root]
        touched.add(root)
    for root, *labels in _rows(change.added):
        answers.setdefault(root, set()).add(tuple(labels))
        touched.add(root)
    return touched


def _rows(table: Any) -> Iterable[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


class Collection:
    """Documents in one database, and the views on them.

    Args:
        database: one without a program; a new one in memory if it is not given.

    Attributes:
        storage: the database with the relations of all documents.
        views: the queries that are maintained.
        node_numbers, function_numbers: the next number of a node, of a function.
        has_numbers: whether a view compares numbers, so that those of labels are stored.
        has_times: whether a view asks when nodes came, or what time it is.
        clock_tests: what the views ask of the time that it is, for each number.
    """

    def __init__(self, database: Database | None = None) -> None:
        self.storage = Storage(database)
        self.views: list[MaintainedQuery] = []
        self.node_numbers = count()
        self.function_numbers = count()
        self.has_numbers = self.has_times = False
        self.clock_tests: set[ClockTest] = set()
        self._types: list[FunctionType | None] = [None]

    def maintain(self, text: str) -> MaintainedQuery:
        """Maintain a query on all documents from now on.

        Raises:
            QuerySyntaxError: it is not a query.
        """
        for each in self.views:
            if each.query.source.text == text:
                return each
        query = parse_query(text)
        shape = build_shape(query)
        name = f"v{len(self.views) + 1}"
        view = MaintainedQuery(
            name, query, shape, compile_query(name, shape), warnings=query_warnings(query, shape)
        )
        self.views.append(view)
        batch = WriteBatch()
        if shape.has_conditions and not self.has_numbers:
            self.has_numbers = True
            labels = (str(decode_label(each)) for _, each in self.storage.rows("lab"))
            batch.add("num", numbers_of(labels))
        self.has_times = self.has_times or shape.has_times
        self.clock_tests.update(*(root.conditions.clock_tests() for root in shape.roots))
        for number, type_ in enumerate(self._types):
            batch.add("can", _can_rows(view, number, type_))
        self.storage.add_rules(view.rules, batch)
        self._read_results(view)
        return view

    def _read_results(self, view: MaintainedQuery) -> None:
        """Read the answers of a view whose rules have just been added."""
        for answers, relation in ((view.sure, "sure"), (view.possible, "possible")):
            for root, *labels in self.storage.rows(f"{view.name}_{relation}"):
                answers.setdefault(root, set()).add(tuple(labels))
        view.candidates = {number for (number,) in self.storage.rows(f"{view.name}_candidate")}

    def type_number(self, type_: FunctionType | None, batch: WriteBatch) -> int:
        """Return the number of a type; what functions of a new one can bring goes into a batch."""
        if type_ not in self._types:
            self._types.append(type_)
            for view in self.views:
                batch.add("can", _can_rows(view, len(self._types) - 1, type_))
        return self._types.index(type_)

    def write(self, batch: WriteBatch) -> Mapping[int, list[MaintainedQuery]]:
        """Change documents; return for the root of each the views whose answers have changed."""
        touched: dict[int, list[MaintainedQuery]] = {}
        if batch:
            changes = self.storage.write(batch)
            for view in self.views:
                for root in view.apply_changes(changes):
                    touched.setdefault(root, []).append(view)
        return touched


def _can_rows(
    view: MaintainedQuery, number: int, type_: FunctionType | None
) -> list[tuple[int, str]]:
    return [
        (number, query_node_name(view.name, node))
        for node in view.shape.nodes()
        if node.axis is not None and can_bring(type_, node)
    ]


def query_warnings(query: DocumentQuery, shape: QueryShape) -> tuple[Diagnostic, ...]:
    """Return what may be wrong about a query that is accepted nevertheless."""
    found = []
    if not shape.roots:
        message = "The query never matches: a join demands two labels of one node."
        note = "variables that are equal cannot stand at different labels"
        found.append(Diagnostic("C1210", message, None, note, severity=Severity.WARNING))
    for root in query.roots:
        found += [
            Diagnostic(
                "C1211",
                "The predicate occurs twice.",
                node.span,
                "leave one out: one node may match both",
                severity=Severity.WARNING,
            )
            for node in duplicates(root)
        ]
    return tuple(found)
