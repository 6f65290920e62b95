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
The folders of `changes` are described in `support/change_cases.py` and run by `test_changes.py`,
those of `active` in `support/active_cases.py` and by `test_active.py`.
"""

from __future__ import annotations

import io
import math
import re
import shlex
import sys
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from corollary.cli.main import group
from corollary.core.arrow import to_python
from corollary.core.engine import Limits
from corollary.database.once import Places, query, run
from corollary.database.program import read_programs
from corollary.warehouse.delimited import print_rows
from oracles.evaluation import Oracle, OracleError, OracleLimit, Type, evaluate, typed_rows
from oracles.parser import parse as parse_for_oracle
from oracles.parser import read_date, read_timestamp
from support.paths import CASES

Row = tuple[Any, ...]

FOLDERS = sorted(
    file.parent
    for file in CASES.glob("*/*/program.dl")
    if not {"changes", "active"}.intersection(file.parts)
)
FAILING = [folder for folder in FOLDERS if (folder / "expected" / "error.txt").exists()]
WORKING = [folder for folder in FOLDERS if folder not in FAILING]
FAMILIES = {
    *("recursion", "negation", "aggregates", "arithmetic", "strings", "nulls", "decimals"),
    *("dates", "types", "eqrel", "nullary", "syntax", "souffle", "runtime_errors"),
}
LEAST_CASES = 60
BOUND_GOALS = 3
AMPLE = Limits(rounds=10_000, tuples=1_000_000, seconds=60)

DIRECTIVE = re.compile(
    r"(?<!\S)\.(input|output|printsize)\s+(\w+(?:\s*,\s*\w+)*)\s*(?:\(([^)]*)\))?"
)
QUALIFIED = re.compile(r"\.decl\s+(\w+)\s*\([^)]*\)\s*(input|output)\b")
PARAMETER = re.compile(r'(\w+)\s*=\s*(?:"([^"]*)"|(\w+))')


def name_of(folder: Path) -> str:
    return f"{folder.parent.name}/{folder.name}"


# ------------------------------------------------------------- reading cases without the package


@dataclass
class Channel:
    """A directive of a case, as the oracle's side sees it."""

    kind: str
    relation: str
    options: dict[str, str] = field(default_factory=dict)

    @property
    def is_file(self) -> bool:
        return self.options.get("IO", "file") == "file"

    @property
    def file(self) -> str:
        suffix = ".facts" if self.kind == "input" else ".csv"
        return self.options.get("filename", self.relation + suffix)

    def rows(self, text: str, types: tuple[Type, ...]) -> list[Row]:
        """The tuples in the text of a facts file."""
        if not types:
            return [() for _ in text.splitlines()]
        records = list(self.records(text))
        if self.options.get("headers") == "true":
            del records[0]
        places = [int(place) for place in self.options.get("columns", "").split(":") if place]
        order = places or range(len(types))
        return [
            tuple(
                value_of(*record[place], type_) for place, type_ in zip(order, types, strict=True)
            )
            for record in records
        ]

    def records(self, text: str) -> list[list[tuple[str, bool]]]:
        """The fields of each record, each with whether it was quoted."""
        is_quoted = self.options.get("rfc4180") == "true"
        delimiter = self.options.get("delimiter", "," if is_quoted else "\t")
        if not is_quoted:
            lines = text.split("\n")[:-1]
            return [[(part, False) for part in line.split(delimiter)] for line in lines]
        records: list[list[tuple[str, bool]]] = [[]]
        pattern = re.compile(rf'(?:"((?:[^"]|"")*)"|([^"\n]*?))({re.escape(delimiter)}|\n)')
        for found in pattern.finditer(text):
            quoted = found[1] is not None
            records[-1].append((found[1].replace('""', '"') if quoted else found[2], quoted))
            if found[3] == "\n":
                records.append([])
        return records[:-1]


