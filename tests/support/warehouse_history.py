"""Warehouses with a past: random transactions, and what was seen after each of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import corollary
from corollary.core.arrow import to_python
from corollary.database.database import Database
from corollary.database.upkeep.verify import verify
from corollary.warehouse.orphan_files import list_data_files
from corollary.warehouse.warehouse import Warehouse

PROGRAM = """\
.decl edge(x: symbol, y: symbol)
.decl node(x: symbol, weight: number?)
.decl path(x: symbol, y: symbol)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl fan(x: symbol, n: number)
fan(x, n) :- node(x, _), n = count : { edge(x, _) }.
.decl lone(x: symbol)
lone(x) :- node(x, _), !path(x, _).
.output path
edge("t", "u").
"""
RULES = ("path(x, y) :- edge(y, x).", "lone(x) :- edge(x, x).", 'lone(x) :- path("a", x).')
NAMES = "abcdefgh"

Seen = dict[str, list[tuple[Any, ...]]]


def state(database: Database) -> Seen:
    """Return what all declared relations hold."""
    return {
        name: sorted(to_python(database._state.engine.read(name)), key=repr)
        for name, relation in database._state.loaded.normal.relations.items()
        if relation.is_declared and not relation.is_virtual
    }


class House:
    """A warehouse, and what was seen at each commit."""

    def __init__(self, place: str, seed: int = 0) -> None:
        self.place = place
        self.random = random.Random(seed)
        self.db = corollary.open(place)
        self.rules: set[str] = set()
        self.seen: dict[int, Seen] = {}
        self.changes: dict[int, dict[str, tuple[int, int]]] = {}
        if not self.db.commits:
            self.db.load(text=PROGRAM)
        self.note()

    @property
    def warehouse(self) -> Warehouse:
        assert self.db._store is not None
        return self.db._store.warehouse

    @property
    def root(self) -> Path:
        return self.warehouse.root

    def fold(self) -> None:
        assert self.db._store is not None
        self.db._store.fold(self.db._state)

    def note(self) -> None:
        self.seen[self.db.commits] = state(self.db)

    def change(self, count: int = 1) -> None:
        """Make random transactions."""
        for _ in range(count):
            with self.db.transaction() as tx:
                for _ in range(self.random.randint(1, 4)):
                    self._operate(tx)
            if tx.commit_number is not None:
                self.note()
                self.changes[tx.commit_number] = counts(tx.changes)

    def _operate(self, tx: Any) -> None:
        one, two = self.random.choice(NAMES), self.random.choice(NAMES)
        kind = self.random.random()
        if kind < 0.45:
            tx.insert("edge", [(one, two)])
        elif kind < 0.7:
            tx.delete("edge", [(one, two)])
        elif kind < 0.9:
            tx.insert("node", [(one, self.random.choice([None, 1, 2]))])
        elif kind < 0.95:
            tx.delete("node", [(one, 1)])
        else:
            rule = self.random.choice(RULES)
            (tx.remove_rule if rule in self.rules else tx.add_rule)(rule)
            self.rules ^= {rule}

    def demand_past(self, oldest: int) -> None:
        """Demand that every commit from one on is as it was seen."""
        with corollary.open(self.place) as fresh:
            assert state(fresh) == self.seen[self.db.commits]
            every = range(max(oldest, 1), self.db.commits + 1)
            sample = self.random.sample(every, min(len(every), 5))
            for number in sorted({every[0], *sample}):
                if number in self.seen:
                    assert state(fresh.at(number)) == self.seen[number], number
                if number in self.changes:
                    assert counts(fresh.changes(number)) == self.changes[number], number

    def demand_sound(self) -> None:
        """Demand that everything fits together, and nothing is left behind."""
        report = verify(self.warehouse)
        assert not report.findings, "\n".join(map(str, report.findings))
        assert report.has_recomputed
        found = list_data_files(self.root, self.warehouse.catalog)
        assert not found.orphans
        assert not found.in_flight

    def close(self) -> None:
        self.db.close()


def counts(changes: Any) -> dict[str, tuple[int, int]]:
    """Return how many tuples came and went, relation by relation."""
    return {name: each.counts for name, each in changes.items()}
