"""Patterns and trees of the oracle as text, and the variables of patterns."""

from __future__ import annotations

from oracles.documents import Pattern, Q, Tree


def variables(node: Q) -> list[str]:
    found = [node.variable] if node.variable else []
    for edge in node.edges:
        if isinstance(edge, tuple):
            found += variables(edge[1])
        else:
            found += [name for one in edge for _, below in one for name in variables(below)]
    return found


def always_bound(node: Q) -> set[str]:
    found = {node.variable} if node.variable else set()
    for edge in node.edges:
        if isinstance(edge, tuple):
            found |= always_bound(edge[1])
        else:
            found |= set.intersection(
                *(set().union(*(always_bound(below) for _, below in one)) for one in edge)
            )
    return found


def shown(tree: Tree) -> str:
    label = f'"{tree[0]}"' if " " in tree[0] else tree[0]
    return label + (f"[{' '.join(map(shown, tree[1]))}]" if tree[1] else "")


def shown_query(pattern: Pattern) -> str:
    equal = " and ".join(f"${one} = ${other}" for one, other in pattern.equal)
    where = f" where {equal}" if equal else ""
    outputs = ", ".join(f"${name}" for name in pattern.outputs) or "()"
    return f"/{_step(pattern.root)}{where} return {outputs}"


def _step(node: Q) -> str:
    name = f"${node.variable}" if node.variable else ""
    return node.label + name + "".join(f"[{_edge(each)}]" for each in node.edges)


def _edge(edge: tuple[str, Q] | list[list[tuple[str, Q]]]) -> str:
    if isinstance(edge, tuple):
        return (".//" if edge[0] == "//" else "") + _step(edge[1])
    return " or ".join(" and ".join(map(_edge, one)) for one in edge)
