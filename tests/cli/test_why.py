"""The commands that say why, and what the shell has of them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from support.command_line import INPUT, OK, USAGE, cli, of_json, put

NETWORK = """\
// a comment
.decl edge(x: symbol, y: symbol)
.input edge(filename="edge.csv", delimiter=",")
.decl link(x: symbol, y: symbol)
link(x, y) :- edge(x, y).
link(x, z) :- link(x, y), edge(y, z).
edge("t", "u").
"""
EDGES = "a,b\nb,c\n"


@pytest.fixture(autouse=True)
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a warehouse with three commits: a source and the text, a write by hand, a deletion."""
    monkeypatch.chdir(tmp_path)
    put("p.dl", NETWORK)
    put("in/edge.csv", EDGES)
    assert cli("run", "p.dl", "-F", "in", "--warehouse", "w", "--engine", "local").exit_code == OK
    change("insert", "c", "d")
    change("delete", "c", "d")


def change(op: str, *row: str) -> None:
    put("change.jsonl", json.dumps({"op": op, "relation": "edge", "row": row}))
    assert cli("apply", "w", "--changes", "change.jsonl", "--engine", "local").exit_code == OK


def sources(goal: str) -> list[tuple[str, str | None, int | None, int | str | None]]:
    found = of_json(cli("why", "w", goal, "--format", "json"))
    return [tuple(each.values()) for each in found["nodes"][0]["sources"]]  # type: ignore[misc]


def test_a_proof_with_its_origins() -> None:
    assert (
        cli("why", "w", 'link("a", "d")', "--at", "2").stdout
        == """\
link("a", "d")           rule 2  p.dl:6
+- link("a", "c")        rule 2  p.dl:6
|  +- link("a", "b")     rule 1  p.dl:5
|  |  +- edge("a", "b")  in/edge.csv:1, commit 1
|  +- edge("b", "c")     in/edge.csv:2, commit 1
+- edge("c", "d")        by hand, commit 2
height 3, 6 tuples; no proof is lower
"""
    )
    assert sources('edge("t", "u")') == [("text", "p.dl", 7, 1)]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("z,z\na,b\nb,c\n", 2),
        ('"q\nr",z\na,b\n', 3),
        ("malformed\nz,z\na,b\nmalformed\n", 3),
        ("a,b\na,b\n", 1),
    ],
    ids=["second", "after a quoted line break", "after a malformed record", "twice"],
)
def test_the_line_of_a_source(content: str, line: int) -> None:
    put("in/edge.csv", content)
    arguments = ("run", "p.dl", "-F", "in", "--warehouse", "w", "--engine", "local")
    assert cli(*arguments, "--max-bad", "off").exit_code == OK
    assert sources('edge("a", "b")') == [("source", "in/edge.csv", line, 1)]


def damage(text: str) -> None:
    Path("in/edge.csv").write_text(text)


@pytest.mark.parametrize(
    "happen",
    [lambda: damage(EDGES + "x,y\n"), lambda: Path("in/edge.csv").unlink()],
    ids=["changed", "gone"],
)
def test_the_line_of_a_source_that_changed_since_is_not_told(happen: Callable[[], None]) -> None:
    happen()
    assert sources('edge("a", "b")') == [("source", "in/edge.csv", None, 1)]


def test_lines_of_other_files() -> None:
    put("many.dl", '.decl e(x: number, y: symbol?)\n.input e(filename="d/*", format="jsonl")\n')
    put("d/1.jsonl", '{"x": 1, "y": "a"}\n')
    put("d/2.jsonl", '{"x": 2, "y": "b"}\n\n{"x": 3}\n')
    put("d/3.jsonl.gz", gzip.compress(b'{"x": 4, "y": "a"}\n'))
    assert cli("run", "many.dl", "--warehouse", "m", "--engine", "local").exit_code == OK
    for goal, place in {
        'e(2, "b")': ("d/2.jsonl", 1),
        "e(3, null)": ("d/2.jsonl", 3),
        'e(4, "a")': ("d/*", None),
    }.items():
        found = of_json(cli("why", "m", goal, "--format", "json"))["nodes"][0]["sources"]
        assert [(each["file"], each["line"]) for each in found] == [place], goal


def test_every_part_is_named_and_a_second_one_is_no_addition() -> None:
    change("insert", "a", "b")
    assert sources('edge("a", "b")') == [
        ("source", "in/edge.csv", 1, 1),
        ("manual", None, None, 4),
    ]
    change("delete", "a", "b")
    change("insert", "a", "b")
    assert sources('edge("a", "b")')[1] == ("manual", None, None, 6)


