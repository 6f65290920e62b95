"""Directed graphs: reachable nodes, strongly connected components, shortest cycles."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def reachable(
    starts: Iterable[Node], successors: Callable[[Node], Iterable[Node]]
) -> dict[Node, None]:
    """Return some nodes and all that can be reached from them, in the order of discovery.

    >>> list(reachable(["path"], lambda name: {"path": ["path", "edge"]}.get(name, [])))
    ['path', 'edge']
    """
    found = dict.fromkeys(starts)
    work = list(found)
    while work:
        for node in successors(work.pop()):
            if node not in found:
                found[node] = None
                work.append(node)
    return found


def reversed_arcs(
    successors: Mapping[Node, Iterable[Node]],
) -> dict[Node, dict[Node, None]]:
    """Return a graph with all arcs the other way round.

    >>> reversed_arcs({"link": ["edge"], "path": ["link", "edge"]})
    {'edge': {'link': None, 'path': None}, 'link': {'path': None}}
    """
    found: dict[Node, dict[Node, None]] = {}
    for node, targets in successors.items():
        for target in targets:
            found.setdefault(target, {})[node] = None
    return found


def strongly_connected_components(
    successors: Mapping[Node, Iterable[Node]],
) -> list[tuple[Node, ...]]:
    """Return the strongly connected components, every one after those it points to (Tarjan 1972).

    >>> strongly_connected_components({"link": ["link", "edge"], "edge": []})
    [('edge',), ('link',)]
    """
    index: dict[Node, int] = {}  # in the order of discovery
    low: dict[Node, int] = {}  # the least index of an open node known to be reachable
    open_nodes: list[Node] = []
    is_open: set[Node] = set()
    found: list[tuple[Node, ...]] = []
    for root in successors:
        if root in index:
            continue
        work = [(root, iter(successors[root]))]
        index[root] = low[root] = len(index)
        open_nodes.append(root)
        is_open.add(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    open_nodes.append(target)
                    is_open.add(target)
                    work.append((target, iter(successors.get(target, ()))))
                    break
                if target in is_open:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:  # the root of a component: it is on top of the stack
                    component = [open_nodes.pop()]
                    while component[-1] != node:
                        component.append(open_nodes.pop())
                    is_open.difference_update(component)
                    found.append(tuple(reversed(component)))
    return found


def component_numbers(successors: Mapping[Node, Iterable[Node]]) -> dict[Node, int]:
    """Return the number of each node's strongly connected component, lower ones first.

    >>> component_numbers({"link": ["link", "edge"]})
    {'edge': 0, 'link': 1}
    """
    components = strongly_connected_components(successors)
    return {node: number for number, nodes in enumerate(components) for node in nodes}


def closure_of(
    known: Iterable[Node], implications: Iterable[tuple[AbstractSet[Node], Node]]
) -> set[Node]:
    """Return nodes and all that they imply, given what follows from which sets of nodes.

    >>> sorted(closure_of({"x"}, [({"x"}, "y"), ({"y", "z"}, "u")]))
    ['x', 'y']
    """
    found, rules, size = set(known), list(implications), -1
    while size != (size := len(found)):
        found.update(implied for needed, implied in rules if needed <= found)
    return found


def shortest_path(successors: Mapping[Node, Iterable[Node]], start: Node, end: Node) -> list[Node]:
    """Return the nodes of a shortest path with at least one arc, both ends included; [] if none.

    >>> shortest_path({"p": ["q"], "q": ["p"]}, "p", "p")
    ['p', 'q', 'p']
    """
    came_from: dict[Node, Node] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for target in successors.get(node, ()):
            if target == end:
                path = [end, node]
                while path[-1] != start:
                    path.append(came_from[path[-1]])
                return path[::-1]
            if target not in came_from and target != start:
                came_from[target] = node
                queue.append(target)
    return []
