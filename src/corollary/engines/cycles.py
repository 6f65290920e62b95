"""Cycles in the data that leave a value undefined, found so that an error can show them."""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from corollary.core.arrow import to_python
from corollary.core.graph import shortest_path, strongly_connected_components
from corollary.core.pipeline import Reference
from corollary.core.plans import WORKING_SEPARATOR, CheckAcyclic, FindDescent
from corollary.core.printer import print_relation, print_value
from corollary.core.types import Type
from corollary.errors import EvaluationError, InputError

Node = tuple[str, tuple[Any, ...]]
"""A relation and a tuple of it."""


def find_descent(step: FindDescent, read: Callable[[Reference], pa.Table]) -> None:
    """Raise an error if a chain of links comes back to a key: its value improves without end.

    Every link is a rule instance that only adds to the value. If the value of a key has improved
    through itself once, the same links improve it again, for ever.

    Raises:
        InputError: C0812.
    """
    parents: dict[Node, tuple[int, Node]] = {}
    ranks: dict[Node, int] = {}
    keys: dict[str, tuple[int, ...]] = {}
    for links in step.links:
        keys |= {links.head: links.head_keys, links.premise: links.premise_keys}
        rows: list[tuple[Any, ...]] = to_python(read(Reference(links.relation)))
        for row in rows:
            head: Node = (links.head, row[: links.head_arity])
            premise: Node = (links.premise, row[links.head_arity + 1 : -1])
            ranks[head], rank = row[links.head_arity], row[-1]
            if rank > parents.get(head, (-1, head))[0]:
                parents[head] = rank, premise
    # From the largest rank back, each time to the premise of the largest rank.
    for start in sorted(parents, key=lambda node: -ranks[node])[:1]:
        chain = [start]
        while chain[-1] in parents:
            chain.append(parents[chain[-1]][1])
        _raise_if_repeated([(name, tuple(row[at] for at in keys[name])) for name, row in chain])


def _raise_if_repeated(chain: list[Node]) -> None:
    seen: dict[Node, int] = {}
    for at, node in enumerate(chain):
        if node in seen:
            raise _error(chain[seen[node] : at + 1][::-1])
        seen[node] = at


def _error(cycle: list[Node]) -> InputError:
    name, key = cycle[0]
    shown = f"{print_relation(name)}({', '.join(map(print_value, key))})"
    same = all(len(each) == len(key) for _, each in cycle)
    varying = [at for at in range(len(key)) if same and len({each[at] for _, each in cycle}) > 1]
    steps = [[each[at] for at in varying] if varying else list(each) for _, each in cycle]
    path = " → ".join(
        print_value(each[0]) if len(each) == 1 else f"({', '.join(map(print_value, each))})"
        for each in steps
    )
    return InputError.of(
        "C0812",
        f"The value of `{shown}` improves without end, around {path}. Nothing was changed.",
        None,
        "break this cycle in the data, or bound the value, as in `d > -1000`",
    )


SHOWN_MAX_GROUPS = 12
"""The maximum number of groups of a cycle in a message."""

Group = tuple[str, tuple[str, ...]]
"""A relation, and the key of one of its groups as literals."""


def group_cycle(
    step: CheckAcyclic,
    types: Mapping[str, tuple[Type, ...]],
    read: Callable[[Reference], pa.Table],
) -> InputError:
    """Return the error about a group that depends on itself: a count or sum over it has no value.

    It shows a shortest cycle through the first group that is on one.
    """
    arcs = _arcs(step, types, read)
    on_cycle = [
        group
        for component in strongly_connected_components(arcs)
        for group in component
        if len(component) > 1 or group in arcs.get(group, ())
    ]
    first = min(on_cycle)
    path = shortest_path({each: sorted(found) for each, found in arcs.items()}, first, first)
    is_single = len({relation for relation, _ in arcs}) == 1
    texts = [_key_text(key) if is_single else _group_text((name, key)) for name, key in path]
    if len(texts) > SHOWN_MAX_GROUPS:
        texts[SHOWN_MAX_GROUPS - 1 : -1] = ["…"]
    return EvaluationError.of(
        "C0811",
        f"`{_group_text(first)}` depends on itself: {' → '.join(texts)}. Nothing was changed.",
        step.origin.span,
        "a count or sum through recursion needs groups that do not read themselves: take out one "
        "of these links, or keep the group out by a literal of the rule",
    )


def _arcs(
    step: CheckAcyclic,
    types: Mapping[str, tuple[Type, ...]],
    read: Callable[[Reference], pa.Table],
) -> dict[Group, list[Group]]:
    """Return which groups read which."""
    widths = {name.partition(WORKING_SEPARATOR)[0]: len(types[name]) for name in step.suspects}
    arcs: dict[Group, list[Group]] = {}
    for reader, below, source in step.pairs:
        columns = [
            [print_value(value, type_) for value in column.to_pylist()]
            for column, type_ in zip(read(source).columns, types[source.relation], strict=True)
        ]
        for row in zip(*columns, strict=True):
            arcs.setdefault((reader, row[: widths[reader]]), []).append(
                (below, row[widths[reader] :])
            )
    return arcs


def _group_text(group: Group) -> str:
    relation, key = group
    return f"{relation}({', '.join(key)})"


def _key_text(key: tuple[str, ...]) -> str:
    """Return a key as it is read in a sentence: a single symbol without quotes."""
    return key[0].strip('"') if len(key) == 1 else f"({', '.join(key)})"
