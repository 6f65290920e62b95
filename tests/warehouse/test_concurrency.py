"""Several writers on one warehouse: what they commit could have come one after another."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.core.arrow import to_python
from corollary.core.states import State
from corollary.database import commit as commits
from corollary.database.database import Database
from corollary.database.pending_commit import DeferredOperations
from corollary.database.writing.operations import Operation
from corollary.errors import ConflictError, ConstraintError, InputError
from corollary.warehouse import warehouse
from support.maintained_database import (
    apply,
    closure,
    delete,
    flips,
    insert,
    opened,
    pairs,
    reopened,
)
from support.payload_check import check_payload
from support.processes import competing_writer
from support.processes.competing_writer import ACCOUNT, TEXT, raise_balance
from support.selection import examples
from support.warehouse_scenarios import everything, loose_files, store_of, stored

WRITERS = examples(3, 4)
EACH = {
    "sqlite": examples(8, 50),
    "postgresql": examples(5, 20),
    "postgresql+s3": examples(3, 10),
}


def compete(
    place: str, writer: str, count: int, stdin: int = subprocess.DEVNULL
) -> subprocess.Popen[str]:
    """Start a process that makes transactions."""
    return subprocess.Popen(
        [sys.executable, competing_writer.__file__, place, writer, str(count)],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def begun(process: subprocess.Popen[str], count: int) -> list[dict[str, Any]]:
    """Return what a process says of its first transactions."""
    assert process.stdout is not None
    return [json.loads(process.stdout.readline() or ended(process)) for _ in range(count)]


def ended(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """Return what else a process has said, once it has ended well."""
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    return [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def bank(place: str) -> Iterator[Database]:
    """An account with nothing in it."""
    with opened(TEXT, place=place) as db:
        insert(db, "account", [(ACCOUNT, 0)])
        yield db


def look(reader: Database) -> int:
    """Return the balance that others have made, which all relations agree on."""
    reader.refresh()
    (balance,) = (row[1] for row in to_python(reader._state.engine.read("account")))
    assert list(to_python(reader._state.engine.read("entries"))) == [(balance,)]
    return int(balance)


@pytest.mark.integration
def test_writers_compete(bank: Database, place: str, request: pytest.FixtureRequest) -> None:
    began, each_makes = bank.commits, EACH[request.node.callspec.params["places"]]
    processes = [
        compete(place, f"writer {at}", each_makes, subprocess.PIPE) for at in range(WRITERS)
    ]
    said = [begun(each, each_makes // 2) for each in processes]
    with reopened(TEXT, place=place) as reader:
        seen = [look(reader)]
        for each in processes:
            assert each.stdin is not None
            each.stdin.write("\n")
            each.stdin.flush()
        while any(each.poll() is None for each in processes):
            seen.append(look(reader))
            time.sleep(0.05)
        seen.append(look(reader))
    for lines, each in zip(said, processes, strict=True):
        lines += ended(each)
    total = WRITERS * each_makes
    assert (seen[0], seen[-1]) == (WRITERS * (each_makes // 2), total)
    assert seen == sorted(seen)
    bank.refresh()
    assert bank.relation("account").rows() == [(ACCOUNT, total)]
    assert bank.relation("entries").rows() == [(total,)]
    befores = {row[:2]: row[2] for row in bank.relation("entry").rows()}
    assert sorted(befores.values()) == list(range(total))  # a serial order: each saw the one before
    commits = {
        (f"writer {at}", each["number"]): each["commit"]
        for at, lines in enumerate(said)
        for each in lines
    }
    assert commits == {key: began + 1 + before for key, before in befores.items()}
    assert bank.commits == began + total
    check_payload(bank)
    with reopened(TEXT, place=place) as again:
        assert everything(again) == everything(bank)
    retried = raise_balance(bank, "writer 0", 0)
    assert retried.commit_number == commits["writer 0", 0]
    assert bank.relation("entries").rows() == [(total,)]


@pytest.mark.integration
def test_processes_make_a_warehouse_together(place: str) -> None:
    """None of them finds it there, and none fails."""
    code = f"""
import corollary
with corollary.open({place!r}) as db:
    db.load(text={closure(type_="number")!r})
    import sys
    with db.transaction() as tx:
        tx.insert("edge", [(int(sys.argv[1]), 0)])
