"""The command line by a running server: the same output and status, byte for byte."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result

from corollary.database.access.principals import AccessRole
from corollary.errors import InputError
from corollary.serve import client
from support.command_line import cli, put
from support.serve.running_server import RunningServer, running_server

pytestmark = pytest.mark.integration

PROGRAM = """
.decl station(name: symbol, opened: date, share: decimal(5, 2))
.decl direct_link(src: symbol, dst: symbol)
.decl link(src: symbol, dst: symbol)
link(x, y) :- direct_link(x, y).
link(x, y) :- link(x, z), direct_link(z, y).
.decl lonely(x: symbol) virtual
lonely(x) :- direct_link(x, _), !direct_link(_, x).
.output link
lost(x, y) :- -link(x, y).
.alert lost "no way from {x} to {y}"
loop(x) :- +link(x, x).
.abort loop "{x} is on a circle"
direct_link("a", "b"). direct_link("b", "c"). direct_link("c", "d").
"""
VARYING = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+Z|\d+\.\d+ s\b|(?<=\"seconds\": )[\d.e-]+"
    r"|[\d.]+ [KM]B|(?<=\"catalog\": )\d+|(?<=\"estimated_rows\": )\d+"
    r"|^evaluate: .* keys and events\n",  # told if it has taken long
    re.MULTILINE,
)
"""Times, sizes of files (those of the catalog differ from run to run), and estimates: a process
learns from its commits."""
READING = [
    ["query", "wh", 'link("a", y)'],
    ["query", "wh", 'link("a", y)', "--format", "json", "--order", "y desc", "--limit", "2"],
    ["query", "wh", 'link("a", "d")'],
    ["query", "wh", "lonely(x)", "--at", "1"],
    ["query", "wh", 'link("a", y)', "--as", "alice"],
    ["query", "wh", "direct_link(x, y)", "--as", "alice"],
    ["query", "wh", 'lnik("a", y)'],
    ["query", "wh", 'lnik("a", y)', "--format", "json"],
    ["query", "wh", "station(n, o, s)"],
    ["query", "wh", "station(n, o, s)", "--format", "json", "-q"],
    ["query", "wh", "extra", 'link("a", y)'],
    ["query", "wh", "link(x, y)", "--at", "77"],
    ["query", "wh", "link(x, y)", "--at", "soon"],
    ["sql", "wh", "SELECT dst FROM link WHERE src = :s ORDER BY dst DESC", "--set", "s=a"],
    ["sql", "wh", "SELECT src, COUNT(*) AS n FROM link GROUP BY src", "--format", "json"],
    ["sql", "wh", "SELECT nothing FROM link"],
    ["why", "wh", 'link("a", "d")'],
    ["why", "wh", 'link("a", "d")', "--format", "json", "--limit-nodes", "3"],
    ["why", "wh", 'link("a", "d")', "--format", "svg"],
    ["why", "wh", 'link("d", "a")'],
    ["why-not", "wh", 'link("d", "a")', "--insertions", "1"],
    ["why-added", "wh", 'link("a", "d")', "--depth", "1"],
    ["why-removed", "wh", 'link("a", "d")'],
    ["what-if", "wh", 'direct_link("b", "c")'],
    ["what-if", "wh", 'direct_link("d", "a")', "--format", "json"],
    ["log", "wh"],
    ["log", "wh", "--limit", "1", "--format", "json"],
    ["changes", "wh"],
    ["changes", "wh", "link", "--since", "1", "--format", "json"],
    ["changes", "wh", "lnk"],
    ["status", "wh"],
    ["status", "wh", "--format", "json"],
    ["log"],
    ["query", "wh"],
]
WRITING = [
    ["apply", "wh", "--insert", "direct_link=new.csv", "--dry-run"],
    ["apply", "wh", "--insert", "direct_link=new.csv", "--insert", "station=stations.jsonl"],
    ["apply", "wh", "--insert", "direct_link=headers.csv"],
    ["apply", "wh", "--delete", "direct_link=new.csv", "--format", "json"],
    ["apply", "wh", "--changes", "changes.jsonl", "--idempotency-key", "k1"],
    ["apply", "wh", "--changes", "changes.jsonl", "--idempotency-key", "k1"],
    ["apply", "wh", "--changes", "circle.jsonl", "--idempotency-key", "k1"],
    ["apply", "wh", "--insert", "direct_link=new.csv", "--idempotency-key", "k2"],
    ["apply", "wh", "--insert", "direct_link=new.csv", "--idempotency-key", "k2"],
    ["apply", "wh", "--delete", "direct_link=new.csv", "--idempotency-key", "k2"],
    ["apply", "wh", "--changes", "wrong.jsonl"],
    ["apply", "wh", "--changes", "circle.jsonl"],
    ["apply", "wh", "--changes", "circle.jsonl", "--format", "json"],
    ["apply", "wh", "--insert", "link=new.csv"],
    ["apply", "wh", "--insert", "lnik=new.csv"],
    ["apply", "wh", "--insert", "direct_link=missing.csv"],
    ["apply", "wh"],
    ["log", "wh"],
    ["changes", "wh", "link"],
]


def _fill(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory.mkdir()
    monkeypatch.chdir(directory)
    put("program.dl", PROGRAM)
    put("new.csv", "d,e\ne,f\n")
    put("headers.csv", "src,dst\nx,y\n")
    put("stations.jsonl", '{"name": "a", "opened": "2026-11-16", "share": "12.50"}\n')
    put(
        "changes.jsonl",
        '{"op": "insert", "relation": "direct_link", "row": ["d", "z"]}\n'
        '{"op": "add-rule", "rule": "link(x, y) :- link(y, x), x = \\"never\\"."}\n',
    )
    put("wrong.jsonl", '{"op": "insert", "relation": "direct_link", "row": ["d"]}\n')
    put("circle.jsonl", '{"op": "insert", "relation": "direct_link", "row": ["d", "a"]}\n')


@pytest.fixture
def twins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Path]]:
    """Two directories with the same warehouse; the second one has a server."""
    monkeypatch.setattr(client, "PROBE_SECONDS", 60.0)  # the machine may be busy
    monkeypatch.setenv("COROLLARY_APPLY_ENGINE", "local")
    alone, served = tmp_path / "alone", tmp_path / "served"
    for directory in (alone, served):
        _fill(directory, monkeypatch)
    monkeypatch.chdir(alone)
    assert cli("run", "program.dl", "--warehouse", "wh", "--engine", "local").exit_code == 0
    assert cli("grant", "wh", "alice", "link").exit_code == 0
    shutil.copytree(alone / "wh", served / "wh")
    with running_server(served / "wh"):
        yield alone, served


def _told(result: Result) -> tuple[int, str, str]:
    """Return what a command has told, without times and sizes."""
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    texts = [
        VARYING.sub(lambda each: "" if each[0].endswith("\n") else "…", text)
        for text in (result.stdout, result.stderr)
    ]
    return result.exit_code, texts[0], texts[1]


def test_each_command_says_the_same_with_and_without_a_server(
    twins: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, served = twins
    asked: list[str] = []
    original = client.ServerClient.post

    def post(self: client.ServerClient, path: str, document: dict[str, object]) -> object:
        asked.append(str(document.get("command", path)))
        return original(self, path, document)

    monkeypatch.setattr(client.ServerClient, "post", post)
    by_server = set()
    for arguments in [*READING, *WRITING]:
        told = []
        for directory in (alone, served):
            monkeypatch.chdir(directory)
            asked.clear()
            told.append(_told(cli(*arguments)))
            assert bool(asked) <= (directory == served)
        by_server |= {arguments[0]} if asked else set()
        assert told[0] == told[1], arguments
    assert by_server == {each[0] for each in [*READING, *WRITING]}


def test_verbose_commands_say_who_has_answered(
    twins: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(twins[1])
    goal = 'link("a", "d")'
    assert "answered by the server of process" in cli("query", "wh", goal, "-v").stderr
    assert cli("query", "wh", goal).stderr == ""
    # What a server cannot take is done here.
    for options in (["--no-log"], ["--limit-tuples", "1000"]):
        told = cli("query", "wh", goal, "-v", *options)
        assert (told.exit_code, "answered by" in told.stderr) == (0, False)


def test_a_server_elsewhere_is_asked_with_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(tmp_path / "here", monkeypatch)
    assert cli("run", "program.dl", "--warehouse", "wh", "--engine", "local").exit_code == 0
    assert cli("grant", "wh", "alice", "link").exit_code == 0
    with running_server(tmp_path / "here" / "wh") as server:
        _ask_from_elsewhere(server, tmp_path / "elsewhere", monkeypatch)


def _ask_from_elsewhere(
    server: RunningServer, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(directory, monkeypatch)
    refused = cli("query", "--server", server.url, 'link("a", y)')
    assert (refused.exit_code, "token" in refused.stderr) == (1, True)

    monkeypatch.setenv("COROLLARY_TOKEN", server.tokens.add("bob", AccessRole.WRITE))
    assert cli("query", "--server", server.url, 'link("c", y)').stdout == "y\nd\n"
    assert cli("query", server.url, 'link("c", y)').stdout == "y\nd\n"
    monkeypatch.setenv("COROLLARY_SERVER", server.url)
    applied = cli("apply", "--insert", "direct_link=new.csv")
    assert (applied.exit_code, "commit 2" in applied.stdout) == (0, True), applied.stderr
    assert cli("query", 'link("c", y)').stdout == "y\nd\ne\nf\n"
    assert cli("changes", "direct_link", "--since", "1").stdout.count("insert") == 2
    assert cli("query", "program.dl", 'link("c", y)').stdout == "y\nd\n"  # a program is here
    told = cli("query", 'link("c", y)', "--limit-tuples", "5")
    assert (told.exit_code, "a server does not take --limit-tuples" in told.stderr) == (2, True)

    monkeypatch.setenv("COROLLARY_TOKEN", server.tokens.add("alice", AccessRole.READ))
    assert cli("query", 'link("c", y)').stdout == "y\nd\ne\nf\n"
    for arguments in (
        ["query", "direct_link(x, y)"],
        ["query", 'link("c", y)', "--as", "owner"],
        ["status"],
        ["apply", "--insert", "direct_link=new.csv"],
        ["what-if", 'direct_link("a", "b")'],
        ["why-added", 'link("a", "b")'],
        ["changes", "direct_link"],
    ):
        told = cli(*arguments)
        assert told.exit_code == 1, arguments
        assert "alice" in told.stderr, arguments
        assert told.stdout == "", arguments
    assert "direct_link" not in cli("log").stdout
    assert "direct_link" not in cli("changes").stdout


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "ftp://host", "http://"])
def test_a_server_that_is_not_there_is_an_error(address: str) -> None:
    told = cli("query", "--server", address, "p(x)")
    assert told.exit_code in {1, 2}
    assert "server" in told.stderr


def test_a_server_that_does_not_answer_is_named() -> None:
    found = cli("query", "wh", "p(x)", "--server", "http://127.0.0.1:1")
    assert found.exit_code == 1
    assert "C1643" in found.stderr
    assert "nothing was changed" in found.stderr


@pytest.mark.parametrize("url", ["ftp://host", "http://", "http://host?x=1", "host"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="is not the address of a server") as caught:
        client.ServerClient.of_url(url, None)
    assert caught.value.diagnostics[0].code == "C1642"
