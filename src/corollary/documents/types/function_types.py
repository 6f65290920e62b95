"""Functions and their types: what the trees that they bring look like.

| written                                  | means                                              |
|------------------------------------------|----------------------------------------------------|
| `Labels({"a", "b"})`                     | the root of each tree is labelled `a` or `b`       |
| `Grammar("A", {"A": Rule(…), …})`        | each tree is an `A`, and below it what the rule says |

A rule allows labels, and children of further types, at most one or any number of each, some of them
required. `ANY` is the type of all trees; a type without a rule has none. Exclusive choices between
children are not supported: with them it is NP-hard to say what can match (Theorem 4).

A rule of an *active* type also names functions that trees may call there. What those bring are
further children, any number of them; `active_types` says of which types.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import assert_never

ANY = "ANY"


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels that the roots of a function's trees may have."""

    labels: frozenset[str]


@dataclass(frozen=True, slots=True)
class Child:
    """Children of a type: required or not, at most one or any number."""

    type: str
    is_required: bool = False
    is_single: bool = False


@dataclass(frozen=True, slots=True)
class Production:
    """What a tree of a type may be.

    Attributes:
        labels: what its root may be labelled; None for any label.
        children: what may be below the root.
        calls: the functions that may be called there.
    """

    labels: frozenset[str] | None
    children: tuple[Child, ...] = ()
    calls: frozenset[str] = frozenset()

    @property
    def below(self) -> tuple[Child, ...]:
        """The children in the end: those of the tree, and those that calls bring."""
        return (*self.children, *(Child(call_type_name(name)) for name in sorted(self.calls)))


ANYTHING = Production(None, (Child(ANY),))
"""What is below `ANY`, as a rule."""
NO_TREE = Production(frozenset())


def call_type_name(function: str) -> str:
    """Return the name of the type of what a function brings, where trees call it."""
    return f"!{function}"


@dataclass(frozen=True, slots=True)
class Grammar:
    """Types by name, and the one that a function's trees have."""

    start: str
    rules: Mapping[str, Production] = field(hash=False)


FunctionType = Labels | Grammar


def roots_allowed(type_: FunctionType | None) -> frozenset[str] | None:
    """Return the labels that the trees of a function begin with; None if they may be any."""
    match type_:
        case None:
            return None
        case Labels(labels=labels):
            return labels
        case Grammar(start=start, rules=rules):
            if start == ANY:
                return None
            return rules[start].labels if start in rules else frozenset()
        case _:
            assert_never(type_)


def labels_of(type_: FunctionType | None) -> frozenset[str]:
    """Return the labels that a type mentions."""
    match type_:
        case None:
            return frozenset()
        case Labels(labels=labels):
            return labels
        case Grammar(rules=rules):
            return frozenset(label for rule in rules.values() for label in rule.labels or ())
        case _:
            assert_never(type_)


class FunctionState(StrEnum):
    """Whether a function may still bring something."""

    LIVE = "live"
    ENDED = "ended"
    CLOSED = "closed"
    """Nobody needs what it would bring, so it is left out."""


@dataclass(slots=True)
class Function:
    """A function of one document.

    Attributes:
        name: as documents call it.
        number: as relations call it.
        is_once: whether it answers at most once, with one tree.
        type: what its trees look like; None if nothing is known.
        expanded_type: the same, with what the calls in its trees bring.
        least_type: the same, if functions that answer once bring nothing to its trees.
        state: whether it may still bring something.
    """

    name: str
    number: int
    is_once: bool = False
    type: FunctionType | None = None
    expanded_type: FunctionType | None = None
    least_type: FunctionType | None = None
    state: FunctionState = FunctionState.LIVE

    @property
    def is_active(self) -> bool:
        """Whether its type names functions that its trees may call."""
        return self.expanded_type is not self.type

    @property
    def is_live(self) -> bool:
        """Whether it may still bring something."""
        return self.state is FunctionState.LIVE
