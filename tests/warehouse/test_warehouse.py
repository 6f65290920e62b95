"""A database that lasts holds what it would hold if it had never been closed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from errno import ENOSPC
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import corollary
from corollary.core.arrow import to_python
from corollary.core.states import State
from corollary.database import state, warehouse_store
from corollary.database.database import Database
from corollary.database.pending_commit import DeferredOperations
from corollary.database.program.parts import SOURCE_PREFIX
from corollary.database.upkeep.retention import Retention, collect
from corollary.database.writing.operations import Operation
from corollary.errors import (
    ConflictError,
    ConstraintError,
    CorollaryError,
    InputError,
    WarehouseError,
)
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile
from corollary.warehouse import warehouse
from support.generators.scenarios import Scenario, is_lively, scenarios
from support.maintained_database import (
    MIXED,
    Judged,
    changes_of,
    closure,
    delete,
    flips,
    insert,
    opened,
    pairs,
    reopened,
)
from support.payload_check import check_payload
from support.selection import examples, sampled
from support.warehouse_scenarios import index_files, keep, reported, store_of, stored

NOW = datetime(2026, 11, 15, 8, 30, 1, 999_999, tzinfo=UTC)
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]
"""A counterexample is as hard to shrink as it was to find; it is told as it came."""
EXAMPLES = {"sqlite": examples(2, 8), "postgresql": examples(1, 2), "postgresql+s3": examples(1, 2)}
KINDS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "auto": (("auto",), {}),
    "mixed": ((MIXED, "ranked", "counting"), {}),
    "rules": ((MIXED, "auto", "counting"), {"with_rules": True}),
    "rules, virtual": ((MIXED, "auto"), {"with_rules": True, "with_virtual": True}),
}


@pytest.mark.smoke
@pytest.mark.parametrize("kind", sampled(KINDS, 4))
def test_it_lasts(
    kind: str,
    places: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    algorithms, options = KINDS[kind]
    counts: Counter[str] = Counter()
    number = EXAMPLES[request.node.callspec.params["places"]]

    @settings(max_examples=number, suppress_health_check=SLOW, phases=PHASES)
    @given(scenarios(algorithms, **options), st.integers(0, 999), st.sampled_from((1, 1 << 16)))
    def run(scenario: Scenario, seed: int, inline: int) -> None:
        monkeypatch.setattr(warehouse, "INLINE_BYTES", inline)
        counts.update(keep(scenario, places(), seed))

    run()
    assert counts["steps"] >= number
    if number > 4:
        assert is_lively(counts["changed"], counts["steps"])
        acts = {"reopen", "fold", "lose", "travel", "follow", "collect", "verify", "transfer"}
        assert counts.keys() >= acts


# ----------------------------------------------------------------------------------- what was hard


def test_relations_that_are_defined_alike(place: str) -> None:
    text = """
.decl e(x: number, y: number)
.decl high(x: number)
high(x) :- e(x, _), 1 < count : { e(x, _) }, 1 = count : { e(0, x) }.
.decl low(x: number)
low(x) :- e(_, x), 2 > count : { e(x, _) }, !high(x).
"""
    judged = Judged(text, "auto", place=place)
    judged.step(({"e": {(0, 1), (1, 2), (1, 3), (0, 2), (2, 2)}}, {}))
    judged.reopen()
    judged.step(({"e": {(2, 1)}}, {"e": {(1, 3)}}))
    judged.step(add=["low(x) :- e(x, x), 0 < count : { e(x, _) }."])
    judged.reopen()
    judged.step(({}, {"e": {(2, 2)}}), remove=["low(x) :- e(x, x), 0 < count : { e(x, _) }."])
    judged.reopen()
    judged.step(({"e": {(3, 1)}}, {"e": {(0, 2)}}))
    judged.db.close()


@pytest.mark.parametrize("is_folded", [False, True])
def test_a_virtual_relation_without_rules(place: str, is_folded: bool) -> None:
    text = (
        ".decl b(x: number)\n.decl v(x: number)\nv(1).\n.decl d(x: number)\nd(x) :- v(x), b(x).\n"
    )
    judged = Judged(text, "auto", ("v",), place=place)
    judged.step(({"v": {(2,), (3,)}, "b": {(1,), (2,)}}, {}))
    if is_folded:
        store_of(judged.db).fold(judged.db._state)
        collect(store_of(judged.db).warehouse, Retention(commits=1))
        for file in index_files(judged.db):
            file.unlink()
    judged.reopen()
    judged.step(({}, {"v": {(2,)}}))
    judged.step(add=["v(x + 1) :- b(x)."])
    judged.reopen()
    judged.step(({"b": {(3,)}}, {"b": {(1,)}}))
    judged.step(remove=["v(x + 1) :- b(x)."])
    judged.reopen()
    judged.step(({"b": {(1,)}}, {}))
    judged.db.close()


def test_an_equivalence_whose_tuples_are_all_derived(place: str) -> None:
    text = (
        ".decl b(x: symbol, y: symbol)\n.decl s(x: symbol, y: symbol) eqrel\ns(x, y) :- b(x, y).\n"
    )
    db = opened(text, place=place)
    for _ in range(2):
        with pytest.raises(InputError) as caught, db.transaction() as tx:
            tx.insert("s", [("a", "b")])
        assert "C0915" in str(caught.value)
        before = db._state.loaded.normal
        db.close()
        db = reopened(text, place=place)
        assert db._state.loaded.normal.relations == before.relations
    insert(db, "b", [("a", "b"), ("c", "b")])
    assert len(db.relation("s")) == 9
    db.close()


def test_columns_with_names_of_ours(place: str) -> None:
    text = ".decl r(_change_type: symbol, x: number)\n.decl q(x: number, _change_type: symbol)\n"
    judged = Judged(text + "q(x, y) :- r(y, x).\n", "auto", place=place)
    judged.step(({"r": {("insert", 1), ("delete", 2)}}, {}))
    judged.step(({"r": {("delete", 3)}}, {"r": {("insert", 1)}}))
    judged.reopen()
    judged.db.close()


TYPES = """
.decl f(a: symbol?, b: number?, c: unsigned?, d: float?, e: bool?, f: date?, g: timestamp?,
        h: decimal(38, 3)?)
