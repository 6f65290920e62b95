"""Trees that are retracted and replaced, and what becomes of verdicts."""

import pytest

from corollary.documents.document import ActiveDocument
from corollary.documents.errors import ActiveDocumentError, StreamClosedError
from corollary.documents.view import Delta
from support.command_line import cli, of_json
from support.generators.document_retractions import RetractionRound
from support.selection import sampled


def test_a_verdict_falls_when_what_it_needs_is_retracted() -> None:
    document = ActiveDocument.from_terms("r[a !f]")
    view = document.view("/r[a][b$x]")
    deltas: list[Delta] = []
    view.on_change(deltas.append)
    document.add("f", "b[c d]")
    document.retract("f", "b[d c]")  # trees have no order
    assert (view.value, view.sure, document.terms()) == (0.5, frozenset(), "r[a !f]")
    document.add("f", "b")
    document.end("f")
    assert view.value == 1
    document.retract("f", "b")  # a function that has ended may correct itself
    assert view.value == 0
    assert [(each.value, each.retracted) for each in deltas] == [
        (1, set()),
        (0.5, {("b",)}),
        (1, set()),
        (0, {("b",)}),
    ]


def test_the_last_update_is_retracted_with_what_came_into_it() -> None:
    document = ActiveDocument.from_terms("r[!f]")
    document.add("f", "a[!g]")
    document.add("f", "a[!g]")
    document.add("g", "b !f")
    document.add("f", "c")
    assert document.terms().count("c") == 3
    document.retract("f", "a[!g]")
    assert document.terms() == "r[!f a[!g b !f c] c]"
    document.retract("f", "c")
    assert document.terms() == "r[!f a[!g b !f]]"
    document.replace("f", "a[!g]", "x")
    assert document.terms() == "r[!f x]"


def test_a_mere_call_is_retracted_with_what_came_beside_it() -> None:
    document = ActiveDocument.from_terms("r[!f]")
    document.apply([("f", "!g"), ("g", "b"), ("f", "c")])
    assert document.terms() == "r[!f !g b c]"
    document.retract("f", "!g")
    assert document.terms() == "r[!f c]"


def test_what_cannot_be_retracted_changes_nothing() -> None:
    document = ActiveDocument.from_terms("r[b !f]")
    document.add("f", "b")
    for wrong in ("c", "b b", "b[c]"):
        with pytest.raises(ActiveDocumentError, match="C1235"):
            document.retract("f", wrong)
    with pytest.raises(ActiveDocumentError, match="C1235"):
        document.apply(retractions=[("f", "b"), ("f", "b")])
    assert document.terms() == "r[b !f b]"
    document.end("f")
    with pytest.raises(StreamClosedError):
        document.replace("f", "b", "c")
    assert document.terms() == "r[b !f b]"
    document.view("/r/x")
    document.gc()
    with pytest.raises(ActiveDocumentError, match="C1234"):
        document.retract("f", "b")


def test_the_command_retracts() -> None:
    match = "documents", "match", "--doc", "r[!f]", "--query", "/r/b$x", "--update", "f=b"
    found = of_json(cli(*match, "--retract", "f=b", "--end", "f", "--format", "json"))
    assert (found["value"], found["sure"]) == (0, [])


@pytest.mark.parametrize("seed", sampled(range(24), 6))
def test_random_retractions_agree(seed: int) -> None:
    assert RetractionRound(seed, 4).run()["instances"] == 24
