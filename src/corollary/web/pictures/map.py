"""The map: relations as boxes on floors, base relations lowest, arrows to what reads them.

A layered drawing (Sugiyama, Tagawa, Toda 1981): an arrow over several floors has a bend on each,
sweeps order every floor by the barycentres of its neighbours, then boxes move towards them. A
floor that is too wide has several rows. Relations that depend on each other are in one box.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import groupby, pairwise
from math import log10
from typing import Any

from markupsafe import Markup, escape

from corollary.data_class import dataclass
from corollary.web.wording import number, short_number

BOX_HEIGHT, FLOOR_GAP, ROW_GAP, BOX_GAP, BEND = 56.0, 58.0, 20.0, 34.0, 14.0
CHARACTER, PADDING, NARROWEST, WIDEST_FLOOR = 8.45, 34.0, 118.0, 1180.0
NARROWEST_MAP = 820.0
LEFT, TOP, RIGHT = 92.0, 26.0, 28.0
"""The room left of the boxes is for the names of the floors."""
NAME_MAX_CHARACTERS = 30
SWEEPS, PULLS = 6, 8
BAR_WIDTH, BAR_DECADES = 44.0, 7.0
"""A full bar stands for ten million tuples."""


@dataclass(slots=True)
class Place:
    """A box, or the bend of an arrow on a floor that it passes.

    Attributes:
        name: of the relation; of a bend, empty.
        floor: 0 is the lowest one.
        group: relations with the same number stay together.
        above: the places on the next floor that it is connected to.
        below: those on the floor below.
        x: of its centre.
        y: of its upper edge.
    """

    name: str
    floor: int
    width: float
    group: int = -1
    above: list["Place"] = field(default_factory=list)
    below: list["Place"] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0


@dataclass(frozen=True, slots=True)
class MapNode:
    """A relation on the map.

    Attributes:
        kind: what it is, in words: `base`, `recursive, stored`, …
        tuples: how many it has; None if nobody knows.
        added: how many came with the commit that is shown.
        removed: how many went with it.
        url: of its page.
    """

    name: str
    floor: int
    component: int
    kind: str
    is_base: bool
    is_stored: bool
    is_recursive: bool
    tuples: int | None
    added: int
    removed: int
    url: str

    @property
    def has_changed(self) -> bool:
        """Whether the commit that is shown has changed it."""
        return bool(self.added or self.removed)

    @property
    def size(self) -> str:
        """The number of tuples as the box shows it."""
        return "virtual" if self.tuples is None else short_number(self.tuples)

    @property
    def badge(self) -> tuple[str, str]:
        """What came and went as the box shows it."""
        came = f"+{short_number(self.added)}" if self.added else ""
        return came, f"−{short_number(self.removed)}" if self.removed else ""

    @property
    def label(self) -> str:
        """Begins with what one sees, and says all of it, for people who do not see the picture."""
        seen = " ".join(filter(None, (_short(self.name), self.size, *self.badge)))
        words = [seen, self.kind]
        if self.tuples is not None:
            words.append(f"{number(self.tuples)} tuple{'' if self.tuples == 1 else 's'}")
        if self.has_changed:
            words.append(f"{number(self.added)} came, {number(self.removed)} went")
        return ", ".join(words)


@dataclass(frozen=True, slots=True)
class MapArc:
    """An arrow: a relation is read by another, how it says `positive`, `negative`, `aggregate`."""

    below: str
    above: str
    polarity: str


def floor_name(floor: int) -> str:
    """Return what a floor is called."""
    return f"stratum {floor}" if floor else "base"


class MapPicture:
    """The drawing of a map."""

    def __init__(self, nodes: Sequence[MapNode], arcs: Sequence[MapArc]) -> None:
        self._nodes = {each.name: each for each in nodes}
        self._arcs = [
            each for each in arcs if each.below in self._nodes and each.above in self._nodes
        ]
        sizes: dict[int, int] = {}
        for each in nodes:
            sizes[each.component] = sizes.get(each.component, 0) + 1
        self._boxes = {
            each.name: Place(
                each.name,
                each.floor,
                max(NARROWEST, CHARACTER * len(_short(each.name)) + PADDING),
                each.component if sizes[each.component] > 1 else -1,
            )
            for each in nodes
        }
        self._floors: list[list[Place]] = [
            [] for _ in range(max((each.floor for each in nodes), default=-1) + 1)
        ]
        for box in self._boxes.values():
            self._floors[box.floor].append(box)
        self._ways = {each: self._way(each) for each in self._arcs}
        self._order()
        self._rows = [_wrapped(floor) for floor in self._floors]
        self._spread()

    def _way(self, arc: MapArc) -> list[Place]:
        """Return the places that an arrow goes through, upwards; its bends are new."""
        start, end = self._boxes[arc.below], self._boxes[arc.above]
        bends = [Place("", floor, BEND) for floor in range(start.floor + 1, end.floor)]
        for bend in bends:
            self._floors[bend.floor].append(bend)
        way = [start, *bends, end]
        for lower, upper in pairwise(way):
            if lower.floor < upper.floor:
                lower.above.append(upper)
                upper.below.append(lower)
        return way

    def _order(self) -> None:
        """Order the places of each floor by their neighbours, up and down again."""
        for sweep in range(SWEEPS):
            is_up = sweep % 2 == 0
            floors = self._floors if is_up else self._floors[::-1]
            for other, floor in pairwise(floors):
                at = {id(place): index for index, place in enumerate(other)}
                _sort_by_neighbours(floor, at, is_up=is_up)

    def _spread(self) -> None:
        """Give every place its x and y; boxes move towards what they are connected to."""
        rows = [row for floor in self._rows for row in floor]
        widest = max([NARROWEST_MAP, *(_width_of(row) for row in rows)])
        for row in rows:
            x = LEFT + (widest - _width_of(row)) / 2
            for place in row:
                place.x = x + place.width / 2
                x += place.width + BOX_GAP
        for _ in range(PULLS):
            for row in rows:
                _pull(row, LEFT, LEFT + widest)
        y = TOP
        for floor in reversed(self._rows):
            for row in floor:
                for place in row:
                    place.y = y
                y += BOX_HEIGHT + ROW_GAP
            y += FLOOR_GAP - ROW_GAP if floor else 0
        self.width = LEFT + widest + RIGHT
        self.height = max(y - FLOOR_GAP + TOP, 0)

    def svg(self) -> Markup:
        """Return the picture as SVG."""
        return Markup("".join(self._drawn()))  # noqa: S704, names are escaped below

    def _drawn(self) -> Iterator[str]:
        yield (
            f'<svg class="map" viewBox="0 0 {self.width:.0f} {self.height:.0f}"'
            f' width="{self.width:.0f}" height="{self.height:.0f}" role="group"'
            f' aria-label="the map of relations" data-floors="{len(self._rows)}">'
        )
        yield '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
        yield ' markerHeight="7" orient="auto"><path class="tip" d="M0 .8L7.4 4L0 7.2z"/>'
        yield "</marker></defs>"
        for floor, rows in enumerate(self._rows):
            yield from self._floor(floor, rows)
        yield from self._groups()
        ports = self._ports()
        for arc, way in self._ways.items():
            if arc.below != arc.above:
                yield self._arrow(arc, way, ports)
        for node in sorted(self._nodes.values(), key=lambda each: self._reading_order(each.name)):
            yield self._box(node)
        yield "</svg>"

    def _reading_order(self, name: str) -> tuple[float, float]:
        """Return where a box is in the order of reading: from the base up, from left to right."""
        box = self._boxes[name]
        return -box.y, box.x

    def _floor(self, floor: int, rows: Sequence[Sequence[Place]]) -> Iterator[str]:
        places = [place for row in rows for place in row]
        if not places:  # a reader may see views only
            return
        top = min(place.y for place in places) - 16
        bottom = max(place.y for place in places) + BOX_HEIGHT + 16
        yield (
            f'<rect class="floor{" ground" if floor == 0 else ""}" x="0" y="{top:.0f}"'
            f' width="{self.width:.0f}" height="{bottom - top:.0f}" rx="10"/>'
            f'<text class="floor-name" x="16" y="{(top + bottom) / 2 + 4:.0f}">'
            f"{floor_name(floor)}</text>"
        )

    def _groups(self) -> Iterator[str]:
        """Yield a frame around relations that depend on each other."""
        grouped = sorted(
            (each for each in self._boxes.values() if each.group >= 0), key=lambda each: each.group
        )
        for _, members in groupby(grouped, key=lambda each: each.group):
            boxes = list(members)
            left = min(box.x - box.width / 2 for box in boxes) - 8
            right = max(box.x + box.width / 2 for box in boxes) + 8
            top, bottom = min(b.y for b in boxes) - 8, max(b.y for b in boxes) + BOX_HEIGHT + 8
            yield (
                f'<rect class="together" x="{left:.0f}" y="{top:.0f}" width="{right - left:.0f}"'
                f' height="{bottom - top:.0f}" rx="14"/>'
            )

    def _ports(self) -> dict[tuple[int, bool], dict[int, float]]:
        """Return where arrows leave and reach boxes: side by side, in the order of the other end.

        By the box and whether it is its upper edge, then by the next place of the arrow.
        """
        found: dict[tuple[int, bool], dict[int, float]] = {}
        for box in self._boxes.values():
            for is_upper, others in ((True, box.above), (False, box.below)):
                ordered = sorted(others, key=lambda each: each.x)
                room = min(box.width * 0.6, 22.0 * max(len(ordered) - 1, 0))
                step = room / max(len(ordered) - 1, 1)
                found[id(box), is_upper] = {
                    id(other): box.x - room / 2 + index * step
                    for index, other in enumerate(ordered)
                }
        return found

    def _arrow(
        self,
        arc: MapArc,
        way: Sequence[Place],
        ports: Mapping[tuple[int, bool], Mapping[int, float]],
    ) -> str:
        start, end = way[0], way[-1]
        if start.floor == end.floor:
            path = _beside(start, end)
        else:
            points = [(ports[id(start), True].get(id(way[1]), start.x), start.y)]
            for bend in way[1:-1]:
                points += [(bend.x, bend.y + BOX_HEIGHT), (bend.x, bend.y)]
            reached = ports[id(end), False].get(id(way[-2]), end.x)
            points.append((reached, end.y + BOX_HEIGHT + 1))
            path = _curve(points)
        below, above = self._nodes[arc.below], self._nodes[arc.above]
        flows = below.has_changed and above.has_changed
        ends = f'data-from="{escape(arc.below)}" data-to="{escape(arc.above)}"'
        drawn = f'<path class="arc {arc.polarity}" {ends} d="{path}" marker-end="url(#tip)"/>'
        if flows:
            drawn += f'<path class="flow" data-floor="{above.floor}" pathLength="1" d="{path}"/>'
        return drawn

    def _box(self, node: MapNode) -> str:
        box = self._boxes[node.name]
        left, middle = box.x - box.width / 2, box.y + BOX_HEIGHT / 2
        name = _short(node.name)
        kinds = " ".join(
            word
            for word, holds in (
                ("ground", node.is_base),
                ("virtual", not node.is_stored),
                ("changed", node.has_changed),
            )
            if holds
        )
        radius = 6 if node.is_base else 14
        corner = f'x="{left + box.width - 14:.0f}" y="{box.y + 23:.0f}"'
        loop = f'<text class="again" aria-hidden="true" {corner}>↻</text>'
        parts = [
            f'<a class="node {kinds}" href="{escape(node.url)}" data-floor="{node.floor}"',
            f' data-relation="{escape(node.name)}" aria-label="{escape(node.label)}">',
            f'<rect class="box" x="{left:.0f}" y="{box.y:.0f}" width="{box.width:.0f}"',
            f' height="{BOX_HEIGHT:.0f}" rx="{radius}"/>',
            f'<text class="name" x="{left + 14:.0f}" y="{box.y + 23:.0f}">{escape(name)}</text> ',
            loop if node.is_recursive else "",
            f'<text class="size" x="{left + 14:.0f}" y="{middle + 15:.0f}">{node.size}</text> ',
            self._bar(node, left + box.width - 14 - BAR_WIDTH, middle + 8),
            _badge(node, box),
            "</a>",
        ]
        return "".join(parts)

    def _bar(self, node: MapNode, x: float, y: float) -> str:
        """Return the bar of the number of tuples: its length is the logarithm."""
        if not node.tuples:
            return ""
        length = min(1.0, (log10(node.tuples) + 0.3) / BAR_DECADES) * BAR_WIDTH
        shape = f'x="{x:.1f}" y="{y:.1f}" height="4" rx="2"'
        return (
            f'<rect class="rail" {shape} width="{BAR_WIDTH:.0f}"/>'
            f'<rect class="bar" {shape} width="{length:.1f}"/>'
        )


def _badge(node: MapNode, box: Place) -> str:
    """Return what came and went with the commit, at the upper right corner of a box."""
    if not node.has_changed:
        return ""
    came, went = node.badge
    gap = 6.0 if came and went else 0.0
    inner = 7.8 * (len(came) + len(went)) + gap
    left = box.x + box.width / 2 - inner - 4
    parts = [
        f'<g class="badge" data-floor="{node.floor}"><rect x="{left - 8:.1f}"',
        f' y="{box.y - 12:.0f}" width="{inner + 16:.1f}" height="22" rx="11"/>',
    ]
    x = left
    for text, name in ((came, "came"), (went, "went")):
        if text:
            parts.append(f'<text class="{name}" x="{x:.1f}" y="{box.y + 3.5:.1f}">{text}</text>')
            x += 7.8 * len(text) + gap
    return "".join([*parts, "</g>"])


def _short(name: str) -> str:
    return name if len(name) <= NAME_MAX_CHARACTERS else f"{name[: NAME_MAX_CHARACTERS - 1]}…"


def _sort_by_neighbours(floor: list[Place], at: Mapping[int, int], *, is_up: bool) -> None:
    """Sort a floor by the mean place of the neighbours; groups stay together."""
    own = {id(place): index for index, place in enumerate(floor)}

    def mean(place: Place) -> float:
        near = place.below if is_up else place.above
        found = [at[id(each)] for each in near if id(each) in at]
        return sum(found) / len(found) if found else float(own[id(place)])

    means = {id(place): mean(place) for place in floor}
    groups: dict[int, list[float]] = {}
    for place in floor:
        if place.group >= 0:
            groups.setdefault(place.group, []).append(means[id(place)])

    def key(place: Place) -> tuple[float, int, float, int]:
        own_mean = means[id(place)]
        members = groups.get(place.group)
        shared = sum(members) / len(members) if members else own_mean
        return shared, place.group, own_mean, own[id(place)]

    floor.sort(key=key)


def _width_of(row: Sequence[Place]) -> float:
    return sum(place.width + BOX_GAP for place in row) - BOX_GAP if row else 0.0


def _wrapped(floor: Sequence[Place]) -> list[list[Place]]:
    """Return the rows of a floor: one, or as many as it needs; none if it is empty."""
    rows: list[list[Place]] = []
    for place in floor:
        if not rows or _width_of([*rows[-1], place]) > WIDEST_FLOOR:
            rows.append([])
        rows[-1].append(place)
    return rows


def _pull(row: Sequence[Place], left: float, right: float) -> None:
    """Move the places of a row towards their neighbours; none passes another or leaves the map."""
    for index, place in enumerate(row):
        near = [each.x for each in (*place.above, *place.below)]
        if not near:
            continue
        before = row[index - 1] if index else None
        after = row[index + 1] if index + 1 < len(row) else None
        low = left + place.width / 2
        if before is not None:
            low = before.x + (before.width + place.width) / 2 + BOX_GAP
        high = right - place.width / 2
        if after is not None:
            high = after.x - (after.width + place.width) / 2 - BOX_GAP
        place.x = max(low, min(high, sum(near) / len(near))) if low <= high else place.x


def _curve(points: Sequence[tuple[float, float]]) -> str:
    """Return a smooth path through points, vertical at each."""
    x, y = points[0]
    parts = [f"M{x:.1f} {y:.1f}"]
    for (x1, y1), (x2, y2) in pairwise(points):
        if x1 == x2:
            parts.append(f"L{x2:.1f} {y2:.1f}")
        else:
            middle = (y1 + y2) / 2
            parts.append(f"C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}")
    return "".join(parts)


def _beside(start: Place, end: Place) -> str:
    """Return the path between two boxes of one floor: an arch, above or below them."""
    if start.x < end.x:
        x1, x2, y = start.x + 10, end.x - 10, start.y
        return f"M{x1:.1f} {y:.1f}C{x1:.1f} {y - 22:.1f} {x2:.1f} {y - 22:.1f} {x2:.1f} {y:.1f}"
    x1, x2, y = start.x - 10, end.x + 10, start.y + BOX_HEIGHT
    return f"M{x1:.1f} {y:.1f}C{x1:.1f} {y + 22:.1f} {x2:.1f} {y + 22:.1f} {x2:.1f} {y:.1f}"


def arcs_of(graph: Mapping[str, Any]) -> list[MapArc]:
    """Return the arrows of a graph as JSON has it."""
    return [MapArc(each["from"], each["to"], each["kind"]) for each in graph["edges"]]
