"""A key on answers: what it promises, what is collected for it, and what is refused."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

import pytest

from corollary.documents import stream_state
from corollary.documents.answers.unknown import ANY
from corollary.documents.document import ActiveDocument
from corollary.documents.errors import QuerySyntaxError
from corollary.documents.queries.parse import parse_query
from corollary.documents.queries.xquery import xquery_of
from corollary.documents.saved_document import SavedDocument, StreamRow
from corollary.documents.stream_state import StreamProcessor
from support.command_line import INPUT, cli, of_json
from support.generators.document_keys import Keyed
from support.selection import examples

JOINED = "/shop[payment[order/*$o][at/*$p]][delivery[order/*$o][at/*$d]]"
ORDERS = f"{JOINED} return $o, $p, $d key $o"
EMPTY = "shop[!bank !carrier]"
TYPES = {"bank": ["payment"], "carrier": ["delivery"]}


def shop(text: str = EMPTY) -> ActiveDocument:
    return ActiveDocument.from_terms(text, types=TYPES)


def alert(kind: str, order: str, at: int) -> str:
    return f'{kind}[order["{order}"] at["{at}"]]'


# ---------------------------------------------------------------------------------------- a promise


@pytest.mark.slow
def test_an_order_goes_when_it_is_answered() -> None:
    document = shop()
    view = document.view(ORDERS)
    document.add("bank", alert("payment", "o1", 100))
    document.add("bank", alert("payment", "o2", 200))
    document.gc()
    waiting = document.terms()
    assert all(order in waiting for order in ("o1", "o2"))
    document.add("carrier", alert("delivery", "o1", 900))
    assert view.sure == {("o1", "100", "900")}
    document.gc()
    assert "o1" not in document.terms()
    assert "o2" in document.terms()
    document.add("carrier", alert("delivery", "o2", 950))
    assert view.sure == {("o1", "100", "900"), ("o2", "200", "950")}
    assert document.gc().kept == 3
    assert document.terms() == EMPTY


def test_without_a_key_nothing_of_an_order_goes() -> None:
    document = shop()
    document.view(JOINED)
    document.add("bank", alert("payment", "o1", 100))
    document.add("carrier", alert("delivery", "o1", 900))
    assert document.gc().dropped == 0


@pytest.mark.slow
def test_possible_answers_and_values_are_as_without() -> None:
    documents = [shop(), shop()]
    views = [each.view(query) for each, query in zip(documents, (ORDERS, JOINED), strict=True)]
    for document in documents:
        document.add("bank", alert("payment", "o1", 100))
        document.add("carrier", alert("delivery", "o1", 900))
    one, other = views
    assert (one.value, one.sure) == (other.value, other.sure)
    assert one.possible() == other.possible()
    assert one.possible() == {(ANY, ANY, ANY), ("o1", "100", ANY), ("o1", ANY, "900")}


def test_candidates_and_usefulness_follow() -> None:
    text = "r[a[1] b[7 !f]]"
    with_key = ActiveDocument.from_terms(text).view("/r[a/*$x][b/*$y] key $x")
    without = ActiveDocument.from_terms(text).view("/r[a/*$x][b/*$y]")
    assert (with_key.candidates, with_key.useful()) == (frozenset(), frozenset())
    assert (without.candidates, without.useful()) == ({"f"}, {"f"})
    other = ActiveDocument.from_terms(text).view("/r[a/*$x][b/*$y] key $y")
    assert other.useful() == {"f"}


def test_an_unknown_key_is_that_of_no_answer() -> None:
    document = ActiveDocument.from_terms('r["?" !f] ')
    view = document.view("/r[*$x][.//*$y] key $x")
    assert view.sure == {("?", "?")}
    assert (ANY, "?") in view.possible()
    assert view.candidates == {"f"}


def test_a_key_that_is_a_label_of_the_query() -> None:
    document = ActiveDocument.from_terms("r[a b c[1 !f]]")
    view = document.view("/r[a$x or b$x][c/*$y] key $x")
    assert view.sure == {("a", "1"), ("b", "1")}
    assert view.candidates == frozenset()
    assert document.gc().closed == ("f",)
    assert document.terms() == "r"


def test_alternatives_share_their_keys() -> None:
    document = ActiveDocument.from_terms("r[a[1] b[c[2] !f]]")
    view = document.view("/r[a/*$x][b/c/*$y] | /r[a/*$x][b/d/*$y] return $x, $y key $x")
    assert view.sure == {("1", "2")}
    assert view.candidates == frozenset()
    document.add("f", "d[3]")  # breaks the promise
    assert view.sure == {("1", "2"), ("1", "3")}


def test_a_key_of_several_variables() -> None:
    document = ActiveDocument.from_terms("r[a[1 2] b[5 !f] c[7 !g]]")
    view = document.view("/r[a/*$x][b/*$y][c/*$z] key $x, $y")
    assert view.candidates == {"f", "g"}  # !g: for another $y
    document.end("f")
    assert view.candidates == frozenset()


@pytest.mark.slow
def test_explanations_name_the_answer_with_the_key() -> None:
    document = shop()
    view = document.view(ORDERS)
    document.add("bank", alert("payment", "o1", 100))
    assert view.explain(("o1", "100", ANY)).same_key is None
    assert str(view.explain(("o1", "100", ANY))) == "(o1, 100, ?) waits for !carrier"
    document.add("carrier", alert("delivery", "o1", 900))
    found = view.explain(("o1", "100", ANY))
    assert (found.value, found.same_key) == (0.5, ("o1", "100", "900"))
    assert str(found) == "(o1, 100, ?) is not waited for: (o1, 100, 900) has its key"
    assert view.explain((ANY, ANY, ANY)).same_key is None
    document.gc()
    assert str(view.explain(("o1", "100", "900"))) == "(o1, 100, 900) is sure: it was reported"


# ---------------------------------------------------------------------------------- between batches


def answers(
    keeper: StreamProcessor, kept: SavedDocument, seq: int, arrivals: Iterable[tuple[str, str]]
) -> list[str]:
    rows = [StreamRow(name, seq + at, data, False) for at, (name, data) in enumerate(arrivals)]
    events = keeper.process_rows("north", kept, rows)
    assert {each.op for each in events} <= {"sure", "value", "waits", "settled"}
    return [each.text for each in events if each.op == "sure"]


@pytest.fixture(params=["open", "anew"])
def taking(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether a document stays open between batches; garbage is collected behind each of them."""
    monkeypatch.setattr(stream_state, "GC_MIN_GROWTH_NODES", 0)
    return str(request.param)


