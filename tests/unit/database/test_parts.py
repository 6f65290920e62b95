"""Base tuples belong to those who assert them: the text, each source, and manual writes."""

from __future__ import annotations

import random
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pytest

from corollary.core.arrow import to_python
from corollary.core.states import State
from corollary.database import commit
from corollary.database.database import Database
from corollary.database.pending_commit import DeferredOperations
from corollary.database.program.parts import MANUAL_PART, SOURCE_PREFIX, TEXT_PART
from corollary.database.transaction import Transaction
from corollary.database.writing.operations import Operation
from support.comparison import comparable
from support.maintained_database import opened, reopened, truth
from support.payload_check import check_payload
from support.selection import sampled
from support.warehouse_scenarios import everything, stored

Row = tuple[Any, ...]
Act = tuple[str, str, str, list[Row]]
"""Who, `+` or `-`, the relation, tuples."""

CRM, SHOP = f"{SOURCE_PREFIX}crm", f"{SOURCE_PREFIX}shop"
WRITERS = (MANUAL_PART, CRM, SHOP)
SIGN = {"+": State.ADDED, "-": State.REMOVED}
TEXTS = """\
.decl plain(x: number, y: number)
.decl ruled(x: number, y: number)
ruled(9, 9).
ruled(x, z) :- ruled(x, y), plain(y, z).
.decl same(x: number, y: number) eqrel
same(9, 9).
same(x, x) :- plain(x, x).
.decl late(x: number, y: number)
.decl all(x: number, y: number)
all(x, y) :- plain(x, y) ; ruled(x, y) ; late(x, y).
.decl lone(x: number)
lone(x) :- late(x, _), !same(x, x).
"""
RULES = (
    "late(x, y) :- plain(y, x).",
    "same(x, y) :- late(x, y).",
    "plain(x, 0) :- late(x, 1).",
    "ruled(x, z) :- ruled(x, y), plain(y, z).",
)
RELATIONS = ("plain", "ruled", "same", "late")


class Parted:
    """A database, who asserts what in it, and what the oracle makes of that."""

    def __init__(self, place: str | None, text: str = TEXTS) -> None:
        self.place, self.text = place, text
        self.db: Database = opened(text, place=place)
        self.parts: dict[tuple[str, str], set[Row]] = {}

    def transact(
        self, acts: Iterable[Act], add: Iterable[str] = (), remove: Iterable[str] = ()
    ) -> Transaction:
        """Commit what writers do, in one transaction, and judge it: manual writes come first."""
        acts = list(acts)
        tx = self.db.transaction()
        lines = self.text.splitlines()
        for line in remove:
            tx.remove_rule(line)
            lines.remove(line)
        for line in add:
            tx.add_rule(line)
            lines.append(line)
        deleted: dict[str, set[Row]] = {}
        read = []
        for part, sign, name, rows in sorted(acts, key=lambda act: act[0] != MANUAL_PART):
            held = self.parts.setdefault((name, part), set())
            held.difference_update(rows)
            held.update(rows if sign == "+" else ())
            if part == MANUAL_PART:
                (tx.insert if sign == "+" else tx.delete)(name, rows)
                deleted.setdefault(name, set()).difference_update(rows)
                deleted[name].update(rows if sign == "-" else ())
            else:
                read.append(Operation(SIGN[sign], name, rows, part))
        if read:
            tx.read(lambda: DeferredOperations(read, {}))
        tx.commit()
        self.text = "\n".join(lines) + "\n"
        self.judge()
        kept = {name: rows & self.asserted(name) for name, rows in deleted.items()}
        found = {name: set(to_python(each.table())) for name, each in tx.kept.items()}
        assert found == {name: rows for name, rows in kept.items() if rows}
        return tx

    def asserted(self, name: str) -> set[Row]:
        """Return what anybody asserts."""
        facts = [line for line in self.text.splitlines() if line.startswith(f"{name}(")]
        told = {tuple(map(int, f[len(name) + 1 : -2].split(","))) for f in facts if ":-" not in f}
        return told.union(*(rows for (each, _), rows in self.parts.items() if each == name))

    def judge(self) -> None:
        """Assert that everything is as the oracle says."""
        wanted = truth(self.text, {name: self.asserted(name) for name in RELATIONS})
        assert wanted is not None
        assert stored(self.db) == {name: comparable(rows) for name, rows in wanted.items()}
        check_payload(self.db)

    def reopen(self) -> None:
        """Close and open."""
        if self.place is not None:
            before = everything(self.db)
            self.db.close()
            self.db = reopened(self.text, place=self.place)
            assert everything(self.db) == before
            self.judge()


@pytest.fixture(params=["memory", "warehouse"])
def parted(request: pytest.FixtureRequest, tmp_path: Any) -> Parted:
    """A database in memory, and one that lasts."""
    return Parted(None if request.param == "memory" else str(tmp_path / "warehouse"))


@pytest.mark.parametrize("name", RELATIONS)
def test_a_part_removes_only_what_is_its_own(parted: Parted, name: str) -> None:
    parted.transact([(CRM, "+", name, [(1, 2), (2, 3)]), (SHOP, "+", name, [(2, 3), (3, 4)])])
    parted.reopen()
    parted.transact([(MANUAL_PART, "+", name, [(1, 2), (5, 5)])])
    tx = parted.transact([(CRM, "-", name, [(1, 2), (2, 3), (3, 4)])])
    assert tx.changes[name].counts == (0, 0)
    parted.reopen()
    parted.transact([(SHOP, "-", name, [(2, 3)])])
    tx = parted.transact([(MANUAL_PART, "-", name, [(3, 4), (1, 2), (7, 7)])])
    assert set(to_python(tx.kept[name].table())) == {(3, 4)}
    parted.reopen()
    parted.transact([(SHOP, "-", name, [(3, 4)])])
    parted.transact([(MANUAL_PART, "-", name, [(5, 5)])])


