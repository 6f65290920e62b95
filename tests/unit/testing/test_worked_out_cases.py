"""The cases of `tests/cases` that were worked out by hand, as cases of `corollary test`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from corollary.testing.case_files import read_cases
from corollary.testing.coverage import Coverage
from corollary.testing.run_case import run_case
from support.cases.active import ROOT as ACTIVE
from support.cases.active import ActiveCase
from support.cases.changes import ROOT as CHANGES
from support.cases.changes import TUPLE, ChangeCase
from support.paths import CASES

FOLDERS = sorted(folder for root in (ACTIVE, CHANGES) for folder in root.iterdir())


def sections(folder: Path) -> Iterator[str]:
    """Yield the lines of a file of cases that says what the files of a folder say."""
    case = ActiveCase(folder) if folder.parent == ACTIVE else ChangeCase(folder)
    derived = case.derived if isinstance(case, ActiveCase) else [*heads(case.text)]
    watched = [name for name in derived if f"+rule {name}(" not in text_of(folder)]
    yield f"// program: program.dl\n// case: {folder.name}"
    changes = case._blocks("changes.txt")
    for change, expected in zip(changes, case._blocks("expected.txt"), strict=True):
        yield "// when"
        for line in change:
            if (rule := re.match(r"([+-])rule (.*)", line)) is not None:
                yield f"// {'when' if rule[1] == '+' else 'remove'}\n{rule[2]}"
            elif line not in ("nothing", "together"):
                yield "// when"
                yield from (f"{each.group()}." for each in TUPLE.finditer(line))
        aborted = [
            each.split("(")[0].removeprefix("abort ") for each in expected if "abort" in each
        ]
        if aborted:
            yield f"// refused: {aborted[0]}"
        yield f"// added {' '.join(watched)}\n// removed {' '.join(watched)}\n// then"
        for line in expected:
            if line.startswith(("+", "-")):  # of base relations, it says what triggers do besides
                found = TUPLE.finditer(line)
                yield from (f"{each.group()}." for each in found if each[2] in derived)
        alerts = [TUPLE.sub("", f"+{each[6:]}").strip() for each in expected if "alert " in each]
        yield from (f"// alert: {each}" for each in alerts)
        if not alerts:
            yield "// no alerts"


def heads(text: str) -> dict[str, None]:
    return dict.fromkeys(re.findall(r"(?m)^(\w+)\(.*(?::-|:=)", text))


def text_of(folder: Path) -> str:
    return (folder / "changes.txt").read_text("utf-8")


def is_said(folder: Path) -> bool:
    """Whether a file of cases can say what is expected: no errors and limits."""
    return re.search(r"(?m)^(?:error|limit) ", (folder / "expected.txt").read_text("utf-8")) is None


@pytest.mark.matrix(4)
@pytest.mark.parametrize(
    "folder", [*filter(is_said, FOLDERS)], ids=lambda each: str(each.relative_to(CASES))
)
def test_they_pass(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "program.dl").write_text((folder / "program.dl").read_text("utf-8"), "utf-8")
    path = tmp_path / "it.test.dl"
    path.write_text("\n".join(sections(folder)), "utf-8")
    (case,) = read_cases(path)
    assert list(run_case(case).lines()) == []
    coverage = Coverage()
    assert list(run_case(case, coverage).lines()) == []
    assert any(each.is_covered for each in coverage.rules)
