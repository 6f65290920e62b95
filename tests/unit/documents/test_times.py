"""Times of arrival, and windows over them."""

import pytest

from corollary import ActiveDocument
from corollary.documents.errors import ActiveDocumentError, QuerySyntaxError
from corollary.documents.view import Delta
from support.command_line import cli, of_json
from support.generators.document_comparisons import TimesRound
from support.selection import sampled

SOON = (
    "/shop[pay arrived $p [*$o]][ship arrived $s [*$o]] where $s >= $p and $s - $p <= 1h return $o"
)
RECENT = "/shop/pay arrived $p [*$o] where now - $p <= 10min return $o"


def test_what_leaves_a_window_is_removed() -> None:
    document = ActiveDocument.from_terms("shop[!bank]")
    view = document.view(RECENT)
    deltas: list[Delta] = []
    view.on_change(deltas.append)
    document.add("bank", "pay[o1]", at="2026-05-01T09:00")
    document.add("bank", "pay[o2]", at="2026-05-01T09:08")
    document.advance("2026-05-01T09:11")
    assert view.sure == {("o2",)}
    assert [each.retracted for each in deltas if each.retracted] == [{("o1",)}]
    document.gc()
    assert document.terms() == "shop[!bank pay[o2]]"  # o1 has left for good
    document.end("bank")
    document.advance("2026-05-01T10:00")
    assert view.value == 0


def test_a_pair_that_can_no_longer_be_near_is_not_waited_for() -> None:
    types = {"bank": ["pay"], "carrier": ["ship"]}
    document = ActiveDocument.from_terms("shop[!bank !carrier]", types=types)
    view = document.view(SOON)
    document.add("bank", "pay[o1]", at=0)
    document.end("bank")
    document.advance(3600)
    assert view.possible() == {("o1",)}
    assert str(view.explain(("o1",))) == "(o1) waits for !carrier"
    document.advance(3601)
    assert view.value == 0


@pytest.mark.slow
def test_time_alone_can_make_an_answer() -> None:
    document = ActiveDocument.from_terms("shop[!bank]")
    view = document.view("/shop/pay arrived $p [*$o] where now - $p > 1h return $o")
    document.add("bank", "pay[o1]", at=10)
    document.end("bank")
    assert (view.value, view.useful()) == (0.5, frozenset())
    assert str(view.explain(("o1",))) == "(o1) waits for time to pass"
    document.advance(3611)
    assert view.sure == {("o1",)}


def test_a_view_that_comes_later_knows_when_nodes_came() -> None:
    document = ActiveDocument.from_terms("r[a !f]", at=5)
    document.add("f", "a[b]", at=7)
    assert document.view("/r/a arrived $t").sure == {("5",), ("7",)}
    assert document.view("/r//b arrived $t").sure == {("7",)}
    assert document.view("/r/arrived$t").value == 0.5  # a label like any other
    document.retract("f", "a[b]")
    assert document.view("/r/a arrived $t").sure == {("5",)}


def test_times_do_not_go_back() -> None:
    document = ActiveDocument.from_terms("r[!f]", at=5)
    for wrong in (4, "soon"):
        with pytest.raises(ActiveDocumentError, match="C1258"):
            document.add("f", "a", at=wrong)
    assert document.terms() == "r[!f]"
    for query in ("/r/a arrived $t [b$t]", "/r[a arrived $t][b arrived $t]"):
        with pytest.raises(QuerySyntaxError, match="C1257"):
            document.view(query)


def test_the_command_asks_at_a_time() -> None:
    match = "documents", "match", "--doc", "shop[pay[o1] !bank]", "--query", RECENT
    found = of_json(cli(*match, "--update", "bank=pay[o2]", "--now", "601", "--format", "json"))
    assert (found["value"], found["sure"]) == (0.5, [])


@pytest.mark.slow
@pytest.mark.parametrize("seed", sampled(range(40), 20))
def test_random_times_agree(seed: int) -> None:
    assert TimesRound(seed).run(7)["instances"] == 7
