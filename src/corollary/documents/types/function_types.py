"""Functions and their types: what the trees that they bring look like.

| written                                  | means                                              |
|------------------------------------------|----------------------------------------------------|
| `Labels({"a", "b"})`                     | the root of each tree is labelled `a` or `b`       |
| `Grammar("A", {"A": Production(…), …})`  | each tree is an `A`, as a production of it says  |

A production allows labels, and children of further types, at most one or any number of each, some
of them required. Several productions of one type are exclusive choices; children of a *group* come
together, any number of times. `ANY` is the type of all trees; one without a production has none.
`read_type` reads grammars as text.

A production of an *active* type also names functions that trees may call there. What those bring
are further children, any number of them. Calls refer from the type of one function to those of
others, in circles perhaps. For each function the types that it can reach are put into one grammar.
With the types

    f: "A = a[B*, !g]  B = b[]"
    g: "c"

what `f` brings looks in the end like

| type         | labels | children                        |
|--------------|--------|---------------------------------|
| `["f", "A"]` | `a`    | any number of `["f", "B"]`, `!g` |
| `["f", "B"]` | `b`    |                                 |
| `!g`         | `c`    | any number of `ANY`             |

A stream brings any number of trees to each call of it, so that is exact. A function that answers
once brings one tree to all of its calls: for it the grammar is an upper bound.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import assert_never

from corollary.data_class import dataclass
from corollary.documents.trees.forest import NodeKind
from corollary.documents.types.constraints import DocumentConstraint

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
        children: what may be below the root; several of one type add up.
        calls: the functions that may be called there.
        groups: types whose trees come together below the root, any number of times.
        kind: of a leaf that is a text, a number or a literal; None if it may be anything.
    """

    labels: frozenset[str] | None
    children: tuple[Child, ...] = ()
    calls: frozenset[str] = frozenset()
    groups: tuple[tuple[str, ...], ...] = ()
    kind: NodeKind | None = None

    @property
    def types(self) -> frozenset[str]:
        """The types of its children."""
        grouped = (type_ for group in self.groups for type_ in group)
        return frozenset((*(child.type for child in self.children), *grouped))

    def has_label(self, label: str, kind: NodeKind) -> bool:
        """Whether a node of a label and a kind may be the root."""
        if kind is NodeKind.FUNCTION or self.kind not in (None, kind):
            return False
        return self.labels is None or label in self.labels

    @property
    def below(self) -> tuple[Child, ...]:
        """The children in the end: those of the tree, and those that calls bring."""
        return (*self.children, *(Child(call_type_name(name)) for name in sorted(self.calls)))


ANYTHING = Production(None, (Child(ANY),))
"""What is below `ANY`, as a rule."""


def call_type_name(function: str) -> str:
    """Return the name of the type of what a function brings, where trees call it."""
    return f"!{function}"


@dataclass(frozen=True, slots=True)
class Grammar:
    """Types by name, and the one that trees have.

    Attributes:
        start: the type of whole trees.
        rules: for each type its production, or several, of which a tree has one.
        constraints: what holds of the values in a document, beside its type.
    """

    start: str
    rules: Mapping[str, Production | tuple[Production, ...]] = field(hash=False)
    constraints: tuple[DocumentConstraint, ...] = ()

    def productions(self, type_: str) -> tuple[Production, ...]:
        """Return the productions of a type; none if it has no trees."""
        if type_ == ANY:
            return (ANYTHING,)
        found = self.rules.get(type_, ())
        return found if isinstance(found, tuple) else (found,)


FunctionType = Labels | Grammar


def roots_allowed(type_: FunctionType | None) -> frozenset[str] | None:
    """Return the labels that the trees of a function begin with; None if they may be any."""
    match type_:
        case None:
            return None
        case Labels(labels=labels):
            return labels
        case Grammar(start=start):
            allowed: set[str] = set()
            for each in type_.productions(start):
                if each.labels is None:
                    return None
                allowed |= each.labels
            return frozenset(allowed)
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
            productions = (each for name in rules for each in type_.productions(name))
            return frozenset(label for each in productions for label in each.labels or ())
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


# --- what calls bring ----------------------------------------------------------------------------


FunctionTypes = Mapping[str, FunctionType]
"""The types of functions by name; the others may bring anything."""
Rules = dict[str, tuple[Production, ...]]
"""Types by name, those of several functions together."""


def expand_calls(name: str, types: FunctionTypes, silent: Collection[str]) -> FunctionType | None:
    """Return the type of a function with what the calls in its trees bring.

    Args:
        name: the function.
        types: those of all functions.
        silent: the functions that bring nothing where they are called.
    """
    type_ = types.get(name)
    if not isinstance(type_, Grammar) or not called_in(type_):
        return type_
    rules = _qualified_rules(name, type_)
    for function in called_in(type_):
        rules |= result_rules(function, types, silent)
    return Grammar(_qualify(name, type_.start), rules)


def result_rules(name: str, types: FunctionTypes, silent: Collection[str]) -> Rules:
    """Return the rules of what a function brings, a tree of `!name`, and of what that calls."""
    rules: Rules = {}
    pending = [name]
    while pending:
        function = pending.pop()
        if call_type_name(function) in rules:
            continue
        type_ = None if function in silent else types.get(function)
        if isinstance(type_, Grammar):
            rules |= _qualified_rules(function, type_)
            pending += called_in(type_)
        roots = () if function in silent else _root_rules(function, type_)
        rules[call_type_name(function)] = roots
    return rules


def called_in(grammar: Grammar) -> frozenset[str]:
    """Return the functions that trees of a grammar may call where its rules name them."""
    return frozenset[str]().union(
        *(each.calls for name in grammar.rules for each in grammar.productions(name))
    )


def _root_rules(function: str, type_: FunctionType | None) -> tuple[Production, ...]:
    """Return the productions for the roots of what a function brings."""
    match type_:
        case None:
            return (ANYTHING,)
        case Labels(labels=labels):
            return (Production(labels, ANYTHING.children),)
        case Grammar(start=start):
            return tuple(_qualify_production(function, each) for each in type_.productions(start))
        case _:
            assert_never(type_)


def _qualified_rules(function: str, grammar: Grammar) -> Rules:
    """Return the rules of a grammar with the name of its function in those of types."""
    return {
        _qualify(function, name): tuple(
            _qualify_production(function, each) for each in grammar.productions(name)
        )
        for name in grammar.rules
    }


def _qualify_production(function: str, production: Production) -> Production:
    return replace(
        production,
        children=tuple(
            replace(each, type=_qualify(function, each.type)) for each in production.children
        ),
        groups=tuple(
            tuple(_qualify(function, each) for each in group) for group in production.groups
        ),
    )


def _qualify(function: str, name: str) -> str:
    """Return the name of a type of a function among those of all functions."""
    return ANY if name == ANY else json.dumps([function, name])
