"""Canonical forms: bodies that differ only in names and order get the same form.

Variables are numbered by colour refinement: two variables have the same colour as long as the same
kinds of literals contain them at the same positions, next to variables of the same colours. Where
several variables keep one colour, each of them is tried as the first, and the least form wins.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from corollary.advisor.model import candidates
from corollary.core.logic import BodyItem, Constant, Literal, Variable
from corollary.core.printer import print_body, print_value

Edge = tuple[str, tuple[str, ...]]
"""A hyperedge: a label (a literal without its variables), and the variables in it."""

NUMBERINGS_MAX = 64
"""The maximum number of numberings tried; beyond it, isomorphic bodies may get different forms."""


class CanonicalForms:
    """The canonical forms of candidates: two of the same form are one view."""

    def __init__(self) -> None:
        self._known: dict[candidates.Candidate, tuple[str, tuple[str, ...]]] = {}

    def key(self, node: candidates.Candidate) -> str:
        """Return the form, equal for all isomorphic candidates; that of its view for a use."""
        return self._form(node.view)[0]

    def order(self, node: candidates.Candidate) -> tuple[str, ...]:
        """Return the variables in an order that corresponds between isomorphic candidates."""
        return self._form(node.view)[1]

    def _form(self, node: candidates.Candidate) -> tuple[str, tuple[str, ...]]:
        found = self._known.get(node)
        if found is None:
            form, order = canonical_view(node.variables, candidates.expand(node))
            if node.measures is not None:
                form = f"groups {form}"
            found = self._known[node] = form, order
        return found


def canonical_view(
    columns: Sequence[str], bodies: Iterable[Sequence[candidates.Leaf]]
) -> tuple[str, tuple[str, ...]]:
    """Return the form of a view whatever the order of its columns, and their canonical order."""
    edges: list[Edge] = []
    colours: dict[str, str] = dict.fromkeys(columns, "column")
    for number, body in enumerate(bodies):
        # An extra node per rule keeps the bodies of a union apart without giving them an order.
        rule = f"•rule{number}"
        colours[rule] = "rule"
        for leaf in body:
            label, names = _leaf_edge(leaf)
            local = tuple(name if name in columns else f"{name}•{number}" for name in names)
            edges.append((label, (rule, *local)))
    numbers = _number_variables(edges, colours)
    order = tuple(sorted(columns, key=lambda name: numbers[name]))
    return f"{[numbers[name] for name in order]}{_form(edges, numbers)}", order


def in_canonical_order(clause: candidates.SchemeClause) -> candidates.SchemeClause:
    """Return a clause with its literals in an order independent of names and of the text."""
    edges = [_leaf_edge(each) for each in clause.leaves]
    edges += [item_edge(each.item) for each in clause.pinned]
    colours: dict[str, str] = {}
    for at, variable in enumerate(candidates.term_variables(clause.head.arguments)):
        colours[variable.name] = f"{colours.get(variable.name, 'head')} {at:04}"
    numbers = _number_variables(edges, colours)

    def position(node: candidates.Leaf) -> tuple[str, list[int]]:
        label, names = _leaf_edge(node)
        return label, [numbers[name] for name in names]

    return replace(
        clause,
        literals=tuple(sorted(clause.literals, key=position)),
        comparisons=tuple(sorted(clause.comparisons, key=position)),
    )


def _leaf_edge(leaf: candidates.Leaf) -> Edge:
    if isinstance(leaf, Literal):
        arguments = [
            print_value(slot.value, slot.type) if isinstance(slot, Constant) else "·"
            for slot in leaf.slots
        ]
        label = f"{leaf.relation}({', '.join(arguments)})"
        return label, tuple(slot.name for slot in leaf.slots if isinstance(slot, Variable))
    return item_edge(leaf.item)


def item_edge(item: BodyItem) -> Edge:
    """Return the text of a body item without its variables, and the variables."""
    names = tuple(each.name for each in candidates.term_variables(item))
    bare = candidates.substitute(item, {name: Variable("·") for name in names})
    return print_body((bare,)), names


def _number_variables(edges: Sequence[Edge], colours: Mapping[str, str]) -> dict[str, int]:
    """Return a number for each variable, the same for all isomorphic sets of edges."""
    names = dict.fromkeys([*colours, *(name for _, members in edges for name in members)])
    start = _rank({name: colours.get(name, "") for name in names})
    return _least_numbering(edges, _refine(edges, start), [NUMBERINGS_MAX])


def _least_numbering(
    edges: Sequence[Edge], ranks: dict[str, int], tries_left: list[int]
) -> dict[str, int]:
    cells: dict[int, list[str]] = {}
    for name, rank in ranks.items():
        cells.setdefault(rank, []).append(name)
    same_colour = next((cells[rank] for rank in sorted(cells) if len(cells[rank]) > 1), None)
    if same_colour is None:
        tries_left[0] -= 1
        return ranks
    best: dict[str, int] | None = None
    for first in same_colour:
        if best is not None and tries_left[0] <= 0:
            break
        # Individualise one variable of the cell; refinement then usually splits the others.
        split = _rank({name: (rank, name != first) for name, rank in ranks.items()})
        found = _least_numbering(edges, _refine(edges, split), tries_left)
        if best is None or _form(edges, found) < _form(edges, best):
            best = found
    assert best is not None
    return best


def _refine(edges: Sequence[Edge], ranks: dict[str, int]) -> dict[str, int]:
    """Split colours by the edges that variables are in, until no colour splits any more."""
    while True:
        seen: dict[str, list[Any]] = {name: [] for name in ranks}
        for label, names in edges:
            neighbours = tuple(ranks[name] for name in names)
            # The first position of each variable: p(x, x) is not p(x, y), even in one colour.
            pattern = tuple(names.index(name) for name in names)
            for at, name in enumerate(names):
                seen[name].append((label, at, neighbours, pattern))
        finer = _rank({name: (rank, sorted(seen[name])) for name, rank in ranks.items()})
        if len(set(finer.values())) == len(set(ranks.values())):
            return finer
        ranks = finer


def _rank(colours: Mapping[str, Any]) -> dict[str, int]:
    distinct: list[Any] = []
    for colour in sorted(colours.values()):
        if not distinct or distinct[-1] != colour:
            distinct.append(colour)
    return {name: distinct.index(colour) for name, colour in colours.items()}


def _form(edges: Sequence[Edge], numbers: Mapping[str, int]) -> str:
    return repr(sorted((label, [numbers[name] for name in names]) for label, names in edges))