def keeper_of(old: StreamProcessor | None, taking: str) -> StreamProcessor:
    return (
        old
        if old is not None and taking == "open"
        else StreamProcessor({"v": ORDERS}, EMPTY, (), TYPES)
    )


@pytest.mark.slow
def test_orders_through_batches_are_told_once_and_collected(taking: str) -> None:
    kept, keeper = SavedDocument(), None
    told: list[str] = []
    for batch in range(4):
        keeper = keeper_of(keeper, taking)
        rows = [("bank", alert("payment", f"o{batch}.{at}", at)) for at in range(10)]
        if batch:
            rows += [
                ("carrier", alert("delivery", f"o{batch - 1}.{at}", at + 50)) for at in range(10)
            ]
        told += answers(keeper, kept, batch * 100, rows)
        assert kept.document is not None
        assert kept.document.count("payment") == 10
        assert "delivery" not in kept.document
    assert len(told) == len(set(told)) == 30
    assert min(told) == json.dumps(["o0.0", "0", "50"])


@pytest.mark.slow
def test_a_second_delivery_harms_nothing_else(taking: str) -> None:
    kept = SavedDocument()
    keeper = keeper_of(None, taking)
    both = [("bank", alert("payment", "o1", 1)), ("carrier", alert("delivery", "o1", 2))]
    assert answers(keeper, kept, 0, both) == ['["o1", "1", "2"]']
    assert kept.document == EMPTY
    keeper = keeper_of(keeper, taking)
    again = [("carrier", alert("delivery", "o1", 3)), ("bank", alert("payment", "o2", 4))]
    assert answers(keeper, kept, 10, again) == []
    assert kept.document is not None
    assert kept.document.count("o1") == 1  # it waits for a payment that does not come
    keeper = keeper_of(keeper, taking)
    more = [("carrier", alert("delivery", "o2", 5))]
    assert answers(keeper, kept, 20, more) == ['["o2", "4", "5"]']


