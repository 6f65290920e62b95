"""Several documents in one database, with the same views on each of them.

Nodes and functions have numbers of their own throughout the database; so the rules need not know
which document a node belongs to, and one transaction can change many documents at once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from corollary.core.program import Program
from corollary.database.changes import Change, Changes
from corollary.database.database import Database
from corollary.documents.joins import duplicates, shape_of
from corollary.documents.parse import parse_query
from corollary.documents.pattern import Query
from corollary.documents.program import compiled, part
from corollary.documents.satisfiable import can_bring
from corollary.documents.shape import Shape
from corollary.documents.storage import Batch, Storage
from corollary.documents.types import FunctionType
from corollary.errors import Diagnostic, Severity

Symbols = tuple[str, ...]
"""An answer as it stands in relations."""


@dataclass(slots=True)
class Maintained:
    """A query that is maintained on all documents of a collection.

    Attributes:
        name: what the names of its relations begin with.
        query: as it was written.
        shape: as the rules are made of it.
        sure, possible: for the root of each document, the answers.
        candidates: the numbers of the functions that may still matter.
        warnings: what is doubtful about the query.
    """

    name: str
    query: Query
    shape: Shape
    rules: Program
    sure: dict[int, set[Symbols]] = field(default_factory=dict)
    possible: dict[int, set[Symbols]] = field(default_factory=dict)
    candidates: set[int] = field(default_factory=set)
    warnings: tuple[Diagnostic, ...] = ()

    def take(self, changes: Changes) -> set[int]:
        """Take note of what has changed; return the roots of the documents that it is about."""
        touched = _follow(self.sure, changes.get(f"{self.name}_sure"))
        touched |= _follow(self.possible, changes.get(f"{self.name}_possible"))
        change = changes.get(f"{self.name}_candidate")
        if change is not None and any(change.counts):
            self.candidates -= {number for (number,) in _rows(change.removed)}
            self.candidates |= {number for (number,) in _rows(change.added)}
        return touched


def _follow(answers: dict[int, set[Symbols]], change: Change | None) -> set[int]:
    if change is None or not any(change.counts):
        return set()
    touched = set()
    for root, *symbols in _rows(change.removed):
        answers[root].discard(tuple(symbols))
        if not answers[root]:
            del answers[root]
        touched.add(root)
    for root, *symbols in _rows(change.added):
        answers.setdefault(root, set()).add(tuple(symbols))
        touched.add(root)
    return touched


def _rows(table: Any) -> Iterable[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


class Collection:
    """Documents in one database, and the views on them.

    Args:
        database: one without a program; a new one in memory if it is not given.
    """

    def __init__(self, database: Database | None = None) -> None:
        self.storage = Storage(database)
        self.views: list[Maintained] = []
        self.nodes = count()
        self.functions = count()
        self._kinds: list[FunctionType | None] = [None]

    def maintain(self, text: str) -> Maintained:
        """Maintain a query on all documents from now on.

        Raises:
            QuerySyntaxError: the text is no query.
        """
        for each in self.views:
            if each.query.source.text == text:
                return each
        query = parse_query(text)
        shape = shape_of(query)
        name = f"v{len(self.views) + 1}"
        view = Maintained(name, query, shape, compiled(name, shape), warnings=doubts(query, shape))
        self.views.append(view)
        batch = Batch()
        for kind, type_ in enumerate(self._kinds):
            batch.add("can", _can(view, kind, type_))
        self.storage.define(view.rules, batch)
        self._read(view)
        return view

    def _read(self, view: Maintained) -> None:
        """Read the answers of a view that has just begun."""
        for answers, kind in ((view.sure, "sure"), (view.possible, "possible")):
            for root, *symbols in self.storage.rows(f"{view.name}_{kind}"):
                answers.setdefault(root, set()).add(tuple(symbols))
        view.candidates = {number for (number,) in self.storage.rows(f"{view.name}_candidate")}

    def kind_of(self, type_: FunctionType | None, batch: Batch) -> int:
        """Return the number of a type of functions; what a new one can bring goes into a batch."""
        if type_ not in self._kinds:
            self._kinds.append(type_)
            for view in self.views:
                batch.add("can", _can(view, len(self._kinds) - 1, type_))
        return self._kinds.index(type_)

    def write(self, batch: Batch) -> Mapping[int, list[Maintained]]:
        """Change documents; return for the root of each the views whose answers have changed."""
        touched: dict[int, list[Maintained]] = {}
        if batch:
            changes = self.storage.write(batch)
            for view in self.views:
                for root in view.take(changes):
                    touched.setdefault(root, []).append(view)
        return touched


def _can(view: Maintained, kind: int, type_: FunctionType | None) -> list[tuple[int, str]]:
    return [
        (kind, part(view.name, node))
        for node in view.shape.nodes()
        if node.axis is not None and can_bring(type_, node)
    ]


def doubts(query: Query, shape: Shape) -> tuple[Diagnostic, ...]:
    """Return what is doubtful about a query."""
    found = []
    if not shape.roots:
        message = "The query never matches: a join demands two labels of one node."
        note = "variables that are equal cannot stand at different labels"
        found.append(Diagnostic("C1210", message, None, note, severity=Severity.WARNING))
    for root in query.roots:
        found += [
            Diagnostic(
                "C1211",
                "The predicate stands there twice.",
                node.span,
                "leave one out: one node may match both",
                severity=Severity.WARNING,
            )
            for node in duplicates(root)
        ]
    return tuple(found)
