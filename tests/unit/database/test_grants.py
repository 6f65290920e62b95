"""Who may see what: a reader sees what was granted to it, and nothing else by any way."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.core.engine import Limits
from corollary.database.database import Database
from corollary.database.reading.reader import Reader
from corollary.database.upkeep.backup import copy
from corollary.database.upkeep.verify import verify
from corollary.errors import AccessError, CorollaryError, InputError, LimitError
from corollary.warehouse.catalog.schema import TABLES
from corollary.warehouse.warehouse import Warehouse
from support.command_line import INPUT, LIMIT, OK, USAGE, cli, of_json, put

PROGRAM = """
.decl direct_link(src: symbol, dst: symbol)
.decl link(src: symbol, dst: symbol)
link(x, y) :- direct_link(x, y).
link(x, y) :- link(x, z), direct_link(z, y).
.decl far(src: symbol, dst: symbol) virtual
far(x, y) :- link(x, y), !direct_link(x, y).
.decl secret(who: symbol, n: number)
.decl share(n: number) virtual
share(100 / n) :- secret(_, n).
connection_lost(x, y) :- -link(x, y).
.alert connection_lost "lost {x} -> {y}"
"""
HIDDEN = ("direct_link", "secret", "mallory", "31337")
"""Names and values that nobody who was granted views only may get to see."""


def filled(place: str | None) -> Database:
    """A database with two commits behind the program's own."""
    db = corollary.open(place, engine="local")
    db.load(text=PROGRAM)
    with db.transaction() as tx:
        tx.insert("direct_link", [("a", "b"), ("b", "c"), ("c", "d")])
        tx.insert("secret", [("mallory", 31337)])
    with db.transaction() as tx:
        tx.delete("direct_link", [("c", "d")])
    return db


@pytest.fixture
def db(place: str) -> Any:
    """A database in a warehouse in which `link`, `far` and `connection_lost` were granted."""
    with filled(place) as made:
        made.grant("alice", "link", "far")
        made.grant("alice", "connection_lost")
        yield made


def refused(call: Callable[[], object], code: str = "C1040") -> str:
    """Assert that a call is refused; return the message."""
    with pytest.raises(AccessError) as error:
        call()
    (found,) = error.value.diagnostics
    assert found.code == code
    assert found.note
    return str(error.value)


# ------------------------------------------------------------------------------------------ reading


def test_a_reader_sees_views_and_not_what_is_under_them(db: Database) -> None:
    alice = db.reader("alice")
    assert sorted(alice.relation("link").rows()) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert alice.relation("link").arrow().num_rows == 3
    assert alice.query('link("a", y)').to_pydict() == {"y": ["b", "c"]}
    for name in ("direct_link", "secret"):
        for call in (alice.relation, alice.feed, alice.watch, alice.on):
            refused(lambda name=name, call=call: call(name))
        refused(lambda name=name: alice.query(f"{name}(x, y)"))
        refused(lambda name=name: alice.answers(f"{name}(x, y)"))


def test_a_virtual_view_can_be_asked_for(db: Database) -> None:
    alice = db.reader("alice")
    assert alice.relation("far").rows() == [("a", "c")]
    assert alice.query('far(x, "c")').to_pydict() == {"x": ["a"]}
    alice.watch("far")


def test_the_past_is_seen_with_the_grants_of_today(db: Database) -> None:
    alice = db.reader("alice")
    with alice.at(2) as past:
        assert ("a", "d") in past.relation("link").rows()
        refused(lambda: past.relation("direct_link"))
        refused(lambda: past.query("secret(x, y)"))
        db.revoke("alice", "link")
        refused(lambda: past.relation("link"))


def test_history_tells_of_granted_relations_only(db: Database) -> None:
    alice = db.reader("alice")
    assert {told.relation.name for told in alice.feed()} == {"link"}
    assert [told.relation.name for told in alice.feed("link", since=2)] == ["link"]
    changes = alice.changes(2)
    assert list(changes) == ["link"]
    assert changes["link"].counts == (6, 0)
    refused(lambda: changes["direct_link"])
    assert [set(each.changes) for each in alice.log()] == [{"link"}, {"link"}, set()]
    assert all(each.idempotency is None for each in alice.log())


def test_events_can_be_granted(db: Database) -> None:
    heard: list[Any] = []
    db.reader("alice").on("connection_lost")(heard.extend)
    with db.transaction() as tx:
        tx.delete("direct_link", [("b", "c")])
    assert sorted(map(tuple, heard)) == [("a", "c"), ("b", "c")]
    refused(lambda: db.reader("bob").on("connection_lost"))
    with pytest.raises(InputError, match="C0902"):
        db.reader("alice").query("connection_lost(x, y)")


