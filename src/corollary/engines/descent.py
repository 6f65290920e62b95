"""Values that improve without end: a chain of derivations that comes back to its own key.

Every link is a rule instance that only adds to the value. If the value of a key has improved
through itself once, the same links improve it again, for ever.
"""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from corollary.core.arrow import to_python
from corollary.core.pipeline import Reference
from corollary.core.plans import FindDescent
from corollary.core.printer import print_relation, print_value
from corollary.errors import InputError

Node = tuple[str, tuple[Any, ...]]
"""A relation and a tuple of it."""


def find_descent(step: FindDescent, read: Callable[[Reference], pa.Table]) -> None:
    """Raise an error if a chain of links comes back to a key.

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
        _raise_if_repeated([(name, _key(row, keys[name])) for name, row in chain])


def _key(row: tuple[Any, ...], columns: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(row[at] for at in columns)


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
    error = InputError.of(
        "C0812",
        f"The value of `{shown}` improves without end, around {path}. Nothing was changed.",
        None,
        "break this cycle in the data, or bound the value, as in `d > -1000`",
    )
    assert isinstance(error, InputError)
    return error
