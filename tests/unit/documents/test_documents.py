"""Active documents: what they are read from, what happens to them, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from corollary.documents.answers.search_limits import SearchLimits
from corollary.documents.answers.unknown import ANY
from corollary.documents.document import ActiveDocument
from corollary.documents.errors import (
    ActiveDocumentError,
    QuerySyntaxError,
    StreamClosedError,
    UnknownFunctionError,
)
from corollary.documents.queries.parse import parse_query
from corollary.documents.saved_document import SavedDocument, StreamRow
from corollary.documents.stream_state import StreamProcessor
from corollary.documents.trees.reader import read_forest, write_terms
from corollary.documents.trees.xml import ReadOptions
from corollary.documents.types.function_types import Child, Grammar, Production
from corollary.documents.view import Delta
from corollary.errors import InputError
from support.command_line import INPUT, OK, USAGE, cli, of_json, put

MANAGERS = (
    'company[manager[name["Ann"] project[report]] '
    'manager[name["Bob"] project[!f]] manager[name["Cy"]]]'
)
SHIPPED = "/shop[pay/*$o][ship/*$o]"
REPORTING = "/company/manager[name/*$n][project/report]"


def as_terms(text: str | bytes, **reading: object) -> str:
    return write_terms(read_forest(text, ReadOptions(**reading), is_document=True))


# ----------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("<r><a/><?call f?></r>", "r[a !f]"),
        ('<r k="v">text <b/> more</r>', 'r[@k["v"] "text" b "more"]'),
        ("<r>\n  <a/>\n <!-- no --> <?other x?></r>", "r[a]"),
        ('<r xmlns:ad="urn:active-document"><ad:call name="f"/></r>', "r[!f]"),
        ('<r xmlns="urn:x" xmlns:p="urn:y"><p:a/></r>', "r[a]"),
        (
            '{"r": {"a": [1, 2.50], "!f": null, "b": {"c": true}}}',
            'r[a["1"#] a["2.50"#] !f b[c["true"#]]]',
        ),
        ('{"a": [1, {"b": "x"}]}', 'json[a["1"#] a[b["x"]]]'),
        ('[1, null, "?"]', 'json["1"# "null"# "?"]'),
        ('{"r": {"a": 1, "b": 2, "a": "1"}}', 'r[a["1"#] b["2"#] a["1"]]'),
        ('{"r": {"a": [], "b": [[]], "c": {}}}', 'r["a[]"# b["[]"#] c]'),
        ("[]", 'json["[]"#]'),
        ('r["two words"[a] "\\"quoted\\""]', 'r["two words"[a] "\\"quoted\\""]'),
    ],
)
def test_reading(text: str, terms: str) -> None:
    assert as_terms(text) == terms


def test_namespaces() -> None:
    xml = '<r xmlns:p="urn:y"><p:a p:k="1"/></r>'
    assert as_terms(xml, namespaces="clark") == 'r[{urn:y}a[@{urn:y}k["1"]]]'
    assert as_terms(xml, namespaces="prefix", prefixes={"urn:y": "q"}) == 'r[q:a[@q:k["1"]]]'
    with pytest.raises(ActiveDocumentError, match="C1228"):
        as_terms(xml, namespaces="prefix")


BOMB = """<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa">
<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><r>&c;</r>"""


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (BOMB, "C1225"),
        ('<!DOCTYPE r SYSTEM "file:///etc/passwd"><r/>', "C1225"),
        ('<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><r>&x;</r>', "C1225"),
        ("<a>" * 1_000_000 + "</a>" * 1_000_000, "C1226"),
        ("<r><a></r>", "C1222"),
        ("<r>&nosuch;</r>", "C1225"),
        ("", "C1224"),
        ("<?other f?><r/>", None),
        ("<?call f?><r/>", "C1224"),
        ("<r/><!-- --><?call f?>", "C1224"),
        ("<r><?call?></r>", "C1223"),
        ('<r xmlns:ad="urn:active-document"><ad:call/></r>', "C1223"),
        ('<r xmlns:ad="urn:active-document"><ad:call name="f">x</ad:call></r>', "C1223"),
        ('<ad:call xmlns:ad="urn:active-document" name="f"/>', "C1224"),
        ("!f", "C1224"),
        ("a b", "C1224"),
        ("a[!f[b]]", "C1221"),
        ("a[b", "C1220"),
        ("a]", "C1220"),
        ("a[[b]]", "C1220"),
        ('a["b', "C1220"),
        ("a[!]", "C1220"),
        ('{"a": }', "C1227"),
        ('{"r": ' * 100_000 + "1" + "}" * 100_000, "C1226"),
        ('{"r": {"!f": 1}}', "C1223"),
    ],
    ids=lambda each: str(each)[:30],
)
def test_hostile_documents(text: str, code: str | None) -> None:
    if code is None:
        ActiveDocument.read(text)
        return
    with pytest.raises(ActiveDocumentError, match=code):
        ActiveDocument.read(text)


@pytest.mark.slow
def test_values_of_json_are_told_apart() -> None:
    values = '"1"', "1", '"null"', "null", "[]", "{}", "true"
    several = [ActiveDocument.from_json(f'{{"r": {{"a": {each}}}}}') for each in values]
    assert len({each.terms() for each in several}) == len(values)
    queries = "/r/a", "/r/a/text()", "/r/a/number()", "/r/a/literal()='null'", '/r/"a[]"'
    matched = [[each.view(query).value for each in several] for query in queries]
    assert matched == [
        [1, 1, 1, 1, 0, 1, 1],
        [1, 0, 1, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0, 0],
        [0, 0, 0, 1, 0, 0, 0],
        [0, 0, 0, 0, 1, 0, 0],
    ]


@pytest.mark.parametrize("kind", ["text", "number", "literal"])
def test_a_function_may_bring_the_leaf_that_is_asked_for(kind: str) -> None:
    assert ActiveDocument.from_terms("r[!f]").view(f"/r/a/{kind}()$x").useful() == {"f"}


def test_the_hint_on_nesting_helps() -> None:
    def deep(levels: int) -> str:
        return "<a>" * levels + "</a>" * levels

    with pytest.raises(ActiveDocumentError, match="2048"):
        ActiveDocument.from_xml(deep(257))
    for levels in (257, 2048):
        found = ActiveDocument.from_xml(deep(levels), reading=ReadOptions("xml", is_huge=True))
        assert len(found.nodes) == levels
    with pytest.raises(ActiveDocumentError, match="a term"):
        ActiveDocument.from_xml(deep(2049), reading=ReadOptions("xml", is_huge=True))


def test_deep_terms_are_no_trouble() -> None:
    depth = 3_000
    document = ActiveDocument.from_terms("a[" * depth + "b" + "]" * depth)
    assert document.view("/a[.//b]").value == 1
    assert document.terms().count("a[") == depth


def test_undeclared_prefix_names_the_fragment() -> None:
    document = ActiveDocument.from_xml("<r><?call f?></r>")
    with pytest.raises(ActiveDocumentError, match=r"C1228.*update of f"):
        document.add("f", "<p:a/>")


# ----------------------------------------------------------------------------------------- updates


def test_unknown_functions() -> None:
    document = ActiveDocument.from_terms("r[!f]")
    with pytest.raises(UnknownFunctionError, match="C1230"):
        document.add("g", "a")
    with pytest.raises(UnknownFunctionError, match="C1230"):
        document.end("g")
    lenient = ActiveDocument.from_terms("r[!f]", unknown="ignore")
    lenient.add("g", "a")
    assert lenient.terms() == "r[!f]"


def test_late_data() -> None:
    document = ActiveDocument.from_terms("r[!f]")
    document.end("f")
    with pytest.raises(StreamClosedError, match="C1231"):
        document.add("f", "a")
    lenient = ActiveDocument.from_terms("r[!f]", late="ignore")
    lenient.end("f")
    lenient.add("f", "a")
    assert lenient.terms() == "r[!f]"


def test_answers_once() -> None:
    document = ActiveDocument.from_terms("r[!f]", once=["f"])
    view = document.view("/r[a][b]")
    assert view.value == 0
    with pytest.raises(ActiveDocumentError, match="C1232"):
        document.add("f", "a b")
    with pytest.raises(ActiveDocumentError, match="C1232"):
        document.apply([("f", "a"), ("f", "b")])
    document.add("f", "a")
    with pytest.raises(StreamClosedError):
        document.add("f", "b")


def test_an_update_that_is_wrong_changes_nothing() -> None:
    document = ActiveDocument.from_terms("r[!f]")
    with pytest.raises(ActiveDocumentError):
        document.apply([("f", "a"), ("f", "b[")])
    assert document.terms() == "r[!f]"


def test_types() -> None:
    document = ActiveDocument.from_terms("r[!f s[b]]", types={"f": ["a"]})
    assert document.view("/r/a").value == 0.5
    assert document.view("/r/c").value == 0
    assert document.view("/r//c").value == 0.5
    assert document.view("/r[*$x][s/*$x]").possible() == frozenset()
    with pytest.raises(ActiveDocumentError, match="C1233"):
        document.add("f", "b")


@pytest.mark.slow
def test_grammars() -> None:
    order = Production(
        frozenset({"order"}), (Child("Id", is_required=True, is_single=True), Child("Line"))
    )
    grammar = Grammar(
        "Order",
        {
            "Order": order,
            "Id": Production(frozenset({"id"}), (Child("ANY"),)),
            "Line": Production(frozenset({"line"})),
        },
    )
    document = ActiveDocument.from_terms("r[!f]", types={"f": grammar})
    for query, value in {
        "/r/order[id][line]": 0.5,
        "/r/order/id/x/y": 0.5,
        "/r/order/line/x": 0,
        "/r/line": 0,
        "/r//line": 0.5,
        "/r/order[id/a][id/b]": 0.5,
        "/r/order/*[line]": 0.5,
        "/r/order/line[line]": 0,
    }.items():
        assert document.view(query).value == value, query


def test_active_results_bring_calls() -> None:
    document = ActiveDocument.from_terms("r[!f]")
    view = document.view("/r/a/b")
    document.add("f", "a[!g]")
    assert view.useful() == {"f", "g"}
    document.apply([("f", "!h"), ("h", "a[b]")])
    assert view.value == 1


def test_listeners_hear_deltas() -> None:
    document = ActiveDocument.from_terms(MANAGERS)
    view = document.view(REPORTING)
    heard: list[Delta] = []
    view.on_change(heard.append)
    document.add("f", "nothing")
    assert heard == []
    document.add("f", "report")
    bob = frozenset({("Bob",)})
    assert heard == [Delta(bob, frozenset(), bob, 1, 1)]
    document.end("f")
    assert len(heard) == 1


def test_a_label_that_is_a_question_mark() -> None:
    document = ActiveDocument.from_terms('r["?" "??" !f]')
    view = document.view("/r/*$x")
    assert view.sure == {("?",), ("??",)}
    assert view.possible() == {(ANY,)}


def test_reductions() -> None:
    view = ActiveDocument.from_terms("r[b[c[!f]] !g]").view("/r/*$x/*$y[d]")
    assert view.possible(reduce="general") == {(ANY, ANY)}
    assert view.possible(reduce="specific") == {("b", "c")}
    with pytest.raises(ValueError, match="general"):
        view.possible(reduce="least")


# --------------------------------------------------------------------------------------- questions


def test_collection_of_managers() -> None:
    document = ActiveDocument.from_terms(MANAGERS)
    view = document.view(REPORTING)
    collected = document.gc()
    assert document.terms() == 'company[manager[name["Bob"] project[!f]]]'
    assert (collected.kept, collected.dropped, collected.closed) == (6, 8, ())
    assert view.sure == {("Ann",)}
    document.add("f", "report")
    assert view.sure == {("Ann",), ("Bob",)}


def test_several_views_keep_what_each_needs() -> None:
    document = ActiveDocument.from_terms("r[a[!f] b[!g] c]")
    one, other = document.view("/r/a/x"), document.view("/r/b/y")
    document.gc()
    assert document.terms() == "r[a[!f] b[!g]]"
    document.add("f", "x")
    assert document.gc().closed == ("f",)
    assert (document.terms(), one.value, other.value) == ("r[b[!g]]", 1, 0.5)
    assert document.gc([one]).closed == ("g",)
    document.add("g", "y")  # nobody asks any more
    assert document.terms() == "r"


def test_explanations() -> None:
    document = ActiveDocument.from_terms(MANAGERS)
    view = document.view(REPORTING)
    assert view.explain(("Bob",)).waits_for == (frozenset({"f"}),)
    assert str(view.explain(("Bob",))) == "(Bob) waits for !f"
    assert view.explain(("Ann",)).nodes[-1] == "company/manager/project/report"
    assert view.explain(("Cy",)).value == 0


def test_limits_leave_functions_useful() -> None:
    view = ActiveDocument.from_terms("a[b[!f] k[e[!g]]]").view("/a[*/e/c][k/e/c]")
    assert view.useful() == {"g"}
    view.limits = SearchLimits(nodes=5)
    found = view.usefulness()
    assert (found.functions, found.unproved, found.is_exact) == ({"f", "g"}, {"f", "g"}, False)
    assert found.reason == "the search ended after 5 nodes"
    assert view.useful(exact=False) == {"f", "g"}


@pytest.mark.slow
def test_many_functions_that_answer_once_are_no_trouble() -> None:
    names = [f"f{at}" for at in range(25)]
    calls = " ".join(f"!{name}" for name in names)
    document = ActiveDocument.from_terms(f"r[{calls}]", once=names)
    view = document.view("/r[a][b][c]")
    assert (view.value, view.is_exact, view.bound_reason) == (0.5, True, "")
    labels = " ".join(f"l{at}" for at in range(200))
    tree = f"r[p[!f] q[!g] s[!h] t[u v w] {labels}]"
    three = ActiveDocument.from_terms(tree, once=["f", "g", "h"]).view(
        "/r[p/*$x][q/*$y][s/*$z][t[*$x][*$y][*$z]]"
    )
    assert (len(three.possible()), three.is_exact) == (27, True)


@pytest.mark.slow
def test_usefulness_looks_at_each_node_a_few_times() -> None:
    looked = []
    for size in (200, 2000):
        orders = " ".join(f"pay[o{at}] ship[o{at + size // 2}]" for at in range(size))
        view = ActiveDocument.from_terms(f"shop[{orders} !f !g]").view(SHIPPED)
        view.limits = SearchLimits(nodes=20 * len(view.question.nodes))
        looked.append((view.useful(), view.usefulness().is_exact))
    assert looked == [({"f", "g"}, True)] * 2


def test_a_search_for_single_answers_ends_at_its_limits() -> None:
    """Each clause needs a variable to be 0, or 1: no vector of labels has all of them."""
    names = [f"f{at}" for at in range(12)]
    clauses = "".join(f"[c{at}/*/{at % 2}]" for at in range(12))
    tree = " ".join(f"c{at}[{' '.join(f'v[!{name}]' for name in names)}]" for at in range(12))
    view = ActiveDocument.from_terms(
        f"r[{tree}]", once=names, limits=SearchLimits(nodes=2000)
    ).view(f"/r{clauses}")
    assert (view.value, view.is_exact) == (0.5, False)
    assert view.bound_reason == "the search ended after 2,000 nodes"


# ------------------------------------------------------------------------------------------ queries


@pytest.mark.parametrize(
    ("query", "code", "text"),
    [
        ("a/b", "C1202", "begins at the root"),
        (".//a", "C1202", "begins at the root"),
        ("/a[not(b)]", "C1201", "not"),
        ("/a[position()=1]", "C1201", "no order"),
        ("/a[last()]", "C1201", "no order"),
        ("/a/..", "C1201", "only go down"),
        ("/a/parent::b", "C1201", "only go down"),
        ("/a[count(b) > 1]", "C1201", "count"),
        ("/a[b > 1]", "C1201", ">"),
        ("/a[b + c]", "C1201", "after `where`"),
        ("/a[@*]", "C1201", "by name"),
        ("/a[.='x']", "C1201", "by itself"),
        ("/a[]", "C1203", "empty"),
        ("/a[b", "C1200", "does not end"),
        ("/a[(b]", "C1200", "does not end"),
        ("/a]", "C1200", "not expected"),
        ("/", "C1200", "no node"),
        ("", "C1202", "root"),
        ("/a/text()/b", "C1200", "nothing below"),
        ("/a[b=c]", "C1200", "quoted"),
        ("/a$x where $x = $y", "C1204", r"\$y"),
        ("/a return $x", "C1204", r"\$x"),
        ("/a$x where $x = 'v'", "C1200", "compares variables"),
        ("/a[b$x or c]", "C1205", "every alternative"),
        ("/a" + "[b" * 200 + "]" * 200, "C1206", "nested"),
        ("/a" + "/b" * 200, "C1206", "nested"),
        ("/a" + "[b]" * 600, "C1206", "nodes"),
    ],
    ids=lambda each: str(each)[:30],
)
def test_wrong_queries(query: str, code: str, text: str) -> None:
    with pytest.raises(QuerySyntaxError, match=text) as caught:
        parse_query(query)
    assert caught.value.diagnostics[0].code == code


def test_doubtful_queries() -> None:
    document = ActiveDocument.from_terms("r[!f]")
    (warning,) = document.view("/r/x[a$u][b$v] where $u = $v return ()").maintained.warnings
    assert warning.code == "C1210"
    (warning,) = document.view("/r[a][b][a]").maintained.warnings
    assert warning.code == "C1211"


def test_too_many_joins_at_one_place() -> None:
    names = [f"*$x{at}" for at in range(7)]
    twice = "".join(
        f"[{side}{''.join(f'[l{at}/{each}]' for at, each in enumerate(names))}]" for side in "ab"
    )
    with pytest.raises(QuerySyntaxError, match="C1206"):
        ActiveDocument.from_terms("r").view(f"/r{twice} return ()")


@pytest.mark.parametrize(
    ("document", "query", "sure"),
    [
        ("r[a]", "//a$x", {("a",)}),
        ("a[a]", "//a$x", {("a",)}),
        ("a[b]", "//a[b] return ()", {()}),
        ("r[a[x] b[y]]", "/r/a/*$v | /r/b/*$v", {("x",), ("y",)}),
        ("r[a b]", "/r[(a or c) and b]", {()}),
        ('r[b["v"]]', "/r[b='v']", {()}),
        ("r[b[v]]", "/r[b='v']", {()}),
        ('r["v" w]', "/r/text()$x", {("v",)}),
        ('r[@k["v"]]', "/r/@k/*$x", {("v",)}),
        ("r[a[1] b[1] c[2]]", "/r[a/*$x][b/*$y][c/*$z] where $x = $y return $x, $z", {("1", "2")}),
        ("r[a b c[a]]", "/r[a$x or b$x][c/*$x] return $x", {("a",)}),
        ("r[b c[a]]", "/r[a$x or b][c/*$x] return ()", {()}),
        ("r[c[a]]", "/r[a$x or b][c/*$x] return ()", set()),
    ],
)
def test_queries(document: str, query: str, sure: set[tuple[str, ...]]) -> None:
    assert ActiveDocument.from_terms(document).view(query).sure == sure


# ----------------------------------------------------------------------------------------- streams


def test_rows_that_do_not_fit_are_refused_alone() -> None:
    keeper = StreamProcessor({"v": "/r[a][b]"}, "r[!f !g]", once=["g"], types={"f": ["a"]})
    kept = SavedDocument()
    rows = [
        StreamRow("f", 1, "<b/>", is_end=False),
        StreamRow("f", 2, "<a>", is_end=False),
        StreamRow("f", 3, "<a/>", is_end=True),
        StreamRow("f", -1, "<a/>", is_end=False),
        StreamRow("g", 1, "b c", is_end=False),
        StreamRow("g", 2, "b", is_end=False),
        StreamRow("g", 3, "b", is_end=False),
    ]
    events = keeper.process_rows("d", kept, rows)
    assert [each.seq for each in events if each.op == "refused"] == [-1, 1, 1, 2, 3]
    assert [(each.view, each.value) for each in events if each.op == "value"] == [("v", 1)]
    assert keeper.process_rows("d", SavedDocument.from_json(kept.to_json()), rows[:3]) == []
    (event,) = keeper.process_rows("d", kept, [StreamRow("f", 4, "<a/>", is_end=False)])
    assert (event.op, "has ended" in event.text) == ("refused", True)


def test_rows_wait_for_their_document_and_their_call() -> None:
    keeper = StreamProcessor({"v": "/r/a/*$x"})
    kept = SavedDocument()
    assert keeper.process_rows("d", kept, [StreamRow("g", 1, "one", is_end=False)]) == []
    (event,) = keeper.process_rows("d", kept, [StreamRow("", 0, "!f", is_end=False)])
    assert event.op == "refused"
    keeper.process_rows("d", kept, [StreamRow("", 1, "r[!f]", is_end=False)])
    events = keeper.process_rows("d", kept, [StreamRow("f", 1, "a[!g]", is_end=False)])
    assert [each.text for each in events if each.op == "sure"] == ['["one"]']


def test_a_view_says_which_functions_it_waits_for() -> None:
    types = {"f": ["a"], "g": ["b"]}
    keeper, kept = StreamProcessor({"v": "/r[a][b]"}, "r[!f !g]", types=types), SavedDocument()

    def waits(row: StreamRow) -> list[tuple[str, str]]:
        found = keeper.process_rows("d", kept, [row])
        return [(each.op, each.text) for each in found if each.op in {"waits", "settled"}]

    assert waits(StreamRow("f", 1, None, is_end=False)) == [("waits", "f"), ("waits", "g")]
    assert kept.waits == {"v": {"f": "", "g": ""}}
    assert waits(StreamRow("f", 2, "a", is_end=True)) == [("settled", "f")]
    assert waits(StreamRow("g", 1, None, is_end=True)) == [("settled", "g")]
    assert kept.values == {"v": 0}


@pytest.mark.slow
@pytest.mark.parametrize("most", [10**6, 3])
def test_what_is_kept_can_be_opened_elsewhere(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corollary.documents.stream_state.MAX_NUMBERED_NODES", most)
    monkeypatch.setattr("corollary.documents.stream_state.MIN_NUMBERED_RATIO", 0)
    views, template = {"done": "/r[pay/*$o][ship/*$o]", "odd": "/r/odd"}, "r[!pay !ship]"
    here, there = StreamProcessor(views, template), StreamProcessor(views, template)
    kept, found = SavedDocument(), []
    for at in range(4):
        rows = [StreamRow("pay", at, f"pay[o{at}]", is_end=False)]
        rows += [StreamRow("ship", at, f"ship[o{at - 1}]", is_end=False)] if at else []
        kept = SavedDocument.from_json(kept.to_json())
        found += (here, there)[at % 2].process_rows("d", kept, rows)
    assert [each.text for each in found if each.op == "sure"] == ['["o0"]', '["o1"]', '["o2"]']


def test_a_large_document_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corollary.documents.stream_state.MAX_NUMBERED_NODES", 10)
    keeper, kept = StreamProcessor({"found": "/r[a/*$x][b/*$x]"}, "r[!f]"), SavedDocument()
    large = " ".join(f"a[x{at}]" for at in range(100))
    collections = set()
    for seq in range(4):
        data = large if seq == 0 else f"b[x{seq}]"
        keeper.process_rows("d", kept, [StreamRow("f", seq, data, is_end=False)])
        collections.add(id(keeper._collection))
    assert len(collections) == 1


# -------------------------------------------------------------------------------- the command line


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def match(*arguments: str) -> object:
    return of_json(cli("documents", "match", *arguments, "--format", "json"))


def test_match_tells_everything(place: Path) -> None:
    put("doc.xml", "<r><a/><?call f?><?call g?></r>")
    put("more.json", '{"b": {"c": 1}}')
    found = match("--doc", "doc.xml", "--query", "/r[a][b/c/*$x]", "--useful", "--gc", "--end", "g")
    assert found == {
        "value": 0.5,
        "sure": [],
        "possible": [["?"]],
        "minimal": [["?"]],
        "unknown": [[0]],
        "exact": True,
        "useful": ["f"],
        "useful_exact": True,
        "useful_work": {"used": 6, "limit": 2_000_000},
        "closed": [],
        "kept_nodes": 3,
    }
    found = match("--doc", "doc.xml", "--query", "/r[a][b/c/*$x]", "--update", "f=more.json")
    assert found["sure"] == [["1"]]


def test_match_with_functions_of_other_kinds() -> None:
    assert match("--doc", "r[!f]", "--query", "/r[a][b]", "--once", "f")["value"] == 0
    assert match("--doc", "r[!f]", "--query", "/r/c", "--type", "f=a,b")["value"] == 0
    assert match("--doc", 'r["?" !f]', "--query", "/r/*$x")["unknown"] == [[0]]
    found = match("--doc", "a[b d[!f1]]", "--query", "/a[b][c]", "--gc")
    assert (found["closed"], found["kept_nodes"]) == (["f1"], 1)


def test_match_refuses() -> None:
    result = cli("documents", "match", "--doc", "r[a", "--query", "/r")
    assert (result.exit_code, "C1220" in result.stderr) == (INPUT, True)
    result = cli("documents", "match", "--doc", "r", "--query", "/r", "--update", "f")
    assert result.exit_code == USAGE
    result = cli("documents", "match", "--doc", "missing.xml", "--query", "/r")
    assert (result.exit_code, "C1229" in result.stderr) == (INPUT, True)


def test_xquery_is_printed() -> None:
    result = cli("documents", "xquery", "--query", "/r[a][.//b]")
    assert result.exit_code == OK
    assert result.stdout.endswith("max((0, local:node-0(/*)))\n")


def test_files_of_views(place: Path) -> None:
    from corollary.documents.input_files import read_views

    path = put("views.txt", "# views\nlate: /r[pay/*$o]\n\n/r/b\n")
    assert read_views(path) == {"late": "/r[pay/*$o]", "view4": "/r/b"}
    put("views.txt", "a: /r[\na: b")
    with pytest.raises(InputError) as caught:
        read_views(path)
    assert [each.code for each in caught.value.diagnostics] == ["C1200", "C1202"]


@pytest.mark.parametrize("ends", ["end", "gc"])
def test_calls_of_ignored_data_are_ignored(ends: str) -> None:
    document = ActiveDocument.from_terms("r[p[!f] q[!g]]", late="ignore")
    view = document.view("/r/q/a")
    if ends == "end":
        document.end("f")
    else:
        assert document.gc().closed == ("f",)
    document.add("f", "x[!h]")
    document.apply([("h", "y[!i]"), ("i", "z")], ends=["i"])
    document.retract("h", "y[!i]")
    with pytest.raises(UnknownFunctionError, match="C1230"):
        document.add("j", "z")
    document.add("g", "a x[!h]")  # now it is called
    document.add("h", "y")
    assert (document.terms().count("y"), view.value) == (1, 1)
