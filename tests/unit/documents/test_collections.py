"""Queries over several documents, and over every document of a collection."""

from pathlib import Path

import pytest

from corollary import ActiveCollection, ActiveDocument
from corollary.documents.errors import ActiveDocumentError, QuerySyntaxError
from corollary.documents.spark import document_events
from corollary.documents.types.function_types import Grammar, Production
from support.command_line import cli, of_json
from support.generators.document_collections import CollectionRound
from support.selection import sampled

ORDERS = "shop[order[id[o1] !bank] !web]"
STOCK = "store[item[id[o1]] item[id[o2]] !web]"
IN_STOCK = 'doc("orders")/shop/order[id/*$o][paid] and doc("stock")//item/id/*$o'


def test_a_join_over_two_documents_waits_for_the_streams_of_both() -> None:
    documents = ActiveCollection({"orders": ORDERS, "stock": STOCK})
    view = documents.view(IN_STOCK)
    assert view.value == 0.5
    assert view.useful() == {"orders:bank", "orders:web", "stock:web"}
    assert str(view.explain(("o1",))) == "(o1) waits for !orders:bank or !orders:web"
    documents.add("orders:bank", "paid")
    assert view.sure == {("o1",)}
    assert str(view.explain(("o1",))) == (
        "(o1) is sure: orders, orders/shop, orders/shop/order, orders/shop/order/id, "
        "orders/shop/order/id/o1, orders/shop/order/paid, stock, stock/store/item, "
        "stock/store/item/id, stock/store/item/id/o1"
    )
    documents.add("stock:web", "item[id[o3]]")  # it is a function of its own
    assert documents.document_terms()["orders"] == "shop[order[id[o1] !bank paid] !web]"


@pytest.mark.slow
def test_garbage_of_several_documents_is_collected_together() -> None:
    documents = ActiveCollection({"orders": ORDERS, "stock": STOCK, "other": "r[a !f]"})
    view = documents.view(IN_STOCK)
    documents.add("orders:bank", "paid")
    documents.apply((), ["orders:web", "orders:bank"])
    collected = documents.gc([view])
    assert set(collected.closed) == {"other:f", "stock:web"}
    assert view.sure == {("o1",)}
    assert documents.document_terms() == {}  # nothing is open any more
    for refused in (
        lambda: documents.add_document("late", "r"),
        lambda: documents.retract("orders:bank", "paid"),
    ):
        with pytest.raises(ActiveDocumentError, match="C1234"):
            refused()


def test_documents_come_and_go() -> None:
    documents = ActiveCollection({"north": "shop[late[o1]]"})
    view = documents.view("collection()$d/shop/late/*$o")
    documents.add_document("south", "shop[late[o2] !f]")
    assert view.sure == {("north", "o1"), ("south", "o2")}
    documents.add("south:f", "late[o3]")
    documents.remove_document("north")
    assert view.sure == {("south", "o2"), ("south", "o3")}
    with pytest.raises(ActiveDocumentError, match="C1255"):
        documents.remove_document("north")
    with pytest.raises(ActiveDocumentError, match="C1255"):
        documents.add_document("south", "shop")


def test_types_hold_in_each_document_and_for_the_calls_in_them() -> None:
    order = Production(frozenset({"order"}), (), frozenset({"carrier"}))
    types = {"web": Grammar("Order", {"Order": order}), "carrier": ["sent"], "b:web": ["x"]}
    documents = ActiveCollection({"a": "r[!web]", "b": "r[!web]"}, types=types, once=["a:carrier"])
    view = documents.view('doc("a")/r/order/*$w and doc("b")/r/*$x')
    assert {tuple(map(str, each)) for each in view.possible()} == {("?", "?")}
    documents.add("a:web", "order[!carrier]")
    documents.add("a:carrier", "sent")
    documents.add("b:web", "x")
    assert (view.sure, documents.functions["a:carrier"].is_live) == ({("sent", "x")}, False)
    with pytest.raises(ActiveDocumentError, match="C1233"):
        documents.add("b:web", "order")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("/shop", "C1256"),
        ('doc("orders")/shop | /shop', "C1256"),
        ('doc("nowhere")/shop', "C1255"),
        ('doc("orders")', "C1202"),
        ('doc("orders")/shop[doc("stock")/store]', "C1200"),
    ],
)
def test_queries_that_name_no_document_are_refused(query: str, code: str) -> None:
    with pytest.raises(QuerySyntaxError, match=code):
        ActiveCollection({"orders": ORDERS, "stock": STOCK}).view(query)


def test_one_document_is_not_several() -> None:
    with pytest.raises(QuerySyntaxError, match="C1256"):
        ActiveDocument.from_terms("r").view('doc("r")/r')
    assert ActiveDocument.from_terms("r[doc[a] collection]").view("/r[doc/a][collection]").value


def test_views_that_are_watched_are_over_one_document_or_over_several() -> None:
    with pytest.raises(QuerySyntaxError, match="C1256"):
        document_events(None, {"v": "/r/a", "w": 'doc("r")/r'})  # type: ignore[arg-type]


def test_the_command_names_documents(tmp_path: Path) -> None:
    (tmp_path / "north.xml").write_text("<shop><late>o1</late><?call web?></shop>")
    (tmp_path / "south.json").write_text('{"shop": {"late": "o2", "!web": null}}')
    brought = '{"doc": "north", "fn": "web", "xml": "late[o3]"}'
    ended = '{"doc": "south", "fn": "web", "eos": true}'
    (tmp_path / "rows.jsonl").write_text(f"{brought}\n{ended}\n")
    match = ["documents", "match", "--collection", str(tmp_path), "--format", "json"]
    query = "collection()$d/shop/late/*$o"
    updates = ["--updates", str(tmp_path / "rows.jsonl"), "--useful"]
    found = of_json(cli(*match, "--query", query, *updates))
    assert found["sure"] == [["north", "o1"], ["north", "o3"], ["south", "o2"]]
    assert (found["documents"], found["useful"]) == (["north", "south"], ["north:web"])
    joined = 'doc("more")/r/*$o and collection()$d//late/*$o'
    found = of_json(cli(*match, "--doc", "more=r[o2]", "--query", joined))
    assert found["sure"] == [["o2", "south"]]


@pytest.mark.slow
@pytest.mark.parametrize("seed", sampled(range(24), 12))
def test_random_collections_agree(seed: int) -> None:
    assert CollectionRound(seed).run(6)["instances"] == 6
