"""Keys and functional dependencies hold after every commit, and only then have to."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corollary
from corollary.core.states import State
from corollary.database.database import Database
from corollary.database.pending_commit import DeferredOperations
from corollary.database.program.loaded_program import load_program
from corollary.database.writing.operations import Operation
from corollary.errors import ConstraintError, LimitError
from corollary.frontends.datalog.parser import parse
from corollary.maintain.payload import payload_relations_of
from corollary.source import SourceFile
from support.comparison import comparable
from support.maintained_database import apply, delete, insert, opened, reopened
from support.selection import examples
from support.warehouse_scenarios import stored

Row = tuple[Any, ...]

ACCOUNT = """
.decl account(name: symbol, balance: number) key(name)
.decl rich(name: symbol)
rich(n) :- account(n, b), b >= 100.
"""


def refused(db: Database, step: Any, **options: Any) -> str:
    """Assert that a transaction violates a dependence and changes nothing; return what it says."""
    before, commits, program = stored(db), db.commits, db.program
    with pytest.raises(ConstraintError) as caught:
        apply(db, step, **options)
    assert caught.value.exit_code == 3
    assert {each.code for each in caught.value.diagnostics} == {"C0937"}
    assert (stored(db), db.commits, db.program) == (before, commits, program)
    return str(caught.value)


@pytest.fixture
def bank(place: str) -> Any:
    """Two accounts in a warehouse."""
    with opened(ACCOUNT, place=place) as db:
        insert(db, "account", [("ann", 100), ("bob", 20)])
        yield db


def test_a_second_tuple_with_a_key_is_refused(bank: Database) -> None:
    message = refused(bank, ({"account": [("ann", 5), ("eve", 1)]}, {}))
    assert "(`ann`, `100`) and (`ann`, `5`)" in message
    assert "the key (name)" in message
    assert ".decl account(name" in message  # the line that says so


def test_a_key_changes(bank: Database) -> None:
    tx = apply(bank, ({"account": [("anna", 100)]}, {"account": [("ann", 100)]}))
    assert tx.changes["rich"].counts == (1, 1)


def test_two_keys_are_swapped(bank: Database) -> None:
    old, new = [("ann", 100), ("bob", 20)], [("ann", 20), ("bob", 100)]
    refused(bank, ({"account": new}, {}))
    tx = apply(bank, ({"account": new}, {"account": old}))
    assert tx.changes["account"].counts == (2, 2)
    with bank.transaction() as tx:  # the order of inserts and deletes does not matter
        tx.insert("account", old)
        tx.delete("account", new)
    assert sorted(bank.relation("account").rows()) == old
    assert bank.relation("rich").rows() == [("ann",)]


def test_an_update_to_the_same_value_is_none(bank: Database) -> None:
    for _ in range(2):
        tx = apply(bank, ({"account": [("ann", 100)]}, {"account": [("ann", 100)]}))
        assert tx.commit_number is None
        assert tx.changes["account"].counts == (0, 0)
    with bank.transaction() as tx:  # the last one on a tuple wins
        tx.insert("account", [("ann", 7)])
        tx.delete("account", [("ann", 7)])
    assert tx.commit_number is None


def test_a_key_twice_in_a_transaction(bank: Database) -> None:
    refused(bank, ({"account": [("eve", 1), ("eve", 2)]}, {}))
    insert(bank, "account", [("eve", 1), ("eve", 1)])
    assert len(bank.relation("account")) == 3


def test_a_key_that_another_process_took(bank: Database, place: str) -> None:
    with reopened(ACCOUNT, place=place) as other:
        insert(other, "account", [("eve", 1)])
    refused_after = pytest.raises(ConstraintError, match="eve")
    with refused_after:
        insert(bank, "account", [("eve", 2)])
    assert bank.commits == 3
    assert ("eve", 1) in bank.relation("account").rows()


def test_all_columns_are_a_key(place: str) -> None:
    with opened(".decl e(x: number, y: number) key(x, y)\n", place=place) as db:
        insert(db, "e", [(1, 1), (1, 2), (2, 1)])
        assert len(db.relation("e")) == 3


def test_many_violations_are_counted(bank: Database) -> None:
    message = refused(bank, ({"account": [(f"x{at}", b) for at in range(50) for b in (1, 2)]}, {}))
    assert message.count("C0937") == 21
    assert "and 30 more of `account`" in message


# ------------------------------------------------------------------- dependences that come and go


FREE = ACCOUNT.replace(" key(name)", "")


def test_a_key_that_is_declared_later(place: str) -> None:
    db = opened(FREE, place=place)
    insert(db, "account", [("ann", 1), ("ann", 2), ("bob", 1)])
    with pytest.raises(ConstraintError, match=r"\(`ann`, `1`\) and \(`ann`, `2`\)") as caught:
        db.load(text=ACCOUNT)
    assert caught.value.exit_code == 3
    insert(db, "account", [("bob", 2)])  # there is no key yet
    db.close()
    db = reopened(FREE, place=place)
    tx = db.transaction()
    tx.set_program(opened(ACCOUNT).program)
    tx.delete("account", [("ann", 2), ("bob", 1)])
    tx.commit()
    refused(db, ({"account": [("bob", 3)]}, {}))
    db.close()
    db = reopened(ACCOUNT, place=place)
    refused(db, ({"account": [("bob", 3)]}, {}))
    db.load(text=FREE)
    insert(db, "account", [("bob", 3)])
    db.close()


def test_functional_dependences(place: str) -> None:
    text = ".decl city(zip: number, name: symbol, land: symbol)\n"
    text += ".fd city(zip -> name, land)\n.fd city(name -> land)\n"
    db = opened(text, place=place)
    insert(db, "city", [(1, "Rome", "Italy"), (2, "Rome", "Italy")])
    message = refused(db, ({"city": [(3, "Rome", "Georgia")]}, {}))
    assert "the same name and another land" in message
    assert message.count("C0937") >= 1
    message = refused(db, ({"city": [(1, "Roma", "Italy")]}, {}))
    assert "the same zip and another name, land" in message
    insert(db, "city", [(3, "Paris", "France")])
    db.close()


def test_a_column_on_both_sides_of_a_dependence(place: str) -> None:
    text = ".decl e(x: number, y: number)\n.fd e(x, y -> y)\n"
    with opened(text, place=place) as db:
        insert(db, "e", [(1, 1), (1, 2)])
        insert(db, "e", [(1, 3)])
        db.load(text=text + ".fd e(x -> x)\n")
        assert len(db.relation("e")) == 3
    with opened(".decl e(x: number, y: number)\n.fd e(x -> x, y)\n") as db:
        insert(db, "e", [(1, 1)])
        assert "the same x and another y" in refused(db, ({"e": [(1, 2)]}, {}))


def test_tuples_of_all_writers_count(place: str) -> None:
    db = opened(ACCOUNT + 'account("text", 1).\n', place=place)
    refused(db, ({"account": [("text", 2)]}, {}))

    def read(rows: Sequence[Row], sign: State = State.ADDED) -> None:
        with db.transaction() as tx:
            tx.read(
                lambda: DeferredOperations([Operation(sign, "account", rows, "source crm")], {})
            )

    read([("crm", 5), ("text", 1)])
    refused(db, ({"account": [("crm", 6)]}, {}))
    with pytest.raises(ConstraintError):
        read([("text", 3)])
    with pytest.raises(ConstraintError):
        apply(db, ({}, {}), add=['account("crm", 9).'])
    apply(db, ({}, {}), remove=['account("text", 1).'])
    refused(db, ({"account": [("text", 2)]}, {}))  # the source still says so
    read([("text", 1)], State.REMOVED)
    insert(db, "account", [("text", 2)])
    db.close()


def test_a_key_of_a_relation_with_rules_is_of_its_base_tuples(place: str) -> None:
    text = ACCOUNT + ".input account\naccount(n, 0) :- rich(n).\n"
    db = opened(text.replace("b >= 100", 'b >= 100, n != "bob"'), place=place)
    insert(db, "account", [("ann", 100), ("bob", 100)])
    assert len(db.relation("account")) == 3
    refused(db, ({"account": [("ann", 5)]}, {}))
    db.close()


# ------------------------------------------------------------------------------ against brute force

VALUES = st.sampled_from((None, math.nan, 0.0, -0.0, 1.0))
ROWS = st.tuples(st.sampled_from(("a", "b", None)), VALUES, st.integers(0, 1))
OPERATIONS = st.lists(st.tuples(st.sampled_from("+++-"), ROWS), max_size=6)
DEPENDENCES = {
    "key(a)": ((0,), (1, 2)),
    "key(a, b)": ((0, 1), (2,)),
    "key(b)": ((1,), (0, 2)),
    "c -> b": ((2,), (1,)),
    "a, c -> b": ((0, 2), (1,)),
}


def identified(row: Row) -> Row:
    """Return a row in which equal values are equal: NaN is NaN, -0.0 is 0.0, null is null."""
    return tuple(
        v if not isinstance(v, float) else "nan" if math.isnan(v) else v + 0.0 for v in row
    )


def holds(rows: Iterable[Row], determinants: Sequence[int], dependents: Sequence[int]) -> bool:
    return all(
        [one[at] for at in dependents] == [other[at] for at in dependents]
        for one, other in combinations(map(identified, rows), 2)
        if [one[at] for at in determinants] == [other[at] for at in determinants]
    )


@settings(max_examples=examples(25, 40))
@given(
    st.lists(OPERATIONS, min_size=2, max_size=6),
    st.lists(st.sampled_from(sorted(DEPENDENCES)), min_size=1, max_size=2, unique=True),
)
def test_dependences_against_brute_force(
    transactions: list[list[tuple[str, Row]]], names: list[str]
) -> None:
    keys = [each for each in names if each.startswith("key")][:1]
    others = [each for each in names if not each.startswith("key")]
    text = f".decl f(a: symbol?, b: float?, c: number) {' '.join(keys)}\n"
    text += "".join(f".fd f({each})\n" for each in others)
    db = corollary.open(None)
    db.load(text=text)
    held: dict[Row, Row] = {}
    for operations in transactions:
        after = dict(held)
        tx = db.transaction()
        for sign, row in operations:
            (tx.insert if sign == "+" else tx.delete)("f", [row])
            if sign == "+":
                after.setdefault(identified(row), row)
            else:
                after.pop(identified(row), None)
        if all(holds(after.values(), *DEPENDENCES[each]) for each in (*keys, *others)):
            tx.commit()
            held = after
        else:
            with pytest.raises(ConstraintError):
                tx.commit()
        found = comparable(map(identified, db.relation("f").rows()))
        assert found == comparable(held)


def test_a_violation_in_the_middle_that_is_mended(bank: Database) -> None:
    with bank.transaction() as tx:
        tx.insert("account", [("ann", 1)])
        tx.delete("account", [("ann", 100)])
    assert tx.changes["rich"].counts == (0, 1)
    delete(bank, "account", [("ann", 1), ("bob", 20)])
    assert len(bank.relation("account")) == 0


# ------------------------------------------------------------------- views that show a key

EVENTS = """
.decl event(id: number, team: number, day: number) key(id)
.decl team(id: number, region: number) key(id)
.decl late(id: number, n: number)
.decl placed(id: number, region: number)
late(i, n) :- event(i, _, d), d > 4, n = i * i.
placed(i, r) :- event(i, t, _), team(t, r).
"""


def test_views_that_show_a_key_need_no_counts() -> None:
    """A tuple has one derivation; another one in OLD and in NEW if only other columns change."""
    free = EVENTS.replace(" key(id)", "")
    assert {"late•count", "placed•count"}.isdisjoint(_payload(EVENTS))
    assert {"late•count", "placed•count"} <= _payload(free)
    chance = random.Random(3)
    event: dict[int, tuple[int, int]] = {}
    team: dict[int, int] = {}
    db = opened(free)
    insert(db, "event", [(0, 1, 2), (0, 1, 9), (0, 2, 8)])
    with db.transaction() as tx:  # what holds from now on did not hold before
        tx.set_program(opened(EVENTS).program)
        tx.delete("event", [(0, 1, 2), (0, 1, 9)])
    event[0] = (2, 8)
    for number in range(60):
        if number == 40:
            db.load(text=free)
        with db.transaction() as tx:
            for id_ in chance.sample(range(6), 2):
                if id_ in event:
                    tx.delete("event", [(id_, *event.pop(id_))])
                if chance.random() < 0.8:
                    event[id_] = chance.randrange(3), chance.randrange(10)
                    tx.insert("event", [(id_, *event[id_])])
            if chance.random() < 0.5:
                id_ = chance.randrange(3)
                if id_ in team:
                    tx.delete("team", [(id_, team.pop(id_))])
                team[id_] = chance.randrange(2)
                tx.insert("team", [(id_, team[id_])])
        late = [(id_, id_ * id_) for id_, (_, day) in event.items() if day > 4]
        placed = [(id_, team[at]) for id_, (at, _) in event.items() if at in team]
        assert sorted(db.relation("late").rows()) == sorted(late)
        assert sorted(db.relation("placed").rows()) == sorted(placed)
    db.close()


def _payload(text: str) -> set[str]:
    return set(payload_relations_of(load_program(parse(SourceFile("events.dl", text))).normal))


def test_a_key_that_a_trigger_repairs_says_nothing_before() -> None:
    text = ACCOUNT + "-account(n, b) :- +account(n, c), account@old(n, b), b != c.\n"
    text += ".decl log(name: symbol)\n+log(n) :- -rich(n).\n"
    with opened(text) as db:
        insert(db, "account", [("ann", 100)])
        insert(db, "account", [("ann", 200)])
        assert db.relation("rich").rows() == [("ann",)]
        assert db.relation("log").rows() == []


# ------------------------------------------------------------------- keys and triggers

PARTS = """
.decl part(id: number, parent: number) key(id)
.decl depth(id: number, n: number)
depth(1, 0).
depth(i, n + 1) :- part(i, p), depth(p, n).
.decl log(id: number) key(id)
+log(i) :- +part(i, _).
"""
"""A part that has two parents may close a cycle, on which the depth grows without end."""


def test_a_key_is_checked_before_maintenance_also_with_triggers(place: str) -> None:
    with opened(PARTS, place=place) as db:
        insert(db, "part", [(2, 1), (3, 2)])
        message = refused(db, ({"part": [(2, 3)]}, {}))
        assert "two tuples with the key (id): (`2`, `1`) and (`2`, `3`)" in message
        assert db.relation("log").rows() == [(2,), (3,)]


def test_what_a_trigger_inserts_is_checked_before_maintenance(place: str) -> None:
    text = PARTS + ".decl wish(id: number, parent: number)\n+part(i, p) :- +wish(i, p).\n"
    with opened(text, place=place) as db:
        insert(db, "part", [(2, 1), (3, 2)])
        message = refused(db, ({"wish": [(2, 3)]}, {}))
        assert "(`2`, `1`) and (`2`, `3`)" in message


def test_a_dry_run_says_it_once(place: str) -> None:
    text = PARTS.replace("depth(i, n + 1)", "depth(i, n)")
    with opened(text, place=place) as db:
        insert(db, "part", [(2, 1), (3, 2)])
        with pytest.raises(ConstraintError) as caught, db.transaction(is_dry=True) as tx:
            tx.insert("part", [(2, 3)])
        assert [each.code for each in caught.value.diagnostics] == ["C0937"]


def test_a_trigger_repairs_a_key_or_is_bounded(place: str) -> None:
    text = PARTS + "-part(i, p) :- +part(i, q), part@old(i, p), p != q, q < 9.\n"
    with opened(text, place=place, limits=corollary.Limits(rounds=50)) as db:
        insert(db, "part", [(2, 1), (3, 2)])
        insert(db, "part", [(3, 1)])
        assert sorted(db.relation("part").rows()) == [(2, 1), (3, 1)]
        assert sorted(db.relation("depth").rows()) == [(1, 0), (2, 1), (3, 1)]
        with pytest.raises(LimitError, match="50 rounds"):
            insert(db, "part", [(2, 2)])
        assert sorted(db.relation("part").rows()) == [(2, 1), (3, 1)]
