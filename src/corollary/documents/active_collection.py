"""`ActiveCollection`: documents with names, and views that join patterns over several of them.

The documents are one tree, each below its name, so that everything that is known of one document
holds for several together: values, answers, usefulness, garbage, explanations. A function belongs
to its document: the `!f` of `orders` and that of `stock` are two, `orders:f` and `stock:f`.

| written                     | in the tree                              |
|-----------------------------|------------------------------------------|
| `orders` is `shop[a !f]`    | `orders[shop[a !orders:f]]` below the root |
| `doc("orders")/shop[a$x]`   | the child `orders`, its child `shop`     |
| `collection()$d/shop[a$x]`  | any child, whose label is `$d`           |

What is possible, and what is false for ever, is said of the documents that are there.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from corollary.documents.collection import WriteBatch
from corollary.documents.document import ActiveDocument, Data
from corollary.documents.errors import ActiveDocumentError, QuerySyntaxError
from corollary.documents.queries.pattern import DocumentQuery
from corollary.documents.trees.forest import ROOT, Forest, ForestNode, NodeKind
from corollary.documents.trees.reader import EXTENSIONS, read_forest, write_terms
from corollary.documents.trees.xml import ReadOptions
from corollary.documents.types.check_update import check_document
from corollary.documents.types.function_types import FunctionType, Grammar
from corollary.documents.types.read_type import GivenType, function_type
from corollary.errors import Diagnostic

_NAME = re.compile(r"[^\W\d][\w.\-]*")
_NO_LABEL = "collection"
"""The label of the root: no query can ask for it."""


class ActiveCollection(ActiveDocument):
    """Documents with names, which streams still write into.

    >>> documents = ActiveCollection({"orders": "shop[order[o1] !f]", "stock": "store[o1 o2]"})
    >>> view = documents.view('doc("orders")/shop/order/*$o and doc("stock")/store/*$o')
    >>> sorted(view.sure), sorted(view.possible())
    ([('o1',)], [('o2',)])
    >>> documents.add("orders:f", "order[o2]")
    >>> sorted(view.sure)
    [('o1',), ('o2',)]

    Args:
        documents: by name, each a text, a path, or rows; or the rows of all of them together, as
            `terms` has them.
        once, types: as of one document, by the name of a function in all documents (`f`), or in one
            of them (`orders:f`).
        options: further ones, of `ActiveDocument`.

    Raises:
        ActiveDocumentError: one of them is not a document, or has no proper name.
    """

    def __init__(
        self,
        documents: Mapping[str, Data] | Forest,
        *,
        once: Iterable[str] = (),
        types: Mapping[str, GivenType] | None = None,
        reading: ReadOptions | None = None,
        **options: Any,
    ) -> None:
        self._reading = reading or ReadOptions()
        self._given_once = tuple(once)
        self._given_types = {
            name: function_type(name, each) for name, each in (types or {}).items()
        }
        rows = [ForestNode(ROOT, _NO_LABEL, NodeKind.COLLECTION)]
        if isinstance(documents, Mapping):
            for name, data in documents.items():
                rows += _move(self._named_document(name, data), len(rows), 0)
        else:
            rows += documents[1:]
        names = [each.label for each in rows if each.parent == 0]
        scoped = self._scoped_types(names)
        once = self._scoped_once(names)
        super().__init__(rows, once=once, types=scoped, reading=self._reading, **options)

    def _scoped_once(self, names: Iterable[str]) -> frozenset[str]:
        """Return the functions of documents that answer at most once."""
        return frozenset(each for name in self._given_once for each in _scoped_names(name, names))

    def _scoped_types(self, names: Iterable[str]) -> dict[str, FunctionType]:
        """Return what the functions of documents bring."""
        return {
            each: _in_document(type_, each.partition(":")[0])
            for name, type_ in self._given_types.items()
            for each in _scoped_names(name, names)
        }

    @property
    def documents(self) -> dict[str, int]:
        """The nodes that documents are below, by their names."""
        return {self.nodes.labels[each]: each for each in self.nodes.children[self.nodes.root]}

    @property
    def live(self) -> frozenset[str]:
        """The names of the functions that are called, and may still bring something."""
        return frozenset(name for name in super().live if self.nodes.calls.get(name))

    def add_document(self, name: str, data: Data) -> None:
        """Add a document; what was false of the others may become true with it.

        Raises:
            ActiveDocumentError: it is not a document, its name is taken or not a plain word, or
                garbage has been collected.
        """
        if name in self.documents:
            message = f"There is a document `{name}` already."
            raise ActiveDocumentError.of("C1255", message, None, "give it another name")
        self._check_is_whole("added")
        forest = self._named_document(name, data)
        self._once |= self._scoped_once([name])
        self._types |= self._scoped_types([name])
        batch = WriteBatch()
        numbers = self.collection.node_numbers
        self._add_nodes(self.nodes.graft(self.nodes.root, forest, numbers), batch)
        self.note_written(self.collection.write(batch))

    def remove_document(self, name: str) -> None:
        """Take a document out, with all that was brought into it.

        Raises:
            ActiveDocumentError: there is none of this name, or garbage has been collected.
        """
        known = self.documents
        if name not in known:
            raise ActiveDocumentError.of(*_unknown_document(name, known))
        self._check_is_whole("taken out")
        batch = WriteBatch()
        self._remove_nodes(self.nodes.prune([known[name]]), batch)
        self.note_written(self.collection.write(batch))

    def document_terms(self) -> dict[str, str]:
        """Return the documents as they are now, in term syntax; empty if all was collected."""
        return {
            name: write_terms(_unscope_calls(self.nodes.forest(below[0]))) if below else ""
            for name, number in self.documents.items()
            for below in (self.nodes.children[number],)
        }

    # --- inside ----------------------------------------------------------------------------------

    def _check_query(self, query: DocumentQuery) -> None:
        if not query.is_joint:
            note = 'begin with `doc("name")`, or with `collection()` for each of them'
            message = "The query does not say which of several documents it begins at."
            span = query.roots[0].span
            raise QuerySyntaxError([Diagnostic("C1256", message, span, note)])
        known = self.documents
        findings = [
            Diagnostic(code, message, span, note)
            for name, span in query.documents.items()
            if name not in known
            for code, message, _, note in (_unknown_document(name, known),)
        ]
        if findings:
            raise QuerySyntaxError(findings)

    def _check_is_whole(self, done: str) -> None:
        """Check that nothing was collected: what is gone may matter for other documents.

        Raises:
            ActiveDocumentError: something was.
        """
        if self._is_collected:
            message = f"No document can be {done} after garbage was collected, or closed."
            note = "open the documents anew, and do not collect"
            raise ActiveDocumentError.of("C1234", message, None, note)

    def _named_document(self, name: str, data: Data) -> list[ForestNode]:
        """Return the tree of a document below its name; its calls have the name in theirs."""
        if not _NAME.fullmatch(name):
            message = f"`{name}` cannot be the name of a document."
            note = "a name begins with a letter, and has letters, digits, `_`, `-` and `.`"
            raise ActiveDocumentError.of("C1255", message, None, note)
        forest = (
            read_forest(data, self._reading, name, is_document=True)
            if isinstance(data, str | bytes | Path)
            else data
        )
        check_document(forest)
        return [ForestNode(ROOT, name), *_move(_scope_calls(forest, name), 1, 0)]

    def _read(self, name: str, data: Data) -> Forest:
        return _scope_calls(super()._read(name, data), name.partition(":")[0])


def read_collection(folder: Path) -> dict[str, Path]:
    """Return the documents of a folder by name: its files of XML, JSON and terms.

    Raises:
        ActiveDocumentError: there are none, or two have the same name.
    """
    found: dict[str, Path] = {}
    paths = sorted(each for each in folder.iterdir() if each.suffix.lower() in EXTENSIONS)
    for path in paths:
        if path.stem in found:
            message = f"`{found[path.stem].name}` and `{path.name}` are documents of one name."
            raise ActiveDocumentError.of("C1255", message, None, "rename one of the files")
        found[path.stem] = path
    if not found:
        listed = ", ".join(f"`{each}`" for each in EXTENSIONS)
        message = f"The folder `{folder}` has no documents."
        raise ActiveDocumentError.of("C1255", message, None, f"put files into it: {listed}")
    return found


def _unknown_document(name: str, known: Iterable[str]) -> tuple[str, str, None, str]:
    listed = ", ".join(f"`{each}`" for each in sorted(known)) or "none"
    return "C1255", f"There is no document `{name}`.", None, f"there are {listed}"


def _scoped_names(name: str, documents: Iterable[str]) -> list[str]:
    """Return what a function is called in the documents that it is in."""
    return [name] if ":" in name else [f"{each}:{name}" for each in documents]


def _move(forest: Iterable[ForestNode], by: int, below: int) -> list[ForestNode]:
    """Return a forest that stands below a row, after others."""
    return [
        each._replace(parent=below if each.parent == ROOT else each.parent + by) for each in forest
    ]


def _scope_calls(forest: Forest, document: str) -> Forest:
    """Return a forest whose calls have the name of a document in theirs."""
    return [
        each._replace(label=f"{document}:{each.label}") if each.kind is NodeKind.FUNCTION else each
        for each in forest
    ]


def _unscope_calls(forest: Forest) -> Forest:
    return [
        each._replace(label=each.label.partition(":")[2])
        if each.kind is NodeKind.FUNCTION
        else each
        for each in forest
    ]


def _in_document(type_: FunctionType, document: str) -> FunctionType:
    """Return a type whose calls have the name of a document in theirs."""
    if not isinstance(type_, Grammar):
        return type_
    rules = {
        name: tuple(
            replace(each, calls=frozenset(f"{document}:{call}" for call in each.calls))
            for each in type_.productions(name)
        )
        for name in type_.rules
    }
    return replace(type_, rules=rules)
