"""Types whose trees call functions: expected answers worked out by hand."""

from __future__ import annotations

import pytest

from corollary.documents.document import ActiveDocument
from corollary.documents.errors import ActiveDocumentError
from corollary.documents.types.function_types import (
    ANY,
    Child,
    FunctionType,
    Grammar,
    Labels,
    Production,
)
from support.document_views import check_brought, rule, shown


def grammar(**rules: Production) -> Grammar:
    """Return a grammar whose trees are of the type `A`."""
    return Grammar("A", rules)


CALLS_G = grammar(A=rule("a", calls="g"))
"""`a`, below which `g` may be called."""
B_OR_C = Labels(frozenset("bc"))
ONE_B = grammar(A=rule("a", Child("B", is_single=True), calls="g"), B=rule("b"))
"""`a` with at most one `b`, beside which `g` may be called."""
B_CALLS_F = grammar(A=rule("b", calls="f"))


@pytest.mark.parametrize(
    ("f", "g", "query", "value"),
    [
        (CALLS_G, B_OR_C, "/r/a[b][c]", 0.5),  # `g` brings any number of them
        (CALLS_G, B_OR_C, "/r/a/b[x][y]", 0.5),
        (CALLS_G, B_OR_C, "/r/a/d", 0),
        (CALLS_G, B_OR_C, "/r/b", 0),  # it is called below `a` only
        (CALLS_G, Labels(frozenset()), "/r/a/*", 0),
        (CALLS_G, Labels(frozenset()), "/r/a", 0.5),
        (CALLS_G, None, "/r/a[x][y/z]", 0.5),  # anything
        (CALLS_G, Grammar(ANY, {}), "/r/a[x][y/z]", 0.5),
        (CALLS_G, grammar(), "/r/a/*", 0),  # a type without a rule
        (CALLS_G, grammar(A=rule("b")), "/r/a/b", 0.5),  # this `A` is another one
        (CALLS_G, grammar(A=rule("b")), "/r/a/a", 0),
        (CALLS_G, grammar(A=rule("b")), "/r/a/b/*", 0),
        (ONE_B, grammar(A=rule("c")), "/r/a[b][c]", 0.5),
        (ONE_B, ONE_B, "/r/a[b][a[b][a]]", 0.5),
        (ONE_B, ONE_B, "/r/a/b/a", 0),
        (CALLS_G, B_CALLS_F, "/r/a/b/a/b", 0.5),  # in a circle
        (CALLS_G, B_CALLS_F, "/r/a[b/a][b[a/b]]", 0.5),
        (CALLS_G, B_CALLS_F, "/r/a/a", 0),
        (CALLS_G, B_CALLS_F, "/r//b/b", 0),
        (grammar(A=rule("a", calls="f")), None, "/r/a[a/a][a]", 0.5),
        (grammar(A=rule("a", calls="f")), None, "/r/a/b", 0),
        (grammar(A=rule("a", calls="h")), None, "/r/a/b", 0.5),  # nothing is known of `h`
        # what is required has to be brought by `f` itself, and there is no such tree
        (grammar(A=rule("a", Child("B", is_required=True), calls="g")), B_OR_C, "/r/a/b", 0),
    ],
)
def test_what_calls_bring_can_come(
    f: FunctionType, g: FunctionType | None, query: str, value: float
) -> None:
    types = {"f": f} if g is None else {"f": f, "g": g}
    view = ActiveDocument.from_terms("r[!f]", types=types).view(query)
    assert (view.value, view.is_exact) == (value, True)


@pytest.mark.parametrize(
    ("query", "once", "possible"),
    [
        ("/r[p/a/*$x][s/*$x]", "", ["b"]),
        ("/r/p/a[b$x or d$x]", "", ["b"]),
        ("/r[p/a/*$x][p/a/*$y][s/*$x][t/*$y]", "f", ["b c"]),  # one `a`, two of `g`
        ("/r/p[a/b][a/c]", "f", [""]),
        ("/r/p[a/b][a/d]", "f", []),
    ],
)
def test_labels_of_what_calls_bring(query: str, once: str, possible: list[str]) -> None:
    types: dict[str, FunctionType] = {"f": CALLS_G, "g": B_OR_C}
    document = ActiveDocument.from_terms("r[p[!f] s[b d] t[c]]", once=once.split(), types=types)
    view = document.view(query)
    assert (shown(view), view.is_exact) == (possible, True)


def test_unknown_labels_range_over_what_calls_bring() -> None:
    types: dict[str, FunctionType] = {"f": CALLS_G, "g": B_OR_C}
    view = ActiveDocument.from_terms("r[!f a[b d]]", types=types).view("/r/a/*$x")
    assert sorted(map(str, view.minimal)) == ["('d',)", "(?,)"]


# --- functions that answer once, and functions that have ended -----------------------------------


