"""Streams of documents with times, with types, and of several documents that are one collection."""

import random
from collections.abc import Iterator, Mapping

import pytest

from corollary.documents.active_collection import ActiveCollection
from corollary.documents.document import ActiveDocument
from corollary.documents.errors import ActiveDocumentError
from corollary.documents.saved_document import DocumentEvent, SavedDocument, StreamRow
from corollary.documents.stream_state import StreamProcessor
from support.selection import examples, sampled

RECENT = "/r/pay arrived $t [*$o] where now - $t <= 10s return $o"
SOON = "/r[pay arrived $p [*$o]][ship arrived $s [*$o]] where $s >= $p and $s - $p <= 5s return $o"


def row(function: str, seq: int, data: str | None = None, **options: object) -> StreamRow:
    return StreamRow(function, seq, data, False)._replace(**options)  # type: ignore[arg-type]


class Follower:
    """Applies batches by turns in two processes, from what is saved; keeps what events say."""

    def __init__(self, processors: Iterator[StreamProcessor]) -> None:
        self.processors = [next(processors), next(processors)]
        self.saved = SavedDocument()
        self.answers: dict[str, set[str]] = {}
        self.values: dict[str, float] = {}
        self.since: dict[tuple[str, str], str] = {}

    def batch(self, *rows: StreamRow, now: str = "") -> list[DocumentEvent]:
        self.processors.reverse()
        self.saved = SavedDocument.from_json(self.saved.to_json())
        events = self.processors[0].process_rows("d", self.saved, rows, now)
        for each in events:
            if each.op == "sure":
                assert each.text not in self.answers.setdefault(each.view, set())
                self.answers[each.view].add(each.text)
            elif each.op == "retracted":
                self.answers[each.view].remove(each.text)
            elif each.op == "value":
                assert self.values.get(each.view, -1) == each.before
                self.values[each.view] = each.value
            elif each.op == "waits":
                self.since[each.view, each.text] = each.since
            elif each.op == "settled":
                assert self.since.pop((each.view, each.text)) == each.since
        return events


def followed(views: Mapping[str, str], *arguments: object, **options: object) -> Follower:
    def made() -> Iterator[StreamProcessor]:
        while True:
            yield StreamProcessor(views, *arguments, **options)  # type: ignore[arg-type]

    return Follower(made())


def refused(events: list[DocumentEvent]) -> list[tuple[str, int]]:
    return [(each.view, each.seq) for each in events if each.op == "refused"]


# --- times ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_leaves_a_window_is_retracted_between_batches() -> None:
    types = {"pay": ["pay"], "ship": ["ship"]}
    stream = followed({"recent": RECENT, "soon": SOON}, "r[!pay !ship]", types=types)
    stream.batch(row("pay", 1, "pay[o1]", at="100"), row("pay", 2, "pay[o2]", at="104"))
    assert stream.answers == {"recent": {'["o1"]', '["o2"]'}}
    # Rows come in the order of their times, whatever that of their numbers is.
    events = stream.batch(
        row("ship", 1, "ship[o2]", at="109"), row("ship", 2, "ship[o1]", at="106")
    )
    assert stream.answers["soon"] == {'["o2"]'}
    assert not refused(events)
    late = stream.batch(row("pay", 3, "pay[o3]", at="90"), row("pay", 4, "pay[o4]", at="soon"))
    assert sorted(refused(late)) == [("pay", 3), ("pay", 4)]
    stream.batch(row("", 5, at="112"))  # only time passes
    assert stream.answers["recent"] == {'["o2"]'}
    stream.batch(row("pay", 6, is_end=True, at="120"))
    assert (stream.answers["recent"], stream.values) == (set(), {"recent": 0, "soon": 1})
    assert stream.saved.time == "120"


@pytest.mark.slow
def test_a_boolean_view_has_the_empty_answer() -> None:
    """It is there as long as the value is 1, and reported once, whatever comes later."""
    views = {"paid": "/r/pay", "late": "/r/pay arrived $t where now - $t <= 10s return ()"}
    stream = followed(views, "r[!pay]", types={"pay": ["pay"]})
    stream.batch(row("", 1, at="90"))
    assert (stream.answers, stream.values) == ({}, {"paid": 0.5, "late": 0.5})
    stream.batch(row("pay", 1, "pay[o1]", at="100"))
    assert stream.answers == {"paid": {"[]"}, "late": {"[]"}}
    stream.batch(row("pay", 2, "pay[o2]", at="105"))
    stream.batch(row("pay", 3, is_end=True, at="120"))
    assert stream.answers == {"paid": {"[]"}, "late": set()}
    assert stream.values == {"paid": 1, "late": 0}


def test_time_passes_by_the_clock() -> None:
    stream = followed({"recent": RECENT}, "r[!pay]", is_clocked=True)
    stream.batch(row("pay", 1, "pay[o1]"), now="2026-05-01T09:00:00")
    assert stream.processors[0].next_turn("d") == 1777626010
    stream.batch(now="2026-05-01T09:00:10")
    assert stream.answers["recent"] == {'["o1"]'}
    stream.batch(now="2026-05-01T09:00:10.001")
    assert (stream.answers["recent"], stream.values) == (set(), {"recent": 0.5})
    assert stream.since == {("recent", "pay"): "2026-05-01T09:00:00"}


