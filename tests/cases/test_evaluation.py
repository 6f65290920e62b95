"""Every folder `tests/cases/<family>/<name>`: a program, its facts, and what must come out.

| file               | holds                                                                     |
|--------------------|---------------------------------------------------------------------------|
| `program.dl`       | the program; its first line says what it shows                            |
| `oracle.dl`        | the same for the oracle, where its language or patience does not suffice  |
| `facts/`           | what `-F` names                                                           |
| `stdin.txt`        | standard input                                                            |
| `command.txt`      | further options of `corollary run`                                        |
| `expected/<file>`  | what is written to `-D`, byte for byte                                    |
| `expected/stdout.txt` | what is printed                                                        |
| `expected/error.txt`  | `exit N`, then one fragment of the message per line                    |

The expected files were worked out by hand. They are held against the package (evaluation and
goals) and against the oracle, which reads them with the few lines below, not with the package.
The folders of `changes` are described in `support/cases/changes.py` and run by `test_changes.py`,
those of `active` in `support/cases/active.py` and by `test_active.py`.
"""

from __future__ import annotations

import io
import math
import re
import shlex
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from corollary.cli.main import group
from corollary.core.arrow import to_python
from corollary.database.engines import create_engine
from corollary.database.intake.evaluate_once import QueriedProgram, run_once
from corollary.database.options import LOCAL, DatabaseOptions
from corollary.database.program.loaded_program import read_programs
from corollary.database.state import DatabaseState
from corollary.database.writing.inputs import FileLocations
from corollary.warehouse.formats.delimited import print_rows
from oracles.evaluation import OracleError, OracleLimit, Type, evaluate, typed_rows, with_copies
from oracles.records import term_of
from support.cases.evaluation import (
    AMPLE,
    FAILING,
    FOLDERS,
    WORKING,
    Case,
    Row,
    feed,
    name_of,
)

FAMILIES = {
    *("recursion", "negation", "aggregates", "arithmetic", "strings", "nulls", "decimals"),
    *("dates", "types", "choice", "eqrel", "nullary", "syntax", "souffle", "runtime_errors"),
    *("bags", "components", "functors", "library", "preprocessor", "records", "subsumption"),
}
LEAST_CASES = 60
BOUND_GOALS = 3


# ------------------------------------------------------------- reading cases without the package


# ----------------------------------------------------------------------------- the cases themselves


def test_there_are_enough_cases_of_every_family() -> None:
    assert len(FOLDERS) >= LEAST_CASES
    assert len({*FOLDERS}) == len({name_of(folder) for folder in FOLDERS})
    assert {folder.parent.name for folder in FOLDERS} == FAMILIES


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_a_case_says_what_it_shows_and_what_it_expects(folder: Path) -> None:
    program = (folder / "program.dl").read_text("utf-8")
    assert re.match(r"// .+\.\n", program)
    expected = list((folder / "expected").iterdir())
    assert expected
    known = {"program.dl", "oracle.dl", "facts", "stdin.txt", "command.txt", "expected"}
    included = set(re.findall(r'#include "(.*)"', program))
    assert {file.name for file in folder.iterdir()} <= known | included
    if folder in FAILING:
        assert [file.name for file in expected] == ["error.txt"]


# ------------------------------------------------------------------------------------- the package


