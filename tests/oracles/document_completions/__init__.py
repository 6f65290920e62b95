"""A second opinion on documents with a type: every small completion is gone through.

A type has productions: a label (`*` for any) and a content model, a regular expression over types.
A tree is of it if its children, in some order, are a word of the model. Here the children are taken
away one by one, in every way, as the expression asks for them.

Functions bring sets of trees of the type's own types, in all combinations up to a size; a document
after them counts if it is of its type. Trees are as deep as the size says, for types that refer to
themselves, so there are finitely many once repetitions have an end. What is possible is what some
completion gives; what is sure is what all of them give. Those that violate a constraint do not
count. Two labels that nobody mentions stand for all of them: they may be the same in two places, or
different.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, combinations_with_replacement, product
from typing import Any

from oracles import documents as oracle
from oracles.document_types import Matches, Ranges, TooLargeError
from oracles.documents import Answers, Pattern, Tree

Model = tuple[Any, ...]
"""("type", name), ("all", models), ("one", models) or ("repeat", model, sign)."""
EMPTY: Model = ("all", ())
FRESH = ("new 1", "new 2")


@dataclass(frozen=True)
class TreeType:
    """Types by name, each with its productions: a label and a content model."""

    start: str
    rules: Mapping[str, tuple[tuple[str, Model], ...]]

    @property
    def is_local(self) -> bool:
        """Whether a label decides about the type, as in a DTD."""
        labels = [label for productions in self.rules.values() for label, _ in productions]
        one = all(len(productions) == 1 for productions in self.rules.values())
        return one and "*" not in labels and len(labels) == len({*labels})


@dataclass(frozen=True)
class Instance:
    """A document with a type, and its functions.

    `brought` has for some functions the types that their trees are of, `roots` for some the labels
    of their roots. `constraints` are ("key", path, paths below it) and ("in", path, path), with
    paths as lists of labels.
    """

    tree: Tree
    type: TreeType
    live: frozenset[str]
    once: frozenset[str] = frozenset()
    brought: Mapping[str, frozenset[str]] = field(default_factory=dict)
    roots: Mapping[str, frozenset[str]] = field(default_factory=dict)
    constraints: tuple[tuple[str, Any, Any], ...] = ()

    def may_bring(self, name: str, tree: Tree) -> bool:
        """Whether a function may bring a tree."""
        kinds, roots = self.brought.get(name), self.roots.get(name)
        if kinds is not None and not kinds & types_of(self.type, tree):
            return False
        return roots is None or tree[0] in roots


# --- which trees are of a type -------------------------------------------------------------------


Known = dict[int, frozenset[str]]
"""The types of trees that are looked at often, by their identity."""


def types_of(type_: TreeType, tree: Tree, known: Known | None = None) -> frozenset[str]:
    """Return the names of the types that a tree is of; calls in it do not count."""
    if known is not None and id(tree) in known:
        return known[id(tree)]
    below = tuple(types_of(type_, each, known) for each in tree[1] if not each[0].startswith("!"))
    everything = frozenset(range(len(below)))
    return frozenset(
        name
        for name, productions in type_.rules.items()
        if any(
            label in ("*", tree[0]) and frozenset() in left(model, below, everything)
            for label, model in productions
        )
    )


def left(
    model: Model, below: Sequence[frozenset[str]], rest: frozenset[int]
) -> set[frozenset[int]]:
    """Return what may be left of some children when others were a word of a model."""
    kind, *parts = model
    if kind == "type":
        return {rest - {at} for at in rest if parts[0] in below[at]}
    if kind == "all":
        found = {rest}
        for part in parts[0]:
            found = {each for before in found for each in left(part, below, before)}
        return found
    if kind == "one":
        return {each for part in parts[0] for each in left(part, below, rest)}
    inner, sign = parts
    found = {rest} if sign in "?*" else set()
    pending = [rest]
    seen = {rest}
    while pending:
        for each in left(inner, below, pending.pop()):
            found.add(each)
            if each not in seen and sign in "*+":
                seen.add(each)
                pending.append(each)
    return found


# --- the trees of a type -------------------------------------------------------------------------


DEPTH = 5
"""The depth of trees of types that refer to themselves, and of all others that there are."""


class Pool:
    """The trees of the types of a document, with repetitions up to a number, and to a depth."""

    def __init__(
        self,
        type_: TreeType,
        labels: Sequence[str],
        times: int,
        most: int,
        depth: int = DEPTH,
    ) -> None:
        self.type = type_
        self.labels = labels
        self.times = times
        self.most = most
        self.depth = depth
        self.known: dict[tuple[str, int], list[Tree]] = {}

    def trees(self, name: str, above: int = 0) -> list[Tree]:
        if above >= self.depth:
            return []
        if (name, above) not in self.known:
            found: dict[str, Tree] = {}
            for label, model in self.type.rules[name]:
                for word in self.words(model):
                    for below in product(*(self.trees(each, above + 1) for each in word)):
                        for each in self.labels if label == "*" else [label]:
                            tree = (each, sorted(below, key=str))
                            found[str(tree)] = tree
                            if len(found) > self.most:
                                raise TooLargeError
            self.known[name, above] = list(found.values())
        return self.known[name, above]

    def words(self, model: Model) -> set[tuple[str, ...]]:
        """Return the words of a model, each in one order."""
        kind, *parts = model
        if kind == "type":
            return {(parts[0],)}
        if kind == "one":
            return {word for part in parts[0] for word in self.words(part)}
        if kind == "repeat":
            inner, sign = parts
            least, most = {"?": (0, 1), "*": (0, self.times), "+": (1, self.times)}[sign]
            found = set()
            for number in range(least, most + 1):
                found |= self.words(("all", (inner,) * number))
            return found
        found = {()}
        for part in parts[0]:
            found = {tuple(sorted(one + other)) for one in found for other in self.words(part)}
            if len(found) > self.most:
                raise TooLargeError
        return found


# --- completions ---------------------------------------------------------------------------------


def completions(instance: Instance, labels: Sequence[str], size: int) -> Iterator[oracle.Node]:
    """Yield the completions in which each stream brings at most so many trees.

    Raises:
        TooLargeError: there are too many to go through.
    """
    for brought in all_brought(instance, labels, size):
        yield after(instance.tree, brought)


def after(tree: Tree, brought: Mapping[str, Sequence[Tree]]) -> oracle.Node:
    """Return a document after updates."""
    root = oracle.grown(tree)
    for name, trees in brought.items():
        oracle.bring(root, name, list(trees))
    return root


def all_brought(
    instance: Instance, labels: Sequence[str], size: int
) -> Iterator[dict[str, tuple[Tree, ...]]]:
    """Yield what functions can bring, at most so many trees each, so that there is a completion.

    Raises:
        TooLargeError: there are too many to go through.
    """
    pool = Pool(instance.type, labels, 3, 40, 1 + size)
    called = sorted(instance.live & calls_in(instance.tree))
    kinds = [instance.brought.get(name, instance.type.rules) for name in called]
    names = [name for name in instance.type.rules if any(name in each for each in kinds)]
    every = {str(tree): tree for name in names for tree in pool.trees(name)}
    known = {id(tree): types_of(instance.type, tree) for tree in every.values()}
    options = []
    number = 1
    for name in called:
        trees = [tree for tree in every.values() if instance.may_bring(name, tree)]
        most = 1 if name in instance.once else size
        sets = [
            chosen
            for amount in range(most + 1)
            for chosen in combinations_with_replacement(trees, amount)
        ]
        number *= len(sets)
        options.append(sets)
        if number > 4_000:
            raise TooLargeError
    for chosen in product(*options):
        brought = dict(zip(called, chosen, strict=True))
        tree = filled(instance.tree, brought)
        if instance.type.start in types_of(instance.type, tree, known) and all(
            satisfies(tree, each) for each in instance.constraints
        ):
            yield brought


def satisfies(tree: Tree, constraint: tuple[str, Any, Any]) -> bool:
    """Whether a document satisfies a constraint: each pair of nodes, each value is looked at."""
    kind, path, other = constraint
    nodes = at_path(tree, path)
    if kind == "in":
        return values(nodes) <= values(at_path(tree, other))
    return not any(
        all(values(walked(one, below)) & values(walked(two, below)) for below in other)
        for one, two in combinations(nodes, 2)
    )


def at_path(tree: Tree, path: Sequence[str]) -> list[Tree]:
    return walked(tree, path[1:]) if tree[0] == path[0] else []


def walked(tree: Tree, path: Sequence[str]) -> list[Tree]:
    found = [tree]
    for label in path:
        found = [child for each in found for child in each[1] if child[0] == label]
    return found


def values(nodes: Sequence[Tree]) -> set[str]:
    return {child[0] for each in nodes for child in each[1] if not child[0].startswith("!")}


def filled(tree: Tree, brought: Mapping[str, Sequence[Tree]]) -> Tree:
    """Return a document with what functions bring."""
    more = [
        each
        for child in tree[1]
        if child[0].startswith("!")
        for each in brought.get(child[0][1:], ())
    ]
    return tree[0], [*(filled(child, brought) for child in tree[1]), *more]


def calls_in(tree: Tree) -> set[str]:
    found = {tree[0][1:]} if tree[0].startswith("!") else set()
    return found.union(*map(calls_in, tree[1]))


def mentioned(instance: Instance, pattern: Pattern) -> list[str]:
    """Return the labels that matter, and two that nobody mentions."""
    named = {label for several in instance.type.rules.values() for label, _ in several} - {"*"}
    known = named | oracle.query_labels(pattern) | oracle.labels_in(instance.tree)
    return [*sorted(known), *FRESH]


@dataclass(frozen=True)
class Verdict:
    """What is possible, with ranges, sure answers included; what is sure; if there is an answer."""

    possible: Ranges
    sure: Answers
    is_true: bool
    number: int


def verdict(instance: Instance, pattern: Pattern, size: int) -> Verdict:
    """Return what the completions of a document give.

    Raises:
        TooLargeError: there are too many of them.
    """
    labels = mentioned(instance, pattern)
    matches = [Matches(pattern, query) for query in oracle.flat(pattern.root)]
    possible: Ranges = {}
    sure: Answers | None = None
    is_true, number = True, 0
    for root in completions(instance, labels, size):
        totals: Answers = set()
        for each in matches:
            for answer, several in each.ranges(root).items():
                possible.setdefault(answer, set()).update(several)
            totals |= exact_answers(each, root)
        sure = totals if sure is None else sure & totals
        is_true = is_true and bool(totals)
        number += 1
    held = oracle.sure(pattern, instance.tree)
    if sure is None:
        return Verdict({each: {each} for each in held}, held, bool(held), 0)
    return Verdict(possible, sure, is_true, number)


def useful(instance: Instance, pattern: Pattern, size: int, sure: Answers) -> set[str]:
    """Return the functions without which a completion lacks an answer that is not sure.

    Raises:
        TooLargeError: there are too many completions.
    """
    matches = [Matches(pattern, query) for query in oracle.flat(pattern.root)]
    found: set[str] = set()
    for brought in all_brought(instance, mentioned(instance, pattern), size):
        root = after(instance.tree, brought)
        every = set[tuple[str, ...]]().union(*(exact_answers(each, root) for each in matches))
        for name in [each for each in brought if brought[each] and each not in found]:
            rest = after(instance.tree, {**brought, name: ()})
            without = set[tuple[str, ...]]().union(*(exact_answers(each, rest) for each in matches))
            if every - without - sure:
                found.add(name)
    return found


def exact_answers(matches: Matches, root: oracle.Node) -> Answers:
    """Return the answers with the labels that nodes have, new ones kept apart."""
    found = set()
    for row in matches.at(matches.query, root):
        meant = {name: label for name, label, _ in row}
        found.add(tuple(meant[matches.same[name]] for name in matches.outputs))
    return found
