"""What SQL cannot be given exactly, or must not be given at all, is refused, with its position."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import corollary
from corollary.errors import InputError

FOLDER = Path(__file__).parent
MARK = "«"


def blocks(name: str) -> list[str]:
    """Return the statements of a file, without comments, in their order."""
    text = (FOLDER / name).read_text("utf-8")
    found = (re.sub(r"(?m)^-- .*\n?", "", each).strip() for each in text.split("\n\n"))
    return [each for each in found if each]


@pytest.fixture(scope="module")
def database() -> corollary.Database:
    with corollary.open(None, engine="local") as opened:
        opened.sql((FOLDER / "tables.sql").read_text("utf-8"))
        with opened.transaction() as transaction:
            transaction.insert("t", [(1, 2, 3, "a")])
            transaction.insert("u", [(1, 2), (1, 2)])
        yield opened


@pytest.mark.parametrize("marked", blocks("refusals.sql"))
def test_a_refusal_has_position_reason_and_cure(database: corollary.Database, marked: str) -> None:
    before, _, after = marked.partition(MARK)
    program = database.program
    with pytest.raises(InputError) as caught:
        database.sql(before + after)
    error = caught.value
    assert database.program == program
    diagnostic = error.diagnostics[0]
    assert re.fullmatch(r"C\d{4}", diagnostic.code)
    assert diagnostic.span is not None
    found = diagnostic.span.line, diagnostic.span.column
    assert found == (before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1), str(error)
    assert diagnostic.message
    assert diagnostic.note


@pytest.mark.parametrize("question", blocks("questions_refused.sql"))
def test_a_question_reads_relations_and_nothing_else(
    database: corollary.Database, question: str
) -> None:
    held = {name: sorted(database.relation(name).rows()) for name in ("t", "u")}
    database.grant("guest", "t", "u")
    with database.reader("guest") as reader, pytest.raises(InputError):
        reader.sql(question).rows()
    assert {name: sorted(database.relation(name).rows()) for name in held} == held
