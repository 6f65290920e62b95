"""Alerts reach their sinks behind the commit: once or at least once, and never at its cost."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from click.testing import Result

import corollary
from corollary.core.alerts import Alert, Sink, SinkKind, is_permitted, parse_webhook_url
from corollary.core.types import NUMBER
from corollary.database.alerts import webhook
from corollary.database.alerts.jsonlines import JsonLinesSender
from corollary.database.alerts.sender import Claim
from corollary.database.commit import MAX_ALERT_DEPTH
from corollary.database.database import Database, warehouse_store_of
from corollary.database.transaction import Transaction
from corollary.database.upkeep.backup import copy
from corollary.database.upkeep.erase import erase
from corollary.database.upkeep.retention import Retention, collect
from corollary.database.upkeep.status import status
from corollary.database.upkeep.verify import verify
from corollary.errors import ClaimError, InputError
from corollary.warehouse.catalog import outbox, queued_alert
from corollary.warehouse.catalog.outbox import CatalogOutbox, outbox_state
from support.command_line import INPUT, OK, USAGE, cli, of_json, put
from support.processes.alert_sequence import (
    BASE,
    LEASE,
    ROWS,
    TO_FILE,
    TO_RELATION,
    Listener,
    lines,
    listening,
    opened,
    to_webhook,
)


@pytest.fixture(autouse=True)
def reacting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=["memory", "warehouse"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    place = str(tmp_path / "w") if request.param == "warehouse" else None
    with opened(place, alerts="out") as found:
        yield found


@pytest.fixture
def lasting(tmp_path: Path) -> Iterator[Database]:
    with opened(str(tmp_path / "w")) as found:
        yield found


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening() as found:
        yield found


def insert(db: Database, rows: list[tuple[Any, ...]] = ROWS, relation: str = "edge") -> Transaction:
    with db.transaction() as tx:
        tx.insert(relation, rows)
    return tx


def house_of(db: Database) -> Any:
    store = warehouse_store_of(db)
    assert store is not None
    return store.warehouse


def hurry(db: Database) -> None:
    """Let everything that was postponed be due."""
    if not db._store.is_durable:
        for each in db._store.outbox._entries.values():
            each.due = 0.0
    else:
        with house_of(db).catalog.write_transaction() as connection:
            connection.execute("UPDATE corollary_outbox SET due = 0")


def codes(db: Database) -> list[str]:
    return [each.code for each in db.deliver().problems]


# --------------------------------------------------------------------------------------- JSON lines


def test_every_alert_is_a_line_of_the_file(db: Database) -> None:
    db.load(text=BASE + TO_FILE)
    number = insert(db).commit_number
    db.deliver()
    db.deliver()
    found = lines(Path("out/alerts.jsonl"))
    assert [list(each) for each in found] == [["id", "commit", "event", "row", "message"]] * 3
    assert [each["row"] for each in found] == [[1, "a"], [2, "b"], [3, "c"]]
    assert {each["commit"] for each in found} == {number}
    assert found[0]["message"] == "edge 1"
    assert len({each["id"] for each in found}) == 3
    assert db._store.outbox.state().queued == 0
    insert(db, [(4, "d")])
    db.deliver()
    assert len(lines(Path("out/alerts.jsonl"))) == 4


def test_the_files_of_a_warehouse_are_in_it(lasting: Database, tmp_path: Path) -> None:
    lasting.load(text=BASE + TO_FILE)
    insert(lasting)
    assert lasting.deliver().alerts == 3
    assert len(lines(tmp_path / "w" / "alerts" / "alerts.jsonl")) == 3


@pytest.mark.parametrize(
    ("torn", "kept"), [('{"id": "00', 0), ('{"id": "0123"}', 1), ("\u00e9" * 70_000, 0)]
)
def test_a_torn_last_line_is_mended(lasting: Database, torn: str, kept: int) -> None:
    path = Path("w/alerts/alerts.jsonl")
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"id": "abc"}\n' + torn.encode()[: -1 if not kept else None])
    lasting.load(text=BASE + TO_FILE)
    insert(lasting)
    lasting.deliver()
    assert len(lines(path)) == 1 + kept + 3


def test_alerts_that_were_claimed_before_are_looked_up(
    lasting: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "CLAIM_SECONDS", -1.0)
    monkeypatch.setattr(CatalogOutbox, "renew", lambda *_: True)
    lasting.load(text=BASE + TO_FILE)
    insert(lasting)
    with monkeypatch.context() as patch:
        patch.setattr(outbox, "CLAIM_SECONDS", 100.0)
        patch.setattr(CatalogOutbox, "mark", lambda *_: None)
        lasting.deliver()
    with house_of(lasting).catalog.write_transaction() as connection:
        connection.execute("UPDATE corollary_outbox SET claimed = 0")
    monkeypatch.setattr(outbox, "CLAIM_SECONDS", 100.0)
    assert lasting.deliver().alerts == 3
    assert len(lines(Path("w/alerts/alerts.jsonl"))) == 3


def test_one_whose_claim_has_expired_does_not_write(lasting: Database) -> None:
    lasting.load(text=BASE + TO_FILE)
    insert(lasting)
    slow = CatalogOutbox(house_of(lasting).catalog)
    alerts = slow.claim(Sink(SinkKind.JSONLINES, "alerts.jsonl"), "slow", 10)
    assert len(alerts) == 3
    assert lasting.deliver().alerts == 0
    with house_of(lasting).catalog.write_transaction() as connection:
        connection.execute("UPDATE corollary_outbox SET claimed = 0")
    assert lasting.deliver().alerts == 3
    with pytest.raises(ClaimError):
        JsonLinesSender(Path("w/alerts"), "alerts.jsonl").send(alerts, Claim(slow, "slow"))
    assert len(lines(Path("w/alerts/alerts.jsonl"))) == 3


def test_a_file_that_cannot_be_written_is_no_matter_of_the_commit(db: Database) -> None:
    db.load(text=BASE + '.alert edge "{x}" (IO=jsonlines, filename="../escaped.jsonl")\n' + TO_FILE)
    assert insert(db).commit_number is not None
    db.deliver()
    state = db._store.outbox.state()
    assert state.queued == 3
    assert "outside the root" in str(state.error)
    assert not Path("escaped.jsonl").exists()
    assert len(lines(Path("out/alerts.jsonl"))) == 3
    hurry(db)
    assert codes(db) == ["C1010"]


def test_a_link_out_of_the_directory_is_not_followed(lasting: Database) -> None:
    Path("w/alerts").mkdir(parents=True)
    Path("mine.txt").write_text("mine")
    Path("w/alerts/alerts.jsonl").symlink_to(Path("mine.txt").absolute())
    lasting.load(text=BASE + TO_FILE)
    insert(lasting)
    assert codes(lasting) == ["C1010"]
    assert Path("mine.txt").read_text() == "mine"


def test_every_type_comes_back(db: Database) -> None:
    db.load(
        text=".decl p(a: decimal(6,2), b: bool, c: date, d: timestamp, e: float, f: symbol?)\n"
        '.alert p "{a} {b} {c} {d} {e} {f} {{}}" (IO=jsonlines, filename="p.jsonl")\n'
    )
    row = (
        Decimal("1.50"), True, date(2026, 11, 15), datetime(2026, 11, 15, 8, tzinfo=UTC),
        float("inf"), None,
    )  # fmt: skip
    got: list[Any] = []
    db.on("p")(got.extend)
    insert(db, [row], "p")
    db.deliver()
    (line,) = lines(Path("out/p.jsonl"))
    assert line["row"] == ["1.50", True, "2026-11-15", "2026-11-15T08:00:00Z", "inf", None]
    assert line["message"] == "1.50 true 2026-11-15 2026-11-15T08:00:00Z inf null {}"
    assert got == [row]
    assert isinstance(got[0][0], Decimal)


# ----------------------------------------------------------------------------------------- relation


def test_alerts_become_tuples_once(db: Database) -> None:
    db.load(text=BASE + TO_RELATION)
    number = insert(db).commit_number
    db.deliver()
    commits = db.commits
    db.deliver()
    rows = db.relation("alarm").rows()
    assert sorted(row[1:] for row in rows) == [(x, f"edge {x}", number) for x in (1, 2, 3)]
    assert len({row[0] for row in rows}) == 3
    assert db.commits == commits == (number or 0) + 1


def test_they_are_marked_by_the_commit_that_inserts_them(
    lasting: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CatalogOutbox, "mark", lambda *_: None)
    lasting.load(text=BASE + TO_RELATION)
    insert(lasting)
    lasting.deliver()
    assert lasting._store.outbox.state().queued == 0
    insert(lasting, [(4, "d")])
    with house_of(lasting).catalog.write_transaction() as connection:
        connection.execute("UPDATE corollary_outbox SET claim = 'other'")
    monkeypatch.setattr(CatalogOutbox, "claim", _losing(CatalogOutbox.claim))
    before = lasting.commits
    assert lasting.deliver().alerts == 0
    assert lasting.commits == before


def _losing(claim: Callable[..., Any]) -> Callable[..., Any]:
    """Return a claim that another process takes over at once."""

    def lost(self: CatalogOutbox, *arguments: Any) -> Any:
        found = claim(self, *arguments)
        with self._catalog.write_transaction() as connection:
            connection.execute("UPDATE corollary_outbox SET claim = 'other'")
        return found

    return lost


def test_what_does_not_fit_keeps_nobody_else_waiting(db: Database) -> None:
    db.load(
        text=".decl edge(x: number, y: symbol)\n.decl alarm(y: symbol, x: number) key(y)\n"
        '.alert edge "" (IO=relation, relation=alarm)\n'
    )
    insert(db, [(1, "a"), (2, "a"), (3, "b")])
    db.deliver()
    assert sorted(db.relation("alarm").rows()) == [("a", 1), ("b", 3)]
    state = db._store.outbox.state()
    assert state.queued == 1
    assert "alarm" in str(state.error)


def test_a_column_of_the_event_comes_before_a_fact_about_the_alert(db: Database) -> None:
    db.load(
        text=".decl account(id: number)\n.decl log(id: number, event: symbol, row: symbol)\n"
        '.alert account "" (IO=relation, relation=log)\n'
    )
    insert(db, [(7,)], "account")
    db.deliver()
    assert db.relation("log").rows() == [(7, "account", "[7]")]


def test_alerts_that_set_each_other_off_come_to_an_end(db: Database) -> None:
    db.load(
        text=".decl ping(id: symbol)\n.decl pong(row: symbol)\n"
        '.alert ping "" (IO=relation, relation=pong)\n'
        '.alert pong "" (IO=relation, relation=ping)\n'
    )
    before = insert(db, [("first",)], "ping").commit_number
    db.deliver()
    assert db.commits == (before or 0) + MAX_ALERT_DEPTH
    assert db._store.outbox.state().queued == 1
    assert "alerts have made" in str(db._store.outbox.state().error)


# ----------------------------------------------------------------------------------------- webhooks


def allow(db: Database, *urls: str) -> None:
    db._senders.outlets = type(db._senders.outlets).of(urls, db._senders.outlets.directory)


def test_alerts_are_posted_with_their_id(db: Database, listener: Listener) -> None:
    allow(db, listener.origin)
    db.load(text=BASE + to_webhook(f"{listener.origin}/hook?a=b"))
    insert(db)
    db.deliver()
    assert [body["row"] for _, body in listener.heard] == [[1, "a"], [2, "b"], [3, "c"]]
    assert all(key == body["id"] for key, body in listener.heard)
    assert set(listener.heard[0][1]) == {"id", "commit", "event", "row", "message"}


def test_a_refusal_is_tried_again_with_the_same_id(db: Database, listener: Listener) -> None:
    allow(db, listener.origin)
    db.load(text=BASE + to_webhook(f"{listener.origin}/hook"))
    listener.status["/hook"] = 503
    insert(db)
    db.deliver()
    assert len(listener.heard) == 3
    assert "503" in str(db._store.outbox.state().error)
    hurry(db)
    listener.status.clear()
    assert db.deliver().alerts == 3
    assert {key for key, _ in listener.heard[:3]} == {key for key, _ in listener.heard[3:]}
    assert db._store.outbox.state().queued == 0


def test_redirects_are_not_followed(db: Database, listener: Listener) -> None:
    allow(db, listener.origin)
    db.load(text=BASE + to_webhook(f"{listener.origin}/hook"))
    listener.status["/hook"] = 307
    insert(db, ROWS[:1])
    db.deliver()
    assert len(listener.heard) == 1
    assert "redirects are not followed" in str(db._store.outbox.state().error)


def test_a_url_that_is_not_permitted_keeps_nobody_else_waiting(
    db: Database, listener: Listener
) -> None:
    db.load(text=BASE + to_webhook(f"{listener.origin}/secret") + TO_FILE + TO_RELATION)
    insert(db)
    found = db.deliver()
    assert [each.code for each in found.problems] == ["C1011"]
    assert "secret" not in str(found.problems[0])
    assert found.waiting == 3
    assert not listener.heard
    assert len(lines(Path("out/alerts.jsonl"))) == 3
    assert len(db.relation("alarm")) == 3
    allow(db, f"{listener.origin}/secret")
    assert db.deliver().alerts == 3


def test_a_host_that_does_not_answer_is_left_alone_for_a_while(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[object] = []

    def connect(connection: object) -> None:
        tried.append(connection)
        raise ConnectionRefusedError("refused")

    monkeypatch.setattr(webhook.HTTPConnection, "connect", connect)
    allow(db, "http://127.0.0.1:1")
    db.load(text=BASE + to_webhook("http://127.0.0.1:1/x"))
    insert(db, [(at, "a") for at in range(20)])
    db.deliver()
    assert len(tried) == 1
    assert db._store.outbox.state().queued == 20
    assert not db.deliver().problems
    assert len(tried) == 1


def test_a_host_that_never_ends_its_answer_is_cut_off(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "TIMEOUT_SECONDS", 0.3)
    is_cut_off = Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 O")
                while True:
                    time.sleep(0.05)
                    connection.sendall(b"H")
            is_cut_off.set()

        thread = Thread(target=drip, daemon=True)
        thread.start()
        origin = f"http://127.0.0.1:{server.getsockname()[1]}"
        allow(db, origin)
        db.load(text=BASE + to_webhook(origin))
        insert(db, ROWS[:1])
        db.deliver()
        assert "does not answer" in str(db._store.outbox.state().error)
        assert is_cut_off.wait(600)


@pytest.mark.parametrize(
    ("allowed", "url", "is_allowed"),
    [
        ("https://h.example", "https://h.example/a", True),
        ("https://h.example/", "https://h.example", True),
        ("https://h.example/a", "https://h.example/a/b?c=d", True),
        ("https://h.example/a/", "https://h.example/a", True),
        ("https://h.example/a", "https://h.example/ab", False),
        ("https://h.example/a", "https://h.example/A", False),
        ("https://h.example/a", "http://h.example/a", False),
        ("https://h.example/a", "https://h.example:8443/a", False),
        ("https://h.example:443/a", "https://H.EXAMPLE/a", True),
        ("https://h.example", "https://h.example.evil/a", False),
        ("https://h.example", "https://evil.h.example/a", False),
        ("http://[::1]:80/a", "http://[::1]/a/b", True),
    ],
)
def test_what_is_permitted(allowed: str, url: str, is_allowed: bool) -> None:
    entry, address = parse_webhook_url(allowed), parse_webhook_url(url)
    assert entry is not None
    assert address is not None
    assert is_permitted(address, [entry]) is is_allowed


@pytest.mark.parametrize(
    "url",
    [
        "", "h.example", "ftp://h.example/", "file:///etc/passwd", "https://", "https:///a",
        "https://me@h.example/", "https://me:pw@h.example/", "https://h.example/#a",
        "https://h.example/a/../b", "https://h.example/a/%2e%2E/b", "https://h.example/a/./b",
        "https://h.example/a%2fb", "https://h.example/a\\b", "https://h.example/a b",
        "https://h.example/a\r\nX: y", "https://h.example:99999/", "https://h.example:x/",
        "https://exämple/", "javascript:alert(1)",
    ],
)  # fmt: skip
def test_what_is_no_address(url: str) -> None:
    assert parse_webhook_url(url) is None


def test_an_entry_of_the_allow_list_has_to_make_sense() -> None:
    for entry in ("hooks.example", "https://h.example/a?b=c"):
        with pytest.raises(InputError, match="C1012"):
            corollary.open(None, webhooks=[entry])


# ---------------------------------------------------------------------------------------- callbacks


def test_a_callback_gets_the_rows_of_each_commit(db: Database) -> None:
    db.load(text=BASE + '.alert edge "edge {x}"\n')
    calls: list[list[Any]] = []

    @db.on("edge")
    def note(rows: list[Any]) -> None:
        calls.append(rows)

    first, second = insert(db), insert(db, [(4, "d")])
    assert calls == [ROWS, [(4, "d")]]
    row = calls[1][0]
    assert (row.event, row.message, row.commit) == ("edge", "edge 4", second.commit_number)
    assert calls[0][0].commit == first.commit_number
    assert len({row.id for call in calls for row in call}) == 4
    assert db._store.outbox.state().queued == 0


def test_a_callback_that_raises_is_called_again(db: Database) -> None:
    db.load(text=BASE)
    ids: list[str] = []
    is_broken = True

    @db.on("edge")
    def note(rows: list[Any]) -> None:
        ids.extend(row.id for row in rows)
        if is_broken:
            raise ValueError("broken")

    assert insert(db).commit_number is not None
    assert "`test_a_callback" in str(db._store.outbox.state().error)
    assert "ValueError: broken" in str(db._store.outbox.state().error)
    assert codes(db) == []
    hurry(db)
    assert codes(db) == ["C1010"]
    is_broken = False
    hurry(db)
    insert(db, [(4, "d")])
    assert ids[:3] == ids[3:6] == ids[6:9]
    assert db._store.outbox.state().queued == 0


def test_what_waits_is_delivered_when_a_callback_is_registered(tmp_path: Path) -> None:
    place = str(tmp_path / "w")
    with opened(place) as db:
        db.load(text=BASE + '.alert edge "edge {x}" (IO=callback)\n')
        insert(db)
        assert db.deliver().waiting == 3
    with opened(place) as db:
        calls: list[Any] = []
        db.on("edge")(calls.extend)
        assert calls == ROWS
        assert calls[0].message == "edge 1"
        insert(db, [(4, "d")])
        assert len(calls) == 4


def test_a_callback_may_commit(db: Database) -> None:
    db.load(text=BASE)

    @db.on("edge")
    def follow(rows: list[Any]) -> None:
        low = [(x + 1, y) for x, y in rows if x < 5]
        if low:
            with db.transaction() as tx:
                tx.insert("edge", low)

    insert(db, ROWS[:1])
    db.deliver()
    assert len(db.relation("edge")) == 5
    assert db._store.outbox.state().queued == 0


def test_a_callback_that_calls_itself_forever_comes_to_an_end(db: Database) -> None:
    db.load(text=BASE)

    @db.on("edge")
    def follow(rows: list[Any]) -> None:
        with db.transaction() as tx:
            tx.insert("edge", [(x + 1, y) for x, y in rows])

    insert(db, ROWS[:1])
    assert len(db.relation("edge")) == MAX_ALERT_DEPTH + 1
    assert db._store.outbox.state().queued == 1


def test_an_event_that_there_is_not(db: Database) -> None:
    db.on("anything")
    db.load(text=BASE)
    with pytest.raises(InputError, match=r"C1013.*\n.*did you mean `edge`"):
        db.on("egde")


# ------------------------------------------------------------------------------------ the commit


def test_alerts_are_told_in_order_and_cut(db: Database) -> None:
    db.load(text=BASE + '.alert edge "edge {x}"\n' + TO_FILE)
    told = insert(db, list(reversed(ROWS))).as_json(2)
    assert told["alerts"] == [
        {"event": "edge", "row": [1, "a"], "message": "edge 1"},
        {"event": "edge", "row": [2, "b"], "message": "edge 2"},
    ]
    assert told["truncated"] is True
    assert told["counts"] == {"alerts": 3}
    assert "truncated" not in insert(db, [(9, "z")]).as_json()


def test_a_dry_run_delivers_nothing(db: Database) -> None:
    db.load(text=BASE + TO_FILE)
    with db.transaction(is_dry=True) as tx:
        tx.insert("edge", ROWS)
    assert len(tx.as_json()["alerts"]) == 3
    assert db.deliver().alerts == 0
    assert not Path("out").exists()


def test_a_repeated_transaction_tells_the_same_alerts(lasting: Database) -> None:
    lasting.load(text=BASE + '.alert edge "edge {x}"\n' + TO_FILE)
    told = []
    for _ in range(2):
        with lasting.transaction(idempotency="key") as tx:
            tx.insert("edge", ROWS)
        told.append(tx.as_json()["alerts"])
        lasting.deliver()
    assert told[0] == told[1] != []
    assert len(lines(Path("w/alerts/alerts.jsonl"))) == 3


def test_attempts_are_farther_and_farther_apart(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "time", lambda: now)
    db.load(text=BASE)
    calls: list[float] = []

    @db.on("edge")
    def fail(rows: list[Any]) -> None:
        calls.append(now)
        raise ValueError

    insert(db, ROWS[:1])
    for _ in range(400):
        now += 0.5
        db.deliver()
    assert [later - earlier for earlier, later in pairwise(calls)] == [
        1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0,
    ]  # fmt: skip
    assert queued_alert.retry_delay(100) == queued_alert.RETRY_MAX_SECONDS


def test_ids_are_of_all_that_is_said() -> None:
    alert = Alert("e", (1,), "m", ("x",), (NUMBER,), Sink(SinkKind.WEBHOOK, "u"))
    ids = {
        queued_alert.alert_id("w", 1, alert),
        queued_alert.alert_id("v", 1, alert),
        queued_alert.alert_id("w", 2, alert),
        queued_alert.alert_id("w", 1, Alert("f", (1,), "m", ("x",), (NUMBER,), alert.sink)),
        queued_alert.alert_id("w", 1, Alert("e", (2,), "m", ("x",), (NUMBER,), alert.sink)),
        queued_alert.alert_id("w", 1, Alert("e", (1,), "m", ("x",), (NUMBER,), Sink())),
    }
    assert len(ids) == 6


# ------------------------------------------------------------------------------------ the warehouse


def test_nobody_claims_what_another_has(place: str) -> None:
    with opened(place) as db, opened(place) as other:
        db.load(text=BASE + TO_FILE)
        insert(db, [(at, "a") for at in range(40)])
        sink = Sink(SinkKind.JSONLINES, "alerts.jsonl")
        claimed: list[str] = []

        def take(outbox: Any, claim: str) -> None:
            while found := outbox.claim(sink, claim, 3):
                claimed.extend(each.id for each in found)

        boxes = [each._store.outbox for each in (db, other, db, other)]
        threads = [Thread(target=take, args=(box, str(at))) for at, box in enumerate(boxes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(claimed) == len(set(claimed)) == 40
        assert db._store.outbox.sinks() == []


def test_a_whole_delivery_on_any_catalog(place: str, listener: Listener) -> None:
    with opened(place, listener.origin) as db:
        db.load(text=BASE + TO_FILE + TO_RELATION + to_webhook(f"{listener.origin}/a"))
        insert(db)
        directory = db._store.alert_directory
        # In an object store there is no file to append to: these alerts wait, and say why.
        assert db.deliver().alerts == (9 if directory else 6)
        if directory is None:
            assert "`--alerts`" in str(outbox_state(house_of(db).catalog).error)
        else:
            assert len(lines(directory / "alerts.jsonl")) == 3
        assert len(db.relation("alarm")) == len(listener.heard) == 3
        assert verify(house_of(db)).findings == []


def test_gc_keeps_what_is_not_delivered(lasting: Database) -> None:
    lasting.load(text=BASE + TO_FILE + to_webhook("http://127.0.0.1:1/x"))
    insert(lasting)
    lasting.deliver()
    for at in range(5):
        with lasting.transaction() as tx:
            tx.delete("edge", [ROWS[0]])
            tx.insert("edge", [(10 + at, "z")])
    house = house_of(lasting)
    collect(house, Retention(commits=1))
    with house.catalog.read_transaction() as connection:
        rows = connection.rows("SELECT * FROM corollary_outbox")
    early = [row for row in rows if row.commit_number == 2]
    assert {row.sink for row in early} == {"webhook"}
    assert len(early) == 3
    assert verify(house).findings == []


def test_a_copy_has_the_outbox_and_no_claims(lasting: Database, tmp_path: Path) -> None:
    lasting.load(text=BASE + TO_FILE)
    insert(lasting)
    assert lasting._store.outbox.claim(Sink(SinkKind.JSONLINES, "alerts.jsonl"), "me", 10)
    copy(house_of(lasting), tmp_path / "copy")
    with opened(str(tmp_path / "copy")) as db:
        assert db.deliver().alerts == 3
    assert len(lines(tmp_path / "copy" / "alerts" / "alerts.jsonl")) == 3


@pytest.mark.parametrize("column", ["message", "row", "shape", "event", "place"])
def test_a_damaged_alert_is_found_and_keeps_nobody_waiting(lasting: Database, column: str) -> None:
    lasting.load(text=BASE + TO_FILE)
    insert(lasting)
    house = house_of(lasting)
    with house.catalog.write_transaction() as connection:
        first = connection.first("SELECT * FROM corollary_outbox")
        statement = f"UPDATE corollary_outbox SET {column} = 'damaged' WHERE id = ?"
        connection.execute(statement, first.id)
    found = verify(house).findings
    assert [each.kind for each in found] == ["catalog"]
    assert first.id in found[0].message
    lasting.deliver()
    assert len(lines(Path("w/alerts/alerts.jsonl"))) >= 2


def test_what_is_erased_goes_from_the_outbox_too(lasting: Database, tmp_path: Path) -> None:
    secret = "Zq7f3e9a1c5d"
    lasting.load(
        text=".decl p(x: symbol)\n"
        '.alert p "new {x}" (IO=jsonlines, filename="p.jsonl")\n'
        '.alert p "new {x}" (IO=webhook, url="http://127.0.0.1:1/x")\n'
        '.alert p "new {x}"\n'
    )
    insert(lasting, [(secret,), ("other",)], "p")
    lasting.deliver()
    files = [path for path in (tmp_path / "w").rglob("*") if path.is_file()]
    assert any(secret.encode() in path.read_bytes() for path in files)
    erased = erase(lasting, [f'p("{secret}")'])
    assert erased.alerts == 2
    files = [path for path in (tmp_path / "w").rglob("*") if path.is_file()]
    assert not any(secret.encode() in path.read_bytes() for path in files)
    assert lasting._store.outbox.state().queued == 0
    insert(lasting, [("next",)], "p")
    lasting.deliver()
    assert len(lines(Path("w/alerts/p.jsonl"))) == 1


def test_status_tells_what_waits(lasting: Database) -> None:
    lasting.load(text=BASE + to_webhook("http://127.0.0.1:1/x"))
    assert status(house_of(lasting)).as_json()["outbox"] == {
        "waiting": 0, "oldest": None, "error": None,
    }  # fmt: skip
    insert(lasting)
    allow(lasting, "http://127.0.0.1:1")
    lasting.deliver()
    told = status(house_of(lasting)).as_json()["outbox"]
    assert told["waiting"] == 3
    assert told["oldest"].endswith("Z")
    assert "127.0.0.1" in told["error"]
    assert json.dumps(told)


def test_leases_are_longer_than_what_they_are_for() -> None:
    assert webhook.WebhookSender.max_alerts * webhook.TIMEOUT_SECONDS < outbox.CLAIM_SECONDS
    assert LEASE < outbox.CLAIM_SECONDS


# -------------------------------------------------------------------------------- the command line

PROGRAM = BASE + TO_FILE + TO_RELATION + '.alert edge "new {x}"\n'


def applied(*arguments: str, rows: str = "1,a\n2,b\n") -> Result:
    put("new.csv", rows)
    result = cli("apply", "w", "--insert", "edge=new.csv", "--engine", "local", *arguments)
    assert result.exit_code == OK, result.output
    return result


@pytest.fixture
def told(lasting: Database, listener: Listener) -> str:
    """The origin of a webhook that the program of the warehouse `w` has."""
    lasting.load(text=PROGRAM + to_webhook(f"{listener.origin}/team/a"))
    return listener.origin


def test_apply_prints_what_goes_to_the_console(told: str) -> None:
    result = applied()
    assert result.stdout.splitlines()[-3:] == ["commit 2", "alert: new 1", "alert: new 2"]
    assert "delivered: 4 alerts" in result.stderr
    assert "warning[C1011]" in result.stderr
    assert "/team" not in result.stderr
    assert len(lines(Path("w/alerts/alerts.jsonl"))) == 2
    assert "alert: and 1 more" in applied("--max-rows", "1", rows="3,a\n4,a\n").stdout
    text = cli("status", "w").stdout
    assert "outbox   4 alerts waiting since " in text


def test_apply_prints_all_alerts_as_json(told: str) -> None:
    told_json = of_json(applied("--format", "json", "--dry-run"))
    assert of_json(applied("--format", "json"))["alerts"] == told_json["alerts"]
    assert [each["message"] for each in told_json["alerts"]] == [
        "edge 1", "new 1", "edge 2", "new 2",
    ]  # fmt: skip


@pytest.mark.parametrize("way", ["option", "variable"])
def test_the_operator_permits_webhooks(
    told: str, listener: Listener, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    if way == "variable":
        monkeypatch.setenv("COROLLARY_ALLOW_WEBHOOKS", f"https://other.example {told}/team")
        result = applied()
    else:
        result = applied("--allow-webhook", f"{told}/team")
    assert "delivered: 6 alerts" in result.stderr
    assert len(listener.heard) == 2


def test_an_entry_that_makes_no_sense(told: str) -> None:
    put("new.csv", "1,a\n")
    result = cli("apply", "w", "--insert", "edge=new.csv", "--allow-webhook", "hooks.example")
    assert result.exit_code == INPUT
    assert "C1012" in result.stderr


def test_run_and_watch_deliver_what_others_have_left(told: str) -> None:
    put("stations.dl", PROGRAM + '.input edge(filename="edge.csv", delimiter=",")\n')
    put("edge.csv", "5,e\n")
    arguments = "stations.dl", "--warehouse", "w", "--engine", "local", "--allow-webhook", told
    result = cli("run", *arguments)
    assert result.exit_code == OK, result.output
    assert "alert: new 5" in result.stdout
    put("edge.csv", "5,e\n6,f\n")
    result = cli("watch", *arguments, "--once", "--alerts", "elsewhere")
    assert result.exit_code == OK, result.output
    assert "alert: new 6" in result.stdout
    assert len(lines(Path("w/alerts/alerts.jsonl"))) == 1
    assert len(lines(Path("elsewhere/alerts.jsonl"))) == 1
    result = cli("run", "stations.dl", "--allow-webhook", told)
    assert result.exit_code == USAGE
