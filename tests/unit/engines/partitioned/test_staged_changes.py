"""Large changes of partitioned relations: their tuples are in files, as those of the relation."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

import corollary
from corollary.core.arrow import from_python, to_python
from corollary.core.program import Relation
from corollary.core.states import State
from corollary.core.types import FLOAT, NUMBER, SYMBOL
from corollary.database.database import state_of
from corollary.engines.spark.relation import partitioning
from corollary.engines.spark.relation.contents import contents_of
from corollary.engines.spark.relation.handle import RemoteTuples
from corollary.errors import ConstraintError
from support.maintained_database import Judged
from support.spark.in_process_partitions import (
    InProcess,
    RowsElsewhere,
    forbid_collecting,
    share_out,
    stage_changes,
)

SALES = Relation("sale", ("id", "shop", "price"), (NUMBER, SYMBOL, FLOAT), False)
OTHER = Relation("other", SALES.columns, SALES.types, False)


def sale(number: int) -> tuple[int, str, float]:
    return number, f"shop {number % 7}", number / 4


ROWS = {sale(n) for n in range(40)}


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[InProcess]:
    stage_changes(monkeypatch, 5)
    made = InProcess("partitions")
    made.declare({"sale": SALES, "other": OTHER})
    made.insert("sale", list(ROWS))
    made.commit()
    forbid_collecting(monkeypatch)
    yield made
    made.close()


def is_staged(engine: InProcess) -> bool:
    found = contents_of(engine._tables["sale"])
    return found is not None and found.staged is not None


def check(engine: InProcess, new: set[Any], old: set[Any] = ROWS) -> None:
    """All states are what they should be, and the handles say so."""
    wanted = {
        State.OLD: old,
        State.NEW: new,
        State.ADDED: new - old,
        State.REMOVED: old - new,
    }
    for state, rows in wanted.items():
        found = to_python(engine.handle("sale", state).table())
        assert sorted(found) == sorted(rows), state
        assert engine.size("sale", state) == len(rows)


def test_what_is_inserted_and_deleted_stays_in_files(engine: InProcess) -> None:
    engine.insert("sale", [sale(n) for n in range(30, 60)])
    check(engine, ROWS | {sale(n) for n in range(60)})
    assert is_staged(engine)
    engine.delete("sale", [sale(n) for n in range(50)])
    check(engine, {sale(n) for n in range(50, 60)})
    engine.insert("sale", [sale(n) for n in range(10)])
    wanted = {sale(n) for n in (*range(10), *range(50, 60))}
    check(engine, wanted)
    engine.commit()
    check(engine, wanted, wanted)


def test_all_tuples_go(engine: InProcess) -> None:
    engine.delete("sale", list(ROWS))
    assert is_staged(engine)
    engine.commit()
    check(engine, set(), set())
    engine.insert("sale", [sale(1)])
    check(engine, {sale(1)}, set())


def test_a_change_that_comes_to_little_is_one_of_the_driver(engine: InProcess) -> None:
    engine.delete("sale", [sale(n) for n in range(20)])
    assert is_staged(engine)
    engine.insert("sale", [sale(n) for n in range(1, 21)])
    assert not is_staged(engine)
    check(engine, ROWS - {sale(0)})
    engine.rollback()
    check(engine, ROWS)


def test_a_change_in_files_is_rolled_back(engine: InProcess) -> None:
    engine.delete("sale", [sale(n) for n in range(20)])
    engine.rollback()
    check(engine, ROWS)
    engine.insert("sale", [sale(100)])
    check(engine, ROWS | {sale(100)})


def test_probes_in_other_orders_see_it(engine: InProcess) -> None:
    """An order that was there before the change, and one that comes while it is open."""
    table = engine._tables["sale"]
    table.arrangement((1, 0, 2))
    engine.insert("sale", [sale(n) for n in range(36, 60)])
    engine.delete("sale", [sale(n) for n in range(6)])
    new = {sale(n) for n in range(6, 60)}
    for order, column, value in (((1, 0, 2), 1, "shop 3"), ((2, 0, 1), 2, 10.0)):
        codes = [engine._dictionary.encode_python([value], SALES.types[column])]
        for state, rows in ((State.OLD, ROWS), (State.NEW, new), (State.ADDED, new - ROWS)):
            arrangement = table.arrangement(order)
            found = 0
            for layer in arrangement.layers(state):
                starts, ends = layer.run.ranges(arrangement.layout, codes, 1)
                found += int((ends - starts)[0])
            assert found == sum(row[column] == value for row in rows), (order, state)
    engine.commit()
    check(engine, new, new)


def test_a_large_part_is_removed_and_the_rest_is_not_read(engine: InProcess) -> None:
    rows = [sale(n) for n in range(8)]
    engine.insert("other", rows)
    engine.commit()
    engine.delete("other", rows[:3])
    codes, count = engine._encode("other", rows)
    found = engine._tables["other"].contains_codes(codes, count, State.NEW)
    assert found.tolist() == [False] * 3 + [True] * 5


@pytest.mark.parametrize("count", [8, 16])
def test_a_recomputation_replaces_the_tuples(
    engine: InProcess, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether what it gives is partitioned alike, or not; the difference is in files."""
    monkeypatch.setattr(partitioning, "LEAST_PARTITIONS", count)
    other = InProcess("partitions", scratch=engine._root)
    other.declare({"sale": SALES})
    wanted = {sale(n) for n in range(20, 70)}
    other.insert("sale", list(wanted))
    other.commit()
    files = other.partitioned_files("sale")
    assert files is not None
    table = engine._tables["sale"]
    engine._written.add("sale")  # as a run of a plan does
    table.replace(RemoteTuples(files))
    assert is_staged(engine)
    check(engine, wanted)
    table.add(RemoteTuples(files))  # no change
    check(engine, wanted)
    table.remove(RemoteTuples(files))
    check(engine, set())
    table.replace(RemoteTuples(files))
    engine.copy("sale", "other")
    assert set(to_python(engine.handle("other").table())) == wanted
    engine.commit()
    check(engine, wanted, wanted)
    other.close()


