"""Comparisons between the labels that a query joins: numbers, times, and what is unknown."""

import pytest

from corollary.documents.document import ActiveDocument
from corollary.documents.errors import QuerySyntaxError
from support.document_views import shown, view_of
from support.generators.document_comparisons import ComparisonRound
from support.selection import sampled

LATE = "/s[p[*$o][at/*$p]][d[*$o][at/*$d]] where $d - $p > 3600 return $o"


@pytest.mark.slow
def test_orders_that_are_late() -> None:
    document = ActiveDocument.from_terms("s[p[o1 at[100]] p[o2 at[200]] !bank !carrier]")
    view = document.view(LATE)
    assert (view.value, view.sure) == (0.5, frozenset())
    document.add("carrier", "d[o2 at[700]] d[o1 at[9100]]")
    assert ("o1",) in view.sure
    assert ("o2",) not in view.sure
    assert ("o2",) in view.possible()  # another delivery may come, or another payment
    document.end("bank")
    document.end("carrier")
    assert (view.value, view.possible()) == (1, frozenset())


@pytest.mark.parametrize(
    ("term", "query", "sure", "possible"),
    [
        ("r[a[1] b[2]]", "/r[a/*$x][b/*$y] where $x < $y return $x", ["1"], []),
        ("r[a[x] b[2]]", "/r[a/*$x][b/*$y] where $x < $y return $x", [], []),
        ("r[a[1] b[!f]]", "/r[a/*$x][b/*$y] where $y > $x and $y < $x", [], []),
        ("r[a[1] b[!f]]", "/r[a/*$x][b/*$y] where $y > $x and $y < $x + 1", [], ["1 ?"]),
        ("r[a[1] a[2] b[!f]]", "/r[a/*$x][b/*$y] where $x + $y = 3 and $y >= 2", [], ["1 ?"]),
        ("r[a[3.0]]", "/r/a/*$x where $x = 3", ["3.0"], []),
        ("r[a[3] b[3.0]]", "/r[a/*$x][b/*$y] where $x != $y return $x", ["3"], []),
        ("r[a[u] a[v]]", "/r/a/*$x where $x != 'u'", ["v"], []),
        ("r[a[!f]]", "/r/a/*$x where $x >= 3 and $x <= 3 and $x != 3", [], []),
        (
            'r[a["2026-05-01T10:00Z"] b["2026-05-01T11:30Z"]]',
            "/r[a/*$x][b/*$y] where $y - $x <= 90min return ()",
            [""],
            [],
        ),
        ('r[a["2026-05-01"]]', "/r/a/*$x where $x > '2026-04-30T23:59' return ()", [""], []),
        ("r[a[5] !f]", "/r[a/*$x][b$y] where $y > 3 return $x", [], []),
    ],
)
def test_comparisons(term: str, query: str, sure: list[str], possible: list[str]) -> None:
    view = view_of(term, query)
    assert sorted(" ".join(map(str, each)) for each in view.sure) == sure
    assert shown(view) == possible


@pytest.mark.parametrize(("labels", "value"), [(["1", "2"], 0), (["1", "9"], 0.5), (["x"], 0)])
def test_types_and_single_answers_rule_numbers_out(labels: list[str], value: float) -> None:
    for once in ((), ("f",)):
        document = ActiveDocument.from_terms("r[a[!f]]", once=once, types={"f": labels})
        assert document.view("/r/a/*$x where $x > 3").value == value
    single = ActiveDocument.from_terms("r[a[!f] b[!f]]", once=["f"])
    assert single.view("/r[a/*$x][b/*$y] where $x < $y").value == 0  # they are the same label


def test_what_cannot_satisfy_a_comparison_is_collected() -> None:
    document = ActiveDocument.from_terms("r[a[1] a[9] !f]", types={"f": ["b"]})
    document.view("/r[a/*$x][b/*$y] where $x < 5")
    document.gc()
    assert document.terms() == "r[a[1] !f]"


def test_usefulness_with_comparisons_is_safe() -> None:
    found = view_of("r[a[1] b[!f] c[!g]]", "/r[a/*$x][b/*$y] where $y > $x").usefulness()
    assert (found.functions, found.is_exact) == ({"f"}, True)
    both = view_of("r[b[!f] c[!g]]", "/r[b/*$x][c/*$y] where $y > $x").usefulness()
    assert (both.functions, both.unproved) == ({"f", "g"}, {"f", "g"})


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("/r/a/*$x where $x > y", "C1213"),
        ("/r/a/*$x where 3 > 2", "C1213"),
        ("/r/a/*$x where $x - $x > 2", "C1213"),
        ("/r[a/*$x or b] where $x > 3 return ()", "C1212"),
        ("/r[a/*$x] where $y > 3", "C1204"),
        ("/r[a > 3]", "C1201"),
        ("/r/a/*$x where $x >", "C1200"),
        ("/r/a/*$x where $x = 'v'", "C1200"),
    ],
)
def test_wrong_comparisons(query: str, code: str) -> None:
    with pytest.raises(QuerySyntaxError, match=code):
        view_of("r", query)


@pytest.mark.slow
@pytest.mark.parametrize("seed", sampled(range(24), 12))
def test_random_comparisons_agree(seed: int) -> None:
    assert ComparisonRound(seed, 4).run()["instances"] == 12
