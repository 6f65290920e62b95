"""Whether children can be those of a production: a transport problem.

Children are unordered, and each may be of several types. A production says how many there are of
each type, l_t ≤ n_t ≤ u_t, and which come together in groups. *Suppliers* may add children.

Without groups that is a bipartite graph between children and slots for them. By Mendelsohn and
Dulmage, a matching that covers some nodes on the left and one that covers some on the right make
one that covers both; so children fit iff

    (1) all children find a slot, at most u_t of each type;
    (2) the l_t required ones of each type can be different children, or supplied ones.

Children of the same types are alike, so they are shipped in bulk: augmenting paths over a few sets
of types, however many children there are. If a group comes g times, l and u grow by g times what is
in it. More of it makes (1) easier and (2) harder: the least g of the last group for which (1) holds
is found by bisection, those of other groups are tried.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TypeVar

from corollary.data_class import dataclass
from corollary.documents.types.function_types import Production
from corollary.engines.budget import WorkBudget

Types = frozenset[str]
UNBOUNDED = 1 << 60
Left = TypeVar("Left")
Right = TypeVar("Right")


@dataclass(frozen=True, slots=True)
class Supply:
    """Children that may be added: of some types, at most one or any number."""

    types: Types
    is_single: bool = False


def has_fit(
    production: Production,
    children: Mapping[Types, int],
    supplies: Sequence[Supply] = (),
    budget: WorkBudget | None = None,
) -> bool:
    """Whether children can be those of a production, with supplied ones."""
    known = production.types
    wanted: Counter[Types] = Counter()
    for types, number in children.items():
        wanted[types & known] += number
    if wanted[frozenset()]:
        return False
    bounds: dict[str, tuple[int, int]] = dict.fromkeys(known, (0, 0))
    for child in production.children:
        least, most = bounds[child.type]
        bounds[child.type] = (least + child.is_required, most + 1 if child.is_single else UNBOUNDED)
    offers = [Supply(each.types & known, each.is_single) for each in supplies]
    for grown in _with_groups(production.groups, bounds, wanted):
        if budget is not None:
            budget.spend()
        if _match_children(wanted, grown) and _meet_required(wanted, grown, offers):
            return True
    return False


def fitting_types(
    candidates: Iterable[tuple[str, Production]],
    children: Mapping[Types, int],
    budget: WorkBudget | None = None,
    supplies_of: Callable[[Production], Sequence[Supply]] = lambda _: (),
) -> Types:
    """Return the types that have a production, among some, of which children can be."""
    found: set[str] = set()
    for name, production in candidates:
        if name not in found and has_fit(production, children, supplies_of(production), budget):
            found.add(name)
    return frozenset(found)


_Bounds = Mapping[str, tuple[int, int]]


def _with_groups(
    groups: tuple[tuple[str, ...], ...], bounds: _Bounds, wanted: Mapping[Types, int]
) -> Iterator[_Bounds]:
    """Yield the bounds with the least numbers of groups that may do."""
    if not groups:
        yield bounds
        return
    total = sum(wanted.values())
    *others, last = groups
    for numbers in product(range(total + 1), repeat=len(others)):
        before = bounds
        for group, number in zip(others, numbers, strict=True):
            before = _grown(before, group, number)
        low, high = 0, total
        while low < high:
            middle = (low + high) // 2
            if _match_children(wanted, _grown(before, last, middle)):
                high = middle
            else:
                low = middle + 1
        yield _grown(before, last, low)


def _grown(bounds: _Bounds, group: Iterable[str], number: int) -> _Bounds:
    found = dict(bounds)
    for type_ in group:
        least, most = found[type_]
        found[type_] = least + number, min(UNBOUNDED, most + number)
    return found


def _match_children(wanted: Mapping[Types, int], bounds: _Bounds) -> bool:
    amounts = {types: number for types, number in wanted.items() if number}
    edges = {types: [type_ for type_ in types if bounds[type_][1]] for types in amounts}
    if all(len(slots) == 1 for slots in edges.values()):
        used: Counter[str] = Counter()
        for types, (slot,) in edges.items():
            used[slot] += amounts[types]
        return all(number <= bounds[slot][1] for slot, number in used.items())
    return _can_ship(amounts, {type_: most for type_, (_, most) in bounds.items()}, edges)


def _meet_required(
    wanted: Mapping[Types, int], bounds: _Bounds, supplies: Sequence[Supply]
) -> bool:
    free = frozenset[str]().union(*(each.types for each in supplies if not each.is_single))
    amounts = {type_: least for type_, (least, _) in bounds.items() if least and type_ not in free}
    if not amounts:
        return True
    sources: dict[object, int] = dict(wanted.items())
    types_of: dict[object, Types] = {types: types for types in wanted}
    for at, each in enumerate(supplies):
        if each.is_single:
            sources[at], types_of[at] = 1, each.types
    edges = {
        type_: [source for source, types in types_of.items() if type_ in types] for type_ in amounts
    }
    return _can_ship(amounts, sources, edges)


def _can_ship(
    amounts: Mapping[Left, int],
    capacities: Mapping[Right, int],
    edges: Mapping[Left, Sequence[Right]],
) -> bool:
    """Whether all amounts on the left find room on the right: maximal flow by augmenting paths."""
    room = dict(capacities)
    flow: dict[tuple[Left, Right], int] = {}
    for start, amount in amounts.items():
        left = amount
        while left:
            pushed = _augment(start, left, room, flow, edges)
            if not pushed:
                return False
            left -= pushed
    return True


def _augment(
    start: Left,
    amount: int,
    room: dict[Right, int],
    flow: dict[tuple[Left, Right], int],
    edges: Mapping[Left, Sequence[Right]],
) -> int:
    """Ship some of an amount along a shortest path, moving what was shipped; return how much."""
    came_from: dict[Right, Left] = {}
    moved_by: dict[Left, Right] = {}
    queue = [start]
    for left in queue:
        for right in edges[left]:
            if right in came_from:
                continue
            came_from[right] = left
            if room[right]:
                path = [(left, right)]
                while path[0][0] != start:
                    before = moved_by[path[0][0]]
                    path.insert(0, (came_from[before], before))
                back = [(path[at + 1][0], path[at][1]) for at in range(len(path) - 1)]
                pushed = min(amount, room[right], *(flow[each] for each in back))
                for each in path:
                    flow[each] = flow.get(each, 0) + pushed
                for each in back:
                    flow[each] -= pushed
                room[right] -= pushed
                return pushed
            for (other, slot), shipped in flow.items():
                if slot == right and shipped and other != start and other not in moved_by:
                    moved_by[other] = right
                    queue.append(other)
    return 0
