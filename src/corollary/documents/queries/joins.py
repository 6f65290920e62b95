"""Joins become classes of variables, and classes with a known label disappear.

Joins are closed transitively first (P_j*): with the pairs alone, `(a, ?, ?, b)` of the paper's
Figure 6 would pass. Then, for each root:

| stage   | before                                  | after                                       |
|---------|-----------------------------------------|---------------------------------------------|
| classes | `$x`, `$y`, `where $x = $y`             | both are `$x`                               |
| pin     | `[a$x][b/*$x]`                          | `[a][b/a]`; two labels in a class: no match |
| spread  | a choice that binds `$x`, needed elsewhere, in one alternative only | several roots   |
| number  | a tree of pattern nodes                 | the shape: numbers, columns                 |

`pin` looks only at what every match has to hold: labels within a choice pin nothing outside of it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count, product
from typing import assert_never

from corollary.documents.queries import pattern
from corollary.documents.queries.comparisons import Conditions
from corollary.documents.queries.parse import syntax_error
from corollary.documents.queries.shape import FixedLabel, Fork, Group, Node, QueryShape, Root
from corollary.source import Span

Names = frozenset[str]
MAX_SHARED_CLASSES = 6
"""Classes that two branches may share: each of them makes three times as many rules."""


class _ConflictError(Exception):
    """Two labels meet in one class: nothing can match."""


def build_shape(query: pattern.DocumentQuery) -> QueryShape:
    """Return a query in the form that is compiled to rules."""
    classes = _classes(query)
    outputs = tuple(classes[name] for name in query.outputs)
    compared = frozenset(classes[name] for name in query.conditions.classes)
    numbers = count()
    roots = []
    for written in query.roots:
        try:
            node, pins = _pin(_rename(written, classes))
        except _ConflictError:
            continue
        for spread in _spread(node, compared.union(outputs)):
            try:
                single, more = _pin(spread)
            except _ConflictError:
                continue
            labels = {**pins, **more}
            conditions = query.conditions.pin(classes, labels)
            if conditions is not None:
                roots.append(_root(single, outputs, labels, numbers, conditions))
    key = tuple(query.outputs.index(name) for name in query.key)
    return QueryShape(tuple(roots), query.outputs, key)


def _classes(query: pattern.DocumentQuery) -> dict[str, str]:
    """Return for each variable the first one of its class."""
    nodes = [node for root in query.roots for node in pattern.nodes_of(root)]
    names = list(
        dict.fromkeys(name for each in nodes for name in (each.variable, each.arrival) if name)
    )
    found = {name: name for name in names}
    for left, right in query.equalities:
        one, other = sorted((found[left], found[right]), key=names.index)
        found = {name: one if each == other else each for name, each in found.items()}
    return found


def _rename(node: pattern.PatternNode, classes: Mapping[str, str]) -> pattern.PatternNode:
    return _map_nodes(
        node, lambda each: replace(each, variable=classes[each.variable]) if each.variable else each
    )


def _map_nodes(
    node: pattern.PatternNode, change: Callable[[pattern.PatternNode], pattern.PatternNode]
) -> pattern.PatternNode:
    """Return a pattern with every node changed, the lower ones first."""

    def in_branches(branches: tuple[pattern.Branch, ...]) -> tuple[pattern.Branch, ...]:
        return tuple(in_branch(each) for each in branches)

    def in_branch(branch: pattern.Branch) -> pattern.Branch:
        match branch:
            case pattern.Edge(axis=axis, node=below):
                return pattern.Edge(axis, _map_nodes(below, change))
            case pattern.OrBranch(alternatives=alternatives, span=span):
                return pattern.OrBranch(tuple(map(in_branches, alternatives)), span)
            case _:
                assert_never(branch)

    return change(replace(node, branches=in_branches(node.branches)))


# --- pin -----------------------------------------------------------------------------------------


def _pin(node: pattern.PatternNode) -> tuple[pattern.PatternNode, dict[str, str]]:
    """Return a pattern whose pinned classes are labels, and these labels by class."""
    pins: dict[str, str] = {}
    while True:
        fresh: dict[str, str] = {}
        for each in _certain(node):
            if each.variable is None or each.label is None:
                continue
            if fresh.setdefault(each.variable, each.label) != each.label:
                raise _ConflictError
        if not fresh:
            return node, pins
        pins |= fresh
        node = _with_labels(node, fresh)


def _certain(node: pattern.PatternNode) -> Iterator[pattern.PatternNode]:
    """Yield the nodes that every match has."""
    yield node
    for branch in node.branches:
        if isinstance(branch, pattern.Edge):
            yield from _certain(branch.node)


def _with_labels(node: pattern.PatternNode, pins: Mapping[str, str]) -> pattern.PatternNode:
    """Return a pattern with labels for classes; alternatives with another label are left out."""

    def in_node(each: pattern.PatternNode) -> pattern.PatternNode:
        pin = pins.get(each.variable) if each.variable else None
        if pin is not None and each.label not in (None, pin):
            raise _ConflictError
        kept = each if pin is None else replace(each, label=pin, variable=None)
        return replace(kept, branches=in_branches(each.branches))

    def in_branches(branches: tuple[pattern.Branch, ...]) -> tuple[pattern.Branch, ...]:
        found: list[pattern.Branch] = []
        for branch in branches:
            match branch:
                case pattern.Edge(axis=axis, node=below):
                    found.append(pattern.Edge(axis, in_node(below)))
                case pattern.OrBranch(alternatives=alternatives, span=span):
                    found += in_choice(alternatives, pattern.OrBranch((), span))
                case _:
                    assert_never(branch)
        return tuple(found)

    def in_choice(
        alternatives: tuple[tuple[pattern.Branch, ...], ...], choice: pattern.OrBranch
    ) -> tuple[pattern.Branch, ...]:
        left = []
        for alternative in alternatives:
            try:
                left.append(in_branches(alternative))
            except _ConflictError:
                continue
        if not left:
            raise _ConflictError
        return left[0] if len(left) == 1 else (replace(choice, alternatives=tuple(left)),)

    return in_node(node)


# --- spread --------------------------------------------------------------------------------------


def _spread(node: pattern.PatternNode, outer: Names) -> list[pattern.PatternNode]:
    """Return patterns that together mean the same, whose choices bind alike what others need."""
    own = outer if node.variable is None else outer | {node.variable}
    return [replace(node, branches=branches) for branches in _spread_branches(node.branches, own)]


def _spread_branches(
    branches: tuple[pattern.Branch, ...], outer: Names
) -> list[tuple[pattern.Branch, ...]]:
    options: list[list[tuple[pattern.Branch, ...]]] = []
    for at, branch in enumerate(branches):
        needed = outer | pattern.variables_in(branches[:at] + branches[at + 1 :])
        match branch:
            case pattern.Edge(axis=axis, node=below):
                options.append([(pattern.Edge(axis, each),) for each in _spread(below, needed)])
            case pattern.OrBranch(alternatives=alternatives):
                options.append(_spread_choice(branch, alternatives, needed))
            case _:
                assert_never(branch)
    return [tuple(each for part in parts for each in part) for parts in product(*options)]


def _spread_choice(
    choice: pattern.OrBranch, alternatives: tuple[tuple[pattern.Branch, ...], ...], needed: Names
) -> list[tuple[pattern.Branch, ...]]:
    spread = [each for one in alternatives for each in _spread_branches(one, needed)]
    kept = pattern.variables_in((choice,)) & needed
    is_even = all(
        kept <= pattern.bound_in(pattern.PatternNode(None, None, each)) for each in spread
    )
    return [(replace(choice, alternatives=tuple(spread)),)] if is_even else spread


# --- number --------------------------------------------------------------------------------------


def _root(
    node: pattern.PatternNode,
    outputs: tuple[str, ...],
    pins: Mapping[str, str],
    numbers: Iterator[int],
    conditions: Conditions,
) -> Root:
    uses = Counter(each.variable for each in pattern.nodes_of(node) if each.variable)
    named = {*outputs, *conditions.classes}
    idle = {name for name, number in uses.items() if number == 1 and name not in named}
    node = _map_nodes(node, lambda each: _without(each, idle, named))
    needed = frozenset(name for name in named if name not in pins)
    shaped = _Numbering(numbers).node(node, None, needed)
    made = tuple(FixedLabel(pins[name]) if name in pins else name for name in outputs)
    return Root(shaped, made, conditions)


def _without(node: pattern.PatternNode, idle: set[str], named: set[str]) -> pattern.PatternNode:
    """Return a node without the variables that nobody asks for."""
    variable = None if node.variable in idle else node.variable
    arrival = node.arrival if node.arrival in named else None
    return replace(node, variable=variable, arrival=arrival)


class _Numbering:
    """Gives numbers in preorder, and finds out which columns are needed where."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers = numbers

    def node(self, node: pattern.PatternNode, axis: pattern.Axis | None, outer: Names) -> Node:
        number = next(self._numbers)
        own: Names = frozenset() if node.variable is None else frozenset((node.variable,))
        below = pattern.variables_in(node.branches)
        carried = node.variable if own & (outer | below) else None
        start = own if carried else frozenset()
        if node.arrival is not None:
            own, start = own | {node.arrival}, start | {node.arrival}
        group = self._group(number, node.branches, outer, start)
        columns = tuple(sorted((own | below) & outer))
        label, kind = node.label, node.kind
        return Node(number, axis, label, kind, carried, columns, group, node.span, node.arrival)

    def _group(
        self, number: int, branches: tuple[pattern.Branch, ...], outer: Names, start: Names
    ) -> Group:
        numbered: list[Node | Fork] = []
        needed = [pattern.variables_in((each,)) for each in branches]
        prefix = start & outer.union(*needed)
        prefixes = [tuple(sorted(prefix))]
        for at, branch in enumerate(branches):
            others = outer.union(start, *needed[:at], *needed[at + 1 :])
            match branch:
                case pattern.Edge(axis=axis, node=below):
                    numbered.append(self.node(below, axis, others))
                case pattern.OrBranch(alternatives=alternatives):
                    numbered.append(self._fork(alternatives, needed[at] & others, others))
                case _:
                    assert_never(branch)
            shared = prefix & set(numbered[-1].columns)
            if len(shared) > MAX_SHARED_CLASSES:
                message = f"More than {MAX_SHARED_CLASSES} variables are joined at one node."
                raise syntax_error(message, self._span(branch), "split the query", "C1206")
            prefix = (prefix | set(numbered[-1].columns)) & outer.union(*needed[at + 1 :])
            prefixes.append(tuple(sorted(prefix)))
        return Group(number, tuple(numbered), tuple(prefixes))

    @staticmethod
    def _span(branch: pattern.Branch) -> Span | None:
        return branch.node.span if isinstance(branch, pattern.Edge) else branch.span

    def _fork(
        self, alternatives: tuple[tuple[pattern.Branch, ...], ...], columns: Names, outer: Names
    ) -> Fork:
        number = next(self._numbers)
        groups = tuple(
            self._group(next(self._numbers), each, outer, frozenset()) for each in alternatives
        )
        return Fork(number, tuple(sorted(columns)), groups)


def duplicates(node: pattern.PatternNode) -> list[pattern.PatternNode]:
    """Return the nodes that stand twice below one node, in the same way."""
    found = []
    for each in (node, *pattern.nodes_below(node.branches)):
        seen: set[pattern.Branch] = set()
        for branch in each.branches:
            if isinstance(branch, pattern.Edge) and branch in seen and branch.node.variable is None:
                found.append(branch.node)
            seen.add(branch)
    return found
