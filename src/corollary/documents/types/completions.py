"""Documents with a type: whether functions can complete a document so that it is of its type.

Reference: Abiteboul, Bourhis, Marinoiu 2007, Theorem 4.

With a type for the whole document, a tree automaton, it is NP-hard to say what is possible. A
*completion* is the document after some updates, without its calls, if it is of the type. Functions
may have to bring trees for certain patterns: *demands*.

| symbol                     | here                                                             |
|----------------------------|------------------------------------------------------------------|
| run of the automaton       | a type for each node; a production, with a slot for each child   |
| closed node                | nothing can come below it: its types are fixed                   |
| open node                  | a live function is called at it, or further below                |
| f with one call            | *local*: what it brings concerns one node                        |
| f with several calls       | *shared*: it brings the same trees to all of them                |

From the leaves up, each open node gets the types that it can have. At a node, the demands on a
local function are shared out among trees in every way; each tree may be of the types t for which
sat({t, type of f}, demands) holds, and what the production still requires may be supplied
(`content_fit`). The trees of shared functions are chosen beforehand: how many, and which demands
each of them meets. A node then has, for each type, *profiles*: of which types these trees are to be
at their positions in the subtree. A tree has to be of all of them at once.

With `r[(a | b), x?]`, the document `r[!f !g]` can get an `a` of `f` or a `b` of `g`, not both.

Without shared functions the number of steps is polynomial in the document; with them, and in the
query, it is exponential: there is a budget.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import product

from corollary.data_class import dataclass
from corollary.documents.queries.pattern import Axis
from corollary.documents.queries.shape import ConjunctivePattern
from corollary.documents.trees.document_tree import DocumentTree
from corollary.documents.trees.forest import NodeKind
from corollary.documents.types.content_fit import Supply, Types, fitting_types, has_fit
from corollary.documents.types.function_types import (
    ANY,
    ANYTHING,
    FunctionType,
    Grammar,
    Production,
    Rules,
    call_type_name,
    result_rules,
)
from corollary.documents.types.node_types import Supplier, TypeRules
from corollary.documents.types.satisfiability import Demand, Satisfiability
from corollary.engines.budget import WorkBudget

Demands = Mapping[str, Sequence[ConjunctivePattern]]
"""For functions, the patterns that their trees have to match, at the root or, for `//`, below."""
SharedTree = tuple[str, int]
"""A tree of a shared function, by its number."""
Profile = frozenset[tuple[SharedTree, str]]
"""Types that trees of shared functions have to be of."""
Table = Mapping[str, frozenset[Profile]]
"""The types that a node can have, and what each of them asks of shared functions."""
NO_PROFILE: Profile = frozenset()


@dataclass(frozen=True, slots=True)
class DocumentType:
    """The type of a document, and what its functions are.

    Attributes:
        grammar: the type.
        once: the functions that answer at most once.
        types: what functions bring; the others may bring anything.
        ended: the functions that bring nothing any more.
    """

    grammar: Grammar
    once: Collection[str] = ()
    types: Mapping[str, FunctionType] = field(default_factory=dict)
    ended: Collection[str] = ()

    def completions(self, tree: DocumentTree, budget: WorkBudget) -> "Completions":
        """Return the completions of a document."""
        return Completions(
            tree, self.rules((name for name in tree.calls if tree.calls[name]), budget)
        )

    def rules(self, called: Iterable[str], budget: WorkBudget) -> TypeRules:
        """Return the type with what functions that are called may bring."""
        suppliers: dict[str, Supplier] = {}
        results: Rules = {}
        for name in sorted(called):
            if name not in self.ended:
                type_ = call_type_name(name) if name in self.types else ANY
                suppliers[name] = Supplier(name, type_, name in self.once)
                results |= result_rules(name, self.types, self.ended)
        return TypeRules(self.grammar, suppliers, results, budget)


@dataclass(slots=True)
class Completions:
    """The completions of one state of a document.

    Attributes:
        shared: the functions with several calls.
    """

    tree: DocumentTree
    rules: TypeRules
    shared: frozenset[str] = field(init=False)
    _closed: dict[int, Types] = field(default_factory=dict)
    _open: list[int] = field(default_factory=list)
    _allowed: dict[int, Types] = field(default_factory=dict)
    _base: dict[int, Table] = field(default_factory=dict)
    _known: dict[frozenset[tuple[str, frozenset[ConjunctivePattern]]], bool] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        calls = {name: len(self.tree.calls.get(name, ())) for name in self.suppliers}
        self.shared = frozenset(name for name, number in calls.items() if number > 1)
        live = [call for name in self.suppliers for call in self.tree.calls.get(name, ())]
        is_open = self.tree.ancestors(self.tree.parents[call] for call in live)
        self._open = sorted(is_open, reverse=True)
        self._find_allowed()
        for number in sorted(self.tree.labels, reverse=True):
            if number not in is_open and self.tree.kinds[number] is not NodeKind.FUNCTION:
                self.budget.spend()
                self._closed[number] = self._closed_types(number)

    @property
    def grammar(self) -> Grammar:
        """The type of the document."""
        return self.rules.grammar

    @property
    def suppliers(self) -> Mapping[str, Supplier]:
        """The live functions."""
        return self.rules.suppliers

    @property
    def sat(self) -> Satisfiability:
        """What trees of all types can match."""
        return self.rules.sat

    @property
    def budget(self) -> WorkBudget:
        """What the search may take."""
        return self.rules.budget

    # --- questions -------------------------------------------------------------------------------

    def has_one(self, demands: Demands | None = None) -> bool:
        """Whether there is a completion in which the trees of functions meet demands."""
        wanted = {name: frozenset(several) for name, several in (demands or {}).items() if several}
        key = frozenset(wanted.items())
        if key not in self._known:
            self._known[key] = any(self._has_run(wanted, plan) for plan in self._plans(wanted))
        return self._known[key]

    def relaxed_types(self) -> dict[int, Types]:
        """Return the types that each data node can have if every call gets trees of its own."""
        found = {number: types | {ANY} for number, types in self._closed.items()}
        for number in self._open:
            found[number] = self.open_types(number) | {ANY}
        return found

    def closed_types(self, number: int) -> Types:
        """Return the types of a node below which nothing can come."""
        return self._closed[number] | {ANY}

    def open_types(self, number: int) -> Types:
        """Return the types that an open node can have if every call gets trees of its own."""
        return frozenset(self._base_table(number))

    def candidates(self, number: int) -> Iterator[tuple[str, Production]]:
        """Return the productions that have the label of a node, with their types."""
        return self.rules.candidates(self.tree.labels[number], self.tree.kinds[number])

    def open_candidates(self, number: int) -> Iterator[tuple[str, Production]]:
        """Yield the productions of the types that an open node can have, given those above it."""
        allowed = self._allowed[number]
        yield from ((name, each) for name, each in self.candidates(number) if name in allowed)
        if ANY in allowed:
            yield ANY, ANYTHING

    @property
    def open_nodes(self) -> Sequence[int]:
        """The nodes below which something can come, children before their parents."""
        return self._open

    def children(self, number: int) -> tuple[Counter[Types], list[int], list[Supplier]]:
        """Return the closed children of a node by types, its open ones, and what is called there.

        A function that is called twice is there twice.
        """
        closed: Counter[Types] = Counter()
        open_: list[int] = []
        called: list[Supplier] = []
        for child in self.tree.children[number]:
            if self.tree.kinds[child] is NodeKind.FUNCTION:
                name = self.tree.labels[child]
                if name in self.suppliers:
                    called.append(self.suppliers[name])
            elif child in self._closed:
                closed[self.closed_types(child)] += 1
            else:
                open_.append(child)
        return closed, open_, called

    def brought_types(
        self, supplier: Supplier, production: Production, demands: Iterable[Demand] = ()
    ) -> Types:
        """Return the types of children that a tree of a function can be of, if it meets demands."""
        return self.rules.brought_types(supplier, production, demands)

    # --- from the root down, and from the leaves up ----------------------------------------------

    def _find_allowed(self) -> None:
        """Find the types that nodes above can give to each open node."""
        for number in reversed(self._open):
            if number == self.tree.root:
                self._allowed[number] = frozenset({self.grammar.start})
            for child in self.tree.children[number]:
                self._allowed[child] = frozenset[str]().union(
                    *(production.types for _, production in self.open_candidates(number))
                )

    def _closed_types(self, number: int) -> Types:
        below = Counter(
            self.closed_types(child)
            for child in self.tree.children[number]
            if child in self._closed
        )
        return fitting_types(self.candidates(number), below, self.budget)

    def _base_table(self, number: int) -> Table:
        """Return the types of an open node if nothing is demanded, and all calls are apart."""
        if number not in self._base:
            closed, open_, called = self.children(number)
            for child in open_:
                closed[frozenset(self._base_table(child))] += 1
            found = self.rules.fitting_types(self.open_candidates(number), closed, called)
            self._base[number] = dict.fromkeys(found, frozenset({NO_PROFILE}))
        return self._base[number]

    def _has_run(
        self,
        demands: Mapping[str, frozenset[ConjunctivePattern]],
        plan: Mapping[str, Sequence[frozenset[Demand]]],
    ) -> bool:
        """Whether there is a run, given the trees of shared functions."""
        concerned = {*demands, *self.shared}
        calls = [call for name in concerned for call in self.tree.calls.get(name, ())]
        changed = self.tree.ancestors(self.tree.parents[call] for call in calls)
        tables: dict[int, Table] = {}
        for number in self._open:
            if number not in changed:
                tables[number] = self._base_table(number)
                continue
            tables[number] = _NodeRun(self, number, demands, plan, tables).table()
        return self.grammar.start in tables.get(
            self.tree.root, dict.fromkeys(self._closed.get(self.tree.root, ()))
        )

    # --- the trees of shared functions -----------------------------------------------------------

    def _plans(
        self, demands: Mapping[str, frozenset[ConjunctivePattern]]
    ) -> Iterator[dict[str, Sequence[frozenset[Demand]]]]:
        """Yield how many trees shared functions bring, and which demands each meets."""
        names = sorted(self.shared)
        options = [
            sorted(self._tree_sets(self.suppliers[name], demands.get(name, frozenset())), key=len)
            for name in names
        ]
        for chosen in product(*options):
            self.budget.spend()
            yield dict(zip(names, chosen, strict=True))

    def _tree_sets(
        self, supplier: Supplier, demands: frozenset[ConjunctivePattern]
    ) -> Iterator[tuple[frozenset[Demand], ...]]:
        most, need = self._capacity(supplier)
        for blocks in shared_out(demands, supplier.is_once):
            for more in range(max(0, min(most, len(blocks) + need) - len(blocks)) + 1):
                self.budget.spend()
                if len(blocks) + more <= most:
                    yield (*blocks, *[frozenset[Demand]()] * more)

    def _capacity(self, supplier: Supplier) -> tuple[int, int]:
        """Return how many trees of a function have room beside all calls, and can be needed."""
        most, need = 1 if supplier.is_once else 1 << 30, 0
        for call in self.tree.calls[supplier.name]:
            above = self.tree.parents[call]
            productions = [production for _, production in self.open_candidates(above)]
            if not productions:  # there is no completion
                continue
            most = min(most, max(map(_room, productions)))
            need += max(
                sum(child.is_required for child in each.children)
                + (len(self.tree.children[above]) * sum(map(len, each.groups)))
                for each in productions
            )
        return most, need


def _room(production: Production) -> int:
    is_open = production.groups or not all(child.is_single for child in production.children)
    return 1 << 30 if is_open else len(production.children)


def shared_out(
    demands: Iterable[ConjunctivePattern], is_once: bool
) -> Iterator[tuple[frozenset[Demand], ...]]:
    """Yield the ways to share demands out among trees: one tree if there may be only one."""
    patterns = sorted(demands, key=lambda each: each.node.number)
    positions = [
        ((each, False), (each, True)) if each.node.axis is Axis.DESCENDANT else ((each, False),)
        for each in patterns
    ]
    for chosen in product(*positions):
        if is_once:
            yield (frozenset(chosen),) if chosen else ()
        else:
            yield from (tuple(map(frozenset, blocks)) for blocks in _partitions(list(chosen)))


def _partitions(demands: list[Demand]) -> Iterator[list[list[Demand]]]:
    """Yield the partitions of demands, those into single ones first."""
    if not demands:
        yield []
        return
    first, *rest = demands
    for blocks in _partitions(rest):
        yield [[first], *blocks]
        for at in range(len(blocks)):
            yield [*blocks[:at], [first, *blocks[at]], *blocks[at + 1 :]]


class _NodeRun:
    """The types that an open node can have, given demands and the trees of shared functions."""

    def __init__(
        self,
        whole: Completions,
        number: int,
        demands: Mapping[str, frozenset[ConjunctivePattern]],
        plan: Mapping[str, Sequence[frozenset[Demand]]],
        tables: Mapping[int, Table],
    ) -> None:
        self._whole = whole
        self._number = number
        self._plan = plan
        self._closed, open_, called = whole.children(number)
        self._local = [each for each in called if each.name not in whole.shared]
        self._demands = {
            each.name: demands[each.name] for each in self._local if each.name in demands
        }
        self._shared = [
            (each.name, at)
            for each in called
            if each.name in whole.shared
            for at in range(len(plan[each.name]))
        ]
        self._tables = [tables[child] for child in open_]

    def table(self) -> Table:
        """Return the types, with what each of them asks of shared functions."""
        found: dict[str, set[Profile]] = {}
        for name, production in self._whole.open_candidates(self._number):
            for profile in self._profiles(production):
                found.setdefault(name, set()).add(profile)
                if profile == NO_PROFILE:
                    break
        return {name: _least(profiles) for name, profiles in found.items()}

    def _profiles(self, production: Production) -> Iterator[Profile]:
        whole = self._whole
        known = [
            [
                (type_, profile)
                for type_, profiles in table.items()
                if type_ in production.types
                for profile in profiles
            ]
            for table in self._tables
        ]
        if not all(known):
            return
        for brought, supplies in self._brought(production):
            for chosen in product(*known):
                whole.budget.spend()
                profile = NO_PROFILE.union(*(each for _, each in chosen))
                if len(chosen) > 1 and not self._is_consistent(profile):
                    continue
                children = self._closed + brought
                for type_, _ in chosen:
                    children[frozenset({type_})] += 1
                for types in self._shared_types(production, profile, 0, ()):
                    several = children + Counter(frozenset({type_}) for type_ in types)
                    if has_fit(production, several, supplies, whole.budget):
                        added = zip(self._shared, types, strict=True)
                        yield profile | {each for each in added if each[1] != ANY}

    def _is_consistent(self, profile: Profile) -> bool:
        """Whether each tree of a shared function can be of all types that it has to be of."""
        types: dict[SharedTree, set[str]] = {}
        for tree, type_ in profile:
            types.setdefault(tree, {self._whole.suppliers[tree[0]].type}).add(type_)
        return all(
            self._whole.sat.meets_all(frozenset(several), self._plan[name][at])
            for (name, at), several in types.items()
        )

    def _brought(self, production: Production) -> Iterator[tuple[Counter[Types], list[Supply]]]:
        """Yield the trees of local functions that meet demands, and what they may add."""
        whole = self._whole
        options = []
        for each in self._local:
            ways: list[tuple[list[Types], Supply]] = []
            for blocks in shared_out(self._demands.get(each.name, ()), each.is_once):
                types = [whole.brought_types(each, production, block) for block in blocks]
                is_spent = each.is_once and bool(blocks)
                more = frozenset[str]() if is_spent else whole.brought_types(each, production)
                if all(types):
                    ways.append((types, Supply(more, each.is_once)))
            options.append(ways)
        for chosen in product(*options):
            whole.budget.spend()
            brought = Counter(types for several, _ in chosen for types in several)
            yield brought, [supply for _, supply in chosen]

    def _shared_types(
        self, production: Production, profile: Profile, at: int, chosen: tuple[str, ...]
    ) -> Iterator[tuple[str, ...]]:
        """Yield the types of the trees of shared functions at this node, one by one."""
        if at == len(self._shared):
            yield chosen
            return
        whole = self._whole
        tree = self._shared[at]
        supplier, demands = whole.suppliers[tree[0]], self._plan[tree[0]][tree[1]]
        before = frozenset(type_ for each, type_ in profile if each == tree)
        for type_ in sorted(production.types):
            whole.budget.spend()
            types = before | {type_, supplier.type}
            if whole.sat.meets_all(types, demands):
                more = profile | {(tree, type_)}
                yield from self._shared_types(production, more, at + 1, (*chosen, type_))


def _least(profiles: set[Profile]) -> frozenset[Profile]:
    """Return the profiles that ask for no more than another one."""
    return frozenset(each for each in profiles if not any(other < each for other in profiles))
