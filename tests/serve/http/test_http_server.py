"""A server in its process: curl, its socket, its log, TLS, signals."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import corollary
from support.command_line import INPUT, OK, USAGE, cli, of_json
from support.serve.server_process import ServerProcess, server_process

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse."""
    path = tmp_path_factory.mktemp("server") / "wh"
    with corollary.open(path, engine="local") as db:
        db.load(text=".decl edge(x: number, y: symbol)")
        with db.transaction() as tx:
            tx.insert("edge", [(1, "one"), (2, "two")])
    return path


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[ServerProcess]:
    """A server of it."""
    with server_process(place) as running:
        yield running


@pytest.fixture(scope="module")
def token(place: Path) -> str:
    """A token of the role admin."""
    made = cli("token", "add", str(place), "robot", "--role", "admin", "--format", "json")
    return str(of_json(made)["token"])


def get(url: str, token: str = "", **options: Any) -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), **options) as found:
        return json.load(found)


def curl(*arguments: str) -> tuple[int, Any]:
    """The status and the JSON of an answer."""
    command = ["curl", "-sS", "--max-time", "60", "-w", "\n%{http_code}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    body, _, status = done.stdout.rpartition("\n")
    assert done.returncode == 0, done.stderr
    return int(status), json.loads(body) if body else None


def connection(server: ServerProcess) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=60)


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_curl(server: ServerProcess, token: str, tmp_path: Path) -> None:
    bearer = ("-H", f"Authorization: Bearer {token}")
    status, found = curl(*bearer, f"{server.url}/v1/query", "-d", '{"goal": "edge(1, y)"}')
    assert (status, found["rows"]) == (200, [["one"]])
    lines = tmp_path / "changes.jsonl"
    lines.write_text('{"op": "insert", "relation": "edge", "row": [-1, "x"]}\n', "utf-8")
    status, found = curl(*bearer, f"{server.url}/v1/apply", "--data-binary", f"@{lines}")
    assert (status, found["changes"]["edge"]["added"]) == (200, [[-1, "x"]])
    status, found = curl(f"{server.url}/v1/relations")
    assert (status, found["status"]) == (401, 1)
    status, found = curl(*bearer, "-X", "PUT", f"{server.url}/v1/program", "-d", "p(1")
    assert (status, found["diagnostics"][0]["code"]) == (400, "C0101")


def test_the_socket_of_the_owner(server: ServerProcess, place: Path) -> None:
    found = json.loads((place / "server.json").read_text("utf-8"))
    assert found["url"] == server.url
    assert found["pid"] == server.pid
    for path in (place / "server.json", Path(found["socket"])):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with closing(socket.socket(socket.AF_UNIX)) as client:
        client.settimeout(60)
        client.connect(found["socket"])
        client.sendall(b"GET /v1/session HTTP/1.1\r\nHost: any\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.endswith(b'{"name": "owner", "role": "admin"}')


def test_a_second_server_is_refused(server: ServerProcess, place: Path) -> None:
    refused = cli("serve", str(place), "--port", "0")
    assert refused.exit_code == INPUT
    assert "C1633" in refused.stderr
    assert server.url in refused.stderr
    assert (place / "server.json").exists()


@pytest.mark.smoke
def test_the_log(server: ServerProcess, token: str) -> None:
    get(f"{server.url}/v1/session?x=notlogged", token)
    server.wait_for_log('"who": "robot"')
    lines = [json.loads(line) for line in server.log.splitlines() if line.startswith("{")]
    assert any(each["path"] == "/v1/session" and each["who"] == "robot" for each in lines)
    for secret in (token, server.key, "notlogged"):
        assert secret not in server.log


# --- addresses, TLS, signals --------------------------------------------------------------------


def test_addresses_that_are_refused(place: Path, tmp_path: Path) -> None:
    wh = str(place)
    open_to_all = cli("serve", wh, "--host", "0.0.0.0", "--port", "0")
    assert open_to_all.exit_code == INPUT
    assert "C1636" in open_to_all.stderr
    assert "--behind-proxy" in open_to_all.stderr
    assert cli("serve", wh, "--tls-cert", "cert.pem").exit_code == USAGE
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = str(taken.getsockname()[1])
        refused = cli("serve", wh, "--port", port)
        assert refused.exit_code == INPUT
        assert "C1634" in refused.stderr
        assert f"port {port}" in refused.stderr
    assert "C1634" in cli("serve", wh, "--host", "nowhere.invalid", "--behind-proxy").stderr
    assert "C0930" in cli("serve", str(tmp_path / "none")).stderr


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")
def test_tls(tmp_path: Path) -> None:
    with corollary.open(tmp_path / "wh", engine="local") as db:
        db.load(text=".decl p(x: number)\np(1).")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(["openssl", *make, *names], check=True, capture_output=True)
    wrong = cli("serve", str(tmp_path / "wh"), "--tls-cert", str(key), "--tls-key", str(cert))
    assert wrong.exit_code == INPUT
    assert "C1632" in wrong.stderr
    files = ("--tls-cert", str(cert), "--tls-key", str(key))
    with server_process(tmp_path / "wh", *files) as server:
        context = ssl.create_default_context(cafile=str(cert))
        url = server.url.replace("127.0.0.1", "localhost")
        assert url.startswith("https://")
        with urllib.request.urlopen(f"{url}/healthz", context=context) as found:
            assert found.headers["Strict-Transport-Security"]
        assert server.stop(signal.SIGTERM) == OK


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda each: each.name)
def test_a_stop_is_no_failure(tmp_path: Path, number: signal.Signals) -> None:
    """What is under way is answered; the files of the server go; the status is 0."""
    place = tmp_path / ("a-long-name" * 9) / "wh"
    with corollary.open(place, engine="local") as db:
        db.load(text=".decl p(x: number)\np(1).")
    with server_process(place) as server:
        found = json.loads((place / "server.json").read_text("utf-8"))
        assert not found["socket"].startswith(str(place))  # the path would be too long
        with closing(connection(server)) as idle:
            assert get(f"{server.url}/healthz") == {"status": "ok"}
            assert server.stop(number) == OK
            assert idle.recv(1) == b""
        assert not (place / "server.json").exists()
        assert not Path(found["socket"]).exists()
        assert "Traceback" not in server.log


def test_what_a_killed_server_leaves_is_replaced(tmp_path: Path) -> None:
    with corollary.open(tmp_path / "wh", engine="local") as db:
        db.load(text=".decl p(x: number)\np(1).")
    with server_process(tmp_path / "wh") as first:
        assert first.stop(signal.SIGKILL) == -signal.SIGKILL
    assert (tmp_path / "wh" / "server.json").exists()
    with server_process(tmp_path / "wh") as second:
        found = json.loads((tmp_path / "wh" / "server.json").read_text("utf-8"))
        assert found["url"] == second.url
