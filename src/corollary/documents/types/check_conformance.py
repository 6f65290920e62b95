"""Checks that a document can still be completed so that it is of its type.

What is missing may still come, if a live function is called there; what is too much stays. Every
call is taken by itself first, which is quick and tells where the trouble is. Functions that are
called at several places bring the same trees to all of them, so then completions are looked for.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path

from corollary.documents.answers.search_budget import SearchBudget, SearchLimits
from corollary.documents.errors import ActiveDocumentError, SearchLimitError
from corollary.documents.trees.document_tree import DocumentTree
from corollary.documents.trees.forest import Forest, NodeKind
from corollary.documents.types.active_types import called_in
from corollary.documents.types.completions import Completions, DocumentType
from corollary.documents.types.content_fit import Types
from corollary.documents.types.function_types import ANY, FunctionType, Grammar, Production
from corollary.documents.types.read_type import read_type, show_production

SHOWN_MAX = 6
"""The maximum number of children, and of productions, in a message."""


def read_document_type(
    place: Grammar | str | Path | None,
    forest: Forest,
    once: Collection[str],
    types: Mapping[str, FunctionType],
    ended: Collection[str],
) -> DocumentType | None:
    """Return the type of a document: a grammar, the text of one, or that of a file.

    Args:
        place: the type; None for a document without one.
        forest: the document.
        once: the functions that answer at most once.
        types: what functions bring.
        ended: the functions that have ended, as they are from time to time.

    Raises:
        ActiveDocumentError: it is malformed, names functions, or there are several documents.
    """
    if place is None:
        return None
    if forest[0].kind is NodeKind.COLLECTION:
        message = "A document type is for one document, but there are several."
        raise ActiveDocumentError.of("C1246", message, None, "open the document by itself")
    grammar = place if isinstance(place, Grammar) else read_type(place, "document type")
    if named := called_in(grammar):
        message = f"The document type names the function `{min(named)}`."
        note = "leave out `!f`: calls may stand anywhere, and what they bring has to be of the type"
        raise ActiveDocumentError.of("C1245", message, None, note)
    return DocumentType(grammar, once, types, ended)


def check_updated(
    type_: DocumentType | None,
    tree: DocumentTree,
    retracted: Iterable[int],
    checked: tuple[list[tuple[str, Forest]], list[str]],
    limits: SearchLimits,
) -> None:
    """Check that a document can be completed after updates, before they are made.

    Args:
        type_: what it has to be; None if it may be anything.
        tree: the document; it stays as it is.
        retracted: the roots of trees that go.
        checked: what functions bring, and those that end.
        limits: what the search may take.

    Raises:
        ActiveDocumentError: it cannot.
    """
    if type_ is None:
        return
    accepted, ended = checked
    trial = tree.copy()
    trial.prune(retracted)
    numbers = count(max(trial.labels) + 1)
    for name, forest in accepted:
        trial.insert(name, forest, numbers)
    names = dict.fromkeys((*(name for name, _ in accepted), *ended))
    cause = f"After the update of {', '.join(f'`{each}`' for each in names)} the document"
    silent = {*type_.ended, *ended, *(name for name, _ in accepted if name in type_.once)}
    after = replace(type_, ended=silent)
    check_conformance(after, trial, limits, cause if names else "What is left")


def check_collectable(type_: DocumentType | None) -> None:
    """Check that parts of a document may go: with a type, all of it counts.

    Raises:
        ActiveDocumentError: it has a type.
    """
    if type_ is not None:
        message = "The document has a type, so nothing of it can be collected or closed."
        note = "open it without a document type: types of functions stay possible"
        raise ActiveDocumentError.of("C1244", message, None, note)


def check_conformance(
    type_: DocumentType | None,
    tree: DocumentTree,
    limits: SearchLimits,
    cause: str = "The document",
) -> None:
    """Check that a document has a completion, as far as the limits allow.

    Args:
        type_: what it has to be; None if it may be anything.
        tree: the document.
        limits: what the search may take.
        cause: what messages begin with: the document, or what changes it.

    Raises:
        ActiveDocumentError: there is none.
    """
    if type_ is None:
        return
    try:
        completions = type_.completions(tree, SearchBudget(limits))
        types = completions.relaxed_types()
        is_possible = completions.grammar.start in types[tree.root]
        if is_possible and (not completions.shared or completions.has_one()):
            return
    except (SearchLimitError, RecursionError):  # not found out: it may have one
        return
    if not is_possible:
        raise _misfit(completions, types, cause)
    names = ", ".join(f"`!{each}`" for each in sorted(completions.shared))
    message = f"{cause} cannot be completed to one of its type."
    note = (
        f"no trees of {names} fit beside all of their calls at once: "
        "give the calls different names, or correct the type"
    )
    raise ActiveDocumentError.of("C1243", message, None, note)


def _misfit(completions: Completions, types: dict[int, Types], cause: str) -> Exception:
    """Return the error for the topmost node that is not of its type, though its label is."""
    grammar, tree = completions.grammar, completions.tree
    number, wanted = tree.root, frozenset({grammar.start})
    while True:
        label, kind = tree.labels[number], tree.kinds[number]
        fitting = _productions(grammar, wanted, label, kind)
        if not fitting:
            break
        within = frozenset[str]().union(*(each.types for each in fitting))
        below = next(
            (
                child
                for child in tree.children[number]
                if tree.kinds[child] is not NodeKind.FUNCTION
                and not types[child] & within
                and _productions(grammar, within, tree.labels[child], tree.kinds[child])
            ),
            None,
        )
        if below is None:
            break
        number, wanted = below, within
    path = _path(tree, number)
    several = [each for name in sorted(wanted) for each in grammar.productions(name)]
    allowed = fitting or several
    shown = " or ".join(f"`{show_production(each)}`" for each in allowed[:SHOWN_MAX]) or "nothing"
    if len(allowed) > SHOWN_MAX:
        shown += " or others"
    if not fitting:
        message = f"{cause} is not of its type: `{path}` is not expected there."
    else:
        message = f"{cause} is not of its type at `{path}`, {_content(tree, number)}."
    note = f"its type allows {shown}, with what live functions may still bring"
    return ActiveDocumentError.of("C1242", message, None, note)


def _productions(grammar: Grammar, types: Types, label: str, kind: NodeKind) -> list[Production]:
    return [
        each
        for name in sorted(types - {ANY})
        for each in grammar.productions(name)
        if each.has_label(label, kind)
    ]


def _content(tree: DocumentTree, number: int) -> str:
    counts = Counter(
        tree.labels[child]
        for child in tree.children[number]
        if tree.kinds[child] is not NodeKind.FUNCTION
    )
    if not counts:
        return "which has no children"
    shown = [
        f"`{label}`" if times == 1 else f"{times} `{label}`" for label, times in counts.items()
    ]
    more = f" and {len(shown) - SHOWN_MAX} others" if len(shown) > SHOWN_MAX else ""
    return f"which has {', '.join(shown[:SHOWN_MAX])}{more}"


def _path(tree: DocumentTree, number: int) -> str:
    labels = []
    while number in tree.parents:
        labels.append(tree.labels[number])
        number = tree.parents[number]
    return "/".join(reversed(labels))
