"""What users call: wrong arguments, closed databases, and what `repr` says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import corollary
from corollary import AccessError, CorollaryError, Database, InputError
from corollary.database.intake.change_files import digest_change
from corollary.database.intake.pipeline import PipelineRun

PROGRAM = """
.decl e(x: number, y: number) key(x)
.decl p(x: number)
p(x) :- e(x, _).
.decl v(x: number) virtual
v(x) :- p(x).
"""


def opened(place: Any = None) -> Database:
    database = corollary.open(place, engine="local")
    database.load(text=PROGRAM)
    with database.transaction() as tx:
        tx.insert("e", [(1, 2)])
    return database


# --- wrong arguments ------------------------------------------------------------------------------

OPEN: dict[str, dict[str, Any]] = {
    "algorithm": {"algorithm": 5},
    "alerts": {"alerts": 5},
    "create": {"create": "no"},
    "bulk": {"bulk": 5},
    "engine": {"engine": 5},
    "existing": {"existing": 5},
    "limits": {"limits": {"rounds": 3}},
    "path": {"path": 5},
    "reader": {"path": "w", "reader": 5},
    "strict": {"strict": "no"},
    "webhooks": {"webhooks": "https://example.org/"},
    "without": {"without": "sip"},
}
CALLS: dict[str, Callable[[Database], object]] = {
    "add_rule": lambda db: db.transaction().add_rule(5),  # type: ignore[arg-type]
    "as_json": lambda db: db.transaction().as_json("x"),  # type: ignore[arg-type]
    "at": lambda db: db.at("x"),
    "changes": lambda db: db.changes("x"),  # type: ignore[arg-type]
    "feed": lambda db: db.feed(5),  # type: ignore[arg-type]
    "feed since": lambda db: list(db.feed("e", since="x")),  # type: ignore[arg-type]
    "grant": lambda db: db.grant(5, "e"),  # type: ignore[arg-type]
    "grant of": lambda db: db.grant("a", "e", 5),  # type: ignore[arg-type]
    "insert": lambda db: db.transaction().insert(["e"], []),  # type: ignore[arg-type]
    "load": lambda db: db.load(5),  # type: ignore[arg-type]
    "load facts": lambda db: db.load("x.dl", facts=5),  # type: ignore[arg-type]
    "load nothing": lambda db: db.load(),
    "load text": lambda db: db.load(text=5),  # type: ignore[arg-type]
    "load two programs": lambda db: db.load("x.dl", text=PROGRAM),
    "log": lambda db: db.log("x"),  # type: ignore[arg-type]
    "on": lambda db: db.on(5),  # type: ignore[arg-type]
    "on no function": lambda db: db.on("e")(5),  # type: ignore[type-var]
    "publish": lambda db: db.publish(5),  # type: ignore[arg-type]
    "query": lambda db: db.query(5),  # type: ignore[arg-type]
    "read": lambda db: db.transaction().read(5),  # type: ignore[arg-type]
    "reader": lambda db: db.reader(5),  # type: ignore[arg-type]
    "relation": lambda db: db.relation(5),  # type: ignore[arg-type]
    "relations": lambda db: db.relation(["e"]),  # type: ignore[arg-type]
    "remove_rule": lambda db: db.transaction().remove_rule(None),  # type: ignore[arg-type]
    "revoke": lambda db: db.revoke(5),  # type: ignore[arg-type]
    "run": lambda db: db.run(5),  # type: ignore[arg-type]
    "run nothing": lambda db: db.run(),
    "run bad_rows": lambda db: db.run("x.dl", bad_rows="some"),
    "run max_bad": lambda db: db.run("x.dl", max_bad="some"),
    "run max_deletes": lambda db: db.run("x.dl", max_deletes=-1),
    "set_program": lambda db: db.transaction().set_program(PROGRAM),  # type: ignore[arg-type]
    "stream": lambda db: db.stream(None, into=5),  # type: ignore[arg-type]
    "transaction": lambda db: db.transaction(algorithm=5),  # type: ignore[arg-type]
    "transaction key": lambda db: db.transaction(idempotency=5),  # type: ignore[arg-type]
    "watch": lambda db: db.watch(5),  # type: ignore[arg-type]
    "watch added": lambda db: db.watch("p", added="no"),  # type: ignore[arg-type]
    "traced": lambda db: db.transaction(is_traced="no"),  # type: ignore[arg-type]
    "dry": lambda db: db.transaction(is_dry=1),  # type: ignore[arg-type]
    "negative log": lambda db: db.log(-1),
    "negative since": lambda db: db.feed(since=-1),
    "negative upto": lambda db: db.feed("e", upto=-1),
    "feed backwards": lambda db: db.feed(since=1, upto=0),
    "negative JSON": lambda db: db.load(text=PROGRAM).as_json(-1),
    "negative JSON of a change": lambda db: db.changes(2)["e"].as_json(-1),
    "a change as text": lambda db: db.changes(2)["e"].as_json("all"),
    "frame of a change": lambda db: db.changes(2)["e"].spark(view=5),
    "frame of a relation": lambda db: db.relation("e").spark(view=5),
}


@pytest.mark.parametrize("name", OPEN)
def test_open_names_a_wrong_argument(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"`{name}`"):
        corollary.open(**OPEN[name])


def test_a_call_names_a_wrong_argument(tmp_path: Path) -> None:
    with opened(tmp_path / "w") as database:
        for name, call in CALLS.items():
            with pytest.raises(CorollaryError) as raised:
                call(database)
            assert isinstance(raised.value, InputError), name
            (found,) = raised.value.diagnostics
            assert found.note, name
            assert found.code in {"C0924", "C0927"} or name == "at"
        reader = database.reader("alice")
        for ask in (lambda: reader.query(5), lambda: reader.log("x"), lambda: reader.changes("x")):
            with pytest.raises(InputError, match="C0924"):
                ask()
        with pytest.raises(AccessError, match="C1041"):
            reader.run("x.dl")


def test_a_key_counts_in_memory_too() -> None:
    database = opened()

    def change(key: str) -> Any:
        with database.transaction(idempotency=key) as tx:
            tx.insert("e", [(database.commits, 9)])
        return tx

    first, again = change("once"), change("once")
    assert (first.is_repeated, again.is_repeated) == (False, True)
    assert first.as_json() == again.as_json()
    assert repr(again) == f"<Transaction: done before as commit {first.commit_number}>"
    assert change("twice").changes["e"].counts == (1, 0)
    for key, expected in (("once", again), ("nothing", None), ("nothing", None)):
        with database.transaction(idempotency=key) as tx:
            tx.insert("e", [(1, 2)])  # is there already
        assert tx.changes["e"].counts == ((1, 0) if expected else (0, 0))
        assert tx.commit_number == (expected.commit_number if expected else 5)
    with pytest.raises(corollary.InputError), database.transaction(idempotency="failed") as tx:
        tx.insert("e", [("not", "numbers")])
    assert not database.transaction(idempotency="failed").is_repeated


def test_what_a_deferred_read_returns() -> None:
    tx = opened().transaction()
    tx.read(lambda: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(InputError, match="DeferredOperations"):
        tx.commit()


def test_unknown_changes_are_both_errors() -> None:
    database = opened()
    with database.transaction() as tx:
        tx.insert("e", [(2, 3)])
    with pytest.raises(KeyError) as raised:
        tx.changes["v"]
    assert isinstance(raised.value, CorollaryError)
    assert str(raised.value).startswith("error[C0926]")
    assert 'db.watch("v")' in str(raised.value)
    assert "v" not in tx.changes
    assert tx.changes.get("v") is None


# --- closed databases -----------------------------------------------------------------------------


@pytest.mark.parametrize("is_durable", [False, True])
def test_a_closed_database_is_refused(is_durable: bool, tmp_path: Path) -> None:
    database = opened(tmp_path / "w" if is_durable else None)
    relation, reader, tx = database.relation("e"), database.reader("alice"), database.transaction()
    tx.insert("e", [(3, 4)])
    database.grant("alice", "p")
    database.close()
    asked: list[Callable[[], object]] = [
        relation.rows,
        relation.arrow,
        lambda: len(relation),
        lambda: relation.shape,
        lambda: database.relation("e"),
        lambda: database.query("e(x, y)"),
        lambda: database.load(text=PROGRAM),
        database.transaction,
        database.log,
        database.publish,
        database.refresh,
        database.deliver,
        database.grants,
        database.__enter__,
        lambda: database.watch("v"),
        lambda: database.on("e"),
        lambda: database.reader("alice"),
        lambda: reader.relation("p"),
        tx.commit,
    ]
    for ask in asked:
        with pytest.raises(InputError, match="C0925"):
            ask()
    database.close()  # twice does no harm
    assert repr(relation) == "<relation e>"
    assert repr(database).endswith(": closed>")


# --- repr ----------------------------------------------------------------------------------


def test_repr_says_something(tmp_path: Path) -> None:
    database = opened()
    assert repr(database) == "<Database in memory: commit 2, 3 relations>"
    assert repr(database.reader("alice")) == "<Reader 'alice': commit 2, 3 relations>"
    assert repr(database.relation("e")) == "<relation e(x: number, y: number), base, 1 tuple>"
    assert repr(database.relation("p")) == "<relation p(x: number), derived, 1 tuple>"
    assert repr(database.relation("v")) == "<relation v(x: number), virtual>"
    tx = database.transaction()
    tx.insert("e", [(2, 3), (4, 5)])
    assert repr(tx) == "<Transaction: open, 2 rows and 0 edits of the program>"
    tx.commit()
    assert repr(tx) == "<Transaction: commit 3, <Changes: e +2 −0, p +2 −0>>"
    assert repr(tx.changes["p"]) == "<Change of p: +2 −0>"
    tx = database.transaction()
    tx.rollback()
    assert repr(tx) == "<Transaction: rolled back>"
    with database.transaction() as tx:
        tx.insert("e", [(2, 3)])
    assert repr(tx) == "<Transaction: nothing changed>"
    with opened(tmp_path / "w") as durable:
        assert repr(durable).startswith(f"<Database {tmp_path / 'w'}: commit 2, ")
        with durable.transaction(idempotency="k") as tx:
            tx.insert("e", [(2, 3)])
        assert repr(durable.transaction(idempotency="k")) == (
            "<Transaction: done before as commit 3>"
        )


# --- run -----------------------------------------------------------------------------------

SHOP = """
.decl stock(item: symbol, count: number) key(item)
.input stock(filename="stock.csv")
.decl scarce(item: symbol)
scarce(i) :- stock(i, n), n < 3.
.output scarce
"""


@pytest.mark.parametrize("is_durable", [False, True])
def test_run_does_what_the_command_does(is_durable: bool, tmp_path: Path) -> None:
    program, stock = tmp_path / "shop.dl", tmp_path / "facts" / "stock.csv"
    stock.parent.mkdir()
    program.write_text(SHOP)
    stock.write_text("pen,3\nink,1\n")
    with corollary.open(tmp_path / "w" if is_durable else None, engine="local") as db:

        def run(**options: Any) -> PipelineRun:
            outcome = db.run(program, facts=stock.parent, **options)
            assert isinstance(outcome, PipelineRun)
            return outcome

        first = run()
        assert (first.commit, first.changes["scarce"].counts) == (1, (1, 0))
        assert run().transaction is None  # nothing has changed
        stock.write_text("pen,2\nink,1\nbad\n")
        second = run()
        assert second.quarantined == 1
        assert second.changes["stock"].counts == (1, 1)
        assert sorted(db.relation("scarce").rows()) == [("ink",), ("pen",)]
        for options in ({"bad_rows": "abort"}, {"max_bad": 0}, {"max_deletes": 0}):
            stock.write_text("pen,2\nbad\n")
            with pytest.raises(InputError):
                run(**options)
        assert len(db.relation("stock")) == 2
        program.write_text(SHOP.replace(".input", "// .input"))
        run()
        assert len(db.relation("stock")) == 0
        assert is_durable == (tmp_path / "w" / "tables" / "scarce").is_dir()


def test_run_again_under_a_key(tmp_path: Path) -> None:
    (tmp_path / "shop.dl").write_text(SHOP)
    (tmp_path / "stock.csv").write_text("pen,3\n")
    with corollary.open(tmp_path / "w", engine="local") as db:
        for _ in range(2):
            assert db.run(tmp_path / "shop.dl", facts=tmp_path, idempotency="monday").commit == 1


def test_the_digest_of_a_change_does_not_depend_on_its_way() -> None:
    rows = pa.table({"x": ["a", None, "c"], "n": [1, 2, 3]})
    chunks = pa.concat_tables([rows.slice(0, 1), rows.slice(1)])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, chunks.schema) as stream:
        stream.write_table(chunks)
    sent = pa.ipc.open_stream(sink.getvalue()).read_all()
    assert sent.column("x").num_chunks == 2
    of_rows = {digest_change(None, None, [("insert", "p", each)]) for each in (rows, chunks, sent)}
    assert len(of_rows) == 1
    others = [("delete", "p", rows), ("insert", "q", rows), ("insert", "p", rows.slice(1))]
    of_rows |= {digest_change(None, None, [each]) for each in others}
    assert len(of_rows | {digest_change(None, date(2026, 11, 17))}) == 5


def test_a_key_with_another_digest_is_refused(tmp_path: Path) -> None:
    for place in (None, tmp_path / "w"):
        with corollary.open(place, engine="local") as db:
            db.load(text=".decl e(x: number)")

            def write(*rows: int, digest: str | None, db: Database = db) -> int | None:
                with db.transaction(idempotency="k", digest=digest) as tx:
                    tx.insert("e", [(each,) for each in rows])
                return tx.commit_number

            assert write(1, digest="one") == 2
            assert write(1, digest="one") == 2
            assert write(1, digest=None) == 2  # nothing is known of it
            with pytest.raises(InputError, match="C0929"):
                write(2, digest="two")
            assert db.relation("e").rows() == [(1,)]