def test_since_when_a_view_waits() -> None:
    types = {"pay": ["pay"], "ship": ["ship"]}
    stream = followed({"v": "/r[pay/*$o][ship/*$o]"}, "r[!pay !ship]", types=types)
    stream.batch(row("pay", 1, "pay[o1]"), now="2026-05-01T09:00")  # rows have no times
    assert set(stream.since.values()) == {"2026-05-01T09:00"}
    stream.batch(row("pay", 2, "pay[o2]", is_end=True, at="2026-05-02T10:00"))
    assert stream.since == {("v", "ship"): "2026-05-01T09:00"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", sampled(range(20), 20))
def test_streams_with_times_are_as_documents(seed: int) -> None:
    chance = random.Random(seed)
    views = {"recent": RECENT, "soon": SOON}
    stream = followed(views, "r[!pay !ship]")
    document = ActiveDocument.from_terms("r[!pay !ship]")
    expected = {name: document.view(query) for name, query in views.items()}
    soon = set()
    clock = 0
    for seq in range(examples(6, 12)):
        clock += chance.randint(0, 4)
        name = chance.choice(("pay", "ship", ""))
        tree = f"{name}[o{chance.randrange(3)}]" if name else None
        document.apply([(name, tree)] if tree else [], at=clock)
        stream.batch(row(name, seq, tree, at=str(clock)))
        soon |= expected["soon"].sure  # what was reported is not forgotten
        for view, answers in (("recent", expected["recent"].sure), ("soon", soon)):
            assert stream.answers.get(view, set()) == {f'["{o}"]' for (o,) in answers}, seq
        assert stream.values["recent"] == expected["recent"].value


# --- types ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_rows_that_do_not_fit_the_type_of_the_document_are_refused_alone() -> None:
    views = {
        "paid": "/r/paid",
        "both": "/r[paid][bill]",
        "some": "/r[paid or bill]",
        "n": "/r/n/*$x",
    }
    type_ = "r[(paid | bill), n[ANY*]*]"
    stream = followed(views, "r[!f !g]", document_type=type_)
    stream.batch(row("g", 1))
    assert stream.values == {"paid": 0.5, "both": 0, "some": 1, "n": 0.5}
    assert stream.answers == {"some": {"[]"}}
    rows = row("f", 1, "bill"), row("f", 2, "paid"), row("g", 2, "n[x]"), row("g", 3, "n[y]")
    assert refused(stream.batch(*rows)) == [("f", 2)]
    assert stream.values == {"paid": 0, "both": 0, "some": 1, "n": 1}
    assert stream.answers == {"some": {"[]"}, "n": {'["x"]', '["y"]'}}
    assert refused(stream.batch(row("f", 4, "bill", is_end=True))) == [("f", 4)]
    with pytest.raises(ActiveDocumentError, match="C1242"):
        StreamProcessor(views, "r[paid bill]", document_type=type_)
    without = followed(views, document_type=type_)
    assert refused(without.batch(row("", 0, "r[paid bill]"))) == [("", 0)]


# --- several documents ---------------------------------------------------------------------------

JOINT = 'doc("orders")/shop/order/*$o and doc("stock")/store/*$o'


@pytest.mark.slow
def test_documents_of_a_collection_are_joined() -> None:
    templates = {"orders": "shop[!web]"}
    stream = followed({"v": JOINT}, templates, types={"web": ["order"]})
    stream.batch(row("orders:web", 1, "order[o1]"))
    assert stream.values == {}  # the stock is not there yet
    stream.batch(row("stock:", 1, "store[o2 !carrier]"), row("stock:carrier", 1, "o1"))
    assert (stream.answers, stream.values) == ({"v": {'["o1"]'}}, {"v": 1})
    stream.batch(row("orders:web", 2, "order[o2]"), row("orders:web", 3, "late"))
    assert stream.answers == {"v": {'["o1"]', '["o2"]'}}
    assert stream.since.keys() == {("v", "orders:web"), ("v", "stock:carrier")}
    stream.batch(row("orders:web", 4, is_end=True), row("stock:carrier", 2, is_end=True))
    assert not stream.since
    assert stream.saved.names == ["orders", "stock"]


@pytest.mark.slow
def test_documents_come_to_a_collection_later() -> None:
    stream = followed({"v": "collection()$d/shop/late/*$o"}, {}, types={"web": ["late"]})
    stream.batch(row("north:", 1, "shop[!web]"), row("north:web", 1, "late[o1]"))
    stream.batch(row("south:", 1, "shop[!web]"), row("south:web", 1, "late[o2]"))
    assert stream.answers == {"v": {'["north", "o1"]', '["south", "o2"]'}}
    assert refused(stream.batch(row("south:web", 2, "paid"))) == [("south:web", 2)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", sampled(range(12), 12))
def test_streams_of_collections_are_as_documents(seed: int) -> None:
    chance = random.Random(seed)
    texts = {"orders": "shop[!web]", "stock": "store[!carrier !web]"}
    stream = followed({"v": JOINT}, texts, is_retractable=chance.random() < 0.5)
    documents = ActiveCollection(texts)
    view = documents.view(JOINT)
    for seq in range(examples(5, 10)):
        name = chance.choice(("orders:web", "stock:carrier", "stock:web"))
        leaf = f"o{chance.randrange(3)}"
        tree = f"order[{leaf}]" if name == "orders:web" else leaf
        documents.add(name, tree)
        stream.batch(row(name, seq, tree))
        assert stream.answers.get("v", set()) == {f'["{order}"]' for (order,) in view.sure}
        assert stream.values["v"] == view.value
