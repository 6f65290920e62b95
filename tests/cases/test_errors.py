"""Every diagnostic, as text: `tests/cases/errors/*.dl` is checked, its `.err` is what is said.

The statements of `*.sql` are run in an empty database.

With `COROLLARY_ACCEPT=1` the `.err` files are written anew; read their difference before use.
"""

import os
import re
from pathlib import Path

import pytest

from corollary.analysis.check import check, diagnose
from corollary.database.program.loaded_program import diagnose_loading
from corollary.errors import Diagnostic, InputError, Severity, render
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile
from support.diagnostic_codes import CASE_PACKAGES, codes_in
from support.paths import REPOSITORY
from support.sql.findings import sql_findings

FOLDER = REPOSITORY / "tests" / "cases" / "errors"
CASES = sorted((*FOLDER.glob("*.dl"), *FOLDER.glob("*.sql")))


def read(path: Path) -> SourceFile:
    return SourceFile(path.name, path.read_text("utf-8"))


def findings(source: SourceFile) -> tuple[Diagnostic, ...]:
    if source.name.endswith(".sql"):
        return sql_findings(source.text)
    try:
        program = parse(source)
    except InputError as error:
        return error.diagnostics
    found = diagnose(program)
    errors = [finding for finding in found if finding.severity is Severity.ERROR]
    if errors:
        with pytest.raises(InputError) as raised:
            check(program)
        assert list(raised.value.diagnostics) == errors
        return found
    assert check(program).warnings == found
    return diagnose_loading(program)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_errors(path: Path) -> None:
    said = "\n\n".join(render(finding) for finding in findings(read(path))) + "\n"
    expected = path.with_suffix(".err")
    if os.environ.get("COROLLARY_ACCEPT"):
        expected.write_text(said, "utf-8")
    assert said == expected.read_text("utf-8")


def documentation() -> str:
    return (REPOSITORY / "docs" / "diagnostics.md").read_text("utf-8")


def test_every_code_is_documented_once() -> None:
    documented = re.findall(r"^\| (C\d{4}) \|", documentation(), re.MULTILINE)
    assert documented == sorted(codes_in("."))


WRITES = {"C1384"}
"""What only statements that write have: tests/unit/database/sql/test_sql_upserts.py."""


def test_every_code_has_a_case() -> None:
    texts = [path.with_suffix(".err").read_text("utf-8") for path in CASES]
    shown = {code for text in texts for code in re.findall(r"^\w+\[(C\d{4})\]", text, re.MULTILINE)}
    # What other parts find, in queries, in data and at run time, is tested there.
    assert shown - codes_in("rewrite") == codes_in(*CASE_PACKAGES) - codes_in("rewrite") - WRITES


EXAMPLE = re.compile(r"^\| (C\d{4}) \| .* \| `(.*)` \| .* \|$", re.MULTILINE)


@pytest.mark.parametrize(("code", "text"), EXAMPLE.findall(documentation()))
def test_documented_examples(code: str, text: str) -> None:
    source = SourceFile("example.dl", text.replace("\\|", "|"))
    assert code in {finding.code for finding in findings(source)}


@pytest.mark.slow
def test_every_diagnostic_is_a_sentence_with_a_place() -> None:
    for path in CASES:
        for finding in findings(read(path)):
            assert finding.span is not None
            assert finding.message.endswith(".")
            assert finding.message[0].isupper() or finding.message[0] == "`"
