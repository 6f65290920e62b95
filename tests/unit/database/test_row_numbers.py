"""`autoinc()`: numbers in one-shot runs, and refused everywhere else."""

from pathlib import Path

import pytest

import corollary
from corollary.database.engines import create_engine
from corollary.database.intake.evaluate_once import QueriedProgram, run_once
from corollary.database.state import DatabaseState
from corollary.database.writing.inputs import FileLocations
from corollary.errors import InputError
from corollary.frontends.datalog import parse
from corollary.source import SourceFile

PROGRAM = """
.decl p(x: number, y: symbol)
p(3, "c"). p(1, "a"). p(2, "b").
.decl last(n: number)
last(autoinc()) :- q(2, _).
.decl q(n: number, x: number)
q(autoinc(), x) :- p(x, _).
.decl r(n: number, m: number, y: symbol)
r(n, n * 10, y) :- p(x, y), n = autoinc(), x > 1.
.decl s(a: number, b: number, total: number)
s(autoinc(), autoinc(), t) :- t = sum n : { q(n, _) }.
.output q, r, s, last
"""


def outputs(text: str, folder: Path) -> dict[str, str]:
    program = parse(SourceFile("program.dl", text))
    run_once(DatabaseState(create_engine()), program, FileLocations(folder, folder))
    return {each.stem: each.read_text() for each in folder.glob("*.csv")}


def test_rules_count_on_from_each_other_in_the_order_of_the_text(tmp_path: Path) -> None:
    # `last` reads `q`, so it is numbered behind it; r has x > 1 only; s takes two numbers.
    assert outputs(PROGRAM, tmp_path) == {
        "q": "0\t1\n1\t2\n2\t3\n",
        "last": "3\n",
        "r": "4\t40\tb\n5\t50\tc\n",
        "s": "6\t7\t3\n",
    }


def test_words_are_numbered_too(tmp_path: Path) -> None:
    found = outputs(f'.pragma "arithmetic" "32"\n{PROGRAM}', tmp_path)
    assert found["r"] == "4\t40\tb\n5\t50\tc\n"


def test_a_rule_may_not_depend_on_its_own_numbers(tmp_path: Path) -> None:
    text = ".decl n(x: number)\nn(autoinc()) :- n(_).\nn(7).\n.output n"
    with pytest.raises(InputError, match="depends on its own numbers"):
        outputs(text, tmp_path)


def test_aggregates_do_not_count(tmp_path: Path) -> None:
    text = (
        ".decl p(x: number)\n.decl n(x: number)\nn(s) :- s = sum x : { p(y), x = y + autoinc() }."
    )
    with pytest.raises(InputError, match="inside of an aggregate"):
        outputs(text, tmp_path)


def test_databases_and_goals_refuse_them(tmp_path: Path) -> None:
    program = parse(SourceFile("program.dl", PROGRAM))
    with pytest.raises(InputError, match="C0247"):
        QueriedProgram(program, FileLocations(tmp_path, tmp_path)).answers("q(n, x)")
    path = tmp_path / "program.dl"
    path.write_text(PROGRAM)
    with corollary.open(None, engine="local") as db, pytest.raises(InputError, match="C0247"):
        db.load(path)