def test_grants_count_at_once_in_views_that_are_held(db: Database) -> None:
    alice = db.reader("alice")
    view = alice.relation("link")
    assert len(view) == 3
    db.revoke("alice", "link")
    refused(view.arrow)
    refused(view.rows)
    db.grant("alice", "link")
    assert len(view) == 3


# ---------------------------------------------------------------------------------- what would leak


def test_a_name_that_was_not_granted_is_as_one_that_there_is_not(db: Database) -> None:
    alice = db.reader("alice")
    hidden = refused(lambda: alice.relation("secret"))
    missing = refused(lambda: alice.relation("nothing"))
    assert hidden.replace("secret", "nothing") == missing
    assert "`alice` may see `connection_lost`, `far`, `link`" in hidden
    near = refused(lambda: alice.query("direct_lin(x, y)"))
    assert "direct_link" not in near
    assert "may see nothing" in refused(lambda: db.reader("bob").relation("link"))


def test_errors_in_rules_do_not_show_values(db: Database) -> None:
    db.grant("alice", "share")
    alice = db.reader("alice")
    assert alice.relation("share").rows() == [(0,)]
    with db.transaction() as tx:
        tx.insert("secret", [("mallory", 0)])
    for call in (lambda: alice.query("share(n)"), alice.relation("share").rows):
        with pytest.raises(AccessError, match="C1042") as error:
            call()
        assert error.value.__context__ is None
        assert error.value.__cause__ is None
        shown = "".join(traceback.format_exception(error.value))
        assert not any(each in shown for each in HIDDEN)
    with pytest.raises(CorollaryError, match="secret"):
        db.query("share(n)")  # who runs the warehouse is told


def test_limits_do_not_show_rules(place: str) -> None:
    with corollary.open(place, engine="local", limits=Limits(rounds=5)) as db:
        db.load(text=".decl n(x: number) virtual n(0). n(x + 1) :- n(x), x < 1000.")
        db.grant("alice", "n")
        with pytest.raises(LimitError) as error:
            db.reader("alice").query("n(x)")
    assert error.value.__context__ is None
    assert "n(x + 1)" not in str(error.value)
    assert "who runs the warehouse" in str(error.value)


def test_a_relation_that_was_not_there_yet(place: str) -> None:
    with corollary.open(place, engine="local") as db:
        db.load(text=".decl p(x: number)")
        db.load(text=".decl p(x: number) .decl q(x: number) q(x) :- p(x).")
        db.grant("alice", "q")
        with pytest.raises(InputError, match="C0916") as error:
            db.reader("alice").at(1).relation("q")
        assert "`p`" not in str(error.value)


# -------------------------------------------------------------------------------------- not writing


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("load", ()), ("transaction", ()), ("stream", (None, "link")), ("publish", ()),
        ("deliver", ()), ("grant", ("alice", "secret")), ("revoke", ("bob", "link")),
        ("grants", ()), ("reader", ("bob",)),
    ],
)  # fmt: skip
def test_a_reader_cannot(db: Database, name: str, arguments: tuple[Any, ...]) -> None:
    message = refused(lambda: getattr(db.reader("alice"), name)(*arguments), "C1041")
    assert message.startswith("error[C1041]: `alice` reads, and cannot ")


def test_a_reader_has_no_other_way() -> None:
    """What a database can do, a reader limits or refuses; what is new has to be thought about."""
    known = {name for name in dir(Database) if not name.startswith("_")}
    inner = {
        "accept", "adopt", "allow_webhooks", "attempt", "become", "callbacks", "clear_deltas",
        "declared", "distrust", "existing", "heard", "insist", "is_trial",
        "must_note", "notify", "opening", "outbox", "outlets", "payload_of", "program",
        "publishes_by_hand", "query_log", "settle", "stand", "told", "wanted",
    }  # fmt: skip
    assert known - inner <= set(dir(Reader))
    assert not inner & set(dir(Reader))


# -------------------------------------------------------------------------------- giving and taking


def test_grants_are_listed_and_taken_back(db: Database) -> None:
    db.grant("bob", "secret")
    db.grant("bob", "secret", "link")
    assert db.grants() == {
        "alice": ["connection_lost", "far", "link"],
        "bob": ["link", "secret"],
    }
    db.revoke("bob", "secret", "never_granted")
    db.revoke("alice", "connection_lost", "far", "link")
    assert db.grants() == {"bob": ["link"]}


@pytest.mark.parametrize("names", [("no_such",), ("link", "no_such"), ()])
def test_only_what_there_is_can_be_granted(db: Database, names: tuple[str, ...]) -> None:
    before = db.grants()
    with pytest.raises(InputError, match="C1043"):
        db.grant("carol", *names)
    assert db.grants() == before


@pytest.mark.parametrize("name", ["", " alice", "al\nice", "x" * 201])
def test_names_of_readers(db: Database, name: str) -> None:
    for call in (lambda: db.grant(name, "link"), lambda: db.reader(name)):
        with pytest.raises(InputError, match="C1044"):
            call()


