"""Cures that work: what a note says to do is done, and the finding is gone.

The notes of `tests/cases/errors` that say what to write instead of the place they point at are
applied as they are. The others are in `tests/cases/cures`, a file for each code: a part of the
note, what of it the cured program has (nothing if the note is prose), the program before and after.
Those of C13 are statements in SQL.
"""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

import pytest

from corollary.database.program.loaded_program import diagnose_loading
from corollary.errors import Diagnostic, InputError, Severity
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile, Span
from support.diagnostic_codes import CASE_PACKAGES, codes_in
from support.paths import REPOSITORY
from support.sql.findings import sql_findings

ERRORS = sorted((REPOSITORY / "tests" / "cases" / "errors").glob("*.dl"))


def findings(text: str, code: str = "") -> tuple[Diagnostic, ...]:
    if code.startswith("C13"):
        return sql_findings(text)
    source = SourceFile("program.dl", text)
    try:
        return diagnose_loading(parse(source))
    except InputError as error:
        return error.diagnostics


# --- notes that are applied as they are -----------------------------------------------------------

REPLACEMENT = re.compile(r"^(?:convert it|round it): `(.+)`$|^write `([^`]+)`$")
MISSPELLED = re.compile(r"did you mean `(.+)`\?$")
NAMED = re.compile(r"`([^`]+)`")
WRITTEN = {"C0301", "C0302", "C0303", "C0304", "C0305"}
"""The codes whose note is what to write in the place that the finding points at."""


def identity(found: Diagnostic) -> tuple[str, str, int]:
    return found.code, found.message, found.span.line if found.span else 0


def likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one.lower(), other.lower()).ratio()


def replaced(text: str, span: Span, by: str) -> str:
    lines = text.split("\n")
    assert span.line == span.end_line
    line = lines[span.line - 1]
    lines[span.line - 1] = line[: span.column - 1] + by + line[span.end_column - 1 :]
    return "\n".join(lines)


def applied(text: str, found: Diagnostic) -> list[str]:
    """Return the text with the cure of a finding, in each place of the line that it may mean.

    There is none if the note is not a replacement.
    """
    if found.note is None or found.span is None:
        return []
    near = MISSPELLED.search(found.note)
    written = REPLACEMENT.match(found.note)
    if near is None and (written is None or found.code not in WRITTEN):
        return []
    groups = (*(near.groups() if near else ()), *(written.groups() if written else ()))
    new = next(each for each in groups if each)
    converted = re.fullmatch(r"(?:to_)\w+\((.+?)(?:, \d+)?\)", new)
    named = [each for each in NAMED.findall(f"{found.message} {found.note}") if each != new]
    old = converted[1] if converted else max(named, key=lambda each: likeness(each, new))
    word = re.compile(rf"(?<!\w){re.escape(old)}(?!\w)" if old[-1].isalnum() else re.escape(old))
    line = text.split("\n")[found.span.line - 1]
    file, number = found.span.file, found.span.line
    spans = [Span(file, number, m.start() + 1, number, m.end() + 1) for m in word.finditer(line)]
    return [replaced(text, span, new) for span in spans]


def is_cure(cured: str, found: Diagnostic) -> bool:
    """Return whether a text no longer has a finding, nor a syntax error instead."""
    left = findings(cured)
    has_new = any(each.code == "C0101" for each in left) and found.code != "C0101"
    return not has_new and identity(found) not in map(identity, left)


@pytest.mark.parametrize("path", ERRORS, ids=lambda path: path.stem)
def test_what_a_note_says_to_write_is_right(path: Path) -> None:
    text = path.read_text("utf-8")
    for found in findings(text):
        ways = applied(text, found)
        assert not ways or any(is_cure(each, found) for each in ways), found


# --- cases ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cure:
    """A program with a finding, a part of its note, and the program after the cure.

    Attributes:
        uses: what the note quotes, and the cured program has; empty if the note is prose.
    """

    code: str
    wrong: str
    note: str
    cured: str
    uses: str = ""


CASE = re.compile(r"==== (.+)\n==== ?(.*)\n((?s:.+?))\n==== becomes\n((?s:.+?))\n(?=\n====|\Z)")
CURES = [
    Cure(path.stem, wrong, note, cured, uses)
    for path in sorted((REPOSITORY / "tests" / "cases" / "cures").glob("*.txt"))
    for note, uses, wrong, cured in CASE.findall(path.read_text("utf-8"))
]


@pytest.mark.parametrize("cure", CURES, ids=lambda cure: f"{cure.code}-{cure.note[:20]}")
def test_cures(cure: Cure) -> None:
    found = [each for each in findings(cure.wrong, cure.code) if each.code == cure.code]
    assert found, f"{cure.wrong}\n{findings(cure.wrong, cure.code)}"
    notes = [each.note or "" for each in found]
    assert any(cure.note in note for note in notes), notes
    assert not cure.uses or any(cure.uses in note for note in notes if cure.note in note), notes
    assert cure.uses in cure.cured
    left = [
        each
        for each in findings(cure.cured, cure.code)
        if each.code == cure.code or each.severity is Severity.ERROR
    ]
    assert not left, f"{cure.cured}\n{left}"


UNTRIED = {
    "C1384",  # statements that write are no programs: tests/support/cures/calls.py
    "C1376",  # points in history need a warehouse: tests/unit/database/sql/test_sql.py
    "C0104",  # files that cannot be included: tests/unit/frontends/test_preprocessor.py
    "C0503",  # found after the checks, by the rewriting
    "C1030",  # says what ends it, not how to change the program
}
"""The codes of programs whose cures are not tried here."""


def test_every_code_of_programs_has_a_cure_that_was_tried() -> None:
    tried = {cure.code for cure in CURES}
    written = codes_in(*CASE_PACKAGES)
    assert written - tried == UNTRIED & written
