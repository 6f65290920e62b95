"""Databases that last: what happens to them between transactions, and what is true then.

`Keeper` remembers what was seen at each commit. It closes and opens the database, folds, loses
index files, looks back at earlier commits, lets go of them, verifies, exports and
imports it, and lets another handle do the next transaction.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest

from corollary.core.arrow import to_python
from corollary.core.plans import WORKING_SEPARATOR
from corollary.database.database import Database
from corollary.database.transaction import Transaction
from corollary.database.upkeep.checked_reads import FindingKind
from corollary.database.upkeep.retention import Retention, collect
from corollary.database.upkeep.transfer import export_all, import_all
from corollary.database.upkeep.verify import verify
from corollary.database.warehouse_store import WarehouseStore
from corollary.errors import WarehouseError
from corollary.maintain.payload import payload_relations_of
from corollary.warehouse.files.places import Place, remove_tree
from corollary.warehouse.warehouse_catalog import parse_location
from support.comparison import comparable
from support.generators.scenarios import Scenario, judge
from support.maintained_database import Judged, reopened

Seen = dict[str, list[Any]]


def store_of(db: Database) -> WarehouseStore:
    """Return the warehouse of a database."""
    assert db._store is not None
    return db._store


def root_of(db: Database) -> Place:
    """Return the place of a database."""
    return store_of(db).warehouse.root


def stored(db: Database) -> Seen:
    """Return what all declared relations hold, but for virtual ones, which are not stored."""
    return {
        name: comparable(to_python(db._state.engine.read(name)))
        for name, relation in db._state.loaded.normal.relations.items()
        if relation.is_declared and not relation.is_virtual
    }


def everything(db: Database) -> dict[str, Any]:
    """Return what a database holds, relations that rewriting made and valid payload included."""
    relations = db._state.loaded.normal.relations
    beside = payload_relations_of(db._state.loaded.normal)
    valid = [
        name for name in beside if name.partition(WORKING_SEPARATOR)[0] in db._state.planner.payload
    ]
    return {
        "relations": {
            name: comparable(to_python(db._state.engine.read(name)))
            for name in (*relations, *valid)
            if name in beside or not (relations[name].is_derived and relations[name].is_virtual)
        },
        "bases": db._state.loaded.normal.bases,
        "parts": db._state.loaded.normal.parts,
        "payload": db._state.planner.payload
        & {name.partition(WORKING_SEPARATOR)[0] for name in beside},
        "commits": db.commits,
    }


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return what two mappings do not agree in."""
    found = {}
    for name in {*one, *other}:
        values = one.get(name), other.get(name)
        if values[0] != values[1]:
            are_nested = all(isinstance(each, Mapping) for each in values)
            found[name] = differences(*values) if are_nested else values  # type: ignore[arg-type]
    return found


def reported(db: Database, changes: Any) -> dict[str, tuple[list[Any], list[Any]]]:
    """Return what changes say of declared relations that are stored."""
    relations = db._state.loaded.normal.relations
    return {
        name: (comparable(to_python(each.added)), comparable(to_python(each.removed)))
        for name, each in changes.items()
        if not relations[name].is_virtual
    }


def index_files(db: Database) -> list[Place]:
    """Return the index files of all folds."""
    return sorted(root_of(db).glob("data/*/index-*"))


def loose_files(db: Database) -> set[str]:
    """Return the data files that the catalog does not speak of and no intent owns."""
    root, catalog = root_of(db), store_of(db).warehouse.catalog
    with catalog.read_transaction() as connection:
        known = {
            path
            for table in ("corollary_changes", "corollary_snapshots", "corollary_indexes")
            for path in connection.column(f"SELECT path FROM {table}")
        }
        intents = set(connection.column("SELECT id FROM corollary_intents"))
    for path in [each for each in known if each is not None and each.endswith(".parts")]:
        listed = json.loads((root / path).read_text())
        known |= {f"{path.rpartition('/')[0]}/{each['name']}" for each in listed}
    files = {str(each.relative_to(root)) for each in root.glob("data/*/*")}
    return {each for each in files - known if each.split("/")[1] not in intents}


