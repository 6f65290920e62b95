"""Functions with types, and functions that answer once: expected answers worked out by hand."""

from __future__ import annotations

import pytest

from corollary.documents.answers.search_limits import SearchLimits
from corollary.documents.document import ActiveDocument
from corollary.documents.errors import ActiveDocumentError, StreamClosedError
from corollary.documents.types.function_types import (
    ANY,
    Child,
    FunctionType,
    Grammar,
    Labels,
    Production,
)
from support.command_line import cli, of_json
from support.document_views import Types, check_brought, rule, shown, view_of

ONE_BELOW = Grammar("A", {"A": rule("a", Child("B", is_single=True)), "B": rule("b c")})
"""`a` with at most one child, `b` or `c`."""
MANY_BELOW = Grammar("A", {"A": rule("a", Child("B")), "B": rule("b c")})
"""`a` with any number of `b` and `c`."""
CHAIN = Grammar(
    "A", {"A": rule("a", Child("B", True, True)), "B": rule("b", Child("A", False, True))}
)
"""`a[b[a[b…]]]`."""
ENDLESS = Grammar("A", {"A": rule("a", Child("A", is_required=True))})
"""Each `a` has an `a` below it: there is no such tree."""


# --- types ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grammar", "query", "value"),
    [
        (ONE_BELOW, "/r/a[b]", 0.5),
        (ONE_BELOW, "/r/a[b][c]", 0),  # there is one child
        (ONE_BELOW, "/r[a/b][a/c]", 0.5),  # a stream brings two trees
        (ONE_BELOW, "/r/a[*][c]", 0.5),  # `*` is that child, too
        (ONE_BELOW, "/r//b", 0.5),
        (ONE_BELOW, "/r/b", 0),
        (ONE_BELOW, "/r//b/*", 0),
        (MANY_BELOW, "/r/a[b][c]", 0.5),
        (CHAIN, "/r/a/b/a/b", 0.5),
        (CHAIN, "/r/a[.//b/a]", 0.5),
        (CHAIN, "/r/a//b//b", 0.5),
        (CHAIN, "/r//b/b", 0),
        (CHAIN, "/r//a[a]", 0),
        (ENDLESS, "/r/a", 0),
        (ENDLESS, "/r//*", 0),
        (Grammar("ANY", {}), "/r/x[y][z]", 0.5),
        (Grammar("A", {}), "/r//*", 0),  # a type without a rule
        (Grammar("A", {"A": Production(None, (Child("B"),))}), "/r/x", 0.5),
        (Grammar("A", {"A": Production(None, (Child("B"),))}), "/r/x/*", 0),
        (Grammar("A", {"A": rule("a", Child(ANY, is_single=True))}), "/r/a/x[y][z]", 0.5),
        (Grammar("A", {"A": rule("a", Child(ANY, is_single=True))}), "/r/a[x][y]", 0),
        (Labels(frozenset()), "/r//*", 0),
        (Labels(frozenset("z")), "/r/*/a", 0.5),
        (Labels(frozenset("z")), "/r/a", 0),
    ],
)
def test_a_type_says_what_can_come(grammar: FunctionType, query: str, value: float) -> None:
    assert view_of("r[!f]", query, types={"f": grammar}).value == value


def test_labels_of_a_grammar_meet_those_of_the_document() -> None:
    """What `f` brings below `a` is a `b` or a `c`, so it is the same as the `b` below `s` only."""
    for below, possible in {"b": ["b"], "a": [], "b c d": ["b", "c"]}.items():
        view = view_of(f"r[p[!f] s[{below}]]", "/r[p/a/*$x][s/*$x]", types={"f": ONE_BELOW})
        assert shown(view) == possible
    for below, possible in {"b": ["b"], "a c": ["a"], "c d": []}.items():
        view = view_of(f"r[p[!f] s[{below}]]", "/r[p//*$x][s/*$x]", types={"f": CHAIN})
        assert shown(view) == possible


@pytest.mark.slow
def test_joins_within_a_tree_of_a_grammar() -> None:
    both = "/r/a[*$x][*$y] return $x, $y"
    assert shown(view_of("r[!f]", both, types={"f": ONE_BELOW})) == ["? ?"]
    same = "/r[a[*$x][*$y]][s[$T$x][$U$y]] return $x, $y"
    for labels, value in {"bb": 0.5, "bc": 0, "dd": 0}.items():
        query = same.replace("$T", labels[0]).replace("$U", labels[1])
        view = view_of("r[!f s[b c d]]", query, types={"f": ONE_BELOW})
        assert view.value == value, query
    stranger = Grammar("A", {"A": rule("a", Child("B", is_single=True)), "B": Production(None)})
    for query, value in {
        "/r[a[*$x][*$y]][s/*$x][t/*$y]": ["u u"],  # one child, so one label: that of both
        "/r[a[*$x]][a[*$y]][s/*$x][t/*$y]": ["u u", "u w", "v u", "v w"],
    }.items():
        view = view_of("r[!f s[u v] t[u w]]", query, types={"f": stranger})
        assert shown(view) == value, query


