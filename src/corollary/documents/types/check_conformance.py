"""Checks that a document can still be completed so that it is of its type.

What is missing may still come, if a live function is called there; what is too much stays. Every
call is taken by itself first, which is quick and tells where the trouble is. Functions that are
called at several nodes bring the same trees to all of them, so then completions are looked for.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

from corollary.documents.answers.admissible import AdmissibleCompletions
from corollary.documents.answers.search_limits import SearchLimits
from corollary.documents.errors import ActiveDocumentError
from corollary.documents.trees.document_tree import DocumentTree, StoredNode
from corollary.documents.trees.forest import Forest, NodeKind
from corollary.documents.types.completions import Completions, DocumentType
from corollary.documents.types.constraints import DocumentKey, ValueInclusion
from corollary.documents.types.content_fit import Types
from corollary.documents.types.function_types import (
    ANY,
    FunctionType,
    Grammar,
    Production,
    called_in,
)
from corollary.documents.types.node_types import NodeTypes
from corollary.documents.types.read_type import read_type, show_production
from corollary.engines.budget import WorkLimitError

SHOWN_MAX = 6
"""The maximum number of children, and of productions, in a message."""


def read_document_type(
    declared: Grammar | str | Path | None,
    forest: Forest,
    once: Collection[str],
    types: Mapping[str, FunctionType],
    ended: Collection[str],
) -> DocumentType | None:
    """Return the type of a document: a grammar, the text of one, or that of a file.

    Args:
        declared: the type; None for a document without one.
        forest: the document.
        once: the functions that answer at most once.
        types: what functions bring.
        ended: the functions that have ended, as they are from time to time.

    Raises:
        ActiveDocumentError: it is malformed, names functions, or there are several documents.
    """
    if declared is None:
        return None
    if forest[0].kind is NodeKind.COLLECTION:
        message = "A document type is for one document, but there are several."
        raise ActiveDocumentError.of("C1246", message, None, "open the document by itself")
    grammar = declared if isinstance(declared, Grammar) else read_type(declared, "document type")
    if named := called_in(grammar):
        message = f"The document type names the function `{min(named)}`."
        note = "leave out `!f`: calls may stand anywhere, and what they bring has to be of the type"
        raise ActiveDocumentError.of("C1245", message, None, note)
    return DocumentType(grammar, once, types, ended)


class Conformance:
    """What is known of the types of a document's nodes, so that updates are checked by themselves.

    Every call is taken by itself; and, for functions that are called at several nodes, as if they
    brought nothing. If the document has no completion in the first way, it has none. If it has one
    in the second way, it has one. Only between the two the document is checked as a whole.

    Raises:
        ActiveDocumentError: it has no completion.
    """

    def __init__(self, type_: DocumentType, tree: DocumentTree, limits: SearchLimits) -> None:
        self._type = type_
        self._tree = tree
        self._limits = limits
        check_conformance(type_, tree, limits)
        check_constraints(type_, tree, limits)
        self._apart, self._silent = NodeTypes(tree), NodeTypes(tree)

    def note_added(self, nodes: Sequence[StoredNode]) -> None:
        """Note nodes that have come."""
        self._apart.note_added(nodes)
        self._silent.note_added(nodes)

    def note_removed(self, nodes: Sequence[StoredNode]) -> None:
        """Note nodes that are gone."""
        self._apart.note_removed(nodes)
        self._silent.note_removed(nodes)

    def check_updates(
        self, retracted: Collection[int], checked: tuple[list[tuple[str, Forest]], list[str]]
    ) -> None:
        """Check that a document can be completed after updates, before they are made.

        Args:
            retracted: the roots of trees that go.
            checked: what functions bring, and those that end.

        Raises:
            ActiveDocumentError: it cannot.
        """
        accepted, ended = checked
        once = (name for name, _ in accepted if name in self._type.once)
        after = replace(self._type, ended={*self._type.ended, *ended, *once})
        is_kept = self._is_kept(after, retracted, accepted)
        if is_kept and not after.grammar.constraints:
            return
        trial = self._tree.copy()
        trial.prune(retracted)
        numbers = count(max(trial.labels) + 1)
        for name, forest in accepted:
            trial.insert(name, forest, numbers)
        names = dict.fromkeys((*(name for name, _ in accepted), *ended))
        cause = f"After the update of {', '.join(f'`{each}`' for each in names)} the document"
        cause = cause if names else "What is left"
        if not is_kept:
            check_conformance(after, trial, self._limits, cause)
        check_constraints(after, trial, self._limits, cause)

    def _is_kept(
        self, after: DocumentType, retracted: Collection[int], updates: Sequence[tuple[str, Forest]]
    ) -> bool:
        """Whether there surely is a completion after updates; otherwise that is to be found out."""
        names = [name for name, _ in updates]
        calls = Counter({name: len(each) for name, each in self._tree.calls.items() if each})
        coming = Counter(calls)
        for at, (name, forest) in enumerate(updates, 1):
            called = Counter(row.label for row in forest if row.kind is NodeKind.FUNCTION)
            if called.keys() & {*names[at:]}:  # what comes later goes beside what comes now
                return False
            for each, number in called.items():
                coming[each] += number * calls[name]
        try:
            for nodes, most in ((self._apart, max(coming.values(), default=1)), (self._silent, 1)):
                budget = self._limits.budget()
                before, then = (
                    type_.rules((each for each, n in there.items() if 0 < n <= most), budget)
                    for type_, there in ((self._type, calls), (after, coming))
                )
                types = nodes.root_types((before, then), retracted, updates)
                if after.grammar.start not in types:
                    return False
        except (WorkLimitError, RecursionError):
            self._apart.reset()
            self._silent.reset()
            return False
        return True


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
    type_: DocumentType, tree: DocumentTree, limits: SearchLimits, cause: str = "The document"
) -> None:
    """Check that a document has a completion, as far as the limits allow.

    Raises:
        ActiveDocumentError: there is none.
    """
    try:
        completions = type_.completions(tree, limits.budget())
        types = completions.relaxed_types()
        is_possible = completions.grammar.start in types[tree.root]
        if is_possible and (not completions.shared or completions.has_one()):
            return
    except (WorkLimitError, RecursionError):  # not found out: it may have one
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


def check_constraints(
    type_: DocumentType, tree: DocumentTree, limits: SearchLimits, cause: str = "The document"
) -> None:
    """Check that a document may have a completion that satisfies its constraints.

    Raises:
        ActiveDocumentError: there is none.
    """
    constraints = type_.grammar.constraints
    for each in constraints:
        if isinstance(each, DocumentKey):
            for one, other in each.agreeing_nodes(tree):
                agreeing = f"`{_path_of(tree, one)}` and `{_path_of(tree, other)}` agree"
                message = f"{cause} violates `{each}`: {agreeing}."
                note = "take one of them out, or let the key have more paths"
                raise ActiveDocumentError.of("C1248", message, None, note)
    missing = [
        f"`{each}` lacks `{value}`"
        for each in constraints
        if isinstance(each, ValueInclusion)
        for value in each.missing_values(tree)[:1]
    ]
    if not missing:
        return
    try:
        completions = type_.completions(tree, limits.budget())
        if any(True for _ in AdmissibleCompletions(completions, constraints).ends({})):
            return
    except (WorkLimitError, RecursionError):  # not found out: it may have one
        return
    message = f"{cause} cannot be completed so that its constraints hold: {'; '.join(missing)}."
    note = "no function can bring it there: correct the value, or the constraint"
    raise ActiveDocumentError.of("C1249", message, None, note)


def _path_of(tree: DocumentTree, number: int) -> str:
    """Return the path of a node, with its position among those of its label."""
    labels = []
    while number in tree.parents:
        label, above = tree.labels[number], tree.parents[number]
        alike = [
            child
            for child in tree.children.get(above, ())
            if tree.labels[child] == label and tree.kinds[child] is not NodeKind.FUNCTION
        ]
        labels.append(f"{label}[{alike.index(number) + 1}]" if len(alike) > 1 else label)
        number = above
    return "/".join(reversed(labels))


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
    path = "/".join(tree.path(number))
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