@pytest.mark.parametrize("name", RELATIONS)
def test_the_text_is_a_writer_too(parted: Parted, name: str) -> None:
    fact = f"{name}(1, 2)."
    parted.transact([], add=[fact])
    tx = parted.transact([(MANUAL_PART, "-", name, [(1, 2)])])
    assert tx.commit_number is None
    assert len(tx.kept[name]) == 1
    parted.transact([(CRM, "+", name, [(1, 2), (4, 4)])])
    parted.reopen()
    tx = parted.transact([], remove=[fact])
    assert tx.changes[name].counts == (0, 0)
    parted.transact([(CRM, "-", name, [(1, 2)])])
    parted.reopen()
    parted.transact([(MANUAL_PART, "+", name, [(1, 2)])], add=[fact])
    parted.transact([(MANUAL_PART, "-", name, [(1, 2)])], remove=[fact])


def test_what_is_put_back_is_not_kept(parted: Parted) -> None:
    parted.transact([(CRM, "+", "plain", [(1, 1)])])
    both = [(MANUAL_PART, "-", "plain", [(2, 2), (1, 1)]), (MANUAL_PART, "+", "plain", [(2, 2)])]
    tx = parted.transact(both)
    assert set(to_python(tx.kept["plain"].table())) == {(1, 1)}


@pytest.mark.parametrize("rule", RULES[:3])
def test_parts_survive_a_rule_that_moves_their_relation(parted: Parted, rule: str) -> None:
    name = rule.partition("(")[0]
    parted.transact([(CRM, "+", name, [(1, 2), (0, 1)]), (SHOP, "+", name, [(2, 1), (1, 2)])])
    parted.transact([(MANUAL_PART, "+", name, [(3, 3)])], add=[rule])
    parted.reopen()
    parted.transact([(CRM, "-", name, [(1, 2)]), (CRM, "+", name, [(4, 4)])])
    tx = parted.transact([(MANUAL_PART, "-", name, [(1, 2), (3, 3)])])
    assert set(to_python(tx.kept[name].table())) == {(1, 2)}
    parted.transact([(SHOP, "-", name, [(1, 2)])], remove=[rule])
    parted.reopen()
    parted.transact([(CRM, "-", name, [(0, 1), (4, 4)])])
    parted.transact([(SHOP, "-", name, [(2, 1)])], add=[rule])


@pytest.mark.parametrize("seed", sampled(range(4), 4))
def test_anybody_does_anything(seed: int, places: Callable[[], str]) -> None:
    chance = random.Random(seed)
    parted = Parted(places())
    changed = 0
    for _ in range(14):
        acts: list[Act] = []
        for _ in range(chance.randint(0, 4)):
            rows = [(chance.randrange(3), chance.randrange(3)) for _ in range(chance.randint(1, 3))]
            part = chance.choice(WRITERS)
            acts.append((part, chance.choice("++-"), chance.choice(RELATIONS), rows))
        facts = [f"{chance.choice(RELATIONS)}({chance.randrange(3)}, {chance.randrange(3)})."]
        toggled = set(chance.sample((*RULES, *facts), chance.choice((0, 0, 0, 1, 2))))
        present = set(parted.text.splitlines())
        before = parted.db.commits
        parted.transact(acts, sorted(toggled - present), sorted(toggled & present))
        changed += parted.db.commits > before
        if chance.random() < 0.3:
            parted.reopen()
    assert changed >= 8
    parted.db.close()


def test_a_source_that_lists_a_row_three_times(parted: Parted) -> None:
    parted.transact([(CRM, "+", "plain", [(1, 2), (1, 2), (1, 2)])])
    assert len(parted.db.relation("plain")) == 1
    parted.transact([(CRM, "+", "plain", [(1, 2), (1, 2)])])
    tx = parted.transact([(CRM, "-", "plain", [(1, 2), (1, 2)])])
    assert tx.changes["plain"].counts == (0, 1)


def test_a_part_that_says_nothing_new_is_noted(tmp_path: Any) -> None:
    """A second writer of the same tuple changes no relation, but a later delete of the first."""
    parted = Parted(str(tmp_path))
    parted.transact([(CRM, "+", "plain", [(1, 2)])])
    tx = parted.transact([(SHOP, "+", "plain", [(1, 2)])])
    assert tx.changes["plain"].counts == (0, 0)
    parted.reopen()
    parted.transact([(CRM, "-", "plain", [(1, 2)])])
    assert len(parted.db.relation("plain")) == 1
    assert TEXT_PART not in parted.db._state.loaded.normal.parts["plain"]


def test_rows_are_released_before_views_are_maintained(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit does not hold the tables of sources while it works on their tuples."""
    kept: list[weakref.ref[pa.Table]] = []
    seen: list[bool] = []
    maintain = commit._maintain

    def looking(*arguments: Any) -> Any:
        seen.append(any(each() is not None for each in kept))
        return maintain(*arguments)

    def read() -> DeferredOperations:
        table = pa.table({"x": [1, 2], "y": [3, 4]})
        kept.append(weakref.ref(table))
        return DeferredOperations([Operation(State.ADDED, "plain", table, CRM)], {})

    monkeypatch.setattr(commit, "_maintain", looking)
    database = opened(TEXTS)
    seen.clear()
    with database.transaction() as transaction:
        transaction.read(read)
    assert seen == [False]
    assert sorted(database.relation("plain").rows()) == [(1, 3), (2, 4)]
    database.close()
