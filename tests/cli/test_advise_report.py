"""The report for a timer: what is advised, what is new since the last one, which views pay."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.test_advise import PROGRAM
from corollary.advisor.render.text import ReportState, read_state
from support.command_line import OK, cli, put

OTHER = """
.decl other(p: symbol) virtual
other(p) :- connection(p, x), connection(x, y), connection(y, p).
"""


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put("airline.dl", PROGRAM)


def report(*arguments: str) -> str:
    result = cli("advise", *arguments, "--report", "advice.md")
    assert result.exit_code == OK, result.output
    return Path("advice.md").read_text(encoding="utf-8")


def test_a_report_says_what_is_new() -> None:
    first = report("airline.dl", "--query", "view")
    assert "This is the first report." in first
    assert "| mv_view_1 (store) |" in first
    assert "* nothing is new" in report("airline.dl", "--query", "view")
    put("airline.dl", PROGRAM + OTHER)
    more = report("airline.dl", "--query", "view", "--query", "other")
    assert "* new: `connection(p, x), connection(x, y), connection(y, p)`" in more
    less = report("airline.dl", "--query", "other")
    assert "* not advised any more, or stored: `services(a, p1)" in less


def test_a_report_on_a_warehouse_has_the_views_that_are_stored() -> None:
    for name in ("services", "connection", "base"):
        put(f"facts/{name}.facts", "a\tb\nb\ta\nb\tc\n")
    made = cli("run", "airline.dl", "-F", "facts", "--warehouse", "wh", "--engine", "local", "-q")
    assert made.exit_code == OK, made.output
    applied = cli("advise", "airline.dl", "--query", "view", "--apply", "wh", "--engine", "local")
    assert applied.exit_code == OK, applied.output
    text = report("wh", "--query", "view", "--engine", "local")
    assert ", commit 2." in text
    assert "| mv_view_1 |" in text.partition("## Views that are stored")[2]


def test_states_are_read_back() -> None:
    state = ReportState(3, 5.0, ("a(x), b(x) --> c",))
    assert read_state(f"text\n{state.as_comment()}\n") == state
    assert read_state("# another document") is None
    assert read_state("<!-- corollary advice {} -->") is None