def test_alternatives_that_a_type_rules_out_give_no_answer() -> None:
    view = view_of("r[!f]", "/r/a[b$x or d$x]", types={"f": MANY_BELOW})
    assert shown(view) == ["b"]
    view = view_of("r[!f]", "/r/*$x[b$x or c$x] return ()", types={"f": Labels(frozenset("a"))})
    assert view.value == 0


def test_unknown_labels_have_to_be_of_both_types() -> None:
    query = "/r[s/*$x][t/*$x]"
    for one, other, possible in (("a b", "b c", ["?"]), ("a b", "c d", []), ("a", "a", ["?"])):
        types: Types = {"f": Labels(frozenset(one.split())), "g": Labels(frozenset(other.split()))}
        assert shown(view_of("r[s[!f] t[!g]]", query, types=types)) == possible
        assert shown(view_of("r[s[!f] t[!g]]", query, types=types, once="f g")) == possible


# --- once ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("term", "query", "possible"),
    [
        ("r[!f]", "/r[*$x][*$y]", ["? ?"]),  # both are the root of the one tree
        ("r[!f]", "/r[*$x][b$y] return $x, $y", ["? b"]),  # and it is a `b`
        ("r[p[!f] s[a b]]", "/r[p/*$x][s/*$x]", ["a", "b"]),
        ("r[!f !g]", "/r[a][b]", [""]),
        ("r[p[!f] s[!f] t[u v]]", "/r[p/*$x][s/*$y][t[*$x][*$y]]", ["u u", "v v"]),
        ("r[p[!f] s[!g] t[u v]]", "/r[p/*$x][s/*$y][t[*$x][*$y]]", ["u u", "u v", "v u", "v v"]),
        ("r[s[!f] t[!f]]", "/r[s/*$x/b][t/*$y/c] where $x = $y", ["? ?"]),
        ("r[s[!f] t[!f]]", "/r[s/a][t/b]", []),
        ("r[s[!f] t[!f]]", "/r[s/a][t//b]", [""]),
    ],
)
def test_one_tree_goes_to_all_calls(term: str, query: str, possible: list[str]) -> None:
    once = "f g" if "!g" in term else "f"
    view = view_of(term, query, once=once)
    assert shown(view) == possible


@pytest.mark.parametrize(
    ("query", "grammar", "possible"),
    [
        ("/r[a/b][a/c]", ONE_BELOW, []),  # one tree with one child
        ("/r[a/b][a/c]", MANY_BELOW, [""]),
        ("/r[a/b][a//c]", ONE_BELOW, []),
        ("/r[.//a/b][.//b/a]", CHAIN, [""]),
        ("/r[a/b or a/c][.//c]", ONE_BELOW, [""]),
        ("/r[a/*$x][a/*$y]", ONE_BELOW, ["? ?"]),
        ("/r[a/*$x][a/b$y] return $x, $y", ONE_BELOW, ["? b"]),
        ("/r[a/*$x][s/*$x]", MANY_BELOW, ["b"]),
        ("/r[a/*$x][a/*$y][s/*$x][t/*$y]", MANY_BELOW, ["b b", "b c"]),
        ("/r[a/*$x][a/*$y][s/*$x][t/*$y]", ONE_BELOW, ["b b"]),
        ("/r[z]", Labels(frozenset("z")), [""]),
        ("/r[*[a]]", Labels(frozenset("z")), [""]),
        ("/r[.//a]", Labels(frozenset("z")), [""]),
        ("/r[a]", Labels(frozenset("z")), []),
        ("/r[z/a$x][s/*$x] return ()", Labels(frozenset("z")), []),
        ("/r[z/*$x][s/*$x] return ()", Labels(frozenset("z")), [""]),
    ],
)
def test_one_tree_of_a_type(query: str, grammar: FunctionType, possible: list[str]) -> None:
    view = view_of("r[!f s[b d] t[b c]]", query, once="f", types={"f": grammar})
    assert view.is_exact
    assert shown(view) == possible


