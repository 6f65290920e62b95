"""JSON as documents: a key is a node, an array repeats it, a scalar is a text leaf.

`{"order": [{"id": 7}, {"id": 8}]}` is `json[order[id["7"]] order[id["8"]]]`. A call is a key that
begins with `!`: `{"!f": null}`. Numbers and the words `true`, `false`, `null` keep their spelling.
"""

import json
from typing import Any

from corollary.documents.errors import ActiveDocumentError
from corollary.documents.trees.forest import ROOT, Forest, ForestNode, NodeKind
from corollary.source import SourceFile, Span

ROOT_LABEL = "json"
"""The label of the root of a document that has more than one key."""


class _Spelling(str):
    """A number as it was written."""

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
            text, parse_int=_Spelling, parse_float=_Spelling, parse_constant=_Spelling
        )
    except json.JSONDecodeError as error:
        span = Span(
            SourceFile(name, text), error.lineno, error.colno, error.lineno, error.colno + 1
        )
        message = f"The text is not JSON: {error.msg}."
        raise ActiveDocumentError.of("C1227", message, span) from None
    except RecursionError:
        message = f"`{name}` is nested too deeply for JSON."
        raise ActiveDocumentError.of("C1226", message) from None
    rows: list[ForestNode] = []
    is_tree = isinstance(value, dict) and len(value) == 1 and not _is_list(value)
    if is_document and not is_tree:
        rows.append(ForestNode(ROOT, ROOT_LABEL))
        _add_nodes(value, 0, rows)
    else:
        _add_nodes(value, ROOT, rows)
    return rows


def _is_list(value: dict[str, Any]) -> bool:
    return any(isinstance(each, list) for each in value.values())


def _add_nodes(value: Any, parent: int, rows: list[ForestNode]) -> None:
    """Append the nodes of a value, without recursion."""
    stack: list[tuple[Any, int]] = [(value, parent)]
    while stack:
        value, parent = stack.pop()
        match value:
            case dict():
                for key, each in reversed(value.items()):
                    several = each if isinstance(each, list) else [each]
                    stack += [(_Keyed(key, one), parent) for one in reversed(several)]
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
            case _:
                rows.append(ForestNode(parent, _spell(value), NodeKind.TEXT))


class _Keyed:
    """A value below a key."""

    __slots__ = ("key", "value")

    def __init__(self, key: str, value: Any) -> None:
        self.key, self.value = key, value


def _check_empty(keyed: _Keyed) -> None:
    if keyed.value not in (None, {}, True):
        message = f"The call `{keyed.key}` has something below it."
        note = f'write `"{keyed.key}": null`'
        raise ActiveDocumentError.of("C1223", message, None, note)


def _spell(value: Any) -> str:
    return value if isinstance(value, str) else {True: "true", False: "false"}.get(value, "null")
