"""The wire itself: SCRAM, messages that are wrong, random bytes, versions, TLS, stopping."""

from __future__ import annotations

import base64
import random
import shutil
import socket
import ssl
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

import corollary
from corollary.database.access.principals import AccessRole
from corollary.serve.postgres.messages import message, text_field
from corollary.serve.postgres.problems import PgError
from corollary.serve.postgres.rows import FEW_ROWS, data_rows
from corollary.serve.postgres.scram import ScramExchange
from corollary.serve.tokens import ScramVerifier
from support.serve.pg_endpoint import Endpoint, running_endpoint

TIMEOUT_SECONDS = 20.0


# --- SCRAM --------------------------------------------------------------------------------------


def test_scram_as_in_the_rfc() -> None:
    """The example of RFC 7677, section 3."""
    verifier = ScramVerifier.of_password("pencil", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))
    exchange = ScramExchange(verifier, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    first = exchange.first(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    nonce = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    assert first == nonce + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    proof = b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert exchange.final(b"c=biws," + nonce + b",p=" + proof) == (
        b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    )
    wrong = b"A" + proof[1:]
    assert exchange.final(b"c=biws," + nonce + b",p=" + wrong) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"p=tls-server-end-point,,n=,r=abc",
        b"n,a=other,n=,r=abc",
        b"n,,n=",
        b"n,,r=abc",
        b"n,,m=x,n=,r=abc",
        b"\xff\xfe",
        b"n,,=,=",
    ],
)
def test_scram_refuses_what_is_malformed(data: bytes) -> None:
    exchange = ScramExchange(ScramVerifier.of_password("x"))
    with pytest.raises(PgError) as caught:
        exchange.first(data)
    assert caught.value.sqlstate == "08P01"


# --- a client that does not follow the protocol -------------------------------------------------


@contextmanager
def raw_socket(endpoint: Endpoint) -> Iterator[socket.socket]:
    """A connection on which a test writes bytes."""
    with socket.create_connection(("127.0.0.1", endpoint.port), TIMEOUT_SECONDS) as connection:
        yield connection


def read_all(connection: socket.socket) -> bytes:
    """Return what comes until the other side closes."""
    found = b""
    try:
        while part := connection.recv(65_536):
            found += part
    except ConnectionResetError:
        pass
    return found


def startup(minor: int = 0, **parameters: str) -> bytes:
    """Return a startup message."""
    fields = b"".join(text_field(each) for pair in parameters.items() for each in pair) + b"\0"
    body = struct.pack("!HH", 3, minor) + fields
    return struct.pack("!I", len(body) + 4) + body


@pytest.mark.parametrize(
    ("sent", "sqlstate"),
    [
        (b"GET / HTTP/1.1\r\n\r\n" + bytes(64), b"54000"),
        (struct.pack("!IHH", 8, 2, 0), b"0A000"),
        (struct.pack("!I", 1), b"08P01"),
        (startup(), b"28000"),
        (startup(user="alice", replication="true"), b"0A000"),
        (startup(user="alice") + message(b"Q", b"SELECT 1\0"), b"08P01"),
        (startup(user="alice") + message(b"p", b"PLAIN\0" + struct.pack("!I", 0)), b"08P01"),
    ],
)
def test_wrong_beginnings(endpoint: Endpoint, sent: bytes, sqlstate: bytes) -> None:
    with raw_socket(endpoint) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        assert b"C" + sqlstate + b"\0" in read_all(connection)


def test_newer_versions_are_negotiated(endpoint: Endpoint) -> None:
    with raw_socket(endpoint) as connection:
        connection.sendall(startup(2, user="alice", **{"_pq_.command_tag": "x"}))
        connection.shutdown(socket.SHUT_WR)
        answer = read_all(connection)
    assert answer.startswith(b"v")
    assert b"_pq_.command_tag" in answer


