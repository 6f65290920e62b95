"""The map: relations as boxes on floors, base relations lowest, arrows to what reads them.

Relations that depend on each other are in one frame; a floor that is too wide has several rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from math import log10
from typing import Any

from markupsafe import Markup

from corollary.data_class import dataclass
from corollary.drawing.layered_layout import Box, LayeredLayout, Spacing
from corollary.drawing.svg import element, escape_text, path, shorten
from corollary.web.wording import number, short_number

BOX_HEIGHT, CHARACTER, PADDING, NARROWEST = 56.0, 8.45, 34.0, 118.0
LEFT, TOP, RIGHT = 92.0, 26.0, 28.0
"""The room left of the boxes is for the names of the floors."""
SPACING = Spacing(
    BOX_HEIGHT, gap=34.0, bend=14.0, left=LEFT, top=TOP, narrowest=820.0, widest=1180.0
)
NAME_MAX_CHARACTERS = 30
SWEEPS, PULLS = 6, 8
BAR_WIDTH, BAR_DECADES = 44.0, 7.0
"""A full bar stands for ten million tuples."""


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
        sizes: dict[int, int] = {}
        for each in nodes:
            sizes[each.component] = sizes.get(each.component, 0) + 1
        layout = LayeredLayout(SPACING)
        self._boxes = {
            each.name: layout.add(
                at,
                each.floor,
                max(NARROWEST, CHARACTER * len(_short(each.name)) + PADDING),
                each.component if sizes[each.component] > 1 else -1,
            )
            for at, each in enumerate(nodes)
        }
        self._ways = {
            each: layout.connect(self._boxes[each.below], self._boxes[each.above])
            for each in arcs
            if each.below in self._nodes and each.above in self._nodes
        }
        layout.arrange(SWEEPS, PULLS)
        self._floors = layout.layers
        self.width = LEFT + layout.width + RIGHT
        self.height = layout.bottom + TOP if nodes else 0.0

    def svg(self) -> Markup:
        """Return the picture as SVG; the page gives its colours."""
        return Markup(  # noqa: S704, the writer has escaped names
            element(
                "svg",
                *self._parts(),
                class_="map",
                viewBox=f"0 0 {self.width:.0f} {self.height:.0f}",
                width=round(self.width),
                height=round(self.height),
                role="group",
                aria_label="the map of relations",
                data_floors=len(self._floors),
            )
        )

    def _parts(self) -> Iterator[str]:
        tip = element("path", class_="tip", d="M0 .8L7.4 4L0 7.2z")
        size = {"refX": 7, "refY": 4, "markerWidth": 7, "markerHeight": 7}
        marker = element("marker", tip, id="tip", viewBox="0 0 8 8", **size, orient="auto")
        yield element("defs", marker)
        for floor, boxes in enumerate(self._floors):
            yield from self._floor(floor, boxes)
        yield from self._frames()
        ports = self._ports()
        for arc, way in self._ways.items():
            if arc.below != arc.above:
                yield self._arrow(arc, way, ports)
        for node in sorted(self._nodes.values(), key=lambda each: self._reading_order(each.name)):
            yield self._box(node)

    def _reading_order(self, name: str) -> tuple[float, float]:
        box = self._boxes[name]
        return -box.y, box.x

    def _floor(self, floor: int, boxes: Sequence[Box]) -> Iterator[str]:
        if not boxes:  # a reader may see views only
            return
        top = min(box.y for box in boxes) - 16
        bottom = max(box.y for box in boxes) + BOX_HEIGHT + 16
        size = {"x": 0, "y": top, "width": self.width, "height": bottom - top}
        yield element("rect", class_="floor" if floor else "floor ground", **size, rx=10)
        middle = (top + bottom) / 2 + 4
        yield element("text", floor_name(floor), class_="floor-name", x=16, y=middle)

    def _frames(self) -> Iterator[str]:
        """Yield a frame around relations that depend on each other."""
        grouped = sorted(
            (each for each in self._boxes.values() if each.group >= 0), key=lambda each: each.group
        )
        for _, members in groupby(grouped, key=lambda each: each.group):
            boxes = list(members)
            left = min(box.left for box in boxes) - 8
            width = max(box.left + box.width for box in boxes) + 8 - left
            top = min(box.y for box in boxes) - 8
            height = max(box.y for box in boxes) + BOX_HEIGHT + 8 - top
            size = {"x": left, "y": top, "width": width, "height": height}
            yield element("rect", class_="together", **size, rx=14)

    def _ports(self) -> dict[tuple[int, bool], dict[int, float]]:
        """Return where arrows leave and reach boxes: side by side, in the order of the other end.

        By the box and whether it is its upper edge, then by the next box or bend of the arrow.
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
        self, arc: MapArc, way: Sequence[Box], ports: Mapping[tuple[int, bool], Mapping[int, float]]
    ) -> str:
        start, end = way[0], way[-1]
        if start.layer == end.layer:
            line = _beside(start, end)
        else:
            points = [(ports[id(start), True].get(id(way[1]), start.x), start.y)]
            for bend in way[1:-1]:
                points += [(bend.x, bend.y + BOX_HEIGHT), (bend.x, bend.y)]
            reached = ports[id(end), False].get(id(way[-2]), end.x)
            points.append((reached, end.y + BOX_HEIGHT + 1))
            line = _curve(points)
        below, above = self._nodes[arc.below], self._nodes[arc.above]
        ends = {"data_from": arc.below, "data_to": arc.above}
        drawn = element(
            "path", class_=f"arc {arc.polarity}", **ends, d=line, marker_end="url(#tip)"
        )
        if below.has_changed and above.has_changed:
            drawn += element("path", class_="flow", data_floor=above.floor, pathLength=1, d=line)
        return drawn

    def _box(self, node: MapNode) -> str:
        box = self._boxes[node.name]
        left, right, middle = box.left + 14, box.left + box.width - 14, box.y + BOX_HEIGHT / 2
        kinds = ["node"]
        kinds += ["ground"] * node.is_base
        kinds += ["virtual"] * (not node.is_stored)
        kinds += ["changed"] * node.has_changed
        size = {"x": box.left, "y": box.y, "width": box.width, "height": BOX_HEIGHT}
        loop = element("text", "↻", class_="again", aria_hidden="true", x=right, y=box.y + 23)
        return element(
            "a",
            element("rect", class_="box", **size, rx=6 if node.is_base else 14),
            element("text", escape_text(_short(node.name)), class_="name", x=left, y=box.y + 23),
            " ",
            loop if node.is_recursive else "",
            element("text", node.size, class_="size", x=left, y=middle + 15),
            " ",
            _bar(node, right - BAR_WIDTH, middle + 8),
            _badge(node, box),
            class_=" ".join(kinds),
            href=node.url,
            data_floor=node.floor,
            data_relation=node.name,
            aria_label=node.label,
        )