def test_a_bound_is_said_in_every_form() -> None:
    query = "/r[p/*$x][q/*$y][t[*$x][*$y]]"
    match = "documents", "match", "--doc", "r[p[!f] q[!g] t[u v]]", "--query", query
    limited = (*match, "--once", "f", "--once", "g", "--useful", "--limit-nodes", "2")
    found = of_json(cli(*limited, "--format", "json"))
    assert (found["exact"], "2 nodes" in found["bound"]) == (False, True)
    assert (found["useful_exact"], found["unproved"]) == (False, ["f", "g"])
    text = cli(*limited).stdout
    assert "exact     no, possible is an upper bound: " in text
    assert "unproved  !f !g: " in text
    limits = SearchLimits(nodes=2)
    document = ActiveDocument.from_terms("r[p[!f] q[!g] t[u v]]", once=("f", "g"), limits=limits)
    view = document.view(query)
    assert (view.is_exact, "2 nodes" in view.bound_reason) == (False, True)


def test_after_its_answer_a_function_has_ended() -> None:
    document = ActiveDocument.from_terms("r[p[!f] s[!f] t[u v]]", once=["f"])
    view = document.view("/r[p/*$x/*][s/*$y][t/*$x]")
    assert shown(view) == ["u ?", "v ?"]
    document.add("f", "u[!g]")
    assert (sorted(view.sure), shown(view)) == ([], ["u u"])
    with pytest.raises(StreamClosedError, match="C1231"):
        document.add("f", "v[w]")
    document.add("g", "a[!f]")  # a further call of it brings nothing
    assert sorted(view.sure) == [("u", "u")]
    assert (shown(view), view.useful()) == ([], frozenset())


def test_what_begins_and_ends_in_one_batch_has_ended() -> None:
    document = ActiveDocument.from_terms("r[!f]")
    view = document.view("/r/a[b]")
    document.apply([("f", "!g"), ("f", "a[!h]")], ["f", "g", "h"])
    assert (document.live, view.value) == (frozenset(), 0)


# --- what is refused, so that 0 stays 0 ----------------------------------------------------------


def test_a_mere_call_is_no_answer() -> None:
    """Its streams would bring what the function itself may not: `/r[a][b]` would come true."""
    document = ActiveDocument.from_terms("r[!f]", once=["f"])
    assert document.view("/r[a][b]").value == 0
    with pytest.raises(ActiveDocumentError, match="C1232"):
        document.add("f", "!g")
    document = ActiveDocument.from_terms("r[!f]", types={"f": ["a"]})
    assert document.view("/r/b").value == 0
    with pytest.raises(ActiveDocumentError, match="C1233"):
        document.add("f", "!g")


@pytest.mark.parametrize(
    ("tree", "is_allowed"),
    [
        ("a", False),  # the first `b` is required
        ("a[b]", True),
        ("a[b b]", True),
        ("a[b b b]", False),  # there are two single ones
        ("a[b c c c]", True),  # any number of `c`
        ("a[c c]", False),
        ("a[b[x]]", False),
        ("a[b c[x[y !g]]]", True),  # below `c` there may be anything
        ("a[b !g]", False),
        ("!g", False),
        ("b", False),
        ("a[b] a", False),
    ],
)
def test_trees_have_to_be_of_the_grammar(tree: str, is_allowed: bool) -> None:
    grammar = Grammar(
        "A",
        {
            "A": rule("a", Child("B", True, True), Child("B", False, True), Child("C")),
            "B": rule("b"),
            "C": rule("c", Child(ANY)),
        },
    )
    check_brought(ActiveDocument.from_terms("r[!f]", types={"f": grammar}), tree, is_allowed)


def test_an_answer_that_nobody_waits_for_is_one() -> None:
    """The call of `f` is collected; its answer is ignored, and there is no second one."""
    document = ActiveDocument.from_terms("r[s[!g] t[!f]]", once=["f"])
    view = document.view("/r/s/b/c")
    assert document.gc().closed == ("f",)
    document.add("f", "x")
    document.apply([("g", "b[!f]")], ["g"])
    assert (document.live, view.value) == (frozenset(), 0)


def test_what_ends_after_it_was_closed_has_ended() -> None:
    document = ActiveDocument.from_terms("r[s[!g] t[!f]]")
    view = document.view("/r/s/b/c")
    assert document.gc().closed == ("f",)
    document.end("f")
    document.apply([("g", "b[!f]")], ["g"])
    assert (document.live, view.value) == (frozenset(), 0)


def test_a_call_opens_a_function_again_for_what_follows_in_the_batch() -> None:
    document = ActiveDocument.from_terms("r[s[!g] t[!f]]")
    view = document.view("/r/s/b/c")
    assert document.gc().closed == ("f",)
    document.apply([("g", "b[!f]"), ("f", "c")])
    assert (document.terms(), view.value) == ("r[s[!g b[!f c]]]", 1)
