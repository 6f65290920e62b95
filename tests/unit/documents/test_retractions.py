"""Trees that are retracted and replaced, and what becomes of verdicts."""

import random

import pytest

from corollary.documents.document import ActiveDocument
from corollary.documents.errors import ActiveDocumentError, StreamClosedError
from corollary.documents.saved_document import SavedDocument, StreamRow
from corollary.documents.stream_state import StreamProcessor
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


@pytest.mark.slow
@pytest.mark.parametrize("seed", sampled(range(24), 12))
def test_random_retractions_agree(seed: int) -> None:
    assert RetractionRound(seed, 4).run()["instances"] == 24


# --- streams -------------------------------------------------------------------------------------

QUERY = "/r[pay/*$o][ship/*$o]"


def processor() -> StreamProcessor:
    return StreamProcessor({"v": QUERY}, "r[!pay !ship]", is_retractable=True)


def streamed(
    saved: SavedDocument, *rows: tuple[object, ...], by: StreamProcessor | None = None
) -> list[tuple[str, str, float]]:
    """Process a batch, from what is saved, in a process of its own or by one; return the events."""
    state = SavedDocument.from_json(saved.to_json())
    arrived = [StreamRow(*row) for row in rows]  # type: ignore[arg-type]
    events = (by or processor()).process_rows("d", state, arrived)
    for name in SavedDocument.__slots__:
        setattr(saved, name, getattr(state, name))
    kept = ("sure", "retracted", "value", "refused")
    return [(each.op, each.text, each.value) for each in events if each.op in kept]


@pytest.mark.slow
def test_rows_of_a_stream_retract_what_an_earlier_batch_brought() -> None:
    saved = SavedDocument()
    both = ("pay", 1, "pay[o1]", False), ("ship", 1, "ship[o1]", False)
    assert ("sure", '["o1"]', 0.0) in streamed(saved, *both)
    taken = streamed(saved, ("ship", 2, "ship[o1]", False, "retract"))
    assert taken == [("retracted", '["o1"]', 0.0), ("value", "", 0.5)]
    assert streamed(saved, ("ship", 2, "ship[o1]", False, "retract")) == []  # it came again
    replaced = streamed(
        saved,
        ("ship", 3, "ship[o2]", False),
        ("ship", 4, "ship[o1]", True, "replace", "ship[o2]"),  # of a row of the same batch
    )
    assert replaced == [("sure", '["o1"]', 0.0), ("value", "", 1.0)]
    assert streamed(saved, ("pay", 2, None, True, None, "pay[o1]"))[-1] == ("value", "", 0.0)


def test_rows_that_cannot_be_retracted_are_refused() -> None:
    saved = SavedDocument()
    wrong = streamed(
        saved,
        ("ship", 1, "ship[o1]", False, "retract"),
        ("ship", 2, "ship[o1]", False, "upsert"),
        ("ship", 3, "ship[o1]", False, "replace"),
    )
    assert [each[0] for each in wrong].count("refused") == 3
    growing = StreamProcessor({"v": QUERY}, "r[!pay !ship]")
    rows = [StreamRow("pay", 1, "pay[o1]", False), StreamRow("pay", 2, "pay[o1]", False, "retract")]
    events = growing.process_rows("d", SavedDocument(), rows)
    assert [each.seq for each in events if each.op == "refused"] == [2]


@pytest.mark.slow
@pytest.mark.parametrize("seed", sampled(range(12), 12))
def test_streams_with_random_retractions_are_as_documents(seed: int) -> None:
    chance = random.Random(seed)
    document, saved = ActiveDocument.from_terms("r[!pay !ship]"), SavedDocument()
    view = document.view(QUERY)
    log: list[tuple[str, str]] = []
    answers: set[str] = set()
    ours = processor()
    for seq in range(14):
        ours = processor() if seq == 9 else ours  # another process goes on
        if log and chance.random() < 0.4:
            name, tree = log.pop(chance.randrange(len(log)))
            document.retract(name, tree)
            row = (name, seq, tree, False, "retract")
        else:
            name = chance.choice(("pay", "ship"))
            tree = f"{name}[{chance.choice(('o1', 'o2'))}]"
            log.append((name, tree))
            document.add(name, tree)
            row = (name, seq, tree, False, "add")
        for op, text, value in streamed(saved, row, by=ours):
            if op == "value":
                assert value == view.value
            elif op == "sure":
                answers.add(text)
            else:
                answers.remove(text)
        assert answers == {f'["{order}"]' for (order,) in view.sure}
