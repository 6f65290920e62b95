"""Relations with copies: what is written adds up, what is read repeats rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import corollary
from corollary.core.arrow import to_python
from corollary.core.printer import print_program
from corollary.database.database import Database
from corollary.database.reading.read_access import ReadAccess
from corollary.errors import InputError

BAG = ".decl u(a: number?, b: symbol?) bag\n"


def opened(text: str = BAG) -> Database:
    db = corollary.open(None, engine="local")
    db.load(text=text)
    return db


def rows(db: ReadAccess, name: str = "u") -> list[str]:
    return sorted(map(str, db.relation(name).rows()))


def refused(code: str, act: Callable[[], object], *parts: str) -> None:
    with pytest.raises(InputError) as error:
        act()
    assert [each.code for each in error.value.diagnostics] == [code]
    for part in parts:
        assert part in str(error.value)


# --- programs -------------------------------------------------------------------------------------


def test_facts_of_the_text_add_up() -> None:
    db = opened(BAG + 'u(1, "a"). u(2, null). u(1, "a"). u.rows(2, null, 3).')
    assert db.relation("u.rows").rows() == [(1, "a", 2), (2, None, 4)]
    assert len(db.relation("u")) == 6
    assert print_program(db.program).startswith(".decl u(a: number?, b: symbol?) bag\n")
    with db.transaction() as tx:
        tx.add_rule('u(1, "a").')
        tx.remove_rule("u(2, null).")
    assert db.relation("u.rows").rows() == [(1, "a", 3), (2, None, 3)]
    assert to_python(tx.changes["u"].added) == [(1, "a")]
    assert to_python(tx.changes["u"].removed) == [(2, None)]


def test_the_column_of_counts_has_a_name_of_its_own() -> None:
    db = opened(".decl u(copies: number) bag\nu(5). u(5).")
    assert db.relation("u.rows").shape.columns == ("copies", "copies2")
    assert db.query("u.rows(5, n)").to_pylist() == [{"n": 2}]
    assert db.query("u(x)").to_pylist() == [{"x": 5}]


def test_a_relation_says_that_it_is_a_bag() -> None:
    assert repr(opened().relation("u")) == (
        "<relation u(a: number?, b: symbol?), base, copies, 0 tuples>"
    )


def test_a_set_with_tuples_does_not_become_a_bag_nor_the_reverse() -> None:
    db = opened(".decl p(x: number)")
    with db.transaction() as tx:
        tx.insert("p", [(1,)])
    refused("C0977", lambda: db.load(text=".decl p(x: number) bag"), "was a set", "a manual write")
    with db.transaction() as tx:
        tx.delete("p", [(1,)])
    db.load(text=".decl p(x: number) bag\np(1). p(1).")
    assert db.relation("p").rows() == [(1,), (1,)]
    with db.transaction() as tx:
        tx.insert("p", [(2,)])
    refused("C0977", lambda: db.load(text=".decl p(x: number)"), "was a bag")
    ruled = ".decl q(x: number)\n.decl p(x: number) bag\np.rows(x, 2) :- q(x)."
    refused("C0977", lambda: db.load(text=ruled), "gets rules")
    refused("C0913", lambda: db.load(text=""), "`p`")
    refused("C0912", lambda: db.load(text=".decl p(y: number) bag"), "`p` was", "alter W p ")
    with db.transaction() as tx:
        tx.delete("p", [(2,)])
    db.load(text=".decl p(x: number)\np(1). p(1).")
    assert db.relation("p").rows() == [(1,)]
    db.load(text=ruled)
    with db.transaction() as tx:
        tx.insert("q", [(7,)])
    assert db.relation("p").rows() == [(7,), (7,)]
    refused("C0915", lambda: db.transaction().insert("p", [(1,)]), "derived by rules")


# --- writes ---------------------------------------------------------------------------------------


def test_writes_add_and_remove_copies_in_order() -> None:
    db = opened()
    with db.transaction() as tx:
        tx.delete("u", [(1, "a")])
        tx.insert("u", [(1, "a"), (None, None), (1, "a"), (None, None)])
        tx.delete("u", [(None, None), (None, None), (None, None)])
        tx.insert("u", [(None, None)])
    assert rows(db) == ["(1, 'a')", "(1, 'a')", "(None, None)"]
    assert tx.changes["u"].counts == (3, 0)
    with db.transaction() as tx:
        tx.insert("u", [(1, "a")])
        tx.delete("u", [(1, "a")])
    assert tx.commit_number is None
    assert not tx.changes


@pytest.mark.parametrize(
    "given",
    [
        pa.table({"a": [1, 1, None], "b": ["x", "x", None]}),
        [{"a": 1, "b": "x"}, {"b": "x", "a": 1}, {}],
        np.array([(1, "x"), (1, "x"), (None, None)], dtype=object),
    ],
)
def test_rows_of_any_kind_are_copies(given: object) -> None:
    db = opened()
    with db.transaction() as tx:
        tx.insert("u", given)
    assert db.relation("u").arrow().num_rows == 3
    with db.transaction() as tx:
        tx.delete("u", given)
    assert rows(db) == []


def test_counts_can_be_written() -> None:
    db = opened()
    with db.transaction() as tx:
        tx.insert("u.rows", [(1, "a", 5), (2, "b", 1)])
        tx.delete("u.rows", [(1, "a", 3), (2, "b", 9)])
    assert rows(db) == ["(1, 'a')"] * 2
    for count in (0, -1):
        table = pa.table({"a": [1], "b": ["a"], "copies": [count]})
        for given in (table, [(1, "a", count)]):
            tx = db.transaction()
            refused("C0976", lambda tx=tx, given=given: tx.insert("u.rows", given), f"has {count} ")
    tx = db.transaction()
    tx.insert("u.rows", [(1, "a", 2**53)])
    refused("C0976", tx.commit, "nothing was changed")
    assert len(db.relation("u")) == 2


def test_a_bag_has_no_key() -> None:
    db = opened()
    for relation in ("u", "u.rows"):
        row = (1, "a", 1)[: 2 + (relation == "u.rows")]
        tx = db.transaction()
        refused("C0921", lambda tx=tx, r=relation, row=row: tx.upsert(r, [row]), "copies")
        refused("C0921", lambda tx=tx, r=relation: tx.delete(r, keys=[(1,)]), "copies")


def test_copies_that_others_assert_are_kept() -> None:
    db = opened(BAG + 'u(1, "a"). u(1, "a").')
    with db.transaction() as tx:
        tx.insert("u", [(1, "a"), (2, "b")])
        tx.delete("u", [(3, "c")])
    assert not tx.kept
    with db.transaction() as tx:
        tx.delete("u", [(1, "a"), (2, "b")])
    assert not tx.kept
    with db.transaction() as tx:
        tx.delete("u", [(1, "a"), (2, "b")])
    assert to_python(tx.kept["u"].table()) == [(1, "a")]
    assert tx.commit_number is None
    assert rows(db) == ["(1, 'a')"] * 2


def test_many_rows() -> None:
    db = opened(".decl u(a: number, b: symbol) bag\n.output u")
    size = 100_000
    keys = np.arange(size) % 1000
    table = pa.table({"a": keys, "b": [f"t{at % 7}" for at in range(size)]})
    with db.transaction() as tx:
        tx.insert("u", table)
    assert tx.changes["u"].counts == (size, 0)
    assert len(db.relation("u.rows")) == 7000
    with db.transaction() as tx:
        tx.delete("u", table.slice(0, size // 2))
    assert tx.changes["u"].counts == (0, size // 2)
    assert len(db.relation("u")) == size // 2


# --- active rules ---------------------------------------------------------------------------------


def test_events_are_about_rows_and_triggers_about_copies() -> None:
    db = opened(
        BAG
        + """
        .decl log(a: number?) bag
        .decl order(a: number, n: number)
        came(a, b) :- +u(a, b).
        .alert came "came {a}"
        +log(a) :- +u(a, _).
        -u(a, null) :- +order(a, _).
        -log(a) :- -u(a, _).
        +u.rows(a, "new", n) :- +order(a, n).
        """
    )
    with db.transaction() as tx:
        tx.insert("u", [(1, None), (1, None), (2, "x")])
    assert sorted(each.message for each in tx.alerts) == ["came 1", "came 2"]
    assert rows(db, "log") == ["(1,)", "(2,)"]
    with db.transaction() as tx:
        tx.insert("u", [(1, None)])
    assert not tx.alerts
    with db.transaction() as tx:
        tx.insert("order", [(1, 4), (2, 0)])
    assert db.relation("u.rows").rows() == [(1, None, 2), (1, "new", 4), (2, "x", 1)]
    assert rows(db, "log") == ["(1,)", "(1,)", "(2,)"]


def test_a_constraint_on_copies() -> None:
    db = opened(
        """.decl u(a: number) bag
        .decl two(a: number)
        two(a) :- u.rows(a, n), n > 1.
        .abort two "two {a}"
        """
    )
    with db.transaction() as tx:
        tx.insert("u", [(1,)])
    with pytest.raises(corollary.ConstraintError, match="two 1"), db.transaction() as tx:
        tx.insert("u", [(1,)])
    assert rows(db) == ["(1,)"]


def test_a_functional_dependency_of_a_bag() -> None:
    db = opened(".decl u(a: number, b: number) bag\n.fd u(a -> b)")
    with db.transaction() as tx:
        tx.insert("u", [(1, 1), (1, 1)])
    with pytest.raises(corollary.ConstraintError, match="the same a"), db.transaction() as tx:
        tx.insert("u", [(1, 2)])
    assert rows(db) == ["(1, 1)"] * 2


# --- warehouses -----------------------------------------------------------------------------------


def test_an_idempotent_write_adds_its_copies_once(tmp_path: Path) -> None:
    with corollary.open(tmp_path, engine="local") as db:
        db.load(text=BAG)
        for _ in range(2):
            with db.transaction(idempotency="one") as tx:
                tx.insert("u", [(1, "a"), (1, "a")])
            assert tx.changes["u"].counts == (2, 0)
        assert rows(db) == ["(1, 'a')"] * 2


def test_a_reader_of_a_bag_sees_its_counts(tmp_path: Path) -> None:
    with corollary.open(tmp_path, engine="local") as db:
        db.load(text=BAG + ".decl secret(a: number) bag\nsecret(1).")
        with db.transaction() as tx:
            tx.insert("u", [(1, "a"), (1, "a")])
        db.grant("alice", "u")
        alice = db.reader("alice")
        assert rows(alice) == ["(1, 'a')"] * 2
        assert alice.query("u.rows(a, b, n)").to_pylist() == [{"a": 1, "b": "a", "n": 2}]
        assert alice.changes(2)["u"].counts == (2, 0)
        assert set(alice.changes(1)) == set()
        assert [(each.relation.name, each.arrow().num_rows) for each in alice.feed()] == [("u", 2)]
        assert [each.changes for each in alice.log()] == [{"u": (1, 0)}, {}]
        with pytest.raises(corollary.AccessError, match=r"may not see `secret\.rows`"):
            alice.relation("secret.rows")
        db.revoke("alice", "u")
        with pytest.raises(corollary.AccessError, match="may not see `u`"):
            alice.relation("u")


def test_alerts_become_copies() -> None:
    db = opened(
        """.decl e(a: number)
        .decl log(message: symbol) bag
        gone(a) :- -e(a).
        .alert gone "gone" (IO=relation, relation=log)
        """
    )
    with db.transaction() as tx:
        tx.insert("e", [1, 2, 3])
    with db.transaction() as tx:
        tx.delete("e", [1, 2])
    assert rows(db, "log") == ["('gone',)"] * 2


def test_the_feed_of_what_was_a_bag_and_a_set(tmp_path: Path) -> None:
    base = ".decl e(a: number) bag\n"
    forms = {
        "bag": ".decl v(a: number) bag\nv.rows(a, n) :- e.rows(a, n), n > 1.",
        "set": ".decl v(a: number)\nv(a) :- e(a).",
        "virtual bag": ".decl v(a: number) virtual bag\nv.rows(a, 7) :- e(a).",
    }
    with corollary.open(tmp_path, engine="local") as db:
        db.load(text=base + forms["bag"])
        with db.transaction() as tx:
            tx.insert("e", [1, 1, 1, 2])
        assert tx.changes["v"].counts == (3, 0)
        db.load(text=base + forms["set"])
        db.load(text=base + forms["bag"])
        db.load(text=base + forms["virtual bag"])
        db.watch("v")
        with db.transaction() as tx:
            tx.delete("e", [2])
        assert tx.changes["v"].counts == (0, 7)
        (feed,) = db.feed("v")
        told = feed.arrow().to_pylist()
        fed = [(row["_commit_version"], row["_change_type"], row["a"]) for row in told]
        assert fed == [
            *[(2, "insert", 1)] * 3,
            *[(3, "delete", 1)] * 3,
            *[(3, "insert", 1), (3, "insert", 2)],
            *[(4, "delete", 1), (4, "delete", 2)],
            *[(4, "insert", 1)] * 3,
            *[(5, "delete", 1)] * 3,
            (5, "unwatched", None),
            *[(6, "delete", 2)] * 7,
        ]
        assert len(rows(db, "v")) == 7