def test_a_call_of_a_function_that_has_ended_brings_nothing() -> None:
    document = ActiveDocument.from_terms("r[!f]", types={"f": CALLS_G, "g": ["b"]})
    deep, flat = document.view("/r/a/b"), document.view("/r/a")
    assert (deep.value, flat.value) == (0.5, 0.5)
    document.end("g")
    assert (deep.value, flat.value) == (0, 0.5)
    document.add("f", "a[!g]")
    assert (deep.value, flat.value) == (0, 1)


def test_one_answer_for_calls_that_have_not_come_is_an_upper_bound() -> None:
    """`g` brings one tree to every `a`, so there is none with both; that is known once `f` ends."""
    types: dict[str, FunctionType] = {"f": CALLS_G, "g": B_OR_C}
    document = ActiveDocument.from_terms("r[!f]", once=["g"], types=types)
    both, none, some = (document.view(each) for each in ("/r/a[b][c]", "/r/a", "/r/a/d"))
    assert (both.value, both.is_exact) == (0.5, False)
    assert (none.value, none.is_exact) == (0.5, True)
    assert (some.value, some.is_exact) == (0, True)
    document.apply([("f", "a[!g]")], ["f"])
    assert (both.value, both.is_exact) == (0, True)


def test_an_answer_gets_nothing_from_itself() -> None:
    """`f` has ended when its one tree is there; what calls in it could bring is not excluded."""
    types = {"f": grammar(A=rule("a", calls="f"))}
    document = ActiveDocument.from_terms("r[!f]", once=["f"], types=types)
    view = document.view("/r/a/a")
    assert (view.value, view.is_exact) == (0.5, False)
    document.add("f", "a[!f]")
    assert (view.value, view.is_exact) == (0, True)


def test_a_function_that_is_closed_may_still_be_called() -> None:
    document = ActiveDocument.from_terms(
        "r[!f s[!g]]", once=["g"], types={"f": CALLS_G, "g": ["b"]}
    )
    view = document.view("/r/a/b")
    assert document.gc().closed == ("g",)
    assert (view.value, view.is_exact) == (0.5, False)
    document.add("f", "a[!g]")
    assert document.live == {"f", "g"}
    document.add("g", "b")
    assert view.value == 1


# --- what comes, and what is refused -------------------------------------------------------------


def test_a_call_that_comes_is_one_like_others() -> None:
    document = ActiveDocument.from_terms("r[!f s[a]]", types={"f": CALLS_G, "g": B_OR_C})
    view = document.view("/r/a[b]/c")
    document.add("f", "a[!g]")
    assert (document.live, view.value) == ({"f", "g"}, 0.5)
    assert view.useful() == {"f", "g"}
    assert document.gc().dropped == 2  # `s` and the `a` below it
    document.add("g", "b")
    document.end("f")
    assert (view.value, view.useful()) == (0.5, {"g"})
    with pytest.raises(ActiveDocumentError, match="C1233"):
        document.add("g", "a")
    document.add("g", "c")
    assert (view.value, document.terms()) == (1, "r[!f a[!g b c]]")


@pytest.mark.parametrize(
    ("tree", "is_allowed"),
    [
        ("a", True),
        ("a[!g]", True),
        ("a[!g b !g]", True),
        ("a[!g b b]", False),  # a call is no reason for two
        ("a[!h]", False),
        ("a[!g !h]", False),
        ("a[b[!g]]", False),
        ("a[c]", False),  # that is for `g` to bring
        ("!g", False),
    ],
)
def test_calls_have_to_be_named_by_the_grammar(tree: str, is_allowed: bool) -> None:
    types = {"f": ONE_B, "g": ["c"]}
    check_brought(ActiveDocument.from_terms("r[!f]", types=types), tree, is_allowed)


@pytest.mark.parametrize("is_single", [True, False])
def test_a_call_is_not_the_one_child_of_any_kind(is_single: bool) -> None:
    """It would bring more than one: `/r/a[x][y]` would come true."""
    type_ = grammar(A=rule("a", Child(ANY, is_single=is_single)))
    document = ActiveDocument.from_terms("r[!f]", types={"f": type_})
    view = document.view("/r/a[x][y]")
    assert view.value == (0 if is_single else 0.5)
    if is_single:
        with pytest.raises(ActiveDocumentError, match="C1233"):
            document.add("f", "a[!h]")
    else:
        document.add("f", "a[!h]")
        document.add("h", "x y")
        assert view.value == 1


def test_a_call_is_not_the_child_that_is_required() -> None:
    type_ = grammar(A=rule("a", Child(ANY, is_required=True), calls="g"))
    document = ActiveDocument.from_terms("r[!f]", types={"f": type_})
    with pytest.raises(ActiveDocumentError, match="one of `A`"):
        document.add("f", "a[!g]")
    document.add("f", "a[!g x]")
    assert document.terms() == "r[!f a[!g x]]"