def test_rows_come_to_a_relation_on_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """It becomes partitioned, with the change that is open."""
    engine = InProcess("auto", memory=1 << 30)
    engine.declare({"sale": SALES})
    engine.insert("sale", [sale(n) for n in range(10)])
    engine.commit()
    engine.delete("sale", [sale(3)])
    stage_changes(monkeypatch, 5)
    assert not engine.is_partitioned("sale")
    engine.insert("sale", [sale(n) for n in range(8, 30)])
    assert engine.is_partitioned("sale")
    wanted = {sale(n) for n in range(30) if n != 3}
    check(engine, wanted, {sale(n) for n in range(10)})
    engine.close()


def test_rows_come_after_others_of_the_same_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = InProcess("partitions")
    engine.declare({"sale": SALES})
    engine.insert("sale", [sale(n) for n in range(4)])
    stage_changes(monkeypatch, 5)
    engine.insert("sale", [sale(n) for n in range(2, 30)])
    engine.insert("sale", [sale(n) for n in range(25, 40)])
    engine.delete("sale", [sale(n) for n in range(10)])
    check(engine, {sale(n) for n in range(10, 40)}, set())
    engine.commit()
    check(engine, {sale(n) for n in range(10, 40)}, {sale(n) for n in range(10, 40)})
    engine.close()


def test_keys_are_checked_where_the_added_tuples_are(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch, "partitions")
    with corollary.open(None) as db:
        db.load(text=".decl r(x: number, y: number, z: number) key(y, x)")
        with db.transaction() as tx:
            tx.insert("r", [(n, n % 5, n) for n in range(200)])
        stage_changes(monkeypatch, 5)
        forbid_collecting(monkeypatch)
        with db.transaction() as tx:
            tx.delete("r", [(n, n % 5, n) for n in range(10)])
            tx.insert("r", [(n, n % 5, n + 1) for n in range(10)])
        new = [(n, n % 5, n) for n in range(200, 220)]
        for wrong in ([(199, 4, 0)], [(300, 4, 0), (300, 4, 1)]):
            message = re.escape(f"(`{wrong[0][0]}`, `4`, `0`) and ")
            with pytest.raises(ConstraintError, match=message), db.transaction() as tx:
                tx.insert("r", [*new, *wrong])
        with db.transaction() as tx:
            tx.insert("r", new)
        assert state_of(db).engine.size("r") == 220


@pytest.mark.slow
def test_random_changes(engine: InProcess) -> None:
    chance = random.Random(20)
    old, new = set(ROWS), set(ROWS)
    for _ in range(25):
        some = [sale(n) for n in chance.sample(range(80), chance.choice((1, 3, 20, 60)))]
        match chance.choice(("insert", "delete", "commit", "rollback")):
            case "insert":
                engine.insert("sale", some)
                new |= set(some)
            case "delete":
                engine.delete("sale", RowsElsewhere(from_python(some, SALES)))
                new -= set(some)
            case "commit":
                engine.commit()
                old = set(new)
            case _:
                engine.rollback()
                new = set(old)
        check(engine, new, old)


def test_the_sides_of_a_change_are_two_contents(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch, shares=1)  # both sides are in the one partition
    stage_changes(monkeypatch, 1)
    judged = Judged(
        """
.decl b(x: number)
.decl c(x: symbol)
.decl d(x: number)
d(x) :- b(x), c("c").
""",
        "auto",
    )
    judged.step(({"b": {(1,), (2,)}, "c": {("b",), ("c",)}}, {}))
    judged.step(({"b": {(3,)}, "c": {("a",)}}, {"c": {("b",), ("c",)}}))
    judged.step(({"c": {("c",)}}, {"c": {("a",)}}))
    judged.db.close()