def test_history_that_is_not_kept() -> None:
    change("insert", "k", "l")
    assert cli("gc", "w", "--keep-commits", "1").exit_code == OK
    assert sources('edge("t", "u")') == [("text", "p.dl", 7, "before 4")]
    assert "before commit 4" in cli("why", "w", 'edge("t", "u")').stdout


def test_what_does_not_hold_has_status_1_and_one_attempt() -> None:
    result = cli("why", "w", 'link("a", "z")')
    assert result.exit_code == INPUT
    assert result.stdout == (
        'link("a", "z") does not hold\n'
        "link(x, y) :- edge(x, y).  rule 1  p.dl:5\n"
        "   1 attempt in which 1 literal fails\n"
        '   rule 1 with x = "a", y = "z": edge("a", "z") is missing\n'
    )
    result = cli("why", "w", 'link(x, "z")')
    assert (result.exit_code, result.stdout) == (INPUT, 'link(x, "z") has no answer\n')
    assert of_json(cli("why", "w", 'link("a", "z")', "--format", "json"))["holds"] is False


def test_why_not_with_insertions_that_can_be_applied() -> None:
    found = of_json(cli("why-not", "w", 'link("a", "z")', "--insertions", "1", "--format", "json"))
    sets = found["insertions"]["sets"]
    assert len(sets) == 3
    for (change_,) in sets:
        put("change.jsonl", json.dumps(change_))
        result = cli("apply", "w", "--changes", "change.jsonl", "--dry-run", "--format", "json")
        assert ["a", "z"] in of_json(result)["changes"]["link"]["added"]
    assert cli("why-not", "w", 'link("a", "b")').exit_code == INPUT


def test_causes() -> None:
    result = cli("why-added", "w", 'link("a", "d")')
    assert result.stdout.startswith('commit 2 added link("a", "d") because of\n')
    found = of_json(cli("why-removed", "w", 'link("a", "d")', "--commit", "3", "--format", "json"))
    assert found["cause"] == [
        {"op": "delete", "relation": "edge", "row": ["c", "d"], "necessary": True}
    ]
    assert cli("why-added", "w", 'link("a", "d")', "--commit", "3").exit_code == INPUT


def test_what_if_changes_nothing() -> None:
    found = of_json(cli("what-if", "w", 'edge("b", "c")', "--format", "json"))
    assert found["commit"] is None
    assert found["changes"]["link"] == {"added": [], "removed": [["a", "c"], ["b", "c"]]}
    found = of_json(cli("what-if", "w", 'edge("c", "a")', "--format", "json"))
    assert ["a", "a"] in found["changes"]["link"]["added"]
    assert cli("query", "w", 'edge("b", "c")').stdout == "yes\n"


def test_the_same_question_has_the_same_bytes() -> None:
    for form in ("text", "json", "svg"):
        first, second = (cli("why", "w", "link(x, y)", "--format", form).stdout for _ in "ab")
        assert first == second
        assert first


def test_limits_and_usage() -> None:
    cut = of_json(cli("why", "w", 'link("a", "c")', "--limit-nodes", "1", "--format", "json"))
    assert [each["reason"] for each in cut["cuts"]] == ["nodes"]
    assert len(cut["nodes"]) == 1
    assert cli("why", "w", 'link("a", "c")', "--limit-nodes", "0").exit_code == USAGE
    assert cli("why", "w", 'link("a", "c"), edge("a", "b")').exit_code == INPUT
    assert cli("why", "w", 'lnk("a", "c")').exit_code == INPUT
    text = cli("why", "w", 'link("a", "c")', "--depth", "0").stdout
    assert text.splitlines()[0] == 'link("a", "c")  rule 2  p.dl:6, …'


def test_the_shell_asks_why() -> None:
    entries = '\\why link("a", "b")\n\\why-not link("b", "a").\n'
    result = cli("shell", "w", "--engine", "local", stdin=entries)
    assert '+- edge("a", "b")' in result.stdout
    assert 'edge("b", "a") is missing' in result.stdout
    assert result.exit_code == OK
    assert cli("shell", "w", "--engine", "local", stdin='\\why link("b", "a")\n').exit_code == INPUT


def test_as_a_reader() -> None:
    cli("grant", "w", "alice", "link")
    assert "sealed" in cli("why", "w", 'link("a", "c")', "--as", "alice").stdout
    assert cli("why", "w", 'edge("a", "b")', "--as", "alice").exit_code == INPUT
