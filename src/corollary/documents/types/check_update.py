"""Checks whether a forest is a document, and whether a function may bring it."""

from collections import Counter
from collections.abc import Iterable

from corollary.documents.errors import ActiveDocumentError
from corollary.documents.trees.forest import (
    ROOT,
    Forest,
    ForestNode,
    NodeKind,
    children_of,
    roots_of,
)
from corollary.documents.types import function_types
from corollary.documents.types.content_fit import fitting_types


def check_document(forest: Forest) -> None:
    """Check that a forest is one tree whose root is data.

    Raises:
        ActiveDocumentError: it is not.
    """
    roots = roots_of(forest)
    if len(roots) != 1:
        message = f"A document is one tree, but there are {len(roots)}."
        raise ActiveDocumentError.of("C1224", message)
    if roots[0].kind is NodeKind.FUNCTION:
        message = f"The root of a document is the call of a function, `!{roots[0].label}`."
        note = "put it below a root: `r[!f]`"
        raise ActiveDocumentError.of("C1224", message, None, note)


def check_type(name: str, type_: function_types.FunctionType | None, forest: Forest) -> None:
    """Check that the trees of a function are of its type.

    Raises:
        ActiveDocumentError: one is not.
    """
    allowed = function_types.roots_allowed(type_)
    for root in roots_of(forest) if allowed is not None else ():
        if root.kind is NodeKind.FUNCTION or root.label not in (allowed or ()):
            listed = ", ".join(f"`{each}`" for each in sorted(allowed or ())) or "nothing"
            message = f"The function `{name}` brought `{_shown(root)}`."
            note = f"its type allows {listed}"
            raise ActiveDocumentError.of("C1233", message, None, note)
    if isinstance(type_, function_types.Grammar):
        for root in nonconforming_roots(type_, forest):
            message = (
                f"The function `{name}` brought a tree `{_shown(root)}` that is not of its type."
            )
            note = f"each is to be one of `{type_.start}`, with everything below"
            raise ActiveDocumentError.of("C1233", message, None, note)


def check_single_answer(name: str, forest: Forest, answered: Iterable[str]) -> None:
    """Check that a function which answers once brings one tree, and has not answered before.

    Raises:
        ActiveDocumentError: it brings more.
    """
    roots = roots_of(forest)
    number = len(roots)
    message = f"The function `{name}` answers with one tree, but {number} came."
    if name in answered:
        message = f"The function `{name}` answers once, but two answers came."
    elif number == 1:
        if roots[0].kind is not NodeKind.FUNCTION:
            return
        message = (
            f"The function `{name}` answers with one tree, but a call came, `{_shown(roots[0])}`."
        )
    raise ActiveDocumentError.of("C1232", message)


def check_retraction(name: str, roots: set[int] | None, *, is_collected: bool) -> set[int]:
    """Return the roots of the trees that a function takes back, if it can.

    Args:
        name: the function.
        roots: those that it has brought; None if it has not.
        is_collected: whether garbage was collected, so that they may be incomplete.

    Raises:
        ActiveDocumentError: it cannot.
    """
    if is_collected:
        message = "Nothing can be retracted after garbage was collected, or closed."
        note = "what no answer needed is gone: open the document anew, and do not collect"
        raise ActiveDocumentError.of("C1234", message, None, note)
    if roots is None:
        message = f"The function `{name}` has not brought what is to be retracted."
        note = "give the trees of one update as they came, with everything below"
        raise ActiveDocumentError.of("C1235", message, None, note)
    return roots


def _shown(root: ForestNode) -> str:
    return f"!{root.label}" if root.kind is NodeKind.FUNCTION else root.label


# --- trees of a grammar --------------------------------------------------------------------------


def nonconforming_roots(grammar: function_types.Grammar, forest: Forest) -> list[ForestNode]:
    """Return the roots of a forest whose trees are not of a grammar.

    A tree is of a type if one of its productions has the label, and the children fit
    (`content_fit`). Types are found from the leaves up: parents stand before their children.

    A call is not a tree, and what it brings comes in any number. So it may stand where the
    production names its function, or where there may be any number of anything; it takes the place
    of no child.
    """
    below = children_of(forest)
    types: list[set[str]] = [{function_types.ANY} for _ in forest]
    for position in reversed(range(len(forest))):
        row = forest[position]
        calls = {forest[at].label for at in below[position] if forest[at].kind is NodeKind.FUNCTION}
        below_types = Counter(
            frozenset(types[at])
            for at in below[position]
            if forest[at].kind is not NodeKind.FUNCTION
        )
        candidates = (
            (name, each)
            for name in grammar.rules
            for each in grammar.productions(name)
            if each.has_label(row.label, row.kind) and _may_call(each, calls)
        )
        types[position] |= fitting_types(candidates, below_types)
    return [
        row
        for position, row in enumerate(forest)
        if row.parent == ROOT and grammar.start not in types[position]
    ]


def _may_call(production: function_types.Production, functions: set[str]) -> bool:
    """Whether calls of functions may stand among the children of a production."""
    return functions <= production.calls or any(
        child.type == function_types.ANY and not child.is_single for child in production.children
    )