def value_of(text: str, is_quoted: bool, type_: Type) -> Any:
    if not text and type_.nullable and not is_quoted:
        return None
    match type_.name:
        case "symbol":
            return text
        case "number" | "unsigned":
            return int(text, 0) if text[:2] in ("0x", "0b") else int(text)
        case "float":
            return float(text)
        case "decimal":
            return Decimal(text).quantize(Decimal(1).scaleb(-type_.scale))
        case "bool":
            return {"true": True, "false": False}[text]
        case "date":
            return read_date(text)
        case _:
            return read_timestamp(text)


class Case:
    """A folder, and what the oracle's parser says about its program."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        own = folder / "oracle.dl"
        self.text = (own if own.exists() else folder / "program.dl").read_text("utf-8")
        self.types = Oracle(parse_for_oracle(self.text), 1, 1).columns
        lines = [line for line in self.text.split("\n") if not line.startswith("//")]
        self.channels = [
            Channel(kind, name.strip(), {key: a or b for key, a, b in PARAMETER.findall(options)})
            for kind, names, options in DIRECTIVE.findall("\n".join(lines))
            for name in names.split(",")
        ]
        self.channels += [Channel(kind, name) for name, kind in QUALIFIED.findall(self.text)]

    def facts(self) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {}
        for each in self.channels:
            if each.kind == "input":
                file = self.folder / "facts" / each.file if each.is_file else self.stdin
                rows = each.rows(file.read_bytes().decode(), self.types[each.relation])
                found.setdefault(each.relation, []).extend(rows)
        return found

    def expected(self) -> dict[str, list[Row]]:
        """The tuples of each relation that is written to a file."""
        return {
            each.relation: each.rows(
                (self.folder / "expected" / each.file).read_bytes().decode(),
                self.types[each.relation],
            )
            for each in self.channels
            if each.kind == "output" and each.is_file
        }

    def sizes(self) -> list[str]:
        return [each.relation for each in self.channels if each.kind == "printsize"]

    @property
    def stdin(self) -> Path:
        return self.folder / "stdin.txt"

    @property
    def is_cut_short(self) -> bool:
        return ".limitsize" in self.text


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


def feed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / "stdin.txt"
    data = file.read_bytes() if file.exists() else b""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize("folder", WORKING, ids=name_of)
def test_evaluation_writes_what_is_expected(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    feed(folder, monkeypatch)
    program = read_programs([folder / "program.dl"])
    outcome = run(program, Places(folder / "facts", tmp_path), AMPLE)
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


def literal(value: Any) -> str:
    """A value as it is written in a goal."""
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
        rows = expected[own]
        arity = len(case.types[own])
        for bound in goals_of(rows, arity):
            free = [f"v{place}" for place in range(len(bound), arity)]
            goal = f"`{directive.relation}`({', '.join([*map(literal, bound), *free])})"
            feed(folder, monkeypatch)
            answers, table = query(program, goal, Places(folder / "facts"), AMPLE)
            wanted = [row[len(bound) :] for row in rows if row[: len(bound)] == bound]
            assert answers.columns == tuple(free), goal
            assert typed_rows(to_python(table)) == typed_rows(wanted), goal


# -------------------------------------------------------------------------------------- the oracle


@pytest.mark.parametrize("folder", WORKING, ids=name_of)
def test_the_oracle_agrees(folder: Path) -> None:
    case = Case(folder)
    found = evaluate(case.text, case.facts())
    for relation, rows in case.expected().items():
        assert len(set(typed_rows(rows))) == len(rows)
        if case.is_cut_short:
            assert set(typed_rows(rows)) <= set(typed_rows(found[relation]))
        else:
            assert typed_rows(rows) == typed_rows(found[relation]), relation
    printed = folder / "expected" / "stdout.txt"
    said = printed.read_text("utf-8").splitlines() if printed.exists() else []
    for relation in case.sizes():
        assert f"{relation}\t{len(found[relation])}" in said


@pytest.mark.parametrize("folder", FAILING, ids=name_of)
def test_the_oracle_fails_too(folder: Path) -> None:
    case = Case(folder)
    is_limit = (folder / "command.txt").exists()
    with pytest.raises(OracleLimit if is_limit else OracleError):
        evaluate(case.text, case.facts(), *((10_000, 20) if is_limit else ()))
