"""The message about a group that depends on itself: a count or sum over it has no value."""

from collections.abc import Callable, Mapping

import pyarrow as pa

from corollary.core.graph import shortest_path, strongly_connected_components
from corollary.core.pipeline import Reference
from corollary.core.plans import WORKING_SEPARATOR, CheckAcyclic
from corollary.core.printer import print_value
from corollary.core.types import Type
from corollary.errors import EvaluationError, InputError

SHOWN_MAX_GROUPS = 12
"""The maximum number of groups of a cycle in a message."""

Group = tuple[str, tuple[str, ...]]
"""A relation, and the key of one of its groups as literals."""


def group_cycle(
    step: CheckAcyclic,
    types: Mapping[str, tuple[Type, ...]],
    read: Callable[[Reference], pa.Table],
) -> InputError:
    """Return the error that shows a shortest cycle through the first group on one."""
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
