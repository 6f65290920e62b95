"""XML as documents.

| XML                                             | document                                |
|-------------------------------------------------|-----------------------------------------|
| `<a>…</a>`                                      | a node `a`                              |
| `k="v"`                                         | a node `@k` with the leaf `v`           |
| text                                            | a leaf; blanks around it are removed    |
| `<?call f?>`, `<ad:call name="f"/>`             | a call of `f`                           |
| comments, other processing instructions, blanks | nothing                                 |

Entities are not resolved, nothing is fetched, and a document type is refused: neither bombs nor
foreign files get in. What a function brings is a forest, so a root is put around it for the parser.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from corollary.data_class import dataclass
from corollary.documents.errors import ActiveDocumentError
from corollary.documents.trees.forest import ROOT, Forest, ForestNode, NodeKind
from corollary.errors import InputError
from corollary.source import SourceFile, Span

CALL_TARGET = "call"
"""The processing instruction that is a call."""
_MAX_LEVELS, _MAX_HUGE_LEVELS = 256, 2048
"""The nesting that libxml2 accepts: by default, and of a sender that is trusted."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How texts are read; all but the format is for XML.

    Attributes:
        format: `xml`, `json` or `terms`; by the extension or the first character if not given.
        namespaces: how names in them are labelled: `local`, `clark` (`{uri}name`) or `prefix`.
        prefixes: for `prefix`, the prefix of each URI.
        call: the name of the element that is a call, `{uri}name`.
        is_stripped: whether blanks around text are removed.
        is_huge: whether texts may be larger than libxml2 allows by default, and 2048 levels deep.
    """

    format: str | None = None
    namespaces: str = "local"
    prefixes: Mapping[str, str] = field(default_factory=dict, hash=False)
    call: str = "{urn:active-document}call"
    is_stripped: bool = True
    is_huge: bool = False


def read_xml(
    text: str | bytes, reading: ReadOptions, name: str = "document", *, is_document: bool = False
) -> Forest:
    """Return the trees of an XML text.

    Raises:
        ActiveDocumentError: it is malformed, or has something in it that is refused.
    """
    try:
        from lxml import etree
    except ImportError:
        raise InputError.of(
            "C1251", "XML needs the package lxml.", None, "pip install 'corollary[documents]'"
        ) from None
    data = text.encode("utf-8") if isinstance(text, str) else text
    if not is_document:
        data = b"<forest>" + _without_declaration(data) + b"</forest>"
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        remove_comments=True,
        huge_tree=reading.is_huge,
    )
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise _malformed_error(error, data, name) from None
    if root.getroottree().docinfo.doctype:
        message = f"`{name}` has a document type, which is refused."
        note = "leave out <!DOCTYPE …>: entities are not resolved, and nothing is fetched"
        raise ActiveDocumentError.of("C1225", message, None, note)
    if is_document and root.tag == reading.call:
        message = f"`{name}` is the call of a function, and has no root."
        raise ActiveDocumentError.of("C1224", message, None, "put it below a root")
    if is_document:
        _check_outside(root, name, etree)
    builder = _RowBuilder(reading, name, etree)
    if is_document:
        builder.add_tree(root, ROOT)
    else:
        builder.add_children(root, ROOT)
    return builder.rows


def _check_outside(root: Any, name: str, etree: Any) -> None:
    """Check that no call stands before or after the root.

    Raises:
        ActiveDocumentError: one does.
    """
    for each in (*root.itersiblings(preceding=True), *root.itersiblings()):
        if each.tag is etree.PI and each.target == CALL_TARGET:
            message = f"`{name}` calls the function `{(each.text or '').strip()}` outside its root."
            note = "put the call into the root element: what a function brings comes beside it"
            raise ActiveDocumentError.of("C1224", message, None, note)


def _without_declaration(data: bytes) -> bytes:
    """Return a text without `<?xml …?>`, which is not allowed within the added root."""
    stripped = data.lstrip().removeprefix(b"\xef\xbb\xbf")
    if not stripped.startswith(b"<?xml "):
        return stripped
    return stripped.partition(b"?>")[2]


def _malformed_error(error: Exception, data: bytes, name: str) -> InputError:
    reason = str(getattr(error, "msg", error)).removesuffix(".")
    line, column = getattr(error, "position", (0, 0))
    span = None
    if line > 0 and len(data) < 1_000_000:
        source = SourceFile(name, data.decode("utf-8", "replace"))
        span = Span(source, line, max(1, column), line, max(1, column) + 1)
    if "depth" in reason:
        note = (
            f"XML has at most {_MAX_LEVELS} levels, of a sender that you trust {_MAX_HUGE_LEVELS} "
            "(`--huge`, `ReadOptions(is_huge=True)`); a term, `a[b[c]]`, may be nested at will"
        )
        return ActiveDocumentError.of("C1226", f"`{name}` is nested too deeply.", None, note)
    if "Namespace prefix" in reason or "namespace error" in reason.lower():
        note = 'declare the prefix within the fragment: xmlns:p="…"'
        message = f"`{name}` has a prefix that is not declared: {reason}."
        return ActiveDocumentError.of("C1228", message, span, note)
    if "entity" in reason.lower() or "DOCTYPE" in reason:
        note = "entities are not resolved; write the characters themselves"
        return ActiveDocumentError.of("C1225", f"`{name}` uses an entity: {reason}.", span, note)
    return ActiveDocumentError.of("C1222", f"`{name}` is not well-formed XML: {reason}.", span)


class _RowBuilder:
    """Makes rows of elements; it does not recurse, however deep they are nested."""

    def __init__(self, reading: ReadOptions, name: str, etree: Any) -> None:
        self.rows: list[ForestNode] = []
        self._reading = reading
        self._name = name
        self._etree = etree

    def add_tree(self, element: Any, parent: int) -> None:
        """Append an element and everything below it."""
        stack: list[tuple[Any, int]] = [(element, parent)]
        while stack:
            item, above = stack.pop()
            if isinstance(item, ForestNode):
                self.rows.append(item._replace(parent=above))
            else:
                self._element(item, above, stack)

    def add_children(self, element: Any, parent: int) -> None:
        """Append what is below an element, but not the element itself."""
        for item in self._items(element):
            self.add_tree(item, parent)

    def _element(self, element: Any, above: int, stack: list[tuple[Any, int]]) -> None:
        position = len(self.rows)
        self.rows.append(ForestNode(above, self._name_of(element.tag)))
        for key, value in element.attrib.items():
            self.rows.append(ForestNode(position, f"@{self._name_of(key)}", NodeKind.ATTRIBUTE))
            self.rows.append(ForestNode(len(self.rows) - 1, value, NodeKind.TEXT))
        stack += [(item, position) for item in reversed(self._items(element))]

    def _items(self, element: Any) -> list[Any]:
        """Return what is directly below an element: elements, and rows of text and calls."""
        found = self._text(element.text)
        for child in element:
            found += self._child(child)
            found += self._text(child.tail)
        return found

    def _child(self, child: Any) -> list[Any]:
        if child.tag is self._etree.PI:
            return [self._call(child.text, child)] if child.target == CALL_TARGET else []
        if child.tag is self._etree.Entity:
            message = f"`{self._name}` uses the entity `{child.text}`, which is not resolved."
            raise ActiveDocumentError.of("C1225", message)
        if not isinstance(child.tag, str):
            return []
        if child.tag != self._reading.call:
            return [child]
        if len(child) or (child.text or "").strip():
            raise self._wrong_call(child, "has something below it", "a call is a leaf")
        return [self._call(child.get("name"), child)]

    def _call(self, name: str | None, child: Any) -> ForestNode:
        name = (name or "").strip()
        if not name or len(name.split()) > 1:
            raise self._wrong_call(child, "has no name", "write <?call f?>")
        return ForestNode(ROOT, name, NodeKind.FUNCTION)

    def _wrong_call(self, child: Any, what: str, note: str) -> InputError:
        message = f"A call in line {child.sourceline} of `{self._name}` {what}."
        return ActiveDocumentError.of("C1223", message, None, note)

    def _text(self, text: str | None) -> list[ForestNode]:
        if text is None or not text.strip():
            return []
        return [
            ForestNode(ROOT, text.strip() if self._reading.is_stripped else text, NodeKind.TEXT)
        ]

    def _name_of(self, tag: str) -> str:
        uri, _, local = tag[1:].rpartition("}") if tag.startswith("{") else ("", "", tag)
        match self._reading.namespaces:
            case "clark":
                return tag
            case "prefix" if uri:
                prefix = self._reading.prefixes.get(uri)
                if prefix is None:
                    message = f"`{self._name}` uses the namespace `{uri}`, which has no prefix."
                    raise ActiveDocumentError.of("C1228", message)
                return f"{prefix}:{local}"
            case _:
                return local
