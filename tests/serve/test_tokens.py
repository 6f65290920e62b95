"""Tokens: made, listed, revoked; only hashes are kept; sessions, keys and SCRAM verifiers."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import corollary
from corollary.database.access.principals import OWNER, AccessRole, Principal
from corollary.database.upkeep.backup import copy
from corollary.errors import InputError
from corollary.serve import tokens as module
from corollary.serve.tokens import ScramVerifier, TokenStore
from corollary.warehouse.warehouse import Warehouse
from corollary.warehouse.warehouse_catalog import WarehouseCatalog
from support.command_line import INPUT, OK, cli, of_json


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A warehouse."""
    with corollary.open(tmp_path / "wh", engine="local") as db:
        db.load(text=".decl edge(x: number, y: number)\nedge(1, 2).")
    return tmp_path / "wh"


@pytest.fixture
def store(place: Path) -> Iterator[TokenStore]:
    """Its tokens."""
    with closing(WarehouseCatalog.open(place, create=False)) as opened:
        yield TokenStore(opened.catalog)


def test_only_who_knows_a_token_has_its_role(store: TokenStore) -> None:
    secret = store.add("alice", AccessRole.READ)
    assert re.fullmatch(r"cor_[\w-]{43}", secret)
    assert store.principal_of(secret) == Principal("alice", AccessRole.READ)
    for wrong in ("", secret[:-1], secret + "x", secret.upper(), "é\ud800"):
        assert store.principal_of(wrong) is None
    assert store.session_principal(secret) is None


def test_a_secret_is_stored_nowhere(store: TokenStore, place: Path) -> None:
    secrets = [store.add("alice", AccessRole.READ), store.new_key(OWNER)]
    opened = store.open_session(secrets[0])
    assert opened is not None
    for path in place.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert not any(each.encode() in data for each in (*secrets, opened[0])), path


def test_a_name_has_one_token(store: TokenStore) -> None:
    first = store.add("alice", AccessRole.READ)
    with pytest.raises(InputError, match="C1620"):
        store.add("alice", AccessRole.ADMIN)
    store.revoke("alice")
    assert store.principal_of(first) is None
    second = store.add("alice", AccessRole.WRITE)
    assert store.principal_of(second) == Principal("alice", AccessRole.WRITE)
    with pytest.raises(InputError, match="`alice`"):
        store.revoke("bob")


