"""Proofs as pictures: the goal on top, a row for each height, base tuples lowest.

A layered drawing (Sugiyama, Tagawa, Toda 1981). Every step is a dot with the number of its rule,
below the tuple that it derives. An edge over several rows has a bend in each of them, so that it
passes between the boxes. Two sweeps, down and up, order each row by the barycentres of its
neighbours; ties are broken by ids, so that the same proof is always drawn alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from html import escape
from itertools import pairwise

from corollary.core.printer import print_value
from corollary.data_class import dataclass
from corollary.provenance.forms.text import ShownAbsence, beside_of, label_of, place_text
from corollary.provenance.nodes import ProofKind, ProofNode, ProofRule

LABEL_MAX_CHARACTERS = 32
"""Longer labels are cut; the whole one is in the title."""

CHARACTER, BOX_HEIGHT, ROW_HEIGHT, GAP, BEND, MARGIN = 8.0, 26.0, 84.0, 22.0, 10.0, 16.0
DOT_RADIUS, DOT_BELOW = 3.5, 14.0
PAPER, INK, FAINT = "#ffffff", "#333333", "#888888"
FILLS = {
    ProofKind.DERIVED: "#e8f0fe",
    ProofKind.CHAIN: "#e8f0fe",
    ProofKind.BASE: "#f4f4f4",
    ProofKind.ABSENT: "#ffffff",
    ProofKind.AGGREGATE: "#fff7e0",
    ProofKind.COMPUTED: "#ffffff",
    ProofKind.CHANGE: "#f4f4f4",
    ProofKind.SEALED: "#dddddd",
}
SIGN_COLOURS = {"+": "#1a7f37", "-": "#b42318"}
"""What came is green, what went is red; the sign says it too."""


@dataclass(slots=True)
class _Place:
    """A box, or the bend of an edge in a row that it passes.

    Attributes:
        key: breaks ties: the id of the node, or of the edge's ends.
        node: of a box; None of a bend.
        above: the places of the row above that it is connected to.
        below: those of the row below.
        x: of its centre.
    """

    key: tuple[int, ...]
    node: ProofNode | None
    row: int
    above: list["_Place"] = field(default_factory=list)
    below: list["_Place"] = field(default_factory=list)
    x: float = 0.0

    @property
    def width(self) -> float:
        """The width of the box; that of a bend is the room that it needs."""
        return BEND if self.node is None else CHARACTER * len(_short(label_of(self.node))) + 20


class _ProofDrawing:
    """The places of a proof, and its edges as ways through places."""

    def __init__(self, nodes: Sequence[ProofNode]) -> None:
        self.nodes = nodes
        rows = _rows(nodes)
        self.boxes = [_Place((node.id,), node, rows[node.id]) for node in nodes]
        self.rows: list[list[_Place]] = [[] for _ in range(max(rows, default=-1) + 1)]
        for box in self.boxes:
            self.rows[box.row].append(box)
        self.ways = {
            (node.id, child): self._way(node.id, child)
            for node in nodes
            for child in dict.fromkeys((*node.premises, *node.notes))
        }
        self._order()
        self._spread()

    def _way(self, above: int, below: int) -> list[_Place]:
        """Return the places that an edge goes through; its bends are new."""
        start, end = self.boxes[above], self.boxes[below]
        bends = [_Place((above, below), None, row) for row in range(start.row - 1, end.row, -1)]
        for bend in bends:
            self.rows[bend.row].append(bend)
        way = [start, *bends, end]
        for upper, lower in pairwise(way):
            upper.below.append(lower)
            lower.above.append(upper)
        return way

    def _order(self) -> None:
        """Order the places of each row by their neighbours: once down, once up."""
        for row in self.rows:
            row.sort(key=lambda place: place.key)
        for number in reversed(range(len(self.rows) - 1)):
            self._sweep(number, number + 1)
        for number in range(1, len(self.rows)):
            self._sweep(number, number - 1)

    def _sweep(self, row: int, other: int) -> None:
        order = {id(place): at for at, place in enumerate(self.rows[other])}
        own = {id(place): at for at, place in enumerate(self.rows[row])}

        def barycentre(place: _Place) -> tuple[float, tuple[int, ...]]:
            near = [each for each in (*place.above, *place.below) if each.row == other]
            if not near:
                return float(own[id(place)]), place.key
            return sum(order[id(each)] for each in near) / len(near), place.key

        self.rows[row].sort(key=barycentre)

    def _spread(self) -> None:
        """Give every place its x: rows are centred, and as wide as they need."""
        widths = [sum(place.width + GAP for place in row) - GAP for row in self.rows]
        self.width = max(widths, default=0.0) + 2 * MARGIN
        for row, width in zip(self.rows, widths, strict=True):
            x = (self.width - width) / 2
            for place in row:
                place.x = x + place.width / 2
                x += place.width + GAP
        self.height = max(len(self.rows) - 1, 0) * ROW_HEIGHT + BOX_HEIGHT + 2 * MARGIN

    def top(self, place: _Place) -> float:
        """Return the y of the upper edge of a place."""
        return MARGIN + (len(self.rows) - 1 - place.row) * ROW_HEIGHT


def _rows(nodes: Sequence[ProofNode]) -> list[int]:
    """Return the row of each node: its height; a note is one row below what it is beside.

    What is below a note, such as the rows of an aggregate, is below it in the picture too, so that
    some rows may have to be added below; base tuples stay lowest.
    """
    found = [node.height for node in nodes]
    for node in nodes:  # breadth-first: what is above comes first
        for note in node.notes:
            found[note] = max(found[note], found[node.id] - 1)
    work = [node.id for node in nodes]
    while work:
        node = nodes[work.pop()]
        for child in (*node.premises, *node.notes):
            if found[child] >= found[node.id]:
                found[child] = found[node.id] - 1
                work.append(child)
    lowest = min(found, default=0)
    return [
        0 if node.kind is ProofKind.BASE else row - lowest
        for node, row in zip(nodes, found, strict=True)
    ]


def proof_as_svg(
    nodes: Sequence[ProofNode], rules: Mapping[int, ProofRule], title: str, text: str
) -> str:
    """Return a picture of a proof, without a script.

    Args:
        nodes: of the proof.
        rules: by number.
        title: what was asked.
        text: the proof as text, for those who do not see the picture.
    """
    drawing = _ProofDrawing(nodes)
    width, height = max(drawing.width, 1.0), max(drawing.height, 1.0)
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}" font-family="monospace" font-size="13">'
    )
    parts = [
        opening,
        f"<title>{_escaped(title)}</title>",
        f"<desc>{_escaped(text)}</desc>",
        f'<rect width="100%" height="100%" fill="{PAPER}"/>',
    ]
    for node in nodes:
        parts += _step(drawing, node, rules)
    parts += [_box(drawing, place, rules) for place in drawing.boxes]
    return "\n".join([*parts, "</svg>", ""])


def absence_as_svg(absence: ShownAbsence, text: str) -> str:
    """Return a picture of an absence: below the tuple its attempts, below each of them what fails.

    Args:
        absence: the tuple that is not there, with the attempts of the rules; or what covers it.
        text: the absence as text.
    """
    goal, attempts, covering = absence.goal, absence.attempts, absence.covered_by
    first = 1 + len(attempts)
    notes = (*range(1, first), *(() if covering is None else (first + covering,)))
    drawn = [ProofNode(0, ProofKind.ABSENT, "", (), (), notes=notes, text=goal)]
    below: list[ProofNode] = [_moved(node, first) for node in absence.nodes]
    for number, attempt in enumerate(attempts, 1):
        failing = []
        for each in attempt.failing:
            if each.node is not None:
                failing.append(first + each.node)
                continue
            failing.append(first + len(below))
            below.append(ProofNode(failing[-1], _FAILING[each.kind], "", (), (), text=each.literal))
        known = (f"{n} = {print_value(v, t)}" for n, (v, t) in attempt.bindings.items())
        drawn.append(
            ProofNode(
                number, ProofKind.ABSENT, "", (), (), rule=attempt.rule, notes=tuple(failing),
                text=", ".join(known) or f"rule {attempt.rule}",
            )
        )  # fmt: skip
    return proof_as_svg([*drawn, *below], absence.rules, f"why not {goal}", text)


_FAILING = {
    "missing": ProofKind.ABSENT,
    "blocking": ProofKind.BASE,
    "condition": ProofKind.COMPUTED,
}
"""How a literal that fails is drawn, if it has no node of its own."""


def _moved(node: ProofNode, by: int) -> ProofNode:
    """Return a node whose id, and those that it names, are larger."""
    return replace(
        node,
        id=node.id + by,
        premises=tuple(each + by for each in node.premises),
        notes=tuple(each + by for each in node.notes),
    )


def _step(drawing: _ProofDrawing, node: ProofNode, rules: Mapping[int, ProofRule]) -> list[str]:
    """Return the dot below a tuple, and the edges from it to what the tuple is derived from."""
    children = tuple(dict.fromkeys((*node.premises, *node.notes)))
    if not children:
        return []
    box = drawing.boxes[node.id]
    x, bottom = box.x, drawing.top(box) + BOX_HEIGHT
    y = bottom + DOT_BELOW
    parts = [f'<path d="M{x:.1f} {bottom:.1f}V{y:.1f}" stroke="{INK}"/>']
    for child in children:
        way = drawing.ways[node.id, child]
        path = f"M{x:.1f} {y:.1f}"
        for bend in way[1:-1]:
            top = drawing.top(bend)
            path += f"L{bend.x:.1f} {top:.1f}V{top + BOX_HEIGHT:.1f}"
        path += f"L{way[-1].x:.1f} {drawing.top(way[-1]):.1f}"
        is_absent = drawing.nodes[child].kind is ProofKind.ABSENT
        dash = ' stroke-dasharray="5 3"' if is_absent else ""
        colour = INK if child in node.premises else FAINT
        parts.append(f'<path d="{path}" fill="none" stroke="{colour}"{dash}/>')
    dot = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{DOT_RADIUS}" fill="{INK}"/>'
    if node.rule is None:
        return [*parts, dot]
    rule = rules[node.rule]
    words = f"{rule.text} {place_text(rule.file, rule.line)}".strip()
    number = (
        f'<text x="{x + 7:.1f}" y="{y + 4:.1f}" font-size="11" fill="{INK}">{rule.number}</text>'
    )
    return [*parts, f"<g><title>{_escaped(words)}</title>{dot}{number}</g>"]


def _box(drawing: _ProofDrawing, place: _Place, rules: Mapping[int, ProofRule]) -> str:
    node = place.node
    assert node is not None
    label, width = label_of(node), place.width
    x, y = place.x - width / 2, drawing.top(place)
    colour = SIGN_COLOURS.get(node.sign, INK)
    is_tuple = node.kind in (ProofKind.DERIVED, ProofKind.CHAIN)
    corner = 8 if is_tuple else 2
    dash = ' stroke-dasharray="5 3"' if node.kind is ProofKind.ABSENT else ""
    frame = (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BOX_HEIGHT:.0f}"'
        f' rx="{corner}" fill="{FILLS[node.kind]}" stroke="{colour}"{dash}/>'
    )
    if node.kind is ProofKind.AGGREGATE:
        frame += (
            f'<rect x="{x + 3:.1f}" y="{y + 3:.1f}" width="{width - 6:.1f}"'
            f' height="{BOX_HEIGHT - 6:.0f}" rx="1" fill="none" stroke="{colour}"/>'
        )
    whole = "  ".join(filter(None, (label, beside_of(node, rules))))
    return (
        f"<g><title>{_escaped(whole)}</title>{frame}"
        f'<text x="{place.x:.1f}" y="{y + 17:.1f}" text-anchor="middle" fill="{colour}">'
        f"{_escaped(_short(label))}</text></g>"
    )


def _short(label: str) -> str:
    if len(label) <= LABEL_MAX_CHARACTERS:
        return label
    return f"{label[: LABEL_MAX_CHARACTERS - 1]}…"


def _escaped(text: str) -> str:
    """Return a text for XML, which has no control characters."""
    printable = "".join(each if each.isprintable() or each in "\n " else "�" for each in text)
    return escape(printable)