def test_encryption_is_declined(endpoint: Endpoint) -> None:
    with raw_socket(endpoint) as connection:
        for code in (5679, 5680):
            connection.sendall(struct.pack("!IHH", 8, 1234, code))
            assert connection.recv(1) == b"N"


def test_random_bytes_harm_nobody(endpoint: Endpoint) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    chance = random.Random(seed)
    for _ in range(40):
        with raw_socket(endpoint) as connection:
            prefix = startup(user="alice") if chance.random() < 0.5 else b""
            connection.sendall(prefix + chance.randbytes(chance.randrange(400)))
            with suppress(OSError):  # it may be closed already
                connection.shutdown(socket.SHUT_WR)
            read_all(connection)
    with psycopg.connect(**endpoint.arguments()) as connection:
        assert connection.execute("SELECT count(*) FROM path").fetchone() == (3,), seed


def test_random_messages_after_the_password(endpoint: Endpoint) -> None:
    """Messages with random fields: an answer, an error or the end, but never silence."""
    seed = random.SystemRandom().randrange(1 << 32)
    chance = random.Random(seed)
    texts = [
        b"SELECT $1\0",
        b"SELECT x FROM path WHERE y = $1\0",
        b"\0",
        b"BEGIN\0",
        b"FETCH 1 c\0",
    ]
    for _ in range(15):
        with (
            psycopg.connect(**endpoint.arguments()) as connected,
            socket.socket(fileno=socket.dup(connected.fileno())) as connection,
        ):
            connection.settimeout(TIMEOUT_SECONDS)
            sent = b""
            for _ in range(chance.randrange(1, 12)):
                kind = chance.choice([b"P", b"B", b"D", b"E", b"C", b"H", b"Q", b"d", b"f"])
                body = chance.choice([b"", b"\0", b"S\0", b"P\0", chance.randbytes(6)])
                body += chance.choice([b"", b"\0\0", chance.choice(texts) + b"\0\0"])
                sent += message(kind, body)
            connection.sendall(sent + message(b"S") + message(b"X"))
            read_all(connection)
    with psycopg.connect(**endpoint.arguments()) as connection_after:
        assert connection_after.execute("SELECT 1").fetchone() == (1,), seed


# --- TLS, and the end ---------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")
def test_tls_and_stopping(tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    files = ["-out", str(certificate), "-keyout", str(key)]
    subprocess.run(["openssl", *make, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with corollary.open(tmp_path / "wh", engine="local") as db:
        db.load(text=".decl n(x: number)\nn(1).")
    with running_endpoint(tmp_path / "wh", {"ann": AccessRole.READ}, context) as endpoint:
        arguments = endpoint.arguments("ann") | {"sslmode": "require"}
        connection = psycopg.connect(**arguments, autocommit=True)
        assert connection.pgconn.ssl_in_use
        assert connection.execute("SELECT 1").fetchone() == (1,)
        with raw_socket(endpoint) as stuffed:
            stuffed.sendall(struct.pack("!IHH", 8, 1234, 5679) + startup(user="ann"))
            assert b"C08P01\0" in read_all(stuffed)
        assert endpoint.server is not None
        endpoint.run(endpoint.server.close(1.0))
        with pytest.raises(psycopg.errors.AdminShutdown):
            connection.execute("SELECT 1")
        connection.close()


# --- rows ---------------------------------------------------------------------------------------


def test_a_few_rows_are_encoded_as_many_are() -> None:
    rows = {
        "n": pa.array([-1, None, 2**63 - 1] * FEW_ROWS),
        "s": pa.array(["", "é\n", None] * FEW_ROWS),
        "l": pa.array([None, "x", "long" * 99] * FEW_ROWS, pa.large_string()),
    }
    table = pa.table(rows)
    many = b"".join(data_rows(table, 0, table.num_rows, (), "UTC"))
    few = [b"".join(data_rows(table, at, 3, (), "UTC")) for at in range(0, table.num_rows, 3)]
    assert b"".join(few) == many
