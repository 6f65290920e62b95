"""Files of updates, and the state of a view over time."""

from pathlib import Path

import pytest

from corollary.documents.document import ActiveDocument
from corollary.documents.errors import ActiveDocumentError
from corollary.documents.input_files import FileUpdate, read_updates
from corollary.documents.timeline import ViewTimeline
from support.command_line import cli, of_json

MATCH = "documents", "match", "--doc", "s[!f !g]", "--query", "/s[a/*$x][b/*$x]"


def test_an_open_answer_says_which_stream_it_waits_for_and_since_when() -> None:
    document = ActiveDocument.from_terms("s[!f !g]", types={"f": ["a"], "g": ["b"]})
    timeline = ViewTimeline(document.view("/s[a/*$x][b/*$x]"))
    for at, (name, tree) in enumerate([("f", "a[1]"), ("g", "b[2]"), ("g", "b[1]")]):
        document.add(name, tree)
        timeline.note(f"{at}:00", name)
    (found,) = timeline.open_answers()
    assert (found.answer, found.waits_for, found.since) == (("2",), ({"f"},), "1:00")
    assert [(each.value, each.sure) for each in timeline.steps] == [(0.5, 0), (0.5, 0), (1, 1)]
    assert timeline.to_svg().count("<rect") == 1 + 3


@pytest.mark.slow
def test_whom_to_ask_first() -> None:
    types = {"f": ["a"], "g": ["b"], "h": ["c"]}
    document = ActiveDocument.from_terms("s[!f !g !h]", types=types)
    timeline = ViewTimeline(document.view("/s[a/*$x][b/*$x] | /s[b/*$x][c/*$x]"))
    timeline.note("start", "")
    # Nothing is known of any answer: all of them are asked for together.
    found = [(each.order, each.function, each.alone, each.answers) for each in timeline.awaited()]
    assert found == [(1, "f", 0, 1), (2, "g", 0, 1), (3, "h", 0, 1)]
    for at, (name, tree) in enumerate([("h", "c[1]"), ("f", "a[2]"), ("g", "b[3]")], 1):
        document.add(name, tree)
        timeline.note(f"{at}:00", name)
    # 1 and 2 wait for g; 3 for f or h.
    found_since = [(each.function, each.alone, each.since) for each in timeline.awaited()]
    assert found_since == [("g", 2, "1:00"), ("f", 1, "3:00"), ("h", 1, "3:00")]
    shown = cli(*MATCH, "--update", "f=a[1]", "--waiting").stdout.splitlines()
    assert shown[-3:] == [
        "ask  alone  answers  since",
        "!f   1      1        start",
        "!g   1      1        start",
    ]


def test_rows_of_question_marks_are_listed_if_asked_for() -> None:
    assert "possible  any\n" in cli(*MATCH).stdout
    assert "possible  (?)\n" in cli(*MATCH, "--unknown").stdout
    assert "possible  (1) and any other\n" in cli(*MATCH, "--update", "f=a[1]").stdout
    assert of_json(cli(*MATCH, "--format", "json"))["possible"] == [["?"]]


def test_a_file_of_updates_is_applied_in_order(tmp_path: Path) -> None:
    path = tmp_path / "updates.jsonl"
    path.write_text(
        '{"fn": "f", "xml": "a[1]"}\n\n{"fn": "g", "xml": "b[1]", "eos": true, "at": 7}\n'
    )
    assert read_updates(path) == [
        FileUpdate("f", "a[1]", None, is_end=False, at="1"),
        FileUpdate("g", "b[1]", None, is_end=True, at="7"),
    ]
    plot = tmp_path / "plot.svg"
    found = of_json(
        cli(*MATCH, "--updates", str(path), "--timeline", "--plot", str(plot), "--format", "json")
    )
    assert [each["at"] for each in found["timeline"]] == ["start", "1", "7"]
    assert found["sure"] == [["1"]]
    assert plot.read_text("utf-8").startswith("<svg")


def test_rows_of_a_file_are_those_that_are_watched(tmp_path: Path) -> None:
    path = tmp_path / "updates.jsonl"
    path.write_text(
        '{"fn": "f", "xml": "a[1]", "op": "add"}\n'
        '{"fn": "f", "xml": "a[2]", "old": "a[1]", "op": "replace"}\n'
        '{"fn": "f", "xml": "a[2]", "op": "retract", "at": 9}\n{"at": 20}\n'
    )
    assert [(each.function, each.data, each.old, each.at) for each in read_updates(path)] == [
        ("f", "a[1]", None, "1"),
        ("f", "a[2]", "a[1]", "2"),
        ("f", None, "a[2]", "9"),
        ("", None, None, "20"),
    ]
    query = "/s/a arrived $t [*$x] where now - $t <= 10s return $x"
    lines = cli(*MATCH[:4], "--query", query, "--updates", str(path), "--timeline").stdout
    assert [each.split()[-3:] for each in lines.splitlines()[-4:]] == [
        ["1", "1", "1"],
        ["1", "1", "1"],
        ["0.5", "0", "1"],
        ["0.5", "0", "1"],
    ]


@pytest.mark.parametrize(
    "line",
    [
        "x",
        "[]",
        "{}",
        '{"fn": "f", "more": 1}',
        '{"fn": 1}',
        '{"at": 1, "xml": "a"}',
        '{"fn": "f", "op": "upsert"}',
        '{"fn": "f", "doc": "d"}\n{"fn": "f"}',
    ],
)
def test_files_of_updates_are_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "updates.jsonl"
    path.write_text(line)
    with pytest.raises(ActiveDocumentError, match="C1254"):
        read_updates(path)
