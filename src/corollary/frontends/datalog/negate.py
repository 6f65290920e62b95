"""Negation of bodies: `!( … )` moves inwards until it stands before atoms and comparisons."""

from dataclasses import replace
from typing import assert_never

from corollary.core.rules import (
    NEGATED,
    Atom,
    BodyItem,
    Comparison,
    Disjunction,
    Negation,
    Truth,
)
from corollary.source import Span


def negate(body: tuple[BodyItem, ...], span: Span | None = None) -> tuple[BodyItem, ...]:
    """Return the conjunction that holds when the given one does not.

    >>> negate((Truth(True), Truth(False)))[0].alternatives
    ((Truth(value=False),), (Truth(value=True),))
    """
    if len(body) == 1:
        return _negate_item(body[0], span)
    return (Disjunction(tuple(_negate_item(item, item.span) for item in body), span),)


def _negate_item(item: BodyItem, span: Span | None) -> tuple[BodyItem, ...]:
    match item:
        case Atom():
            return (Negation(item, span),)
        case Negation(atom=atom):
            return (atom,)
        case Comparison(operator=operator):
            return (replace(item, operator=NEGATED[operator]),)
        case Truth(value=value):
            return (replace(item, value=not value),)
        case Disjunction(alternatives=alternatives):
            return tuple(
                negated
                for alternative in alternatives
                for negated in negate(alternative, alternative[0].span)
            )
        case _:
            assert_never(item)
