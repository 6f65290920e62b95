"""`--why` of `run` and `apply`: what violates a key or a constraint is proved."""

from pathlib import Path

import pytest
from click.testing import Result

from support.command_line import cli, of_json, put

VIOLATED = 3
PROGRAM = """.decl salary(who: symbol, amount: number) key(who)
salary("ann", 5).
.decl boss(x: symbol, y: symbol)
.decl above(x: symbol, y: symbol)
above(x, y) :- boss(x, y).
above(x, z) :- above(x, y), boss(y, z).
.decl cycle(x: symbol)
cycle(x) :- above(x, x).
.abort cycle "{x} is above itself"
.decl cut(who: symbol, was: number, now: number)
cut(x, a, b) :- -salary(x, a), +salary(x, b), b < a, !boss(x, _).
.abort cut "{who} earns less"
.decl log(x: symbol)
+log(x) :- +boss(x, _).
.decl noted(x: symbol)
noted(x) :- +log(x), above(x, "z").
.abort noted "{x} is noted"
"""
FIRST = """{"op": "insert", "relation": "salary", "row": ["bob", 9]}
{"op": "insert", "relation": "boss", "row": ["a", "b"]}
"""


@pytest.fixture(autouse=True)
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put("work.dl", PROGRAM)
    assert cli("run", "work.dl", "--warehouse", "w", "--engine", "local").exit_code == 0
    assert apply(FIRST).exit_code == 0


def apply(lines: str, *options: str) -> Result:
    return cli("apply", "w", "--changes", "-", "--engine", "local", *options, stdin=lines)


def line(op: str, relation: str, *row: str | int) -> str:
    values = ", ".join(f'"{each}"' if isinstance(each, str) else str(each) for each in row)
    return f'{{"op": "{op}", "relation": "{relation}", "row": [{values}]}}\n'


CYCLE = line("insert", "boss", "b", "a")


def test_a_view_that_must_be_empty() -> None:
    refused = apply(CYCLE, "--why")
    assert refused.exit_code == VIOLATED
    assert refused.stderr.endswith(
        """why cycle: b is above itself
  cycle("b")             rule 3  work.dl:8
  +- above("b", "b")     rule 2  work.dl:6
     +- above("b", "a")  rule 1  work.dl:5
     |  +- +boss("b", "a")
     +- boss("a", "b")   by hand, commit 2
  height 3, 5 tuples; no proof is lower
"""
    )


def test_the_message_says_how_to_ask() -> None:
    refused = apply(CYCLE)
    assert refused.exit_code == VIOLATED
    assert "nothing was changed; `--why` of `run` and `apply` proves it" in refused.stderr
    assert "why cycle" not in refused.stderr


def test_nothing_is_changed_by_a_proof() -> None:
    assert apply(CYCLE, "--why").exit_code == VIOLATED
    done = apply(line("insert", "boss", "b", "c"), "--format", "json")
    assert (done.exit_code, of_json(done)["commit"]) == (0, 3)


def test_an_event_is_proved_in_both_states() -> None:
    lines = line("delete", "salary", "bob", 9) + line("insert", "salary", "bob", 8)
    refused = apply(lines, "--why")
    assert refused.exit_code == VIOLATED
    assert refused.stderr.endswith(
        """why cut: bob earns less
  cut("bob", 9, 8)      rule 4  work.dl:11
  +- -salary("bob", 9)  by hand, commit 2
  +- +salary("bob", 8)
  +- !boss("bob", _)    absent
  +- 8 < 9              computed
  height 1, 3 tuples; no proof is lower
"""
    )


def test_what_a_trigger_did_has_its_rule() -> None:
    refused = apply(line("insert", "boss", "y", "z"), "--why")
    assert refused.exit_code == VIOLATED
    assert '  +- +log("y")        rule 5  work.dl:14\n  |  +- +boss("y", "z")\n' in refused.stderr


def test_a_key_names_both_tuples() -> None:
    refused = apply(line("insert", "salary", "ann", 7), "--why")
    assert refused.exit_code == VIOLATED
    assert "nothing was changed\n" in refused.stderr
    assert "--why" not in refused.stderr
    tail = refused.stderr.split("why two tuples of salary with the key who = ann\n")[1]
    shown = [each.split() for each in tail.splitlines()]
    assert shown == [
        ["+-", 'salary("ann",', "5)", "work.dl:2,", "commit", "1"],
        ["+-", '+salary("ann",', "7)"],
    ]


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_proofs_as_json(options: tuple[str, ...]) -> None:
    refused = apply(
        CYCLE + line("insert", "salary", "ann", 7), "--why", "--format", "json", *options
    )
    assert refused.exit_code == VIOLATED
    found = of_json(refused)["why"]
    assert [each["message"] for each in found] == [
        "two tuples of salary with the key who = ann",
        "cycle: a is above itself",
        "cycle: b is above itself",
    ]
    assert found[1]["proof"]["nodes"][0]["relation"] == "cycle"
    assert found[1]["proof"]["height"] == 3


def test_a_dry_run_proves_it_too() -> None:
    refused = apply(CYCLE, "--why", "--dry-run")
    assert refused.exit_code == VIOLATED
    assert "why cycle: b is above itself\n" in refused.stderr


def test_run_proves_what_a_new_program_violates() -> None:
    put("work.dl", PROGRAM + 'boss("b", "a").\n')
    refused = cli("run", "work.dl", "--warehouse", "w", "--why", "--engine", "local")
    assert refused.exit_code == VIOLATED
    assert "why cycle: a is above itself\n" in refused.stderr
    assert cli("run", "work.dl", "--why").exit_code == 2


def test_an_alert_says_how_to_ask() -> None:
    put(
        "work.dl",
        PROGRAM + ".decl high(x: symbol)\nhigh(x) :- salary(x, n), n > 50.\n"
        '.alert high "{x} earns much"\n',
    )
    assert cli("run", "work.dl", "--warehouse", "w", "--engine", "local").exit_code == 0
    told = apply(line("insert", "salary", "o'hara", 60))
    assert told.exit_code == 0
    assert """why: corollary why-added w 'high("o'"'"'hara")' --commit 4\n""" in told.stderr
