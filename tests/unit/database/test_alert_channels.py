"""Alerts by mail and in chats: what is sent, to whom, signed, and from whose secrets."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.database.alerts.mail import MailServer
from corollary.database.alerts.sender import DeliveryError
from corollary.database.database import Database
from corollary.errors import InputError
from support.processes.alert_sequence import Listener, listening
from support.processes.mail_server import MailBox, mail_server

STOCK = ".decl stock(item: symbol, have: number)\n"
TO_OPS = ' (IO=email, to="ops@mail.example, eva@mail.example"'


@pytest.fixture
def box(monkeypatch: pytest.MonkeyPatch) -> Iterator[MailBox]:
    with mail_server() as found:
        url = f"smtp://127.0.0.1:{found.port}/?from=corollary@mail.example"
        monkeypatch.setenv("COROLLARY_SMTP", url)
        yield found


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening() as found:
        yield found


def told(alert: str, *rows: tuple[str, int], permitted: str = "mailto:@mail.example") -> Database:
    """Return a database in memory whose alerts of rows were tried."""
    db = corollary.open(None, engine="local", webhooks=[permitted])
    db.load(text=f"{STOCK}.alert stock {alert}\n")
    with db.transaction() as tx:
        tx.insert("stock", rows)
    return db


# -------------------------------------------------------------------------------------------- mail


def test_an_alert_becomes_a_mail(box: MailBox) -> None:
    told(f'"{{item}} is short"{TO_OPS})', ("nut", 3)).close()
    ((recipients, mail),) = box.mails
    assert recipients == ["ops@mail.example", "eva@mail.example"]
    assert (mail["From"], mail["Subject"]) == ("corollary@mail.example", "nut is short")
    text, empty, rest, *_ = mail.get_content().splitlines()
    assert (text, empty) == ("nut is short", "")
    assert rest.startswith("stock, commit 2, alert ")
    assert mail["Message-ID"] == f"<{rest.rpartition(' ')[2]}@mail.example>"


def test_templates_of_a_mail_and_values_that_look_like_headers(box: MailBox) -> None:
    alert = f'"m"{TO_OPS}, subject="{{item}}: {{have}} of {{{{all}}}}", body="{{event}} {{item}}")'
    told(alert, ("nut\r\nBcc: evil@other.example", 3)).close()
    ((recipients, mail),) = box.mails
    assert recipients == ["ops@mail.example", "eva@mail.example"]
    assert mail["Subject"] == "nut Bcc: evil@other.example: 3 of {all}"
    assert mail["Bcc"] is None
    assert mail.get_content().split() == ["stock", "nut", "Bcc:", "evil@other.example"]


def test_a_server_that_refuses_is_tried_again_with_the_same_id(box: MailBox) -> None:
    box.status = "451 later"
    db = told(f'"short"{TO_OPS})', ("nut", 3))
    state = db._store.outbox.state()
    assert state.error == (
        "mail to `ops@mail.example, eva@mail.example`: the server answers 451: later"
    )
    box.status = "250 kept"
    for each in db._store.outbox._entries.values():  # type: ignore[attr-defined]
        each.due = 0.0
    assert db.deliver().alerts == 1
    (_, first), (_, second) = box.mails
    assert first["Message-ID"] == second["Message-ID"]


def test_one_address_that_is_refused_keeps_nobody_else_from_it(
    box: MailBox, caplog: pytest.LogCaptureFixture
) -> None:
    box.refused = {"eva@mail.example"}
    db = told(f'"short"{TO_OPS})', ("nut", 3))
    assert db._store.outbox.state().queued == 0
    assert [recipients for recipients, _ in box.mails] == [["ops@mail.example"]]
    assert "refuses eva@mail.example: the server answers 550" in caplog.text


@pytest.mark.parametrize(
    ("permitted", "is_sent"),
    [
        ("mailto:@MAIL.example", True),
        ("mailto:ops@mail.example", False),  # and not eva
        ("mailto:@example", False),
        ("https://mail.example", False),
    ],
)
def test_the_operator_permits_addresses(box: MailBox, permitted: str, is_sent: bool) -> None:
    db = told(f'"short"{TO_OPS})', ("nut", 3), permitted=permitted)
    assert bool(box.mails) is is_sent
    assert [each.code for each in db.deliver().problems] == ([] if is_sent else ["C1011"])


def test_without_a_server_mails_wait_for_a_process_that_has_one(
    box: MailBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.delenv("COROLLARY_SMTP")
        db = told(f'"short"{TO_OPS})', ("nut", 3))
        (problem,) = db.deliver().problems
    assert problem.code == "C1014"
    assert problem.note == (
        "set `COROLLARY_SMTP` in the environment of the process that delivers them"
    )
    assert db.deliver().alerts == 1


@pytest.mark.parametrize(
    "url", ["mail.example", "smtps://mail.example", "imap://h/?from=a@b.example", "smtp://:x/"]
)
def test_what_is_no_mail_server(url: str) -> None:
    with pytest.raises(DeliveryError, match="is not like `smtps://"):
        MailServer.of(url)


def test_a_password_is_never_sent_in_the_clear() -> None:
    with pytest.raises(DeliveryError, match="needs `smtps`") as error:
        MailServer.of("smtp://me:geheim@h/?from=a@b.example")
    assert "geheim" not in str(error.value)


@pytest.mark.integration
@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")
def test_starttls_checks_the_certificate_before_it_logs_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=a"]
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out"]
    subprocess.run(["openssl", *make, *names, str(certificate)], check=True, capture_output=True)
    alert = f'"short"{TO_OPS})'
    with mail_server((certificate, key)) as box:
        url = f"smtp+starttls://me:p%40ss@localhost:{box.port}/?from=me@mail.example"
        monkeypatch.setenv("COROLLARY_SMTP", url)
        db = told(alert, ("nut", 3))
        assert "CERTIFICATE_VERIFY_FAILED" in str(db._store.outbox.state().error)
        assert box.logins == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        db = told(alert, ("nut", 3))
        assert db._store.outbox.state().queued == 0
        assert box.logins == [("\0me\0p@ss", True)]
        assert len(box.mails) == 1
    with mail_server() as box:
        monkeypatch.setenv(
            "COROLLARY_SMTP", f"smtp+starttls://me:x@localhost:{box.port}/?from=me@mail.example"
        )
        db = told(alert, ("nut", 3))
        assert "STARTTLS extension not supported" in str(db._store.outbox.state().error)
        assert (box.logins, box.mails) == ([], [])


# ------------------------------------------------------------------------------------------- chats


def posted(listener: Listener, parameters: str, row: tuple[str, int]) -> Any:
    """Return what is posted for a row."""
    alert = f'"{{item}} is short" (IO=webhook, url="{listener.origin}/hook", {parameters})'
    told(alert, row, permitted=listener.origin).close()
    ((_, body),) = listener.heard
    return body


def test_slack_is_sent_a_text_whose_values_cannot_mention_anybody(listener: Listener) -> None:
    body = posted(listener, 'format=slack, text="*{item}*: <{have}> & {message}"', ("<!here>", 3))
    # The signs of the template are markup, those of values are not.
    assert body == {"text": "*&lt;!here&gt;*: <3> & &lt;!here&gt; is short"}


def test_teams_is_sent_a_card_whose_values_are_no_markdown(listener: Listener) -> None:
    body = posted(listener, 'format=teams, text="**{item}** {have}"', ("[a](http://x)", -3))
    (attachment,) = body["attachments"]
    assert (body["type"], attachment["content"]["type"]) == ("message", "AdaptiveCard")
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    (block,) = attachment["content"]["body"]
    assert block["text"] == r"**\[a\]\(http://x\)** \-3"


def test_the_text_of_json_is_beside_the_alert(listener: Listener) -> None:
    body = posted(listener, 'text="{commit}: {item}"', ('"nut"', 3))
    assert body["text"] == '2: "nut"'
    assert body["row"] == ['"nut"', 3]


def test_a_request_is_signed_and_the_secret_is_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = base64.b64encode(b"not to be told").decode()
    headers: list[Any] = []
    monkeypatch.setattr(
        "corollary.database.alerts.webhook.post",
        lambda *given: headers.append(given) or 204,
    )
    monkeypatch.setenv("COROLLARY_SECRET_OPS", f"whsec_{secret}")
    monkeypatch.setenv("COROLLARY_SECRET_URL", "https://hooks.example/services/T0/B0/token")
    sink = '(IO=webhook, url="$COROLLARY_SECRET_URL", secret="COROLLARY_SECRET_OPS")'
    path = tmp_path / "w"
    with corollary.open(path, engine="local", webhooks=["https://hooks.example"]) as db:
        db.load(text=f'{STOCK}.alert stock "short" {sink}\n')
        with db.transaction() as tx:
            tx.insert("stock", [("nut", 3)])
        assert db.deliver().alerts == 1
    ((address, body, given),) = headers
    assert address.target == "/services/T0/B0/token"
    signed = f"{given['webhook-id']}.{given['webhook-timestamp']}.".encode() + body
    code = hmac.new(b"not to be told", signed, hashlib.sha256).digest()
    assert given["webhook-signature"] == f"v1,{base64.b64encode(code).decode()}"
    assert given["webhook-id"] == given["Idempotency-Key"] == json.loads(body)["id"]
    kept = b"".join(each.read_bytes() for each in path.rglob("*") if each.is_file())
    assert b"$COROLLARY_SECRET_URL" in kept
    assert secret.encode() not in kept
    assert b"T0/B0/token" not in kept


def test_a_secret_that_is_not_set_keeps_alerts_waiting(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f'url="{listener.origin}/hook", secret="COROLLARY_SECRET_OPS"'
    db = told(f'"short" (IO=webhook, {url})', ("nut", 3), permitted=listener.origin)
    assert [each.code for each in db.deliver().problems] == ["C1014"]
    assert not listener.heard  # not unsigned either
    monkeypatch.setenv("COROLLARY_SECRET_OPS", "short")
    assert db.deliver().alerts == 1


def test_channels_in_sql_and_columns_that_are_renamed(box: MailBox) -> None:
    db = corollary.open(None, engine="local", webhooks=["mailto:@mail.example"])
    db.sql("""
        CREATE TABLE stock (item STRING PRIMARY KEY, have INT);
        CREATE ALERT low MESSAGE '{item} is short'
        OPTIONS (io 'email', to 'ops@mail.example', subject 'Order {item}, {have} left')
        AS SELECT item, have FROM stock WHERE have < 5;
        INSERT INTO stock VALUES ('nut', 3);
    """)
    assert [mail["Subject"] for _, mail in box.mails] == ["Order nut, 3 left"]
    with pytest.raises(InputError, match=r"`\{price\}` is not a column of `low2`"):
        db.sql("""
            CREATE ALERT low2 MESSAGE 'm'
            OPTIONS (io 'email', to 'ops@mail.example', subject '{price}')
            AS SELECT item FROM stock
        """)