class Keeper:
    """What happens to a judged database between its transactions."""

    def __init__(self, seed: int, steps: int) -> None:
        self._random = random.Random(seed)
        self._left = steps
        self._seen: dict[int, Seen] = {}
        self._changes: dict[int, Any] = {}
        self._other: Database | None = None
        self._has_lost = False
        """Whether index files are gone, so that payload which nothing else holds may go, too."""

    def __call__(self, judged: Judged, tx: Transaction | None) -> None:
        """Take note of a commit; then something happens, at the end what has not happened yet."""
        self._seen[judged.db.commits] = stored(judged.db)
        if tx is not None and tx.commit_number is not None:
            assert tx.commit_number == judged.db.commits
            self._changes[tx.commit_number] = reported(judged.db, tx.changes)
        acts: list[Callable[[Judged], None]] = [
            self.reopen, self.fold, self.lose, self.travel, self.follow, self.collect, self.verify,
            self.transfer,
        ]  # fmt: skip
        chosen = self._random.sample(acts, self._random.choice((0, 1, 1, 2)))
        self._left -= 1
        if not self._left:
            chosen = [act for act in acts if not judged.counts[act.__name__]]
        for act in chosen:
            act(judged)
            judged.counts[act.__name__] += 1

    def reopen(self, judged: Judged) -> None:
        """Close and open: made-up relations and payload come back too."""
        before = everything(judged.db)
        judged.reopen()
        after = everything(judged.db)
        if self._has_lost:
            assert after["payload"] <= before["payload"]
            before = {**before, "payload": after["payload"]}
            before["relations"] = {
                name: rows
                for name, rows in before["relations"].items()
                if WORKING_SEPARATOR not in name or name in after["relations"]
            }
        assert after == before, f"{differences(before, after)}\n{judged}"

    def fold(self, judged: Judged) -> None:
        """Write snapshots and an index."""
        store_of(judged.db).fold(judged.db._state)
        self._has_lost = False

    def lose(self, judged: Judged) -> None:
        """Lose index files: all, or some."""
        found = index_files(judged.db)
        lost = self._random.sample(found, self._random.randint(0, len(found)))
        for file in lost:
            file.unlink()
        self._has_lost |= bool(lost)
        judged.reopen()

    def travel(self, judged: Judged) -> None:
        """Look at everything that was."""
        for number, seen in self._seen.items():
            if number:
                past = judged.db.at(number)
                assert past.commits == number
                assert stored(past) == seen, f"commit {number}\n{judged}"
        for number, changes in self._changes.items():
            assert reported(judged.db, judged.db.changes(number)) == changes, number

    def collect(self, judged: Judged) -> None:
        """Let go of old commits, and of what nobody needs."""
        kept = self._random.randint(1, 4)
        collect(store_of(judged.db).warehouse, Retention(commits=kept))
        assert loose_files(judged.db) == set()
        for number in [each for each in self._seen if each <= judged.db.commits - kept]:
            self._seen.pop(number)
            self._changes.pop(number, None)
            with pytest.raises(WarehouseError, match="C0936"):
                judged.db.at(number)

    def verify(self, judged: Judged) -> None:
        """Compare everything with everything."""
        report = verify(store_of(judged.db).warehouse)
        found = [
            each for each in report.findings if each.kind is not FindingKind.INDEX
        ]  # some are lost
        assert found == [], f"{found}\n{judged}"
        assert report.has_recomputed

    def transfer(self, judged: Judged) -> None:
        """Export everything; a warehouse that is made of it holds the same."""
        with tempfile.TemporaryDirectory() as directory:
            export_all(judged.db, f"{directory}/exported")
            import_all(f"{directory}/exported", f"{directory}/warehouse")
            with reopened(judged.text, judged.algorithm, place=f"{directory}/warehouse") as other:
                assert stored(other) == stored(judged.db), judged

    def follow(self, judged: Judged) -> None:
        """Go on with another handle, which has to catch up."""
        if self._other is None:
            self._other = reopened(judged.text, judged.algorithm, judged.virtual, judged.place)
        self._other.refresh()
        judged.db, self._other = self._other, judged.db
        judged.judge_state()

    def end(self) -> None:
        """Let go of the other handle."""
        if self._other is not None:
            self._other.close()


def keep(scenario: Scenario, place: str, seed: int) -> Counter[str]:
    """Judge a scenario in a warehouse, and let things happen between its transactions."""
    keeper = Keeper(seed, len(scenario.steps))
    try:
        return judge(scenario, place, keeper)
    finally:
        keeper.end()
        with suppress(OSError):
            remove_tree(parse_location(place)[0])