@pytest.mark.parametrize("bulk", [None, pytest.param("always", marks=pytest.mark.matrix(8))])
@pytest.mark.parametrize("folder", WORKING, ids=name_of)
def test_evaluation_writes_what_is_expected(
    folder: Path,
    bulk: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    feed(folder, monkeypatch)
    program = read_programs([folder / "program.dl"])
    state = DatabaseState(create_engine(DatabaseOptions(LOCAL, bulk=bulk)), limits=AMPLE)
    outcome = run_once(state, program, FileLocations(folder / "facts", tmp_path))
    printed = io.BytesIO()
    for directive, relation, table in outcome.printed:
        print_rows(table, printed, relation, directive)
    said = (
        printed.getvalue()
        + "".join(f"{name}\t{size}\n" for name, size in outcome.sizes.items()).encode()
    )
    assert not capfdbinary.readouterr().out
    written = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    expected = {file.name: file.read_bytes() for file in (folder / "expected").iterdir()}
    assert said == expected.pop("stdout.txt", b"")
    assert written == expected


@pytest.mark.parametrize("folder", FAILING, ids=name_of)
def test_failing_runs_say_why_and_write_nothing(folder: Path, tmp_path: Path) -> None:
    status, *fragments = (folder / "expected" / "error.txt").read_text("utf-8").splitlines()
    command = folder / "command.txt"
    options = shlex.split(command.read_text("utf-8")) if command.exists() else []
    paths = [str(folder / "program.dl"), "-F", str(folder / "facts"), "-D", str(tmp_path / "out")]
    (tmp_path / "out").mkdir()
    result = CliRunner().invoke(group, ["run", *paths, *options])
    assert f"exit {result.exit_code}" == status, result.output
    for fragment in fragments:
        assert fragment in result.stderr
    assert not result.stdout
    assert not list((tmp_path / "out").iterdir())


def literal(value: Any, type_: Type, case: Case) -> str:
    """A value as it is written in a goal."""
    if type_.name in case.records:
        return term_of(value, type_.name, case.records)
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
            return f'"{"".join(escapes.get(character, character) for character in value)}"'
        case datetime():
            return f't"{value.isoformat().replace("+00:00", "Z")}"'
        case date():
            return f'd"{value.isoformat()}"'
        case _:
            return str(value)


def has_literals(row: Row) -> bool:
    return all(not isinstance(value, float) or math.isfinite(value) for value in row)


def goals_of(rows: list[Row], arity: int) -> list[Row]:
    """What is bound in the goals about a relation: a prefix of some of its tuples."""
    usable = [row for row in rows if has_literals(row)]
    firsts = sorted({row[:1] for row in usable}, key=repr)
    step = max(1, len(firsts) // BOUND_GOALS)
    some = firsts[::step][:BOUND_GOALS] if arity > 1 else []
    return [(), *some, *usable[len(usable) // 2 :][:1]]


@pytest.mark.matrix(12)
@pytest.mark.parametrize("folder", WORKING, ids=name_of)
def test_goals_give_the_tuples_that_they_match(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(folder)
    if case.is_cut_short:
        pytest.skip("which tuples a limited relation holds is not determined")
    expected = case.expected()
    program = read_programs([folder / "program.dl"])
    outputs = [each for each in program.directives if each.name == "output"]
    files = {each.file: each.relation for each in case.channels if each.relation in expected}
    for directive in outputs:
        own = files.get(directive.parameter("filename", f"{directive.relation}.csv"))
        if own is None:
            continue  # printed
        rows = list(dict.fromkeys(expected[own]))  # a goal asks for a set
        arity = len(case.types[own])
        for bound in goals_of(rows, arity):
            free = [f"v{place}" for place in range(len(bound), arity)]
            types = case.types[own][: len(bound)]
            values = [literal(value, t, case) for value, t in zip(bound, types, strict=True)]
            goal = f"`{directive.relation}`({', '.join([*values, *free])})"
            feed(folder, monkeypatch)
            asked = QueriedProgram(program, FileLocations(folder / "facts"), AMPLE)
            answers, table = asked.answers(goal)
            wanted = [row[len(bound) :] for row in rows if row[: len(bound)] == bound]
            assert answers.columns == tuple(free), goal
            assert typed_rows(to_python(table)) == typed_rows(wanted), goal


# -------------------------------------------------------------------------------------- the oracle


@pytest.mark.parametrize("folder", WORKING, ids=name_of)
def test_the_oracle_agrees(folder: Path) -> None:
    case = Case(folder)
    found = evaluate(case.text, case.facts())
    for relation, rows in case.expected().items():
        if case.is_cut_short:
            assert set(typed_rows(rows)) <= set(typed_rows(found[relation]))
        else:
            wanted = with_copies(case.text, found, relation)
            assert typed_rows(rows) == typed_rows(wanted), relation
    printed = folder / "expected" / "stdout.txt"
    said = printed.read_text("utf-8").splitlines() if printed.exists() else []
    for relation in case.sizes():
        assert f"{relation}\t{len(with_copies(case.text, found, relation))}" in said


@pytest.mark.parametrize("folder", FAILING, ids=name_of)
def test_the_oracle_fails_too(folder: Path) -> None:
    case = Case(folder)
    is_limit = (folder / "command.txt").exists()
    with pytest.raises(OracleLimit if is_limit else OracleError):
        evaluate(case.text, case.facts(), *((10_000, 20) if is_limit else ()))