@pytest.mark.slow
def test_a_second_delivery_in_time_is_told(taking: str) -> None:
    kept = SavedDocument()
    rows = [
        ("bank", alert("payment", "o1", 1)),
        ("carrier", alert("delivery", "o1", 2)),
        ("carrier", alert("delivery", "o1", 3)),
    ]
    found = answers(keeper_of(None, taking), kept, 0, rows)
    assert found == ['["o1", "1", "2"]', '["o1", "1", "3"]']
    assert kept.document == EMPTY


# ------------------------------------------------------------------------------------------- syntax


def test_key_is_a_word_at_the_end_only() -> None:
    query = parse_query("/key[key$key/key][*$y] return $y, $key key $key")
    assert (query.outputs, query.key) == (("y", "key"), ("key",))
    assert parse_query("/r/key/*$x").key == ()
    assert parse_query("/r[a$x][b$y] key $y, $x").key == ("y", "x")
    assert parse_query("/r[a$x][b$y] where $x = $y key $y").key == ("y",)


@pytest.mark.parametrize(
    ("query", "code", "column", "text"),
    [
        ("/r[a$x][b$y] return $x key $y", "C1207", 28, r"`\$y` is in the key"),
        ("/r[a$x][b$y] key $x, $y, $x", "C1208", 26, r"`\$x` is in the key twice"),
        ("/r[a$x] return () key $x", "C1209", 23, "yes or no"),
        ("/r[a$x] key $z", "C1204", 13, r"no variable `\$z`"),
        ("/r[a] key $z", "C1204", 11, r"no variable `\$z`"),
        ("/r[a$x] key", "C1200", 12, "`key` lists variables"),
        ("/r[a$x] key 'v'", "C1200", 13, "`key` lists variables"),
        ("/r[a$x] key $x return $x", "C1200", 16, "`return` is not expected"),
        ("/r[a$x] keys $x", "C1200", 9, "`keys` is not expected"),
    ],
)
def test_wrong_keys(query: str, code: str, column: int, text: str) -> None:
    with pytest.raises(QuerySyntaxError, match=text) as caught:
        parse_query(query)
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert found.span is not None
    assert (found.span.line, found.span.column) == (1, column)
    assert found.note


def test_a_query_with_a_key_has_no_xquery() -> None:
    with pytest.raises(QuerySyntaxError, match="C1260"):
        xquery_of("/r/*$x key $x")


def test_the_command_knows_keys() -> None:
    document = "r[a[1] b[7 !f]]"
    query = "/r[a/*$x][b/*$y] key $x"
    arguments = ("documents", "match", "--doc", document, "--format", "json")
    found = of_json(cli(*arguments, "--query", query, "--useful", "--gc"))
    assert (found["useful"], found["closed"], found["kept_nodes"]) == ([], ["f"], 1)
    found = of_json(cli(*arguments, "--query", query, "--explain"))
    assert found["explanations"][1] == "(1, ?) is not waited for: (1, 7) has its key"
    refused = cli(*arguments, "--query", "/r[a/*$x] return () key $x")
    assert refused.exit_code == INPUT
    assert "C1209" in refused.output
    assert "key $" in cli("documents", "--help").output


# ------------------------------------------------------------------------------------------- random


@pytest.mark.slow
def test_futures_agree() -> None:
    seeds, documents = examples([1, 3], [*range(14)]), examples(1, 3)
    found = sum((Keyed(seed).run(documents) for seed in seeds), start=Counter())
    assert found["nodes dropped for the key"] >= examples(1, 10)
    assert min(found["kept"], found["broken"], found["new answers"]) > 7 * len(seeds)
    assert found["useless in a future"] > 7 * len(seeds)


@pytest.mark.slow
def test_a_promise_that_nobody_made_is_noticed() -> None:
    rounds = (Keyed(seed, key=("x",), judged=("y",)).run(2) for seed in range(5, 20))
    with pytest.raises(AssertionError, match="left as"):
        list(rounds)