"""
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(at)], stderr=subprocess.PIPE, text=True)
        for at in range(1, 4)
    ]
    for each in processes:
        _, err = each.communicate(timeout=600)
        assert each.returncode == 0, err
    with reopened("", place=place) as db:
        assert len(db.relation("reach")) == 3
        assert db.commits == 4


def test_handles_take_turns(place: str) -> None:
    """Two handles in one process, neither of which is told of the other."""
    one, other = opened(closure(type_="number"), place=place), reopened("", place=place)
    truth: set[Any] = set()
    for at, (inserts, deletes) in enumerate(flips(3, 8, 30)):
        apply((one, other)[at % 3 == 0], (inserts, deletes))
        truth = truth - set(deletes["edge"]) | set(inserts["edge"])
    for db in (one, other):
        db.refresh()
        assert set(db.relation("edge").rows()) == truth
        check_payload(db)
    assert everything(one)["relations"].keys() >= everything(other)["relations"].keys()
    assert stored(one) == stored(other)
    for db in (one, other):
        db.close()


def test_a_transaction_is_done_again_on_what_came_first(place: str) -> None:
    """What it asked is asked anew of the other's state: rules, facts and keys."""
    text = ".decl a(x: number, y: number) key(x)\n.decl b(x: number)\nb(x) :- a(x, _).\n"
    one, other = opened(text, place=place), reopened("", place=place)
    tx = one.transaction()
    tx.add_rule("b(y) :- a(_, y).")
    tx.insert("a", [(1, 10)])
    apply(other, ({"a": [(2, 20)]}, {}), add=["b(x) :- a(x, _), x > 1."])
    tx.commit()
    assert sorted(one.relation("b").rows()) == [(1,), (2,), (10,), (20,)]
    late = one.transaction()
    late.insert("a", [(3, 30)])
    insert(other, "a", [(3, 33)])
    with pytest.raises(ConstraintError):
        late.commit()
    gone = one.transaction()
    gone.remove_rule("b(y) :- a(_, y).")
    apply(other, ({}, {}), remove=["b(y) :- a(_, y)."])
    with pytest.raises(InputError, match="C0911"):
        gone.commit()
    for db in (one, other):
        db.refresh()
        assert sorted(db.relation("b").rows()) == [(1,), (2,), (3,)]
        db.close()


def test_a_reading_sees_another_program(place: str) -> None:
    """What it reads is of one state with the program that it is committed under."""
    text = ".decl a(x: number)\n.decl b(x: number)\n.decl c(x: number)\nc(x) :- a(x).\n"
    one, other = opened(text, place=place), reopened("", place=place)
    insert(one, "a", [(1,)])

    def read() -> DeferredOperations:
        if not other.relation("b").rows():
            apply(other, ({"b": [(7,)]}, {}), add=["c(x) :- b(x)."])
        largest = max(one.relation("c").rows())
        return DeferredOperations([Operation(State.ADDED, "a", [(largest[0] + 1,)])], {})

    tx = one.transaction()
    tx.read(read)
    tx.commit()
    for db in (one, other):
        assert sorted(db.relation("c").rows()) == [(1,), (7,), (8,)]
        db.close()


def test_a_reading_is_of_one_state(place: str) -> None:
    """Of what others commit meanwhile it sees nothing; the transaction is done again instead."""
    text = ".decl a(x: number) key(x)\n.decl b(x: number)\n"
    one, other = opened(text, place=place), reopened("", place=place)
    seen = []

    def read() -> DeferredOperations:
        first = len(one.relation("a"))
        if len(seen) < 2:
            apply(other, ({"a": [(len(seen),)], "b": [(len(seen),)]}, {}))
        seen.append((first, len(one.relation("b"))))
        return DeferredOperations([Operation(State.ADDED, "a", [(10 + first,)])], {})

    tx = one.transaction(idempotency="one")
    tx.read(read)
    tx.commit()
    assert seen == [(0, 0), (1, 1), (2, 2)]
    assert sorted(other.relation("a").rows()) == [(0,), (1,), (12,)]
    for db in (one, other):
        db.close()


