"""Views on documents of functions with types, and what their calls may bring."""

from __future__ import annotations

import pytest

from corollary.documents.document import ActiveDocument
from corollary.documents.errors import ActiveDocumentError
from corollary.documents.types.function_types import Child, FunctionType, Production
from corollary.documents.view import View

Types = dict[str, FunctionType]


def view_of(term: str, query: str, *, once: str = "", types: Types | None = None) -> View:
    return ActiveDocument.from_terms(term, once=once.split(), types=types).view(query)


def shown(view: View) -> list[str]:
    """Return the possible answers of a view, as text."""
    return sorted(" ".join(map(str, each)) for each in view.possible())


def rule(labels: str, *children: Child, calls: str = "") -> Production:
    return Production(frozenset(labels.split()), children, frozenset(calls.split()))


def check_brought(document: ActiveDocument, tree: str, is_allowed: bool) -> None:
    """Let `f` bring a tree into `r[!f]`: it comes, or is refused and nothing changes."""
    if is_allowed:
        document.add("f", tree)
        assert document.terms() == f"r[!f {tree}]"
        return
    with pytest.raises(ActiveDocumentError, match="C1233"):
        document.add("f", tree)
    assert document.terms() == "r[!f]"
