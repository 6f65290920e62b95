"""Queries on static documents against an XQuery processor, and exported ones against views."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from corollary.documents.collection import Collection
from corollary.documents.document import ActiveDocument
from corollary.documents.errors import QuerySyntaxError
from corollary.documents.queries.xquery import xquery_of
from oracles import documents as oracle
from oracles.document_text import shown, shown_query
from oracles.documents import Pattern, Q, Tree
from oracles.xquery_processor import Job, asked
from support.generators.documents import Making
from support.selection import examples

PAIRS = examples(200, 500)
PER_QUERY = 10


def as_xml(tree: Tree) -> str:
    if tree[0].startswith("!"):
        return f"<?call {tree[0][1:]}?>"
    return f"<{tree[0]}>{''.join(map(as_xml, tree[1]))}</{tree[0]}>"


def as_flwor(pattern: Pattern) -> str:
    """Return a query with answers as nested `for`s, one for each query node: a textbook reading."""
    (query,) = oracle.flat(pattern.root)
    lines: list[str] = []
    names: dict[str, list[str]] = {}

    def walk(node: oracle.Flat, path: str) -> None:
        name = f"$n{len(lines)}"
        test = "*" if node.label == "*" else node.label
        lines.append(f"for {name} in {path}{test}")
        if node.variable:
            names.setdefault(node.variable, []).append(name)
        for axis, below in node.edges:
            walk(below, f"{name}{axis}" if axis == "/" else f"{name}//")

    walk(query, "/")
    equal = [f"name({a}) = name({b})" for same in names.values() for a, b in pairwise(same)]
    equal += [f"name({names[a][0]}) = name({names[b][0]})" for a, b in pattern.equal]
    where = f" where {' and '.join(equal)}" if equal else ""
    row = ", '|', ".join(f"name({names[each][0]})" for each in pattern.outputs) or "'yes'"
    loop = " ".join(lines)
    return f"distinct-values({loop}{where} return concat({row}, '', ''))"


def random_pattern(seed: int) -> Pattern:
    """Return a random query without choices."""
    for at in range(seed * 1000, seed * 1000 + 1000):
        pattern = Making(random.Random(at)).query()
        if len(list(oracle.flat(pattern.root))) == 1:
            return pattern
    raise AssertionError(seed)


@pytest.mark.slow
def test_sure_answers_are_those_of_an_xquery_processor() -> None:
    jobs: list[Job] = []
    found = []
    for seed in range(PAIRS // PER_QUERY):
        pattern = random_pattern(seed)
        text, query = shown_query(pattern), as_flwor(pattern)
        maker = random.Random(seed)
        collection = Collection()
        trees = [static(maker) for _ in range(PER_QUERY)]
        documents = [ActiveDocument.from_xml(as_xml(t), collection=collection) for t in trees]
        for tree, document in zip(trees, documents, strict=True):
            view = document.view(text)
            assert not view.possible()
            jobs.append((query, as_xml(tree), ()))
            found.append((f"{text} on {shown(tree)}", view.sure, bool(pattern.outputs)))
    assert len(jobs) == PAIRS
    for (where, sure, has_answers), items in zip(found, asked(jobs), strict=True):
        rows = {tuple(each.split("|")) if has_answers else () for each in items}
        assert sure == rows, where


def static(maker: random.Random, depth: int = 4) -> Tree:
    def tree(label: str, left: int) -> Tree:
        number = maker.choices((0, 1, 2, 3), (2, 3, 3, 1))[0] if left else 0
        return label, [tree(maker.choice("abc"), left - 1) for _ in range(number)]

    return tree("r", depth)


@pytest.mark.slow
def test_exported_query_computes_the_value() -> None:
    jobs: list[Job] = []
    expected = []
    for seed in range(100):
        pattern = Pattern(without_variables(Making(random.Random(seed)).query().root), [])
        text = shown_query(pattern)
        numbers = random.Random(seed)
        for _ in range(4):
            tree = Making(random.Random(numbers.randrange(10**6))).document()
            ended = tuple(name for name in "fg" if numbers.random() < 0.2)
            jobs.append((xquery_of(text), as_xml(tree), ended))
            live = set("fg") - set(ended)
            possible = oracle.possible(pattern, tree, live)
            value = 1 if oracle.sure(pattern, tree) else 0.5 if possible else 0
            expected.append((f"{text}, {shown(tree)}, {ended}", value))
    for (where, value), items in zip(expected, asked(jobs), strict=True):
        assert list(map(float, items)) == [value], where


def without_variables(node: Q) -> Q:
    edges = [
        (each[0], without_variables(each[1]))
        if isinstance(each, tuple)
        else [[(axis, without_variables(below)) for axis, below in one] for one in each]
        for each in node.edges
    ]
    return Q(node.label, None, edges)


@pytest.mark.slow
def test_exported_query_sees_text_and_attributes() -> None:
    xml = '<r><a k="v &amp; w"> some text </a><?call f?></r>'
    expected = {
        "/r/a[@k='v & w']": 1,
        "/r/a[text()='some text']": 1,
        "/r[a/text()][b]": 0.5,
        "/s/a/b": 0,
        "/r/a[.//'v & w']": 1,
    }
    results = asked([(xquery_of(query), xml, ()) for query in expected])
    document = ActiveDocument.from_xml(xml)
    for (query, value), items in zip(expected.items(), results, strict=True):
        assert list(map(float, items)) == [value], query
        assert document.view(query).value == value


@pytest.mark.parametrize("query", ["/r/a$x", "/r[a/*$x][b/*$x] return ()"])
def test_answers_and_joins_have_no_xquery(query: str) -> None:
    with pytest.raises(QuerySyntaxError, match="C1260"):
        xquery_of(query)