def test_names_are_no_sql(db: Database) -> None:
    odd = "'; drop table corollary_grants; -- \N{SNOWMAN}"
    db.grant(odd, "link")
    assert db.reader(odd).granted == {"link"}
    assert db.reader("%").granted == frozenset()


def test_grants_are_no_commit_and_hold_for_others(db: Database, place: str) -> None:
    before = db.commits
    with corollary.open(place, reader="alice", engine="local") as alice:
        assert isinstance(alice, Reader)
        assert len(alice.relation("link")) == 3
        db.revoke("alice", "link")
        refused(lambda: alice.relation("link"))
        db.grant("alice", "link")
        with db.transaction() as tx:
            tx.insert("direct_link", [("c", "d")])
        assert len(alice.relation("link")) == 6
    assert db.commits == before + 1


def test_a_reader_makes_no_warehouse(tmp_path: Path) -> None:
    with pytest.raises(CorollaryError):
        corollary.open(tmp_path / "none", reader="alice", engine="local")
    assert not (tmp_path / "none").exists()


def test_in_memory() -> None:
    db = filled(None)
    db.grant("alice", "link")
    assert len(db.reader("alice").relation("link")) == 3
    refused(lambda: db.reader("alice").relation("secret"))
    db.revoke("alice", "link")
    assert db.grants() == {}


def test_backups_carry_grants_and_verify_finds_nothing(
    db: Database, place: str, places: Callable[[], str], tmp_path: Path
) -> None:
    db.close()
    saved, again = str(tmp_path / "saved"), places()
    for source, target in ((place, saved), (saved, again)):
        with closing(Warehouse.open(source, create=False)) as warehouse:
            copy(warehouse, target)
    for each in (saved, again):
        with corollary.open(each, engine="local") as found:
            assert found.grants() == {"alice": ["connection_lost", "far", "link"]}
        with closing(Warehouse.open(each, create=False)) as warehouse:
            assert not verify(warehouse).findings


def test_tables_have_a_prefix() -> None:
    assert "corollary_grants" in TABLES
    assert all(name.startswith("corollary_") for name in TABLES)


# --------------------------------------------------------------------------------- the command line


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    filled("wh").close()
    return "wh"


def test_grants_by_command(warehouse: str) -> None:
    assert cli("grants", warehouse).output == "nobody may see anything\n"
    result = cli("grant", warehouse, "alice", "link", "far")
    assert (result.exit_code, result.output) == (OK, "reader  may see\nalice   far, link\n")
    assert of_json(cli("grants", warehouse, "--format", "json")) == {
        "grants": {"alice": ["far", "link"]}
    }
    result = cli("revoke", warehouse, "alice", "far", "link")
    assert result.output == "reader  may see\nalice   nothing\n"
    result = cli("grant", warehouse, "alice", "lin")
    assert result.exit_code == INPUT
    assert "error[C1043]" in result.output
    assert "`link`" in result.output


def test_commands_as_a_reader(warehouse: str) -> None:
    cli("grant", warehouse, "alice", "link", "far")
    assert cli("query", warehouse, 'link("a", y)', "--as", "alice").output == "y\nb\nc\n"
    assert cli("query", warehouse, "far(x, y)", "--as", "alice", "--at", "3").exit_code == OK
    assert cli("export", warehouse, "link", "--to", "link.csv", "--as", "alice").exit_code == OK
    assert "direct_link" not in cli("changes", warehouse, "--as", "alice").output
    assert "direct_link" not in cli("log", warehouse, "--as", "alice").output
    for arguments in (
        ("query", warehouse, "direct_link(x, y)"),
        ("query", warehouse, "direct_link(x, y)", "--at", "2"),
        ("export", warehouse, "direct_link", "--to", "out.csv"),
        ("export", warehouse, "direct_link", "--to", "out.csv", "--at", "2"),
        ("changes", warehouse, "direct_link"),
    ):
        result = cli(*arguments, "--as", "alice")
        assert result.exit_code == INPUT
        assert "error[C1040]: `alice` may not see `direct_link`." in result.output
    assert not Path("out.csv").exists()


def test_a_program_has_no_grants(warehouse: str) -> None:
    put("p.dl", PROGRAM)
    result = cli("query", "p.dl", "link(x, y)", "--as", "alice")
    assert result.exit_code == USAGE
    assert "only a warehouse has grants" in result.output


def test_limits_of_a_reader_have_the_exit_status_of_limits(warehouse: str) -> None:
    cli("grant", warehouse, "alice", "far")
    result = cli("query", warehouse, "far(x, y)", "--as", "alice", "--limit-tuples", "0")
    assert result.exit_code == LIMIT
