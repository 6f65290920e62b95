"""What views on documents cost, counted in tuples that the machinery touches, not in seconds."""

import pytest

from corollary.documents.document import ActiveDocument
from corollary.documents.storage import WriteBatch
from corollary.documents.trees.forest import Forest, ForestNode, NodeKind
from corollary.documents.view import View

STAR, PATH, BUSH = "star", "path", "bush"


def document(shape: str, size: int) -> Forest:
    """Return a document of a shape, with a call below its last node."""
    parent = {STAR: lambda _: 0, PATH: lambda at: at - 1, BUSH: lambda at: (at - 1) // 3}[shape]
    rows = [ForestNode(-1, "a"), *(ForestNode(parent(at), "ab"[at % 2]) for at in range(1, size))]
    return [*rows, ForestNode(size - 1, "f", NodeKind.FUNCTION)]


def pattern(size: int) -> str:
    return "/a" + "[.//a][b]" * ((size - 1) // 2) + "[.//c]" * ((size - 1) % 2)


def derived(document: ActiveDocument, view: View) -> int:
    """Return how many tuples all relations of a view hold."""
    maintained, storage = view.maintained, document.collection.storage
    return sum(len(storage.rows(each.name)) for each in maintained.rules.declarations)


@pytest.mark.parametrize("shape", [STAR, PATH, BUSH])
@pytest.mark.parametrize("query", [2, 5, 9])
def test_tuples_are_linear_in_document_and_query(shape: str, query: int) -> None:
    costs = []
    for size in (60, 120, 240):
        opened = ActiveDocument(document(shape, size))
        costs.append(derived(opened, opened.view(pattern(query))) / size / query)
    assert max(costs) < 2 * min(costs)
    assert max(costs) < 12  # relations for each query node


@pytest.mark.parametrize("shape", [STAR, BUSH])
def test_an_update_touches_what_it_brings_and_its_ancestors(shape: str) -> None:
    touched = []
    for size in (100, 1000):
        opened = ActiveDocument(document(shape, size))
        opened.view("/a[.//c][b]")
        touched.append(work(opened, "a[b]"))
    small, large = touched
    assert large <= 2 * small


def work(opened: ActiveDocument, tree: str) -> int:
    """Return how many tuples an update propagates, guesses, checks and changes."""
    batch = WriteBatch()
    opened.stage_updates([("f", tree)], (), batch)
    with opened.collection.storage.database.transaction() as transaction:
        for relation, rows in batch.added.items():
            transaction.insert(relation, [*rows])
    counters = ("propagated", "approximated", "filtered", "checked", "actual")
    told = [each.as_json() for each in transaction.stats.values()]
    return sum(int(each[name]) for each in told for name in counters)
