"""The term syntax of documents: `r[a !f b["some text"]]`.

`label[child child …]` is a node, `!f` a function node, a label in double quotes a text leaf. A
label without quotes may hold anything but blanks, brackets, quotes and `!`. A `#` behind the quotes
says that it is a number, or another value of JSON that is not a string: `"7.50"#`, `"null"#`.
"""

import re

from corollary.documents.errors import ActiveDocumentError
from corollary.documents.trees.forest import (
    ROOT,
    SCALARS,
    Forest,
    ForestNode,
    NodeKind,
    children_of,
    json_kind,
)
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
    place = 0
    while True:
        found = _TOKEN.match(text, place)
        assert found is not None  # the last alternative takes anything
        start, place = found.end() - len(found.group().lstrip()), found.end()
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
            label = _unescaped(found["value"])
            rows.append(ForestNode(parent, label, json_kind(label)))
        elif kind == "quoted":
            rows.append(ForestNode(parent, _unescaped(found["quoted"]), NodeKind.TEXT))
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
    _push(stack, [place for place, row in enumerate(forest) if row.parent == ROOT])
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


def _push(stack: list[int | str], places: list[int]) -> None:
    """Put places on a stack, the first on top, with blanks in between."""
    for at, place in enumerate(reversed(places)):
        if at:
            stack.append(" ")
        stack.append(place)


def _shown(row: ForestNode) -> str:
    if row.kind is NodeKind.FUNCTION:
        return f"!{row.label}"
    if row.kind not in SCALARS and _PLAIN.fullmatch(row.label):
        return row.label
    mark = "" if row.kind not in SCALARS or row.kind is NodeKind.TEXT else "#"
    return '"' + re.sub(r'(["\\])', r"\\\1", row.label) + '"' + mark


def _unescaped(quoted: str) -> str:
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
