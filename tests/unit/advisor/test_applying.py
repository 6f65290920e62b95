"""Advice in force: one commit, kept true, taken back; in warehouses, in memory, on both engines."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import corollary
from corollary.advisor.apply import ADVICE_KEY, revert
from corollary.advisor.check.verification import find_differing_views
from corollary.advisor.consultation import Consultation, consult
from corollary.database.database import Database
from corollary.errors import CorollaryError, InputError
from support.spark.in_process_partitions import share_out

PROGRAM = """
.decl services(airline: number, airport: number)
.decl connection(a: number, b: number)
.decl base(airline: number, airport: number)
.decl view(airline: number, base: number) virtual
view(a, b) :- services(a, p1), services(a, p2), connection(p1, p2), base(a, b).
"""


def filled(place: Path | None, engine: str = "local", **options: str) -> Database:
    database = corollary.open(place, engine=engine, **options)
    database.load(text=PROGRAM)
    dice = random.Random(3)
    with database.transaction() as transaction:
        transaction.insert(
            "services", {(dice.randrange(20), dice.randrange(30)) for _ in range(80)}
        )
        transaction.insert(
            "connection", {(dice.randrange(30), dice.randrange(30)) for _ in range(9)}
        )
        transaction.insert("base", {(at, dice.randrange(30)) for at in range(20)})
    return database


def answers(database: Database) -> set[tuple[object, ...]]:
    return set(database.relation("view").rows())


def flip(database: Database, dice: random.Random) -> None:
    """Change one random tuple."""
    name = dice.choice(("services", "connection", "base"))
    verb = dice.choice(("insert", "delete"))
    row = (dice.randrange(20), dice.randrange(30))
    if verb == "delete":
        row = dice.choice(database.relation(name).rows() or [row])
    with database.transaction() as transaction:
        getattr(transaction, verb)(name, [row])


def apply(database: Database) -> Consultation:
    found = consult(database, ["view"])
    assert found.advice.is_applicable
    assert all(each.is_fine for each in found.verify())
    found.apply()
    return found


@pytest.mark.slow
def test_a_view_is_exact_through_changes_and_restarts(tmp_path: Path) -> None:
    database = filled(tmp_path / "wh")
    before = answers(database)
    found = apply(database)
    assert answers(database) == before
    dice = random.Random(1)
    for number in range(60):
        flip(database, dice)
        if number % 20 == 19:
            database.close()
            database = corollary.open(tmp_path / "wh", engine="local")
            assert not list(find_differing_views(database, found.advice.views))
    changed = answers(database)
    applied, _ = revert(database)
    assert applied.views == tuple(found.advice.views)
    assert answers(database) == changed
    assert "mv_view_1" not in database._state.loaded.normal.relations
    database.close()
    with corollary.open(tmp_path / "wh", engine="local") as again:
        assert answers(again) == changed
        assert not consult(again, ["view"]).database.program.dependencies


@pytest.mark.slow
def test_another_process_follows_both_ways(tmp_path: Path) -> None:
    database = filled(tmp_path / "wh")
    with corollary.open(tmp_path / "wh", engine="local") as other:
        apply(database)
        assert answers(other) == answers(database)
        flip(other, random.Random(5))
        revert(other)
        assert answers(database) == answers(other)
    database.close()


def test_advice_for_another_program_changes_nothing(tmp_path: Path) -> None:
    database = filled(tmp_path / "wh")
    found = consult(database, ["view"])
    with corollary.open(tmp_path / "wh", engine="local") as other:
        other.load(text=PROGRAM + ".decl more(x: number)\n")
    commits = database.commits
    with pytest.raises(InputError, match="C1103"):
        found.apply()
    assert database._store is not None
    catalog = database._store.warehouse.catalog
    with catalog.read_transaction() as connection:
        assert catalog.find_meta(connection, ADVICE_KEY) is None
    assert database.commits == commits + 1  # what the other one has done
    database.close()


def test_rules_that_were_changed_since_are_not_reverted(tmp_path: Path) -> None:
    database = filled(tmp_path / "wh")
    apply(database)
    with database.transaction() as transaction:
        transaction.remove_rule("view(a, b) :- mv_view_1(a), base(a, b).")
        transaction.add_rule("view(a, b) :- mv_view_1(a), base(b, a).")
    with pytest.raises(InputError, match="C1104"):
        revert(database)
    database.close()


@pytest.mark.slow
def test_a_view_that_others_read_is_not_dropped(tmp_path: Path) -> None:
    database = filled(tmp_path / "wh")
    apply(database)
    database.load(
        text="\n".join(
            [
                PROGRAM.replace(PROGRAM.splitlines()[-1], ""),
                ".decl mv_view_1(a: number) stored",
                "mv_view_1(a) :- services(a, p1), services(a, p2), connection(p1, p2).",
                "view(a, b) :- mv_view_1(a), base(a, b).",
                ".decl mine(a: number) mine(a) :- mv_view_1(a).",
            ]
        )
    )
    held = database.relation("mine").rows()
    with pytest.raises(CorollaryError, match="mv_view_1"):
        revert(database)
    assert database.relation("mine").rows() == held
    database.close()


def test_in_memory() -> None:
    with filled(None) as database:
        before = answers(database)
        apply(database)
        assert answers(database) == before
        with pytest.raises(InputError, match="C1104"):
            revert(database)


def test_in_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch)
    with filled(None) as database:
        before = answers(database)
        found = consult(database, ["view"])
        found.apply()
        assert answers(database) == before
        dice = random.Random(2)
        for _ in range(3):
            flip(database, dice)
        assert not list(find_differing_views(database, found.advice.views))
