"""What is refused, as text: `tests/cases/sql_errors/*.sql`, and `.err` with what is said.

With `COROLLARY_ACCEPT=1` the `.err` files are written anew; read their difference before use.
"""

import os
import re
from pathlib import Path

import pytest

from corollary.errors import InputError, render
from support.diagnostic_codes import codes_in
from support.paths import REPOSITORY
from support.query_text import bind_text

CASES = sorted((REPOSITORY / "tests" / "cases" / "sql_errors").glob("*.sql"))
PARAMETERS = {"k": 5, "odd": object()}


def refusal(query: str, name: str) -> InputError:
    with pytest.raises(InputError) as raised:
        bind_text(query, PARAMETERS, name)
    return raised.value


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_errors(path: Path) -> None:
    queries = path.read_text("utf-8").strip().split("\n\n")
    said = ""
    for query in queries:
        error = refusal(query, path.name)
        for found in error.diagnostics:
            assert found.span is not None
            assert found.note is not None, found.message
            assert found.message.endswith(".")
            assert found.message[0].isupper() or found.message[0] == "`"
        said += "\n\n".join(render(found) for found in error.diagnostics) + "\n\n"
    expected = path.with_suffix(".err")
    if os.environ.get("COROLLARY_ACCEPT"):
        expected.write_text(said, "utf-8")
    assert said == expected.read_text("utf-8")


def test_every_code_has_a_case() -> None:
    texts = [path.with_suffix(".err").read_text("utf-8") for path in CASES]
    shown = {code for text in texts for code in re.findall(r"^\w+\[(C\d{4})\]", text, re.MULTILINE)}
    binding = {code for code in codes_in("frontends/sql") if code < "C1330"}
    assert binding == shown
