"""What views on documents cost, counted in tuples that the machinery touches, not in seconds."""

import pytest

from corollary.documents.collection import WriteBatch
from corollary.documents.document import ActiveDocument
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


@pytest.mark.slow
@pytest.mark.parametrize("shape", [STAR, PATH, BUSH])
@pytest.mark.parametrize("query", [2, 5, 9])
def test_tuples_are_linear_in_document_and_query(shape: str, query: int) -> None:
    costs = []
    for size in (60, 120, 240):
        opened = ActiveDocument(document(shape, size))
        costs.append(derived(opened, opened.view(pattern(query))) / size / query)
    assert max(costs) < 2 * min(costs)
    assert max(costs) < 12  # relations for each query node


@pytest.mark.slow
@pytest.mark.parametrize("shape", [STAR, BUSH])
def test_an_update_touches_what_it_brings_and_its_ancestors(shape: str) -> None:
    touched = []
    for size in (100, 1000):
        opened = ActiveDocument(document(shape, size))
        opened.view("/a[.//c][b]")
        touched.append(work(opened, "a[b]"))
    small, large = touched
    assert large <= 2 * small


def test_time_touches_what_enters_or_leaves_a_window() -> None:
    touched = []
    for size in (50, 500):
        opened = ActiveDocument.from_terms("r[!f]")
        view = opened.view("/r/a arrived $t [*$x] where now - $t <= 100s return $x")
        opened.add("f", "a[first]", at=1)
        opened.add("f", " ".join(f"a[{at}]" for at in range(size)), at=50)
        batch = WriteBatch()
        opened.times.advance("102", 102.0, batch)
        assert opened.times.next_turn == 150
        touched.append(written(opened, batch))
        opened.note_written({})
        assert len(view.sure) == size + 1  # what was written is not reported here
        assert len(opened.collection.storage.rows(f"{view.maintained.name}_sure")) == size
    assert max(touched) < 50


def work(opened: ActiveDocument, tree: str) -> int:
    """Return how many tuples an update propagates, guesses, checks and changes."""
    batch = WriteBatch()
    opened.stage_updates([("f", tree)], (), batch)
    return written(opened, batch)


def written(opened: ActiveDocument, batch: WriteBatch) -> int:
    """Return how many tuples a batch propagates, guesses, checks and changes."""
    with opened.collection.storage.database.transaction() as transaction:
        for relation, gone in batch.removed.items():
            transaction.delete(relation, gone)
        for relation, rows in batch.added.items():
            transaction.insert(relation, [*rows])
    counters = ("propagated", "approximated", "filtered", "checked", "actual")
    told = [each.as_json() for each in transaction.stats.values()]
    return sum(int(each[name]) for each in told for name in counters)
