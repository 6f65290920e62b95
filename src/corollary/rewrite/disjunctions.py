"""`a, (b ; c)` becomes `a, b` and `a, c`; `true` goes away, `false` takes its alternative along."""

from collections.abc import Iterator

from corollary.core.rules import BodyItem, Disjunction, Truth


def disjunctions(items: tuple[BodyItem, ...]) -> Iterator[tuple[BodyItem, ...]]:
    """Yield the alternatives of a body, each a conjunction without disjunction or truth values.

    >>> [len(body) for body in disjunctions((Truth(True), Disjunction(((Truth(True),), ()))))]
    [0, 0]
    """
    work: list[tuple[tuple[BodyItem, ...], tuple[BodyItem, ...]]] = [((), items)]
    while work:
        done, rest = work.pop()
        for position, item in enumerate(rest):
            if isinstance(item, Disjunction):
                behind = rest[position + 1 :]
                before = (*done, *rest[:position])
                work += [(before, each + behind) for each in reversed(item.alternatives)]
                break
        else:
            body = (*done, *rest)
            if Truth(value=False) not in body:
                yield tuple(item for item in body if not isinstance(item, Truth))
