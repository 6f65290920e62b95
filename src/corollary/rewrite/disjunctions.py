"""`a, (b ; c)` becomes `a, b` and `a, c`; `true` goes away, `false` takes its alternative along."""

from collections.abc import Iterator

from corollary.core.rules import BodyItem, Disjunction, Truth


def disjunctions(items: tuple[BodyItem, ...]) -> Iterator[tuple[BodyItem, ...]]:
    """Yield the alternatives of a body, each a conjunction without disjunction or truth values.

    >>> [len(body) for body in disjunctions((Truth(True), Disjunction(((Truth(True),), ()))))]
    [0, 0]
    """
    for position, item in enumerate(items):
        match item:
            case Truth(value=True):
                yield from disjunctions(items[:position] + items[position + 1 :])
                return
            case Truth(value=False):
                return
            case Disjunction(alternatives=alternatives):
                for alternative in alternatives:
                    rest = items[:position] + alternative + items[position + 1 :]
                    yield from disjunctions(rest)
                return
            case _:
                pass
    yield items
