"""JSON as documents: a key is a node, an array repeats it, a scalar is a text leaf.

`{"order": [{"id": 7}, {"id": 8}]}` is `json[order[id["7"]] order[id["8"]]]`. A call is a key that
begins with `!`: `{"!f": null}`. Numbers and the words `true`, `false`, `null` keep their spelling.
"""

import json
from typing import Any

from corollary.documents.errors import ActiveDocumentError
from corollary.documents.forest import ROOT, Forest, Kind, Row
from corollary.errors import Diagnostic
from corollary.source import SourceFile, Span

TOP = "json"
"""The label of the root of a document that has more than one key."""


class _Spelled(str):
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
        value = json.loads(text, parse_int=_Spelled, parse_float=_Spelled, parse_constant=_Spelled)
    except json.JSONDecodeError as error:
        span = Span(
            SourceFile(name, text), error.lineno, error.colno, error.lineno, error.colno + 1
        )
        message = f"The text is no JSON: {error.msg}."
        raise ActiveDocumentError([Diagnostic("C1227", message, span)]) from None
    except RecursionError:
        message = f"`{name}` is nested too deeply for JSON."
        raise ActiveDocumentError([Diagnostic("C1226", message)]) from None
    rows: list[Row] = []
    is_tree = isinstance(value, dict) and len(value) == 1 and not _is_list(value)
    if is_document and not is_tree:
        rows.append(Row(ROOT, TOP))
        _grow(value, 0, rows)
    else:
        _grow(value, ROOT, rows)
    return rows


def _is_list(value: dict[str, Any]) -> bool:
    return any(isinstance(each, list) for each in value.values())


def _grow(value: Any, parent: int, rows: list[Row]) -> None:
    """Append the nodes of a value; nothing recurses."""
    stack: list[tuple[Any, int]] = [(value, parent)]
    while stack:
        value, parent = stack.pop()
        match value:
            case dict():
                for key, each in reversed(value.items()):
                    stack += [(_Keyed(key, one), parent) for one in reversed(_several(each))]
            case list():
                stack += [(each, parent) for each in reversed(value)]
            case _Keyed(key=key) if key.startswith("!") and len(key) > 1:
                _demand_empty(value)
                rows.append(Row(parent, key[1:], Kind.FUNCTION))
            case _Keyed(key=key, value=below):
                kind = Kind.ATTRIBUTE if key.startswith("@") and len(key) > 1 else Kind.ELEMENT
                rows.append(Row(parent, key, kind))
                stack.append((below, len(rows) - 1))
            case _:
                rows.append(Row(parent, _spelled(value), Kind.TEXT))


class _Keyed:
    """A value below a key."""

    __slots__ = ("key", "value")

    def __init__(self, key: str, value: Any) -> None:
        self.key, self.value = key, value


def _several(value: Any) -> list[Any]:
    """Return the values that stand below a key, each with a node of its own."""
    return value if isinstance(value, list) else [value]


def _demand_empty(keyed: _Keyed) -> None:
    if keyed.value not in (None, {}, True):
        message = f"The call `{keyed.key}` has something below it."
        note = f'write `"{keyed.key}": null`'
        raise ActiveDocumentError([Diagnostic("C1223", message, None, note)])


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else {True: "true", False: "false"}.get(value, "null")