.decl g(a: symbol?, b: number?, c: unsigned?, d: float?, e: bool?, f: date?, g: timestamp?,
        h: decimal(38, 3)?)
g(a, b, c, d, e, f, g, h) :- f(a, b, c, d, e, f, g, h).
.decl one()
.decl none()
one() :- !none().
"""
VALUES = [
    ("", 0, 0, 0.0, True, date(1, 1, 1), datetime(1, 1, 1, tzinfo=UTC), Decimal("0.001")),
    ("a\x01b", 2**63 - 1, 2**64 - 1, math.inf, False, date.max, NOW, Decimal("-0.001")),
    ("\U0001f600é e\u0301", -(2**63), 2**63, math.nan, None, NOW.date(), None, None),
    ("null", 1, None, -5e-324, None, None, NOW, Decimal("999999999999999.999")),
    ("x" * 70_000, None, 1, 1e16, True, None, None, None),
    ("y", 2, 1, 0.5, False, None, None, Decimal("-99999999999999999999999999999999999.999")),
    ("z", 3, 1, 0.5, False, None, None, Decimal("9223372036854775.808")),
    (None, None, None, None, None, None, None, None),
    ("'\"\\\n\t;--", 7, 7, 0.1, True, date(1969, 12, 31), NOW, Decimal(1)),
]


@pytest.mark.parametrize("inline", [1, 1 << 20], ids=["files", "inline"])
def test_every_value_comes_back(place: str, inline: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warehouse, "INLINE_BYTES", inline)
    db = opened(TYPES, place=place)
    insert(db, "f", VALUES)
    insert(db, "none", [()])
    delete(db, "f", VALUES[-1:])
    truths = [stored(db.at(number)) for number in range(1, 5)]
    assert truths[-1] == stored(db)
    assert [len(each["one"]) for each in truths] == [1, 1, 0, 0]
    for way in ("changes", "index", "snapshots"):
        if way == "index":
            store_of(db).fold(db._state)
        if way == "snapshots":
            for file in index_files(db):
                file.unlink()
        db.close()
        db = reopened(TYPES, place=place)
        assert stored(db) == truths[-1], way
        assert [stored(db.at(number)) for number in range(1, 5)] == truths, way
    tx = delete(db, "f", VALUES)
    assert tx.changes["g"].counts == (0, len(VALUES) - 1)
    assert len(db.relation("g")) == 0
    db.close()


# ------------------------------------------------------------------------------------- time travel


def test_looking_back_changes_nothing(place: str) -> None:
    db = opened(closure(), place=place)
    insert(db, "edge", pairs("ab bc cd"), algorithm="ranked")
    insert(db, "edge", pairs("bd"), algorithm="dred")  # ranks are not kept on
    db.close()
    db = reopened(closure(), place=place)
    past = db.at(2)
    assert past._state.planner.payload == {"reach"}
    insert(past, "edge", pairs("zz"))
    assert db.commits == 3
    insert(db, "edge", pairs("ac"), algorithm="recompute")  # makes ranks anew
    db.close()
    db = reopened(closure(), place=place)
    assert check_payload(db)
    delete(db, "edge", pairs("bc"), algorithm="ranked")
    assert sorted(db.relation("reach").rows()) == pairs("ab ac ad bd cd")
    db.close()


def test_commits_that_there_are_not(place: str) -> None:
    db = reopened("", place=place)
    db.load(text=closure())
    assert [each.number for each in db.log()] == [1]
    for number in (-1, 0, 2):
        with pytest.raises(WarehouseError, match=r"C0936"):
            db.at(number)
        with pytest.raises(WarehouseError, match=r"C0936"):
            db.changes(number)
    db.close()


def test_a_transaction_begins_from_what_others_have_committed(place: str) -> None:
    with opened(closure(), place=place) as db, reopened(closure(), place=place) as other:
        db.load(text=closure() + ".decl later(x: symbol)\n")
        with other.transaction() as tx:
            tx.insert("later", ["a"])
            assert other.commits == db.commits
        assert db.relation("later").rows() == [("a",)]


READS: tuple[Callable[[Database], object], ...] = (
    lambda db: db.relation("p"),
    lambda db: db.query("p(x)"),
    lambda db: db.sql("SELECT 1"),
    lambda db: db.explain("p(x)"),
    lambda db: db.why("p(1)"),
    lambda db: db.at(0),
    lambda db: db.log(),
    lambda db: db.changes(1),
    lambda db: db.feed(),
    lambda db: db.follow("p"),
    lambda db: db.grant("alice", "p"),
    lambda db: db.revoke("alice", "p"),
    lambda db: db.refresh(),
)


def test_reading_creates_nothing_and_is_an_error_until_something_is_written(place: str) -> None:
    with reopened("", place=place) as db:
        for read in READS:
            with pytest.raises(WarehouseError, match="C0930"):
                read(db)
        db.set_today("2026-11-17")
        db.deliver()
        with db.transaction(is_dry=True) as tx:
            tx.set_program(parse(SourceFile("program", ".decl p(x: number)\np(1).\n")))
    with pytest.raises(WarehouseError, match="C0930"):
        corollary.open(place, create=False)
    with reopened("", place=place) as db:
        db.sql("CREATE TABLE p (x BIGINT); INSERT INTO p VALUES (1)")
        assert db.query("p(x)").to_pylist() == [{"x": 1}]


def test_a_lost_catalog_is_damage(tmp_path: Path) -> None:
    with corollary.open(tmp_path / "wh", engine="local") as db:
        db.load(text=".decl p(x: number)\n.output p\np(1).\n")
        db.publish()
    for file in (tmp_path / "wh").glob("catalog.sqlite*"):
        file.unlink()
    for create in (False, True):  # all rows are in the catalog; the published table is beside it
        with pytest.raises(WarehouseError, match=r"C0933.*(\n.*)*corollary restore"):
            corollary.open(tmp_path / "wh", create=create)


def test_threads_that_read_while_a_warehouse_is_made(tmp_path: Path) -> None:
    with corollary.open(tmp_path / "wh", engine="local") as db, ThreadPoolExecutor(4) as pool:
        catalog, done = store_of(db).warehouse.catalog, Event()

        def read() -> int | None:
            while not done.is_set():
                catalog.latest_commit()
            found = catalog.latest_commit()
            return None if found is None else found.number

        readers = [pool.submit(read) for _ in range(4)]
        try:
            db.load(text=".decl p(x: number)\np(1).\n")
        finally:
            done.set()
        assert [each.result() for each in readers] == [1] * 4


def test_a_warehouse_that_is_made_late(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "warehouse"
    with (
        corollary.open(place) as db,
        corollary.open(place) as other,
    ):
        assert db.commits == other.commits == 0
        assert not place.parent.exists()
        waiting = db.transaction()
        waiting.set_program(parse(SourceFile("program", ".decl p(x: number)\n")))
        other.load(text=".decl p(x: number)\np(1).\n")  # another process makes it meanwhile
        assert (place / "catalog.sqlite").exists()
        waiting.insert_input("p", pa.table({"x": pa.array([2], pa.int64())}))
        waiting.commit()
        assert (waiting.commit_number, other.commits) == (2, 1)
        assert sorted(other.relation("p").rows()) == [(2,)]
    with corollary.open(place, create=False) as db:
        assert db.commits == 2


# -------------------------------------------------------------------------------- idempotency keys


def test_a_key_is_used_once(place: str) -> None:
    db = opened(closure(), place=place)
    first = insert(db, "edge", pairs("ab bc"), idempotency="one")
    insert(db, "edge", pairs("cd"), idempotency="two")
    delete(db, "edge", pairs("ab"))
    other = reopened(closure(), place=place)
    db.close()
    for each in (reopened(closure(), place=place), other):
        before = stored(each)
        again = insert(each, "edge", pairs("ab bc xy"), idempotency="one")
        assert again.commit_number == first.commit_number == 2
        assert reported(each, again.changes) == reported(each, first.changes)
        assert stored(each) == before
        assert each.commits == 4
        assert insert(each, "edge", [], idempotency="two").commit_number == 3
        each.close()


def test_a_key_of_a_transaction_that_changed_nothing_is_used(place: str) -> None:
    db = opened(closure(), place=place)
    insert(db, "edge", pairs("ab"))
    asked = {"empty": [], "there": pairs("ab")}
    for number, (key, rows) in enumerate(asked.items(), 3):
        tx = insert(db, "edge", rows, idempotency=key)
        assert tx.commit_number == number
        assert not tx.changes
    delete(db, "edge", pairs("ab"))
    db.close()
    db = reopened(closure(), place=place)
    for number, (key, rows) in enumerate(asked.items(), 3):
        again = insert(db, "edge", rows, idempotency=key)
        assert again.is_repeated
        assert again.commit_number == number
    assert not db.relation("edge").rows()
    assert db.commits == 5
    assert insert(db, "edge", []).commit_number is None  # without a key there is nothing to note
    db.close()


def test_a_key_is_the_first_thing_that_a_warehouse_is_told(place: str) -> None:
    with opened("", place=place) as db:
        with db.transaction(idempotency="one") as tx:
            pass
        assert tx.commit_number == db.commits
    with reopened("", place=place) as db, db.transaction(idempotency="one") as tx:
        assert tx.is_repeated


def test_a_key_of_a_transaction_that_failed_is_free(place: str) -> None:
    db = opened(".decl a(x: number, y: number) key(x)\n", place=place)
    with pytest.raises(ConstraintError):
        insert(db, "a", [(1, 1), (1, 2)], idempotency="one")
    with pytest.raises(InputError):
        insert(db, "a", [("x", 2)], idempotency="one")
    assert insert(db, "a", [(1, 1)], idempotency="one").commit_number == 2
    assert insert(db, "a", [(1, 2)], idempotency="one").commit_number == 2
    db.close()


def test_a_key_that_came_between(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two handles with the same key, neither of which sees the other before it commits."""
    db, other = opened(closure(), place=place), reopened(closure(), place=place)
    commit = db._store.record

    def late(*arguments: Any) -> int:
        monkeypatch.setattr(db._store, "record", commit)
        insert(other, "edge", pairs("ab"), idempotency="one")
        return commit(*arguments)

    monkeypatch.setattr(db._store, "record", late)
    tx = insert(db, "edge", pairs("bc"), idempotency="one")
    assert tx.commit_number == 2
    assert changes_of(tx, "edge") == (pairs("ab"), [])
    assert sorted(db.relation("reach").rows()) == pairs("ab")
    for each in (db, other):
        each.close()


