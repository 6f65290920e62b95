"""Completions that satisfy the constraints of a document: what each needs, and one of them.

A completion is *admissible* if it satisfies the constraints (`types.constraints`). Functions have
to bring something: demands, as in `types.completions`. These are chased:

* Nodes that are there, or come for certain, agree on a key: there is no such completion. Two that
  come beside the same call may be one.
* A value is missing at the target of an inclusion: in each admissible completion some function has
  brought it, beside a node of the document that is on the way to it. Each way is a further demand.

Every admissible completion that meets the demands meets those of one *end* of the chase, so without
an end there is none. The opposite does not hold: a type may require more, in which keys and
inclusions matter again, and it is undecidable what both allow together. So a *witness* is built:
what the demands say, and what the type requires beside it, with new labels. If it is of the type
and satisfies the constraints, there is one; otherwise it is not known.

| document, type                            | demand       | ends                               |
|-------------------------------------------|--------------|------------------------------------|
| `r[a["1"] !f]`, `r[a*] key r/a (.)`       | `f`: `a/1`   | none                               |
| `r[a["1"] !f !g]`, `r[a*, b*] r/a in r/b` |              | `b/1` of `f`; `b/1` of `g`         |

Trees of a type that match a pattern, with as little as the type requires beside it.

    grow(t, p) = label of p, or of a production of t
                 grow(t_i, p_i)   for each child p_i of p, in a slot t_i of the production
                 grow(t_j)        for each required slot t_j that is left

Places are tried in order, and a production ends as soon as one of its parts does; groups of
children are not used. So there may be a tree although none is found.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import product

from corollary.data_class import dataclass
from corollary.documents.answers.canonical import Overlay, fresh_labels
from corollary.documents.queries.pattern import Axis
from corollary.documents.queries.shape import ConjunctivePattern, Group, Node
from corollary.documents.trees.forest import ROOT, SCALARS, ForestNode, NodeKind
from corollary.documents.types.completions import Completions
from corollary.documents.types.constraints import (
    DocumentConstraint,
    DocumentKey,
    LabelPath,
    ValueInclusion,
    nodes_at,
    values_of,
)
from corollary.documents.types.content_fit import Supply, Types, fitting_types, has_fit
from corollary.documents.types.function_types import ANY, Child, Production
from corollary.documents.types.node_types import Supplier
from corollary.documents.types.satisfiability import Satisfiability
from corollary.engines.budget import WorkBudget

MAX_DEPTH = 12
"""Deeper trees are not tried."""


@dataclass(frozen=True, slots=True)
class GrownTree:
    """A tree: a label, a kind, and children."""

    label: str
    kind: NodeKind
    children: tuple["GrownTree", ...] = ()

    def add_to(self, rows: list[ForestNode], parent: int) -> None:
        """Add it to the rows of a forest."""
        here = len(rows)
        rows.append(ForestNode(parent, self.label, self.kind))
        for each in self.children:
            each.add_to(rows, here)


@dataclass(frozen=True, slots=True)
class LeastTrees:
    """Makes trees of types.

    Attributes:
        sat: the types.
        label_at: gives a label to a node below a path that may have any.
        budget: what it may take.
    """

    sat: Satisfiability
    label_at: Callable[[LabelPath], str]
    budget: WorkBudget

    def grow(
        self, type_: str, path: LabelPath, pattern: ConjunctivePattern | None = None, depth: int = 0
    ) -> GrownTree | None:
        """Return a tree of a type that matches a pattern, if one is found.

        Args:
            type_: the type.
            path: where the tree comes.
            pattern: what it has to match at the root.
            depth: of the tree in a larger one.
        """
        if depth > MAX_DEPTH:
            return None
        if type_ == ANY:
            return self._free(path, pattern)
        for production in self.sat.productions(type_):
            self.budget.spend()
            found = self._produce(production, path, pattern, depth)
            if found is not None:
                return found
        return None

    def _free(self, path: LabelPath, pattern: ConjunctivePattern | None) -> GrownTree:
        """Return the tree of a pattern alone."""
        if pattern is None:
            return GrownTree(self.label_at(path), NodeKind.ELEMENT)
        label = self.label_at(path) if pattern.label is None else pattern.label
        below = tuple(self._free((*path, label), each) for each in pattern.children)
        return GrownTree(label, pattern.node.kind or NodeKind.ELEMENT, below)

    def _produce(
        self,
        production: Production,
        path: LabelPath,
        pattern: ConjunctivePattern | None,
        depth: int,
    ) -> GrownTree | None:
        label = None if pattern is None else pattern.label
        kind = production.kind or (pattern and pattern.node.kind) or NodeKind.ELEMENT
        if label is None:
            label = min(production.labels) if production.labels else self.label_at(path)
        wanted = () if pattern is None else pattern.children
        if not production.has_label(label, kind) or (wanted and kind in SCALARS):
            return None
        if pattern is not None and pattern.node.kind not in (None, kind):
            return None
        below = self._children(production, (*path, label), wanted, depth + 1)
        return None if below is None else GrownTree(label, kind, tuple(below))

    def _children(
        self,
        production: Production,
        path: LabelPath,
        wanted: Sequence[ConjunctivePattern],
        depth: int,
    ) -> list[GrownTree] | None:
        free = sorted(production.children, key=lambda each: not each.is_required)
        found: list[GrownTree] = []
        for pattern in wanted:
            for slot in free:
                tree = self.grow(slot.type, path, pattern, depth)
                if tree is not None:
                    found.append(tree)
                    if slot.is_single or slot.is_required:
                        free.remove(slot)
                        # Where one is required, there may be more.
                        free += [] if slot.is_single else [Child(slot.type)]
                    break
            else:
                return None
        for slot in free:
            if slot.is_required:
                tree = self.grow(slot.type, path, None, depth)
                if tree is None:
                    return None
                found.append(tree)
        return found


# --- the chase, and a witness --------------------------------------------------------------------


Demanded = Mapping[str, frozenset[ConjunctivePattern]]
"""For functions, the patterns that their trees have to match."""

WITNESS_TRIES = 64
"""This many completions are built at most before it is not known whether one is admissible."""


@dataclass(frozen=True, slots=True)
class Tableau:
    """A document with what comes for certain.

    Attributes:
        tree: the document with it.
        unknown: labels in it that stand for any one.
    """

    tree: Overlay
    unknown: frozenset[str]


@dataclass(slots=True)
class AdmissibleCompletions:
    """The completions of a document that satisfy constraints.

    Attributes:
        completions: of the document, whether they satisfy them or not.
        constraints: the constraints.
    """

    completions: Completions
    constraints: tuple[DocumentConstraint, ...]
    _patterns: dict[LabelPath, ConjunctivePattern] = field(default_factory=dict)

    # --- the chase -------------------------------------------------------------------------------

    def ends(self, demands: Demanded) -> Iterator[Demanded]:
        """Yield the ends of the chase of demands."""
        if not self.completions.has_one({name: [*each] for name, each in demands.items()}):
            return
        tableau = self.tableau(demands)
        if self._violates_key(tableau):
            return
        missing = self._missing_value(tableau)
        if missing is None:
            yield demands
            return
        for function, pattern in self._ways(*missing):
            yield from self.ends(
                {**demands, function: demands.get(function, frozenset()) | {pattern}}
            )

    def tableau(self, demands: Demanded) -> Tableau:
        """Return the document with what is certain of the trees that meet demands."""
        tree = self.completions.tree
        fresh, unknown = fresh_labels(set(tree.labels.values())), set[str]()

        def grow(pattern: ConjunctivePattern, rows: list[ForestNode], parent: int) -> None:
            if pattern.node.axis is Axis.DESCENDANT:  # it may be anywhere
                return
            label = pattern.label
            if label is None:
                label = next(fresh)
                unknown.add(label)
            here = len(rows)
            rows.append(ForestNode(parent, label, pattern.node.kind or NodeKind.ELEMENT))
            for each in pattern.children:
                grow(each, rows, here)

        trees: dict[str, list[ForestNode]] = {}
        for name, patterns in sorted(demands.items()):
            for pattern in sorted(patterns, key=repr):
                grow(pattern, trees.setdefault(name, []), ROOT)
        self.completions.budget.spend(len(tree) + sum(map(len, trees.values())))
        return Tableau(Overlay(tree, trees), frozenset(unknown))

    def _violates_key(self, tableau: Tableau) -> bool:
        origins = tableau.tree.origins
        return any(
            one not in origins or origins[one] != origins.get(other)
            for key in self.constraints
            if isinstance(key, DocumentKey)
            for one, other in key.agreeing_nodes(tableau.tree)
        )

    def _missing_value(self, tableau: Tableau) -> tuple[LabelPath, str | None] | None:
        """Return a path that has to have a value, or any one, and has not."""
        for each in self.constraints:
            if isinstance(each, ValueInclusion):
                there = values_of(tableau.tree, each.target)
                for value in values_of(tableau.tree, each.source):
                    if value in tableau.unknown:
                        if not there:
                            return each.target, None
                    elif value not in there:
                        return each.target, value
        return None

    def _ways(self, path: LabelPath, value: str | None) -> Iterator[tuple[str, ConjunctivePattern]]:
        """Yield the functions that may bring a value of a path, and what they then bring."""
        tree = self.completions.tree
        found: dict[tuple[str, int], None] = {}
        for length in range(len(path), 0, -1):
            for number in nodes_at(tree, path[:length]):
                for child in tree.children[number]:
                    if tree.kinds[child] is NodeKind.FUNCTION:
                        found[tree.labels[child], length] = None
        for name, length in found:
            if name in self.completions.suppliers:
                yield name, self._chain(path[length:], value)

    def _chain(self, path: LabelPath, value: str | None) -> ConjunctivePattern:
        """Return the pattern of nodes one below the other, with a value at the end."""
        key = (*path, "" if value is None else f"={value}")
        if key not in self._patterns:
            below: tuple[ConjunctivePattern, ...] = ()
            number = -1 - len(self._patterns)  # that of no query node
            for label in (value, *reversed(path)):
                group = Group(number, (), ((),))
                node = Node(number, Axis.CHILD, label, None, None, (), group)
                below = (ConjunctivePattern(node, below),)
            self._patterns[key] = below[0]
        return self._patterns[key]

    # --- a witness -------------------------------------------------------------------------------

    def witness(self, end: Demanded) -> Overlay | None:
        """Return an admissible completion that meets the demands of an end; None if unknown.

        What functions have brought is in it; the calls are there, and bring nothing more.
        """
        pending, seen = [end], set[frozenset[tuple[str, frozenset[ConjunctivePattern]]]]()
        while pending and len(seen) < WITNESS_TRIES:
            demands = pending.pop()
            key = frozenset(demands.items())
            if key in seen:
                continue
            seen.add(key)
            for tree in self._built(demands):
                missing = self._missing_value(Tableau(tree, frozenset()))
                if missing is None:
                    if self._is_witness(tree):
                        return tree
                    continue
                pending += [
                    {**demands, name: demands.get(name, frozenset()) | {pattern}}
                    for name, pattern in self._ways(*missing)
                ]
        return None

    def _is_witness(self, tree: Overlay) -> bool:
        keys = (each for each in self.constraints if isinstance(each, DocumentKey))
        if any(True for key in keys for _ in key.agreeing_nodes(tree)):
            return False
        types = _ClosedTypes(self.completions, tree)
        return types.is_complete()

    def _built(self, demands: Demanded) -> Iterator[Overlay]:
        """Yield documents in which functions bring what is demanded, and required beside it."""
        known = self.tableau(demands).tree
        used = Counter[LabelPath]()
        fresh = fresh_labels({*known.labels.values()})

        def label_at(path: LabelPath) -> str:
            """Return a label for a node below a path: one that inclusions allow, or a new one."""
            for each in self.constraints:
                if isinstance(each, ValueInclusion) and each.source == path:
                    allowed = [*values_of(known, each.target)] or [f"new of {each}"]
                    used[path] += 1
                    return allowed[(used[path] - 1) % len(allowed)]
            return next(fresh)

        whole = self.completions
        maker = LeastTrees(whole.sat, label_at, whole.budget)
        filling = _Filling(whole, maker)
        for merged in (False, True):
            patterns = {
                name: _merge_patterns(several)
                if merged or whole.suppliers[name].is_once
                else [*several]
                for name, several in demands.items()
            }
            if merged and all(len(patterns[name]) == len(demands[name]) for name in demands):
                return
            options = [
                [(name, tree) for tree in filling.trees(name, pattern)]
                for name, several in sorted(patterns.items())
                for pattern in sorted(several, key=repr)
            ]
            for chosen in product(*options):
                trees: dict[str, list[GrownTree]] = {}
                for name, tree in chosen:
                    trees.setdefault(name, []).append(tree)
                filling.complete(trees)
                rows: dict[str, list[ForestNode]] = {}
                for name, several in trees.items():
                    for each in several:
                        each.add_to(rows.setdefault(name, []), ROOT)
                whole.budget.spend(sum(map(len, rows.values())))
                yield Overlay(whole.tree, rows)


def _merge_patterns(patterns: frozenset[ConjunctivePattern]) -> list[ConjunctivePattern]:
    """Return patterns, those with the same label at the root as one."""
    by_label: dict[str | None, ConjunctivePattern] = {}
    for each in sorted(patterns, key=repr):
        known = by_label.get(each.label)
        more = each.children if known is None else (*known.children, *each.children)
        by_label[each.label] = ConjunctivePattern((known or each).node, more)
    return [*by_label.values()]


@dataclass(slots=True)
class _ClosedTypes:
    """The types of the nodes of a document to which nothing more comes."""

    completions: Completions
    tree: Overlay
    _types: dict[int, Types] = field(default_factory=dict)

    def is_complete(self) -> bool:
        """Whether the document is of its type, and what functions have brought of theirs."""
        whole, rules = self.completions, self.completions.rules
        every = [
            (name, production)
            for name in (*rules.grammar.rules, *rules.results)
            for production in whole.sat.productions(name)
        ]
        for number in sorted({*whole.open_nodes, *self.tree.grown}, reverse=True):
            self._types[number] = self._types_of(number, every)
        called = Counter[tuple[str, int]]()
        for number, call in self.tree.origins.items():
            parent = whole.tree.parents[call]
            if number in self.tree.children[parent]:
                supplier = whole.suppliers[whole.tree.labels[call]]
                called[supplier.name, call] += 1
                if supplier.type not in self._types[number]:
                    return False
                if supplier.is_once and called[supplier.name, call] > 1:
                    return False
        root = self._types.get(whole.tree.root)
        return rules.grammar.start in (
            whole.closed_types(whole.tree.root) if root is None else root
        )

    def _types_of(self, number: int, every: Sequence[tuple[str, Production]]) -> Types:
        label, kind = self.tree.labels[number], self.tree.kinds[number]
        below = Counter[Types]()
        for child in self.tree.children[number]:
            if self.tree.kinds[child] is not NodeKind.FUNCTION:
                known = self._types.get(child)
                below[self.completions.closed_types(child) if known is None else known] += 1
        found = {ANY}
        for name, production in every:
            if name not in found and production.has_label(label, kind):
                self.completions.budget.spend()
                if has_fit(production, below, (), self.completions.budget):
                    found.add(name)
        return frozenset(found)


@dataclass(slots=True)
class _Filling:
    """Adds what types require."""

    completions: Completions
    maker: LeastTrees

    def trees(self, function: str, pattern: ConjunctivePattern) -> list[GrownTree]:
        """Return trees of a function that match a pattern, one for each type that it may be of."""
        whole, tree = self.completions, self.completions.tree
        supplier, found = whole.suppliers[function], dict[GrownTree, None]()
        for call in tree.calls[function]:
            above = tree.parents[call]
            for _, production in whole.open_candidates(above):
                for type_ in sorted(whole.brought_types(supplier, production)):
                    made = self.maker.grow(type_, tree.path(above), pattern)
                    if made is not None:
                        found[made] = None
            if supplier.type != ANY:
                made = self.maker.grow(supplier.type, tree.path(above), pattern)
                if made is not None:
                    found[made] = None
        return [*found]

    def complete(self, trees: dict[str, list[GrownTree]]) -> None:
        """Add trees that open nodes require, as far as one at a time shows what is missing."""
        whole = self.completions
        types: dict[int, Types] = {}
        for number in whole.open_nodes:
            closed, open_, called = whole.children(number)
            for child in open_:
                closed[types[child] | {ANY}] += 1
            for each in dict.fromkeys(called):
                for made in trees.get(each.name, ()):
                    closed[_types_of_tree(whole, made)] += called.count(each)
            types[number] = self._fill(number, closed, called, trees)

    def _fill(
        self,
        number: int,
        children: Counter[Types],
        called: list[Supplier],
        trees: dict[str, list[GrownTree]],
    ) -> Types:
        """Add what one production of a node requires; return the types that it has then."""
        budget = self.completions.budget
        spent = [name for name, several in trees.items() if several]
        for name, production in self.completions.open_candidates(number):
            there, chosen = Counter(children), list[tuple[str, GrownTree]]()
            for _ in range(len(production.children) + 1):
                if has_fit(production, there, (), budget):
                    for function, tree in chosen:
                        trees.setdefault(function, []).append(tree)
                    return frozenset({name})
                used = {*spent, *(function for function, _ in chosen)}
                free = [each for each in called if not (each.is_once and each.name in used)]
                step = self._step(number, production, there, free)
                if step is None:
                    break
                function, type_, tree = step
                chosen.append((function, tree))
                there[frozenset({type_})] += 1
        return frozenset()

    def _step(
        self, number: int, production: Production, children: Counter[Types], free: list[Supplier]
    ) -> tuple[str, str, GrownTree] | None:
        """Return a function that can bring what is required, its type, and the tree."""
        whole = self.completions
        brought = {each: whole.brought_types(each, production) for each in free}
        required = [each.type for each in production.children if each.is_required]
        for type_ in dict.fromkeys((*required, *sorted(production.types))):
            more = children + Counter({frozenset({type_}): 1})
            for each in free:
                rest = [other for other in free if not (other.is_once and other is each)]
                supplies = [Supply(brought[other], other.is_once) for other in rest]
                if type_ in brought[each] and has_fit(production, more, supplies, whole.budget):
                    tree = self.maker.grow(type_, whole.tree.path(number))
                    if tree is not None:
                        return each.name, type_, tree
        return None


def _types_of_tree(completions: Completions, tree: GrownTree) -> Types:
    """Return the types of a tree that was made."""
    below = Counter(_types_of_tree(completions, each) for each in tree.children)
    candidates = completions.rules.candidates(tree.label, tree.kind)
    return fitting_types(candidates, below, completions.budget) | {ANY}
