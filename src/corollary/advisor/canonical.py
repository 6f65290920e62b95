"""Canonical forms: bodies that differ in names and order only get the same form.

Variables are numbered by refining colours: two variables stay alike while the same kinds of
literals hold them at the same places, beside variables that are alike. Where some stay alike, each
of them is tried as the first one, and the least form wins.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from corollary.advisor.candidates import Leaf
from corollary.advisor.clauses import ClauseForm, term_variables
from corollary.core.clause_printer import print_body, print_value
from corollary.core.rules import Atom, BodyItem, Literal
from corollary.core.terms import Constant, Variable, Wildcard

Edge = tuple[str, tuple[str, ...]]
"""A label, and the variables that stand in it."""

TRIES = 64
"""So many numberings are looked at; beyond that equal bodies may be taken for different ones."""


def canonical_view(
    shown: Sequence[str], bodies: Iterable[Sequence[Leaf]]
) -> tuple[str, tuple[str, ...]]:
    """Return the form of a view, in which the order of columns does not matter, and that order."""
    edges: list[Edge] = []
    kept = frozenset(shown)
    colours: dict[str, str] = dict.fromkeys(shown, "column")
    for number, body in enumerate(bodies):
        rule = f"•rule{number}"
        colours[rule] = "rule"
        for leaf in body:
            label, names = edge_of(leaf)
            local = tuple(name if name in kept else f"{name}•{number}" for name in names)
            edges.append((label, (rule, *local)))
    numbers = numbered(edges, colours)
    order = tuple(sorted(shown, key=lambda name: numbers[name]))
    return f"{[numbers[name] for name in order]}{_form(edges, numbers)}", order


def in_canonical_order(clause: ClauseForm) -> ClauseForm:
    """Return a clause whose literals stand in an order that names and the text do not decide."""
    leaves: list[Leaf] = [*clause.literals, *clause.tests]
    edges = [edge_of(each) for each in leaves]
    edges += [_item_edge(each.item) for each in clause.pinned]
    colours: dict[str, str] = {}
    for at, variable in enumerate(term_variables(clause.head.arguments)):
        colours[variable.name] = f"{colours.get(variable.name, 'head')} {at:04}"
    numbers = numbered(edges, colours)

    def place(node: Leaf) -> tuple[str, list[int]]:
        label, names = edge_of(node)
        return label, [numbers[name] for name in names]

    return replace(
        clause,
        literals=tuple(sorted(clause.literals, key=place)),
        tests=tuple(sorted(clause.tests, key=place)),
    )


def edge_of(leaf: Leaf) -> Edge:
    """Return the label of a leaf, constants in it, and its variables."""
    if isinstance(leaf, Literal):
        places = [
            print_value(slot.value, slot.type) if isinstance(slot, Constant) else "·"
            for slot in leaf.slots
        ]
        label = f"{leaf.relation}({', '.join(places)})"
        return label, tuple(slot.name for slot in leaf.slots if isinstance(slot, Variable))
    return _item_edge(leaf.item)


def _item_edge(item: BodyItem) -> Edge:
    names = tuple(each.name for each in term_variables(item))
    bare = with_variables(item, {name: Variable("·") for name in names})
    return print_body((bare,)), names


def with_variables(node: Any, by: Mapping[str, Variable | Wildcard]) -> Any:
    """Return a part of a clause with other variables."""
    if isinstance(node, Variable):
        found = by.get(node.name)
        return node if found is None else found
    if isinstance(node, tuple):
        return tuple(with_variables(each, by) for each in node)
    if is_dataclass(node) and not isinstance(node, type):
        parts = {each.name: getattr(node, each.name) for each in fields(node) if each.compare}
        return replace(node, **{name: with_variables(part, by) for name, part in parts.items()})
    return node


def renamed_atom(atom: Atom, by: Mapping[str, Variable]) -> Atom:
    """Return an atom with other variables."""
    made = with_variables(atom, by)
    assert isinstance(made, Atom)
    return made


def numbered(edges: Sequence[Edge], colours: Mapping[str, str]) -> dict[str, int]:
    """Return a number for each variable, the same for all isomorphic sets of edges."""
    names = dict.fromkeys([*colours, *(name for _, held in edges for name in held)])
    start = _ranked({name: colours.get(name, "") for name in names})
    left = [TRIES]
    return _least(edges, _refined(edges, start), left)


def _least(edges: Sequence[Edge], ranks: dict[str, int], left: list[int]) -> dict[str, int]:
    cells: dict[int, list[str]] = {}
    for name, rank in ranks.items():
        cells.setdefault(rank, []).append(name)
    alike = next((cells[rank] for rank in sorted(cells) if len(cells[rank]) > 1), None)
    if alike is None:
        left[0] -= 1
        return ranks
    best: dict[str, int] | None = None
    for first in alike:
        if best is not None and left[0] <= 0:
            break
        apart = _ranked({name: (rank, name != first) for name, rank in ranks.items()})
        found = _least(edges, _refined(edges, apart), left)
        if best is None or _form(edges, found) < _form(edges, best):
            best = found
    assert best is not None
    return best


def _refined(edges: Sequence[Edge], ranks: dict[str, int]) -> dict[str, int]:
    while True:
        seen: dict[str, list[Any]] = {name: [] for name in ranks}
        for label, names in edges:
            beside = tuple(ranks[name] for name in names)
            same = tuple(names.index(name) for name in names)
            for at, name in enumerate(names):
                seen[name].append((label, at, beside, same))
        finer = _ranked({name: (rank, sorted(seen[name])) for name, rank in ranks.items()})
        if len(set(finer.values())) == len(set(ranks.values())):
            return finer
        ranks = finer


def _ranked(colours: Mapping[str, Any]) -> dict[str, int]:
    distinct: list[Any] = []
    for colour in sorted(colours.values()):
        if not distinct or distinct[-1] != colour:
            distinct.append(colour)
    return {name: distinct.index(colour) for name, colour in colours.items()}


def _form(edges: Sequence[Edge], numbers: Mapping[str, int]) -> str:
    return repr(sorted((label, [numbers[name] for name in names]) for label, names in edges))
