"""Documents and updates from texts and files: XML, JSON or terms.

In JSON a key is a node, an array repeats it, a scalar is a leaf:

| JSON                                | document                                                  |
|-------------------------------------|-----------------------------------------------------------|
| `{"a": [{"id": "x"}, {"id": "y"}]}` | `json[a[id["x"]] a[id["y"]]]`                             |
| `{"a": 1, "a": 2}`                  | `json[a["1"#] a["2"#]]`: a key may be repeated, too       |
| `7.50`, `true`, `null`              | leaves `"7.50"#`, `"true"#`, `"null"#`: no strings        |
| `{"a": []}`                         | `json["a[]"#]`: there is no `a`, but the key is not lost  |
| `{"!f": null}`                      | a call of `f`                                             |

The term syntax of documents: `r[a !f b["some text"]]`.

`label[child child …]` is a node, `!f` a function node, a label in double quotes a text leaf. A
label without quotes may hold anything but blanks, brackets, quotes and `!`. A `#` after the quotes
says that it is a number, or another value of JSON that is not a string: `"7.50"#`, `"null"#`.
"""

import json
import re
from pathlib import Path
from typing import Any

from corollary.documents.errors import ActiveDocumentError
from corollary.documents.trees.forest import (
    EMPTY_ARRAY,
    ROOT,
    SCALARS,
    Forest,
    ForestNode,
    NodeKind,
    children_of,
    json_kind,
)
from corollary.documents.trees.xml import ReadOptions, read_xml
from corollary.errors import InputError
from corollary.source import SourceFile, Span

_TOKEN = re.compile(
    r"""\s*(?:(?P<function>!(?P<name>[^\s\[\]"!]*))
        |"(?P<value>(?:[^"\\]|\\.)*)"\#
        |"(?P<quoted>(?:[^"\\]|\\.)*)"
        |(?P<label>[^\s\[\]"!]+)
        |(?P<open>\[)|(?P<close>\])|(?P<end>\Z)|(?P<other>.))""",
    re.VERBOSE | re.DOTALL,
)
_PLAIN = re.compile(r'[^\s\[\]"!]+')


def read_terms(text: str, name: str = "document") -> Forest:
    """Return the trees of a text in term syntax.

    >>> [(node.parent, node.label, str(node.kind)) for node in read_terms("r[a !f]")]
    [(-1, 'r', 'e'), (0, 'a', 'e'), (0, 'f', 'f')]

    Raises:
        ActiveDocumentError: it is malformed.
    """
    source = SourceFile(name, text)
    rows: list[ForestNode] = []
    open_at: list[int] = []
    can_open = False
    position = 0
    while True:
        found = _TOKEN.match(text, position)
        assert found is not None  # the last alternative takes anything
        start, position = found.end() - len(found.group().lstrip()), found.end()
        parent = open_at[-1] if open_at else ROOT
        kind = found.lastgroup
        if kind == "end":
            break
        if kind == "open":
            if not can_open:
                raise _misplaced_children(source, start, rows)
            if rows[-1].kind is NodeKind.TEXT:  # what has children is not text
                rows[-1] = rows[-1]._replace(kind=NodeKind.ELEMENT)
            open_at.append(len(rows) - 1)
        elif kind == "close":
            if not open_at:
                raise _error(source, start, "Nothing is open that this `]` could close.")
            open_at.pop()
        elif kind == "other":
            raise _error(source, start, "A quoted label does not end.", 'close it with `"`')
        elif kind == "function":
            if not found["name"]:
                raise _error(source, start, "A function has no name.", "write `!f`")
            rows.append(ForestNode(parent, found["name"], NodeKind.FUNCTION))
        elif kind == "value":
            label = _unescape(found["value"])
            rows.append(ForestNode(parent, label, json_kind(label)))
        elif kind == "quoted":
            rows.append(ForestNode(parent, _unescape(found["quoted"]), NodeKind.TEXT))
        else:
            label = found["label"]
            is_attribute = label.startswith("@") and len(label) > 1
            rows.append(
                ForestNode(parent, label, NodeKind.ATTRIBUTE if is_attribute else NodeKind.ELEMENT)
            )
        can_open = kind in ("label", "quoted")
    if open_at:
        label = rows[open_at[-1]].label
        raise _error(source, len(text), f"The children of `{label}` do not end.", "add `]`")
    return rows


def write_terms(forest: Forest) -> str:
    """Return a forest in term syntax.

    >>> write_terms(read_terms('r[a "two words" b[!f]]'))
    'r[a "two words" b[!f]]'
    """
    below = children_of(forest)
    parts: list[str] = []
    stack: list[int | str] = []
    _push(stack, [position for position, row in enumerate(forest) if row.parent == ROOT])
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            parts.append(item)
            continue
        parts.append(_shown(forest[item]))
        if below[item]:
            parts.append("[")
            stack.append("]")
            _push(stack, below[item])
    return "".join(parts)


def _push(stack: list[int | str], positions: list[int]) -> None:
    """Put positions on a stack, the first on top, with blanks in between."""
    for at, position in enumerate(reversed(positions)):
        if at:
            stack.append(" ")
        stack.append(position)


def _shown(row: ForestNode) -> str:
    if row.kind is NodeKind.FUNCTION:
        return f"!{row.label}"
    if row.kind not in SCALARS and _PLAIN.fullmatch(row.label):
        return row.label
    mark = "" if row.kind not in SCALARS or row.kind is NodeKind.TEXT else "#"
    return '"' + re.sub(r'(["\\])', r"\\\1", row.label) + '"' + mark


def _unescape(quoted: str) -> str:
    return re.sub(r"\\(.)", r"\1", quoted)


def _misplaced_children(source: SourceFile, at: int, rows: list[ForestNode]) -> InputError:
    if rows and rows[-1].kind is NodeKind.FUNCTION:
        function = rows[-1].label
        return _error(
            source,
            at,
            f"The function `!{function}` has children, but function nodes are leaves.",
            "what a function brings comes beside it, by an update",
            "C1221",
        )
    return _error(source, at, "Children stand here without a node.", "write `label[…]`")


def _error(
    source: SourceFile, at: int, message: str, note: str | None = None, code: str = "C1220"
) -> InputError:
    text = source.text
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return ActiveDocumentError.of(code, message, Span(source, line, column, line, column + 1), note)


# --- JSON ----------------------------------------------------------------------------------------


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
    source: str | bytes | Path,
    reading: ReadOptions,
    name: str = "document",
    *,
    is_document: bool = False,
) -> Forest:
    """Return the trees of a text, or of a file.

    Args:
        source: a text, or a path; a string with the extension of a file may be a path, too.
        reading: how it is read.
        name: what messages call the text.
        is_document: whether it is a whole document, not what a function brings.

    Raises:
        ActiveDocumentError: it is malformed, or the file cannot be read.
    """
    format_ = reading.format
    if isinstance(source, Path) or (isinstance(source, str) and _is_path(source)):
        path = Path(source)
        name, format_ = path.name, format_ or EXTENSIONS.get(path.suffix.lower())
        try:
            source = path.read_bytes()
        except OSError as error:
            message = f"`{path}` cannot be read: {error.strerror or error}."
            raise ActiveDocumentError.of("C1229", message) from None
    format_ = format_ or _format_of(source)
    if format_ == "xml":
        return read_xml(source, reading, name, is_document=is_document)
    text = _decode(source, name)
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
