"""Everything at once: writers, gc, verification, backups and readers do not disturb each other."""

from __future__ import annotations

import random
import shutil
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import corollary
from corollary.database import warehouse_store
from corollary.database.database import Database
from corollary.database.upkeep.backup import copy
from corollary.database.upkeep.retention import Retention, collect
from corollary.database.upkeep.verify import verify
from corollary.errors import ConflictError
from corollary.warehouse import warehouse
from corollary.warehouse.warehouse import Warehouse
from support.selection import examples
from support.warehouse_history import NAMES, PROGRAM, state

WRITES = examples(5, 12)
ACTS = ("gc", "verify", "backup", "read")


class Crowd:
    """Threads that use one warehouse until the writers are done, or one of them fails.

    Writers go on until every other thread has done its work at least once beside them.
    """

    def __init__(self, place: str, root: Path) -> None:
        self.place = place
        self.root = root
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self.is_over = threading.Event()

    def run(self) -> None:
        writers = [threading.Thread(target=self._write, args=(seed,)) for seed in (1, 2)]
        acts = [getattr(self, each) for each in ACTS]
        others = [threading.Thread(target=self._repeat, args=(act,)) for act in acts]
        for each in (*writers, *others):
            each.start()
        for each in writers:
            each.join()
        self.is_over.set()
        for each in others:
            each.join()

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except BaseException:  # noqa: BLE001 - told by the thread that waits
            self.failures.append(traceback.format_exc())
            self.is_over.set()

    def _repeat(self, act: Callable[[], None]) -> None:
        while not self.is_over.is_set():
            self._guarded(act)
            self.counts[act.__name__] += 1

    def _write(self, seed: int) -> None:
        rng = random.Random(seed)
        with corollary.open(self.place) as db:
            while not self.is_over.is_set() and (
                self.counts[f"writer {seed}"] < WRITES or not self.counts.keys() >= {*ACTS}
            ):
                self._guarded(lambda: self._change(db, rng))
                self.counts[f"writer {seed}"] += 1

    @staticmethod
    def _change(db: Database, rng: random.Random) -> None:
        with suppress(ConflictError), db.transaction() as tx:  # others may be quicker, ten times
            tx.insert("edge", [(rng.choice(NAMES), rng.choice(NAMES))])
            tx.delete("edge", [(rng.choice(NAMES), rng.choice(NAMES))])
            tx.insert("node", [(rng.choice(NAMES), rng.choice([None, 1]))])
        if rng.random() < 0.3:
            db.publish()

    def gc(self) -> None:
        found = Warehouse.open(self.place, create=False)
        collect(found, Retention(commits=1 + self.counts["gc"] % 6))
        found.close()
        self.is_over.wait(0.05)

    def verify(self) -> None:
        self._demand_sound(self.place)

    def backup(self) -> None:
        target = self.root / "backup"
        shutil.rmtree(target, ignore_errors=True)
        found = Warehouse.open(self.place, create=False)
        copy(found, target)
        found.close()
        self._demand_sound(str(target))

    def read(self) -> None:
        with corollary.open(self.place) as db:
            state(db)

    @staticmethod
    def _demand_sound(place: str) -> None:
        found = Warehouse.open(place, create=False)
        findings = verify(found).findings
        found.close()
        assert not findings, "\n".join(map(str, findings))


@pytest.mark.slow
def test_everything_at_once(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warehouse, "INLINE_BYTES", 1)
    monkeypatch.setattr(warehouse_store, "FOLD_MAX_COMMITS", 5)
    with corollary.open(place) as db:
        db.load(text=PROGRAM)
    crowd = Crowd(place, tmp_path)
    crowd.run()
    assert not crowd.failures, crowd.failures[0]
    assert all(crowd.counts[act] for act in ACTS)
