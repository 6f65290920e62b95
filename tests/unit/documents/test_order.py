"""Which answers stand for which: unknown labels of functions with types have ranges."""

from __future__ import annotations

import pytest

from corollary.documents.document import ActiveDocument
from corollary.documents.types.function_types import (
    Child,
    FunctionType,
    Grammar,
    Labels,
    Production,
)
from corollary.documents.view import Answers, View

TYPES: dict[str, FunctionType] = {
    "ab": Labels(frozenset("ab")),
    "a": Labels(frozenset("a")),
    "b": Labels(frozenset("b")),
    "tree": Grammar(
        "A", {"A": Production(frozenset("ab"), (Child("B"),)), "B": Production(frozenset("d"))}
    ),
}
BOTH = "/r/m[p/*$x][s/*$y]"


def view_of(term: str, query: str, once: str = "") -> View:
    """Return a view; functions that are named in `TYPES` have these types, others none."""
    return ActiveDocument.from_terms(term, once=once.split(), types=TYPES).view(query)


def shown(answers: Answers) -> list[str]:
    return sorted(" ".join(map(str, each)) for each in answers)


@pytest.mark.parametrize(
    ("term", "query", "minimal"),
    [
        ("r[c !f]", "/r/*$x", ["?"]),  # any label
        ("r[c !ab]", "/r/*$x", ["?", "c"]),  # `c` is none of the two
        ("r[a !ab]", "/r/*$x", ["?"]),
        ("r[a b c d !ab]", "/r/*$x", ["?", "c", "d"]),
        ("r[a c !tree]", "/r/*$x", ["?", "c"]),
        ("r[c !ab !f]", "/r/*$x", ["?"]),
        ('r["?" !ab]', "/r/*$x", ["?", "?"]),  # a label, and an unknown one
        # both functions of the second and third `m` stand for what comes into the first one
        ("r[m[p[x] s[!ab]] m[p[!f] s[!a]] m[p[!f] s[!b]]]", BOTH, ["? ?"]),
        ("r[m[p[x] s[!ab]] m[p[!f] s[!a]]]", BOTH, ["? ?", "x ?"]),
        ("r[m[p[x] s[!f]] m[p[!g] s[!ab]]]", BOTH, ["? ?", "x ?"]),  # `?{a,b}` is not below `?`
        ("r[m[p[x] s[!a]] m[p[!f] s[!ab]]]", BOTH, ["? ?"]),
        ("r[m[p[!a] s[c]] m[p[!ab] s[!f]]]", BOTH, ["? ?"]),
        ("r[m[p[!ab] s[c]] m[p[!a] s[!f]]]", BOTH, ["? ?", "? c"]),
    ],
)
def test_minimal_answers_range_over_types(term: str, query: str, minimal: list[str]) -> None:
    assert shown(view_of(term, query).minimal) == minimal


def test_the_one_tree_of_a_function_may_have_any_label() -> None:
    """The labels of `f` and `h` are gone through one by one; together they are any."""
    assert shown(view_of("r[c !f]", "/r/*$x", "f").minimal) == ["?"]
    term = "r[m[p[!f] s[!h]] m[p[x] s[!g]]]"
    assert shown(view_of(term, BOTH, "f h").minimal) == ["? ?"]


def test_places_of_one_class_are_one_label() -> None:
    query = "/r/m[p/*$x][s/*$y][t/*$z] where $x = $y return $x, $y, $z"
    term = "r[m[p[!f] s[!f] t[!g]] m[p[!k] s[!k] t[z]]]"
    assert shown(view_of(term, query).minimal) == ["? ? ?"]
    assert shown(view_of(term, query, "f").minimal) == ["? ? ?"]
    joined = "/r[p/*$x][s/*$y] where $x = $y"
    view = view_of("r[p[a c !ab] s[a c !ab]]", joined)
    assert shown(view.minimal) == ["? ?", "c c"]


@pytest.mark.parametrize(
    ("term", "general", "specific"),
    [
        ("r[c[!g] !f]", ["?"], ["c"]),
        ("r[c[!g] !ab]", ["?", "c"], ["?", "c"]),
        ("r[a[!g] !ab]", ["?"], ["a"]),
        ("r[a[!g] c[!g] !tree]", ["?", "c"], ["a", "c"]),
        ("r[c[d] !ab]", ["?"], ["?"]),  # what is sure is not among them
    ],
)
def test_reductions_range_over_types(term: str, general: list[str], specific: list[str]) -> None:
    view = view_of(term, "/r/*$x[d]")
    assert shown(view.possible(reduce="general")) == general
    assert shown(view.possible(reduce="specific")) == specific


def test_answers_that_were_reported_are_labels_like_others() -> None:
    """The `x` is collected; the one tree that `f` brings may still have its label."""
    document = ActiveDocument.from_terms("r[p[x] q[!f]]", once=["f"])
    view = document.view("/r/*/*$v")
    document.gc()
    assert document.terms() == "r[q[!f]]"
    assert (shown(view.sure), shown(view.minimal)) == (["x"], ["?"])
