"""Proofs as pictures: the goal on top, a row for each height, base tuples lowest.

Every step is a dot with the number of its rule, below the tuple that it derives. In notebooks the
steps are a tree that unfolds, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape

from corollary.core.printer import print_value
from corollary.drawing.layered_layout import Box, LayeredLayout, Spacing
from corollary.drawing.svg import document, element, escape_text, path, shorten
from corollary.provenance.nodes import Attempt, ProofKind, ProofNode, ProofRule, shift_node
from corollary.provenance.render.text import beside_of, label_of, place_text

LABEL_MAX_CHARACTERS = 32
"""Longer labels are cut; the whole one is in the title."""

OPEN_LEVELS = 2
"""So many levels of a tree in HTML are unfolded at first."""

CHARACTER, BOX_HEIGHT, MARGIN = 8.0, 26.0, 16.0
DOT_RADIUS, DOT_BELOW = 3.5, 14.0
INK, FAINT = "#333333", "#888888"
DASHES = "5 3"
SPACING = Spacing(BOX_HEIGHT, gap=22.0, bend=10.0, left=MARGIN, top=MARGIN)
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


def proof_as_svg(
    nodes: Sequence[ProofNode], rules: Mapping[int, ProofRule], title: str, text: str
) -> str:
    """Return a picture of a proof, without a script."""
    layout, rows = LayeredLayout(SPACING), _rows(nodes)
    boxes = [
        layout.add(
            node.id, row, CHARACTER * len(shorten(label_of(node), LABEL_MAX_CHARACTERS)) + 20
        )
        for node, row in zip(nodes, rows, strict=True)
    ]
    ways = {
        (node.id, child): layout.connect(boxes[child], boxes[node.id])[::-1]
        for node in nodes
        for child in _children(node)
    }
    layout.arrange(sweeps=2)
    parts = [element("desc", escape_text(text))]
    for node in nodes:
        parts += _step(node, [ways[node.id, child] for child in _children(node)], nodes, rules)
    parts += [_box(node, boxes[node.id], rules) for node in nodes]
    size = layout.width + 2 * MARGIN, layout.bottom + MARGIN
    return document(*size, *parts, title=title, font_family="monospace", font_size=13)


def _children(node: ProofNode) -> tuple[int, ...]:
    return tuple(dict.fromkeys((*node.premises, *node.notes)))


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


def absence_as_svg(
    goal: str,
    attempts: Sequence[Attempt],
    covered_by: int | None,
    nodes: Sequence[ProofNode],
    rules: Mapping[int, ProofRule],
    *,
    text: str,
) -> str:
    """Return a picture of an absence: below the tuple its attempts, below each what fails."""
    first = 1 + len(attempts)
    notes = (*range(1, first), *(() if covered_by is None else (first + covered_by,)))
    drawn = [ProofNode(0, ProofKind.ABSENT, "", (), (), notes=notes, text=goal)]
    below = [shift_node(node, first) for node in nodes]
    for number, attempt in enumerate(attempts, 1):
        failing = []
        for each in attempt.failing:
            if each.node is not None:
                failing.append(first + each.node)
                continue
            failing.append(first + len(below))
            below.append(ProofNode(failing[-1], _FAILING[each.kind], "", (), (), text=each.literal))
        known = (f"{n} = {print_value(v, t)}" for n, (v, t) in attempt.bindings.items())
        words = ", ".join(known) or f"rule {attempt.rule}"
        node = ProofNode(number, ProofKind.ABSENT, "", (), (), notes=tuple(failing), text=words)
        drawn.append(replace(node, rule=attempt.rule))
    return proof_as_svg([*drawn, *below], rules, f"why not {goal}", text)


_FAILING = {
    "missing": ProofKind.ABSENT,
    "blocking": ProofKind.BASE,
    "condition": ProofKind.COMPUTED,
}
"""How a literal that fails is drawn, if it has no node of its own."""


def _step(
    node: ProofNode,
    ways: Sequence[Sequence[Box]],
    nodes: Sequence[ProofNode],
    rules: Mapping[int, ProofRule],
) -> Iterator[str]:
    """Yield the dot below a tuple, and the edges from it to what the tuple is derived from."""
    if not ways:
        return
    x, bottom = ways[0][0].x, ways[0][0].y + BOX_HEIGHT
    y = bottom + DOT_BELOW
    yield element("path", d=path((x, bottom), ("V", (y,))), stroke=INK)
    for child, way in zip(_children(node), ways, strict=True):
        moves: list[tuple[str, tuple[float, ...]]] = []
        for bend in way[1:-1]:
            moves += [("L", (bend.x, bend.y)), ("V", (bend.y + BOX_HEIGHT,))]
        line = path((x, y), *moves, ("L", (way[-1].x, way[-1].y)))
        dash = DASHES if nodes[child].kind is ProofKind.ABSENT else None
        colour = INK if child in node.premises else FAINT
        yield element("path", d=line, fill="none", stroke=colour, stroke_dasharray=dash)
    dot = element("circle", cx=x, cy=y, r=DOT_RADIUS, fill=INK)
    if node.rule is None:
        yield dot
        return
    rule = rules[node.rule]
    words = f"{rule.text} {place_text(rule.file, rule.line)}".strip()
    number = element("text", str(rule.number), x=x + 7, y=y + 4, font_size=11, fill=INK)
    yield element("g", element("title", escape_text(words)), dot, number)


def _box(node: ProofNode, box: Box, rules: Mapping[int, ProofRule]) -> str:
    label, colour = label_of(node), SIGN_COLOURS.get(node.sign, INK)
    corner = 8 if node.kind in (ProofKind.DERIVED, ProofKind.CHAIN) else 2
    dash = DASHES if node.kind is ProofKind.ABSENT else None
    size = {"x": box.left, "y": box.y, "width": box.width, "height": BOX_HEIGHT}
    look = {"fill": FILLS[node.kind], "stroke": colour, "stroke_dasharray": dash}
    frames = [element("rect", **size, rx=corner, **look)]
    if node.kind is ProofKind.AGGREGATE:
        inner = {"x": box.left + 3, "y": box.y + 3, "width": box.width - 6}
        frames.append(
            element("rect", **inner, height=BOX_HEIGHT - 6, rx=1, fill="none", stroke=colour)
        )
    words = escape_text(shorten(label, LABEL_MAX_CHARACTERS))
    place = {"x": box.x, "y": box.y + 17, "text_anchor": "middle"}
    whole = "  ".join(filter(None, (label, beside_of(node, rules))))
    return element(
        "g",
        element("title", escape_text(whole)),
        *frames,
        element("text", words, **place, fill=colour),
    )


# --- HTML ----------------------------------------------------------------------------------------


def proof_as_html(
    nodes: Sequence[ProofNode], rules: Mapping[int, ProofRule], picture: str, summary: str
) -> str:
    """Return the picture of a proof, and below it the tree, for notebooks."""
    tree = "".join(_tree(nodes, rules))
    return (
        f'<div class="corollary-proof" style="font-family: monospace">{picture}'
        f"{tree}<p>{escape(summary)}</p></div>"
    )


def _tree(nodes: Sequence[ProofNode], rules: Mapping[int, ProofRule]) -> Iterator[str]:
    """Yield the tree: what has something below it is a `<details>`, where it comes first."""
    shown: set[int] = set()
    work: list[tuple[int, int] | str] = [(0, 0)]
    while work:
        item = work.pop()
        if isinstance(item, str):
            yield item
            continue
        number, level = item
        node = nodes[number]
        children = (*node.premises, *node.notes)
        words = escape(label_of(node))
        beside = escape(beside_of(node, rules))
        line = f"{words} <small>{beside}</small>" if beside else words
        if not children or number in shown:
            again = " <small>(above)</small>" if children else ""
            yield f'<div style="margin-left: 1.5em">{line}{again}</div>'
            continue
        shown.add(number)
        is_open = ' open=""' if level < OPEN_LEVELS else ""
        yield f'<details style="margin-left: 1.5em"{is_open}><summary>{line}</summary>'
        work.append("</details>")
        work += [(child, level + 1) for child in reversed(children)]