# ------------------------------------------------------------------------------- behind the commit


def failing(db: Database, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Let every fold of a database fail, and make one due after every commit."""

    def fold(*_: Any) -> None:
        raise error

    monkeypatch.setattr(warehouse_store, "FOLD_MAX_COMMITS", 1)
    monkeypatch.setattr(store_of(db).warehouse, "write_fold", fold)


@pytest.mark.parametrize(
    "error",
    [ConflictError.fenced(), WarehouseError.cannot_write("file", OSError(ENOSPC, "full"))],
    ids=["fenced", "full"],
)
def test_a_fold_that_fails(
    place: str, monkeypatch: pytest.MonkeyPatch, error: CorollaryError
) -> None:
    """A commit is a commit, whatever happens to the fold behind it."""
    db = opened(closure(), place=place)
    failing(db, monkeypatch, error)
    tx = insert(db, "edge", pairs("ab"))
    assert tx.commit_number == db.commits == 2
    assert changes_of(tx, "reach") == (pairs("ab"), [])
    monkeypatch.undo()
    monkeypatch.setattr(warehouse_store, "FOLD_MAX_COMMITS", 1)
    insert(db, "edge", pairs("bc"))
    assert index_files(db)
    db.close()
    db = reopened(closure(), place=place)
    assert sorted(db.relation("reach").rows()) == pairs("ab ac bc")
    db.close()


def test_the_first_index_has_the_orders_that_changes_need(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "ARRANGED_MIN_TUPLES", 1)
    with corollary.open(place, engine="local") as db:
        db.load(
            text=".decl sale(id: number, product: symbol, price: number)\n"
            ".decl least(product: symbol, price: number)\n"
            "least(p, n) :- sale(_, p, _), n = min x : { sale(_, p, x) }.\n"
        )
        with db.transaction() as tx:
            tx.insert("sale", [(number, f"p{number % 7}", number % 11) for number in range(99)])
        store_of(db).fold(db._state)
    with corollary.open(place, engine="local") as db:
        orders = {*db._state.engine._tables["sale"].old_layers()}  # type: ignore[attr-defined]
        assert (1, 2, 0) in orders
        with db.transaction() as tx:
            tx.insert("sale", [(100, "p1", -1)])
        assert {*db._state.engine._tables["sale"].old_layers()} == orders  # type: ignore[attr-defined]


def test_no_order_is_made_for_what_a_large_change_falls_back_to(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recomputation begins with the few products, and would look sales up by them."""
    monkeypatch.setattr(state, "ARRANGED_MIN_TUPLES", 50)
    with corollary.open(place, engine="local") as db:
        db.load(
            text=".decl sale(id: number, product: number, price: number)\n"
            ".decl product(id: number, category: number)\n"
            ".decl total(category: number, price: number)\n"
            "total(c, n) :- product(_, c), n = sum x : { sale(_, p, x), product(p, c) }.\n"
        )
        with db.transaction() as tx:
            tx.insert("product", [(number, number % 2) for number in range(7)])
            tx.insert("sale", [(number, number % 7, number % 11) for number in range(99)])
        store_of(db).fold(db._state)
    with corollary.open(place, engine="local") as db:
        assert {*db._state.engine._tables["sale"].old_layers()} == {(0, 1, 2)}  # type: ignore[attr-defined]


def test_a_relation_that_the_index_does_not_have_is_folded_soon(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second writer gives each a part: a copy of all tuples, to be encoded by each opening."""
    monkeypatch.setattr(warehouse_store, "FOLD_MIN_TUPLES", 50)
    with corollary.open(place, engine="local") as db:
        db.load(text=".decl p(x: number)\n.decl q(x: number)\n")
        with db.transaction() as tx:
            tx.insert("p", [(number,) for number in range(100)])
            tx.insert("q", [(number,) for number in range(250)])
        assert store_of(db)._folded == 2
        with db.transaction() as tx:
            tx.insert("q", [(1000,)])
        assert store_of(db)._folded == 2
        with db.transaction() as tx:
            tx.read(
                lambda: DeferredOperations(
                    [Operation(State.ADDED, "p", [(500,)], f"{SOURCE_PREFIX}crm")], {}
                )
            )
        assert store_of(db)._folded == 4
    with corollary.open(place, engine="local") as db:
        assert len(db.relation("p").rows()) == 101


def test_folding_happens_by_itself(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warehouse_store, "FOLD_MAX_COMMITS", 4)
    judged = Judged(closure(type_="number"), MIXED, place=place)
    folds = set()
    for step in flips(1, 6, 20):
        judged.step(step)
        folds.add(store_of(judged.db)._folded)
        judged.reopen()
    assert len(folds) >= 4
    judged.db.close()


def test_changes_since_the_last_fold_are_applied_as_one(tmp_path: Path) -> None:
    """A tuple that comes and goes is there if it came last."""
    program = """
        .decl edge(x: symbol, y: number?)
        .decl near(x: symbol, y: number?)
        near(x, y) :- edge(x, y).
        near(x, z) :- edge(x, _), edge(x, z).
    """
    rows = [("a", 1), ("a", None), ("b", 2)]
    with corollary.open(tmp_path / "wh", engine="local") as database:
        database.load(text=program)
        for turn in range(5):
            for row in rows[: 1 + turn % 3]:
                with database.transaction() as transaction:
                    transaction.insert("edge", [row])
            with database.transaction() as transaction:
                transaction.delete("edge", [rows[turn % 2]])
    with corollary.open(tmp_path / "wh", engine="local") as database:
        assert set(to_python(database.relation("edge").arrow())) == {("a", None), ("b", 2)}
        assert set(to_python(database.relation("near").arrow())) == {("a", None), ("b", 2)}
        with database.transaction() as transaction:
            transaction.delete("edge", [("a", None)])
        assert set(to_python(database.relation("near").arrow())) == {("b", 2)}