def _bar(node: MapNode, x: float, y: float) -> str:
    """Return the bar of the number of tuples: its length is the logarithm."""
    if not node.tuples:
        return ""
    length = min(1.0, (log10(node.tuples) + 0.3) / BAR_DECADES) * BAR_WIDTH
    shape = {"x": x, "y": y, "height": 4, "rx": 2}
    rail = element("rect", class_="rail", **shape, width=BAR_WIDTH)
    return rail + element("rect", class_="bar", **shape, width=length)


def _badge(node: MapNode, box: Box) -> str:
    """Return what came and went with the commit, at the upper right corner of a box."""
    if not node.has_changed:
        return ""
    came, went = node.badge
    gap = 6.0 if came and went else 0.0
    inner = 7.8 * (len(came) + len(went)) + gap
    x = box.left + box.width - inner - 4
    parts = [element("rect", x=x - 8, y=box.y - 12, width=inner + 16, height=22, rx=11)]
    for text, name in ((came, "came"), (went, "went")):
        if text:
            parts.append(element("text", text, class_=name, x=x, y=box.y + 3.5))
            x += 7.8 * len(text) + gap
    return element("g", *parts, class_="badge", data_floor=node.floor)


def _short(name: str) -> str:
    return shorten(name, NAME_MAX_CHARACTERS)


def _curve(points: Sequence[tuple[float, float]]) -> str:
    """Return a smooth path through points, vertical at each."""
    moves: list[tuple[str, tuple[float, ...]]] = []
    for (x1, y1), (x2, y2) in pairwise(points):
        middle = (y1 + y2) / 2
        is_straight = x1 == x2
        moves.append(("L", (x2, y2)) if is_straight else ("C", (x1, middle, x2, middle, x2, y2)))
    return path(points[0], *moves)


def _beside(start: Box, end: Box) -> str:
    """Return the path between two boxes of one floor: an arch, above or below them."""
    if start.x < end.x:
        x1, x2, y, top = start.x + 10, end.x - 10, start.y, start.y - 22
    else:
        x1, x2, y = start.x - 10, end.x + 10, start.y + BOX_HEIGHT
        top = y + 22
    return path((x1, y), ("C", (x1, top, x2, top, x2, y)))


def arcs_of(graph: Mapping[str, Any]) -> list[MapArc]:
    """Return the arrows of a graph as JSON has it."""
    return [MapArc(each["from"], each["to"], each["kind"]) for each in graph["edges"]]
