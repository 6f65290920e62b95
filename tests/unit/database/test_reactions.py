"""Constraints, alerts and triggers in transactions: what they say, and what they leave behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.core.engine import Limits
from corollary.database.database import Database
from corollary.errors import ConstraintError, EvaluationError, InputError, LimitError
from support.command_line import cli, of_json

ABORTED, LIMIT = 3, 5

ACCOUNTS = """\
.decl entry(account: number, amount: number)
.decl balance(account: number, total: number)
balance(a, t) :- entry(a, _), t = sum x : { entry(a, x) }.
.decl overdrawn(account: number)
overdrawn(a) :- balance(a, t), t < 0.
"""
ABORT = '.abort overdrawn "account {account} would be negative"\n'


def opened(text: str, place: Path | None = None, **options: Any) -> Database:
    db = corollary.open(place, engine="local", **options)
    db.load(text=text)
    return db


def insert(db: Database, relation: str, *rows: tuple[Any, ...]) -> Any:
    with db.transaction() as tx:
        tx.insert(relation, rows)
    return tx


def messages(tx: Any) -> list[str]:
    return sorted(each.message for each in tx.alerts)


# ------------------------------------------------------------------------------------- constraints

SEATS = """\
.decl seat(n: number)
.decl booked(who: symbol, n: number)
.decl waiting(who: symbol)
.decl guest(who: symbol)
.decl twice(n: number)
twice(n) :- booked(a, n), booked(b, n), a != b.
.abort twice "seat {n} would be booked twice"
arrived(w) :- +waiting(w).
+booked(w, n) :- arrived(w), seat(n).
+waiting(w) :- +guest(w).
"""


def test_a_violation_by_a_trigger_names_it_and_the_change_of_the_user() -> None:
    db = opened(SEATS)
    insert(db, "seat", (1,))
    insert(db, "booked", ("ann", 1))
    caused = (
        "caused by `+booked(bob, 1)`, which the trigger `+booked(w, n) :- arrived(w), seat(n).` "
        "makes because of `{}`; nothing was changed; `--why` of `run` and `apply` proves it"
    )
    for relation in ("waiting", "guest"):
        with pytest.raises(ConstraintError) as error:
            insert(db, relation, ("bob",))
        (found,) = error.value.diagnostics
        assert found.note == caused.format(f"+{relation}(bob)")
    with pytest.raises(ConstraintError) as error:
        insert(db, "booked", ("bob", 1))
    assert "trigger" not in str(error.value)
    assert db.relation("booked").rows() == [("ann", 1)]


def test_a_violation_by_a_trigger_on_a_view_names_what_it_is_derived_from() -> None:
    db = opened(
        ".decl part(p: symbol, n: number)\n.decl order(p: symbol)\n"
        ".decl low(p: symbol)\nlow(p) :- part(p, n), n < 3.\n"
        '+order(p) :- +low(p).\n.abort order "no orders"\n'
    )
    with pytest.raises(
        ConstraintError,
        match=r"`\+order\(p\) :- \+low\(p\)\.` makes because of "
        r"`\+part\(nut, 2\)`",
    ):
        insert(db, "part", ("nut", 2))


def test_a_violation_names_the_tuple_the_rule_and_the_change() -> None:
    db = opened(
        ".decl e(x: symbol, y: symbol)\n.decl p(x: symbol, y: symbol)\n"
        "p(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z).\n"
        'loop(x) :- +p(x, x).\n.abort loop "{x} reaches itself"\n'
    )
    insert(db, "e", ("a", "b"), ("b", "c"))
    with pytest.raises(ConstraintError) as error:
        insert(db, "e", ("c", "a"), ("x", "y"))
    text = str(error.value)
    assert text.count("C1051") == 3
    assert "The constraint `loop` forbids (`a`): a reaches itself" in text
    assert "loop(x) :- +p(x, x)." in text
    assert text.count("caused by `+e(c, a)`; nothing was changed") == 3
    assert sorted(db.relation("e").rows()) == [("a", "b"), ("b", "c")]


def test_the_change_behind_a_violation_may_be_a_removal() -> None:
    db = opened(
        ".decl on(s: symbol)\n.decl doctor(d: symbol, s: symbol)\n.decl away(d: symbol)\n"
        ".decl staffed(s: symbol) virtual\nstaffed(s) :- doctor(d, s), !away(d).\n"
        'alone(s) :- -staffed(s), on(s).\n.abort alone "nobody in {s}"\n'
    )
    insert(db, "on", ("west",))
    insert(db, "doctor", ("ann", "west"), ("bob", "west"))
    insert(db, "away", ("ann",))
    with pytest.raises(ConstraintError, match=r"caused by `\+away\(bob\)`"):
        insert(db, "away", ("bob",))
    with (
        pytest.raises(ConstraintError, match=r"caused by `-doctor\(bob, west\)`"),
        db.transaction() as tx,
    ):
        tx.delete("doctor", [("bob", "west")])


def test_the_change_behind_events_over_events() -> None:
    db = opened(
        ".decl edge(x: number, y: number)\n.decl watched(x: number)\nwatched(4).\n"
        "hit(y) :- -edge(_, y).\nhit(z) :- hit(y), edge@old(y, z).\n"
        'bad(x) :- hit(x), watched(x).\n.abort bad "{x}"\n.alert hit "{y}"\n'
    )
    insert(db, "edge", (1, 2), (2, 3), (3, 4))
    with (
        pytest.raises(ConstraintError, match=r"caused by `-edge\(1, 2\)`; "),
        db.transaction() as tx,
    ):
        tx.delete("edge", [(1, 2)])


@pytest.mark.parametrize(
    ("storage", "cause"), [("", r"\+a\(1, 6\)"), (" virtual", r"\+t\(1, 11\)")]
)
def test_the_change_behind_a_sum(storage: str, cause: str) -> None:
    """What is made for a virtual relation is not kept, so that it is named itself."""
    db = opened(
        f".decl a(g: number, x: number)\n.decl t(g: number, n: number){storage}\n"
        "t(g, n) :- a(g, _), n = sum x : { a(g, x) }.\n"
        'bad(g) :- +t(g, n), n > 10.\n.abort bad "{g}"\n'
    )
    insert(db, "a", (1, 5), (2, 5))
    with pytest.raises(ConstraintError, match=f"caused by `{cause}`; nothing"):
        insert(db, "a", (1, 6), (2, 1))


def test_many_violations_are_cut_short() -> None:
    db = opened('.decl p(x: number)\nbad(x) :- +p(x), x < 0.\n.abort bad "{x}"\n')
    with pytest.raises(ConstraintError, match="has 30 more such tuples") as error:
        insert(db, "p", *((-number,) for number in range(1, 51)))
    assert str(error.value).count("forbids") == 20


@pytest.mark.parametrize("is_lasting", [False, True])
def test_tuples_that_were_there_before_a_constraint(is_lasting: bool, tmp_path: Path) -> None:
    db = opened(ACCOUNTS, tmp_path / "w" if is_lasting else None)
    insert(db, "entry", (1, -5), (2, 10))
    with pytest.raises(ConstraintError, match=r"C1052.*account 1 would be negative"):
        db.load(text=ACCOUNTS + ABORT, existing="refuse")
    assert not db.program.reactions
    tx = db.load(text=ACCOUNTS + ABORT)
    assert [(each.constraint, each.row) for each in tx.existing] == [("overdrawn", (1,))]
    insert(db, "entry", (3, 7))
    with pytest.raises(ConstraintError, match="account 2"):
        insert(db, "entry", (2, -11))
    insert(db, "entry", (1, 6))
    with pytest.raises(ConstraintError, match="account 1 "):
        insert(db, "entry", (1, -2))
    db.close()


def test_a_constraint_that_comes_with_data() -> None:
    """What is new with it is judged, what was there is reported, and what goes is neither."""
    db = opened(ACCOUNTS)
    insert(db, "entry", (1, -5), (2, -6))
    tx = db.transaction()
    tx.add_rule(ABORT)
    tx.insert("entry", [(2, 6), (3, 1)])
    tx.commit()
    assert [each.row for each in tx.existing] == [(1,)]
    db = opened(ACCOUNTS)
    insert(db, "entry", (1, -5))
    tx = db.transaction()
    tx.add_rule(ABORT)
    tx.insert("entry", [(4, -1)])
    with pytest.raises(ConstraintError, match="account 4"):
        tx.commit()


def test_a_first_load_is_judged() -> None:
    with pytest.raises(ConstraintError, match="account 1"):
        opened(ACCOUNTS + ABORT + "entry(1, -5).\n")


def test_an_alert_does_not_tell_of_what_was_there() -> None:
    db = opened(ACCOUNTS)
    insert(db, "entry", (1, -5))
    tx = db.transaction()
    tx.add_rule('.alert overdrawn "{account}"')
    tx.insert("entry", [(2, -1)])
    tx.commit()
    assert messages(tx) == ["2"]


def test_a_choice_that_there_is_not() -> None:
    with pytest.raises(InputError, match="C1050"):
        corollary.open(None, engine="local", existing="ignore")
    with pytest.raises(InputError, match="C1050"):
        corollary.open(None, engine="local").transaction(existing="ignore")


# ----------------------------------------------------------------------------------------- triggers

PING = """\
.decl ping(x: number)
.decl pong(x: number)
+pong(x) :- +ping(x).
-ping(x) :- +pong(x).
-pong(x) :- -ping(x).
+ping(x) :- -pong(x).
"""


def test_triggers_that_do_not_end() -> None:
    db = opened(PING)
    with pytest.raises(LimitError) as error:
        insert(db, "ping", (1,))
    text = str(error.value)
    assert "more than 100 rounds" in text
    assert "round 1: +pong(`1`)" in text
    assert "round 101:" in text
    assert "round 50:" not in text
    assert db.relation("ping").rows() == db.relation("pong").rows() == []
    db = opened(PING, limits=Limits(rounds=7))
    with pytest.raises(LimitError, match="more than 7 rounds"):
        insert(db, "ping", (1,))


def test_an_error_in_a_round_takes_everything_back() -> None:
    db = opened(
        ".decl p(x: number)\n.decl q(x: number)\n.decl r(x: number, y: number)\n"
        ".decl n(c: number)\nn(c) :- c = count : { q(_) }.\n"
        "+q(x) :- +p(x).\n+r(x, y) :- +q(x), y = 10 / x.\n"
    )
    insert(db, "p", (5,))
    assert db.relation("r").rows() == [(5, 2)]
    with pytest.raises(EvaluationError):
        insert(db, "p", (1,), (0,))
    assert db.relation("p").rows() == db.relation("q").rows() == [(5,)]
    assert db.relation("n").rows() == [(1,)]
    tx = insert(db, "p", (2,))
    assert db.relation("r").rows().count((2, 5)) == 1
    assert [str(each) for each in tx.triggered] == ["+q(`2`)", "+r(`2`, `5`)"]


def test_a_key_may_be_broken_until_triggers_are_through() -> None:
    db = opened(
        ".decl price(item: symbol, net: number) key(item)\n"
        "-price(i, old) :- +price(i, new), price@old(i, old), old != new.\n"
    )
    insert(db, "price", ("bolt", 5))
    insert(db, "price", ("bolt", 6))
    assert db.relation("price").rows() == [("bolt", 6)]
    with pytest.raises(ConstraintError, match="C0937"):
        insert(db, "price", ("nut", 1), ("nut", 2))


def test_triggers_may_undo_a_transaction(tmp_path: Path) -> None:
    text = '.decl p(x: number)\n-p(x) :- +p(x), x < 0.\nnew(x) :- +p(x).\n.alert new "{x}"\n'
    with opened(text, tmp_path / "w") as db:
        insert(db, "p", (1,))
        commits = db.commits
        tx = insert(db, "p", (-1,))
        assert not tx.alerts
        assert tx.commit_number is None
        assert db.commits == commits
        assert messages(insert(db, "p", (-1,), (2,))) == ["2"]
        assert sorted(db.relation("p").rows()) == [(1,), (2,)]


def test_what_another_part_asserts_stays() -> None:
    db = opened(".decl p(x: number)\n.decl q(x: number)\np(1).\n-p(x) :- +q(x).\n")
    insert(db, "q", (1,))
    assert db.relation("p").rows() == [(1,)]


def test_triggered_changes_last(tmp_path: Path) -> None:
    text = ".decl p(x: number)\n.decl q(x: number)\n.decl r(x: number)\n"
    text += "r(x) :- q(x).\n+q(x) :- +p(x).\n"
    with opened(text, tmp_path / "w") as db:
        insert(db, "p", (1,))
    with corollary.open(tmp_path / "w", engine="local") as db:
        assert db.relation("r").rows() == [(1,)]
        assert {name: each.counts for name, each in db.changes(2).items()} == dict.fromkeys(
            ("p", "q", "r"), (1, 0)
        )


# ------------------------------------------------------------------------------------- rule changes


def test_active_rules_come_and_go(tmp_path: Path) -> None:
    text = ".decl p(x: number)\n.decl seen(x: number)\n"
    with opened(text, tmp_path / "w") as db:
        insert(db, "p", (0,))
        with db.transaction() as tx:
            tx.add_rule("low(x) :- +p(x), x < 10.")
            tx.add_rule('.alert low "{x} is low"')
            tx.add_rule("+seen(x) :- low(x).")
        assert not tx.alerts
    with corollary.open(tmp_path / "w", engine="local") as db:
        assert messages(insert(db, "p", (5,))) == ["5 is low"]
        with db.transaction() as tx:
            tx.remove_rule('.alert low "{x} is low"')
            tx.add_rule('.abort low "{x} is too low"')
        with pytest.raises(ConstraintError, match="6 is too low"):
            insert(db, "p", (6,))
        with db.transaction() as tx:
            tx.remove_rule('.abort low "{x} is too low"')
            tx.remove_rule("+seen(y) :- low(y).")
        assert not insert(db, "p", (7,)).alerts
        assert db.relation("seen").rows() == [(5,)]
        for text in ('.alert low "other"', '.abort nothing "{x}"'):
            with pytest.raises(InputError, match="C0911"):
                db.transaction().remove_rule(text)
        with pytest.raises(InputError, match="C0101"):
            db.transaction().add_rule(".decl q(x: number)")


def test_a_view_that_gets_a_rule_is_told_of() -> None:
    text = ".decl e(x: number)\n.decl f(x: number)\n.decl v(x: number) virtual\nv(x) :- e(x).\n"
    db = opened(text + 'new(x) :- +v(x), !e@old(x).\n.alert new "{x}"\n')
    insert(db, "f", (3,))
    with db.transaction() as tx:
        tx.add_rule("v(x) :- f(x).")
    assert messages(tx) == ["3"]


# --------------------------------------------------------------------------------------- callbacks


def test_a_callback_hears_of_events_and_of_relations() -> None:
    db = opened(
        ".decl e(x: number)\n.decl v(x: number) virtual\nv(x) :- e(x), x > 1.\ngone(x) :- -v(x).\n"
    )
    heard: list[tuple[str, Any]] = []

    @db.on("v")
    def come(rows: list[Any]) -> None:
        heard.extend(("v", tuple(row)) for row in rows)

    @db.on("gone")
    def go(rows: list[Any]) -> None:
        heard.extend(("gone", tuple(row)) for row in rows)

    insert(db, "e", (1,), (2,), (3,))
    with db.transaction() as tx:
        tx.delete("e", [(2,)])
    assert sorted(heard) == [("gone", (2,)), ("v", (2,)), ("v", (3,))]


# ------------------------------------------------------------------------------------- command line


def test_apply_and_run_tell_and_abort(tmp_path: Path) -> None:
    program, place = tmp_path / "bank.dl", str(tmp_path / "w")
    program.write_text(
        ACCOUNTS + ABORT + 'rich(a) :- +balance(a, t), t > 100.\n.alert rich "{a} is rich"\n'
        "+entry(a, 1) :- rich(a).\n"
    )
    local = ("--engine", "local")
    assert cli("run", str(program), "--warehouse", place, *local).exit_code == 0
    changes = tmp_path / "changes.jsonl"

    def apply(row: list[int], *options: str) -> Any:
        changes.write_text(json.dumps({"op": "insert", "relation": "entry", "row": row}))
        return cli("apply", place, "--changes", str(changes), *local, *options)

    told = apply([1, 200])
    assert told.exit_code == 0
    assert "alert: 1 is rich" in told.output
    found = of_json(apply([2, 300], "--format", "json"))
    assert found["alerts"] == [{"event": "rich", "row": [2], "message": "2 is rich"}]
    assert [2, 301] in found["changes"]["balance"]["added"]
    dry = apply([4, -1], "--dry-run")
    assert dry.exit_code == ABORTED
    refused = apply([3, -1])
    assert refused.exit_code == ABORTED
    assert "account 3 would be negative" in refused.output
    program.write_text(PING)
    ping = str(tmp_path / "v")
    assert cli("run", str(program), "--warehouse", ping, *local).exit_code == 0
    changes.write_text(json.dumps({"op": "insert", "relation": "ping", "row": [1]}))
    assert cli("apply", ping, "--changes", str(changes), *local).exit_code == LIMIT


def test_existing_violations_on_the_command_line(tmp_path: Path) -> None:
    program, place = tmp_path / "bank.dl", str(tmp_path / "w")
    program.write_text(ACCOUNTS + "entry(1, -5).\n")
    run = ("run", str(program), "--warehouse", place, "--engine", "local")
    assert cli(*run).exit_code == 0
    program.write_text(ACCOUNTS + ABORT + "entry(1, -5).\n")
    assert cli(*run, "--existing", "refuse").exit_code == ABORTED
    told = cli(*run)
    assert told.exit_code == 0
    assert "there before the constraint `overdrawn`: account 1 would be negative" in told.output
