"""Documents and updates from texts and files: XML, JSON or terms.

In JSON a key is a node, an array repeats it, a scalar is a leaf:

| JSON                                | document                                                  |
|-------------------------------------|-----------------------------------------------------------|
| `{"a": [{"id": "x"}, {"id": "y"}]}` | `json[a[id["x"]] a[id["y"]]]`                             |
| `{"a": 1, "a": 2}`                  | `json[a["1"#] a["2"#]]`: a key may be repeated, too       |
| `7.50`, `true`, `null`              | leaves `"7.50"#`, `"true"#`, `"null"#`: no strings        |
| `{"a": []}`                         | `json["a[]"#]`: there is no `a`, but the key is not lost  |
| `{"!f": null}`                      | a call of `f`                                             |
"""

import json
from pathlib import Path
from typing import Any

from corollary.documents.errors import ActiveDocumentError
from corollary.documents.trees.forest import (
    EMPTY_ARRAY,
    ROOT,
    Forest,
    ForestNode,
    NodeKind,
    json_kind,
)
from corollary.documents.trees.terms import read_terms
from corollary.documents.trees.xml import ReadOptions, read_xml
from corollary.source import SourceFile, Span

ROOT_LABEL = "json"
"""The label of the root of a document that has more than one key."""


class _Spelling(str):
    """A number as it was written."""

    __slots__ = ()


class _Pairs(tuple[tuple[str, Any], ...]):
    """The keys of an object with their values; a key may be there several times."""

    __slots__ = ()


def read_json(text: str, name: str = "document", *, is_document: bool = False) -> Forest:
    """Return the trees of a JSON text; those of a document stand below one root.

    >>> [row.label for row in read_json('{"r": {"a": 1, "!f": null}}', is_document=True)]
    ['r', 'a', '1', 'f']

    Raises:
        ActiveDocumentError: it is malformed.
    """
    try:
        value = json.loads(
            text,
            parse_int=_Spelling,
            parse_float=_Spelling,
            parse_constant=_Spelling,
            object_pairs_hook=_Pairs,
        )
    except json.JSONDecodeError as error:
        span = Span(
            SourceFile(name, text), error.lineno, error.colno, error.lineno, error.colno + 1
        )
        message = f"The text is not JSON: {error.msg}."
        raise ActiveDocumentError.of("C1227", message, span) from None
    except RecursionError:
        message = f"`{name}` is nested too deeply for JSON."
        note = "flatten it, or write it as a term, `a[b[c]]`: those may be nested at will"
        raise ActiveDocumentError.of("C1226", message, None, note) from None
    rows: list[ForestNode] = []
    is_tree = isinstance(value, _Pairs) and len(value) == 1 and not isinstance(value[0][1], list)
    if is_document and not is_tree:
        rows.append(ForestNode(ROOT, ROOT_LABEL))
        _add_nodes(value, 0, rows)
    else:
        _add_nodes(value, ROOT, rows)
    return rows


def _add_nodes(value: Any, parent: int, rows: list[ForestNode]) -> None:
    """Append the nodes of a value, without recursion."""
    stack: list[tuple[Any, int]] = [(value, parent)]
    while stack:
        value, parent = stack.pop()
        match value:
            case _Pairs():
                for key, each in reversed(value):
                    several = each if isinstance(each, list) else [each]
                    stack += [(_Keyed(key, one), parent) for one in reversed(several)]
                    if not several:
                        stack.append((_Spelling(key + EMPTY_ARRAY), parent))
            case []:
                rows.append(ForestNode(parent, EMPTY_ARRAY, NodeKind.LITERAL))
            case list():
                stack += [(each, parent) for each in reversed(value)]
            case _Keyed(key=key) if key.startswith("!") and len(key) > 1:
                _check_empty(value)
                rows.append(ForestNode(parent, key[1:], NodeKind.FUNCTION))
            case _Keyed(key=key, value=below):
                kind = (
                    NodeKind.ATTRIBUTE if key.startswith("@") and len(key) > 1 else NodeKind.ELEMENT
                )
                rows.append(ForestNode(parent, key, kind))
                stack.append((below, len(rows) - 1))
            case str() if not isinstance(value, _Spelling):
                rows.append(ForestNode(parent, value, NodeKind.TEXT))
            case _:
                label = _spell(value)
                rows.append(ForestNode(parent, label, json_kind(label)))


class _Keyed:
    """A value below a key."""

    __slots__ = ("key", "value")

    def __init__(self, key: str, value: Any) -> None:
        self.key, self.value = key, value


def _check_empty(keyed: _Keyed) -> None:
    if keyed.value is not None and keyed.value is not True and keyed.value != _Pairs():
        message = f"The call `{keyed.key}` has something below it."
        note = f'write `"{keyed.key}": null`'
        raise ActiveDocumentError.of("C1223", message, None, note)


def _spell(value: Any) -> str:
    return value if isinstance(value, str) else {True: "true", False: "false"}.get(value, "null")


# --- texts and files -----------------------------------------------------------------------------


EXTENSIONS = {".xml": "xml", ".json": "json", ".term": "terms", ".terms": "terms", ".txt": None}


def read_forest(
    place: str | bytes | Path,
    reading: ReadOptions,
    name: str = "document",
    *,
    is_document: bool = False,
) -> Forest:
    """Return the trees of a text, or of a file.

    Args:
        place: a text, or a path; a string with the extension of a file may be a path, too.
        reading: how it is read.
        name: what messages call the text.
        is_document: whether it is a whole document, not what a function brings.

    Raises:
        ActiveDocumentError: it is malformed, or the file cannot be read.
    """
    format_ = reading.format
    if isinstance(place, Path) or (isinstance(place, str) and _is_path(place)):
        path = Path(place)
        name, format_ = path.name, format_ or EXTENSIONS.get(path.suffix.lower())
        try:
            place = path.read_bytes()
        except OSError as error:
            message = f"`{path}` cannot be read: {error.strerror or error}."
            raise ActiveDocumentError.of("C1229", message) from None
    format_ = format_ or _format_of(place)
    if format_ == "xml":
        return read_xml(place, reading, name, is_document=is_document)
    text = _decode(place, name)
    if format_ == "json":
        return read_json(text, name, is_document=is_document)
    return read_terms(text, name)


def _is_path(text: str) -> bool:
    """Whether a text is a path: a known extension, and no sign of a document."""
    start = text.lstrip()[:1]
    return (
        start not in ("<", "{", "[", '"', "!")
        and "[" not in text
        and "\n" not in text
        and Path(text).suffix.lower() in EXTENSIONS
    )


def _format_of(text: str | bytes) -> str:
    start = text.lstrip()[:1]
    start = start.decode("latin-1") if isinstance(start, bytes) else start
    if start in ("<", "\xef", "\xfe", "\xff"):
        return "xml"
    return "json" if start in ("{", "[") else "terms"


def _decode(text: str | bytes, name: str) -> str:
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"`{name}` is not UTF-8: {error.reason} at byte {error.start}."
        raise ActiveDocumentError.of("C1229", message) from None