def test_others_come_first_again_and_again(
    bank: Database, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = reopened(TEXT, place=place)
    record, tries = bank._store.record, []

    def late(*arguments: Any) -> int:
        tries.append(1)
        raise_balance(other, "other", len(tries))
        return record(*arguments)

    monkeypatch.setattr(bank._store, "record", late)
    with pytest.raises(ConflictError) as caught:
        raise_balance(bank, "bank", 1)
    assert caught.value.exit_code == 4
    assert len(tries) == commits.MAX_TRIES
    monkeypatch.undo()
    bank.refresh()
    assert stored(bank) == stored(other)
    assert bank.relation("account").rows() == [(ACCOUNT, commits.MAX_TRIES)]
    raise_balance(bank, "bank", 1)
    other.close()


def test_a_reader_follows_rules_too(place: str) -> None:
    """Rules come and go while another handle commits, and a third only looks."""
    left, right = (
        "reach(x, z) :- reach(x, y), edge(y, z).",
        "reach(x, z) :- edge(x, y), reach(y, z).",
    )
    one, other, reader = (
        opened(closure(), place=place),
        reopened("", place=place),
        reopened("", place=place),
    )
    insert(one, "edge", pairs("ab bc cd"))
    states = []
    for at, (add, remove) in enumerate(
        [((), (left,)), ((right,), ()), ((left,), ()), ((), (right,))]
    ):
        apply(one, ({"edge": pairs(f"d{at}")}, {}), add=add, remove=remove)
        insert(other, "edge", pairs(f"{at}a"))
        if at % 2:
            reader.refresh()
            assert stored(reader) == stored(other)
            assert reader.program == other.program
        states.append(stored(other))
    assert len({str(each) for each in states}) == 4
    reader.refresh()
    for db in (one, other, reader):
        db.refresh()
        check_payload(db)
        assert stored(db) == states[-1]
        db.close()


def test_a_writer_that_was_given_up(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`gc` has taken its intent away, so it cannot commit."""
    monkeypatch.setattr(warehouse, "INLINE_BYTES", 1)
    monkeypatch.setattr(commits, "MAX_TRIES", 1)
    db = opened(closure(), place=place)
    catalog = store_of(db).warehouse.catalog
    commit = catalog.commit

    def late(new: Any, intent: str | None) -> int:
        assert intent is not None
        with catalog.write_transaction() as connection:
            connection.execute("DELETE FROM corollary_intents")
        return commit(new, intent)

    monkeypatch.setattr(catalog, "commit", late)
    with pytest.raises(ConflictError, match="gave it up") as caught:
        insert(db, "edge", pairs("ab"))
    assert caught.value.exit_code == 4
    assert stored(db)["reach"] == []
    monkeypatch.setattr(catalog, "commit", commit)
    insert(db, "edge", pairs("bc"))
    db.close()
    with reopened("", place=place) as db:
        assert db.relation("reach").rows() == pairs("bc")
        assert db.commits == 2


def test_an_interrupt_behind_the_commit(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was committed keeps its files, even if nobody was told."""
    monkeypatch.setattr(warehouse, "INLINE_BYTES", 1)
    db = opened(closure(), place=place)
    catalog = store_of(db).warehouse.catalog
    commit = catalog.commit

    def interrupted(*arguments: Any) -> int:
        commit(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(catalog, "commit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        insert(db, "edge", pairs("ab"))
    monkeypatch.setattr(catalog, "commit", commit)
    with reopened("", place=place) as other:
        assert other.relation("reach").rows() == pairs("ab")
        assert loose_files(other) == set()
    assert db.commits == 1
    delete(db, "edge", pairs("ab"))
    assert db.commits == 3
    db.close()


def test_two_folds_of_one_commit(place: str) -> None:
    one, other = opened(closure(), place=place), reopened("", place=place)
    insert(one, "edge", pairs("ab bc"))
    other.refresh()
    errors: list[BaseException] = []

    def fold(db: Database) -> None:
        try:
            for _ in range(5):
                store_of(db).fold(db._state)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=fold, args=(db,)) for db in (one, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    for db in (one, other):
        db.close()
    with reopened("", place=place) as db:
        assert len(db.relation("reach")) == 3


@pytest.mark.integration
@pytest.mark.long
def test_processes_with_the_same_keys(bank: Database, place: str) -> None:
    """Whatever of a key each of them does, it is done once, and all are told the same."""
    processes = [compete(place, "same", 6) for _ in range(2)]
    said = [ended(each) for each in processes]
    told = [[(each["number"], each["commit"]) for each in lines] for lines in said]
    assert told[0] == told[1]
    assert bank.relation("account").rows() == [(ACCOUNT, 6)]
    assert len(bank.relation("entry")) == 6


def test_a_commit_is_never_made_in_the_past(tmp_path: Path) -> None:
    """Not even if the commits that came since are no longer kept."""
    place = tmp_path / "wh"
    with corollary.open(place, engine="local") as late:
        late.load(text=".decl p(x: number)")
        with corollary.open(place, engine="local") as other:
            for value in range(4):
                with other.transaction() as tx:
                    tx.insert("p", [(value,)])
        with closing(sqlite3.connect(place / "catalog.sqlite")) as catalog, catalog:
            catalog.execute("PRAGMA foreign_keys = OFF")
            catalog.execute("DELETE FROM corollary_commits WHERE number < 5")
        with late.transaction() as tx:
            tx.insert("p", [(9,)])
        assert late.commits == 6
        assert sorted(late.relation("p").rows()) == [(0,), (1,), (2,), (3,), (9,)]
