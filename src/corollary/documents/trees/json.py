"""JSON as documents: a key is a node, an array repeats it, a scalar is a leaf.

| JSON                                | document                                                  |
|-------------------------------------|-----------------------------------------------------------|
| `{"a": [{"id": "x"}, {"id": "y"}]}` | `json[a[id["x"]] a[id["y"]]]`                             |
| `{"a": 1, "a": 2}`                  | `json[a["1"#] a["2"#]]`: a key may be repeated, too       |
| `7.50`, `true`, `null`              | leaves `"7.50"#`, `"true"#`, `"null"#`: no strings        |
| `{"a": []}`                         | `json["a[]"#]`: there is no `a`, but the key is not lost  |
| `{"!f": null}`                      | a call of `f`                                             |
"""

import json
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