def test_tokens_end(store: TokenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = store.add("alice", AccessRole.READ, days=1)
    session = store.open_session(secret)
    assert session is not None
    now = module.time.time()
    monkeypatch.setattr(module.time, "time", lambda: now + 86_399)
    assert store.principal_of(secret) is not None
    assert store.scram_of("alice")[1] is not None
    monkeypatch.setattr(module.time, "time", lambda: now + 86_401)
    assert store.principal_of(secret) is None
    assert store.session_principal(session[0]) is None
    assert store.open_session(secret) is None
    assert store.scram_of("alice")[1] is None
    store.add("alice", AccessRole.READ)  # the name is free again


def test_revoking_is_seen_by_others_within_a_second(
    store: TokenStore, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = store.add("alice", AccessRole.READ)
    with closing(WarehouseCatalog.open(place, create=False)) as opened:
        other = TokenStore(opened.catalog)
        assert other.principal_of(secret) is not None
        store.revoke("alice")
        later = module.time.monotonic() + module.REFRESH_SECONDS
        monkeypatch.setattr(module.time, "monotonic", lambda: later)
        assert other.principal_of(secret) is None


def test_a_new_token_is_seen_by_others_at_once(
    store: TokenStore, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MISSING_SECONDS", 0.0)
    assert store.principal_of("cor_unknown") is None
    with closing(WarehouseCatalog.open(place, create=False)) as opened:
        secret = TokenStore(opened.catalog).add("bob", AccessRole.WRITE)
    assert store.principal_of(secret) == Principal("bob", AccessRole.WRITE)
    with closing(WarehouseCatalog.open(place, create=False)) as opened:
        TokenStore(opened.catalog).add("carol", AccessRole.READ)
    assert store.scram_of("carol")[1] == Principal("carol", AccessRole.READ)


def test_a_key_opens_one_session(store: TokenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    key = store.new_key(OWNER)
    opened = store.open_session(key)
    assert opened is not None
    session, who = opened
    assert who == OWNER == store.session_principal(session)
    assert store.open_session(key) is None
    assert store.principal_of(session) is None
    store.close_session(session)
    assert store.session_principal(session) is None
    late = store.new_key(OWNER)
    now = module.time.time()
    monkeypatch.setattr(module.time, "time", lambda: now + module.KEY_SECONDS + 1)
    assert store.open_session(late) is None


def test_sessions_end_with_their_token(store: TokenStore) -> None:
    alice, bob = (store.add(name, AccessRole.WRITE) for name in ("alice", "bob"))
    hers, his = store.open_session(alice), store.open_session(bob)
    assert hers is not None
    assert his is not None
    store.revoke("alice")
    assert store.session_principal(hers[0]) is None
    assert store.session_principal(his[0]) == Principal("bob", AccessRole.WRITE)


def test_the_verifier_is_that_of_scram(store: TokenStore) -> None:
    secret = store.add("alice", AccessRole.READ)
    verifier, who = store.scram_of("alice")
    assert who == Principal("alice", AccessRole.READ)
    # RFC 5802, section 3, as a client computes it.
    salted = hashlib.pbkdf2_hmac("sha256", secret.encode(), verifier.salt, verifier.iterations)
    client = hmac.digest(salted, b"Client Key", "sha256")
    assert hashlib.sha256(client).digest() == verifier.stored_key
    assert hmac.digest(salted, b"Server Key", "sha256") == verifier.server_key
    assert ScramVerifier.parse(str(verifier)) == verifier


def test_the_verifier_of_an_example_of_the_standard() -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")  # RFC 7677, section 3
    verifier = ScramVerifier.of_password("pencil", salt)
    first = "n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    message = f"{first},r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={nonce}".encode()
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    signature = hmac.digest(verifier.stored_key, message, "sha256")
    client = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
    assert hashlib.sha256(client).digest() == verifier.stored_key
    server = base64.b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    assert hmac.digest(verifier.server_key, message, "sha256") == server


def test_nothing_tells_unknown_users(store: TokenStore, place: Path) -> None:
    once, nobody = store.scram_of("mallory")
    with closing(WarehouseCatalog.open(place, create=False)) as opened:  # after a restart
        assert TokenStore(opened.catalog).scram_of("mallory")[0].salt == once.salt
        assert TokenStore(opened.catalog).list() == store.list()
    again, _ = store.scram_of("mallory")
    assert nobody is None
    assert once.salt == again.salt != store.scram_of("other")[0].salt
    assert len(once.salt) == len(ScramVerifier.of_password("x").salt)


def test_a_backup_has_the_tokens(store: TokenStore, place: Path, tmp_path: Path) -> None:
    secret = store.add("alice", AccessRole.READ, days=3)
    target = tmp_path / "copy"
    with closing(Warehouse.open(place, create=False)) as source:
        copy(source, str(target))
    with closing(WarehouseCatalog.open(target, create=False)) as opened:
        assert TokenStore(opened.catalog).principal_of(secret) is not None


def test_commands(place: Path) -> None:
    wh = str(place)
    assert cli("token", "list", wh).stdout == "no tokens\n"
    made = cli("token", "add", wh, "alice", "--role", "read", "--days", "2")
    assert made.exit_code == OK
    assert re.fullmatch(r"cor_[\w-]{43}\n", made.stdout)
    assert "not shown again" in made.stderr
    assert f"corollary grant {wh} alice" in made.stderr
    listed = of_json(cli("token", "list", wh, "--format", "json"))["tokens"]
    assert [(each["name"], each["role"]) for each in listed] == [("alice", "read")]
    assert listed[0]["expires"] > listed[0]["created"]
    again = cli("token", "add", wh, "alice", "--role", "read")
    assert again.exit_code == INPUT
    assert "C1620" in again.stderr
    assert made.stdout.strip() not in cli("token", "list", wh).stdout
    assert cli("token", "revoke", wh, "alice").stdout == "revoked the token of alice\n"
    assert cli("token", "revoke", wh, "alice").exit_code == INPUT


def test_a_link_opens_a_session(store: TokenStore, place: Path) -> None:
    printed = cli("token", "link", str(place), "--url", "https://wh.example/").stdout
    found = re.fullmatch(r"https://wh\.example/#key=(\S+)\n", printed)
    assert found is not None
    opened = store.open_session(found[1])
    assert opened is not None
    assert opened[1] == OWNER
