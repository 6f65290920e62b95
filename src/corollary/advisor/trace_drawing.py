"""The trace as SVG: for each predicate its phases in lines, then the materialisation trees.

Leaves are input predicates; a double frame marks what is stored, a dashed one what the criterion
forbids.
"""

from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape

from corollary.advisor.advice import Advice
from corollary.advisor.trace import TREES_TITLE, PredicateTrace, TreeNode, trace
from corollary.data_class import dataclass

CHARACTER, LINE, BOX_HEIGHT, LAYER_HEIGHT, GAP, MARGIN = 7.4, 19, 40, 78, 18, 16
"""Sizes in pixels."""


@dataclass(frozen=True, slots=True)
class _Drawing:
    parts: tuple[str, ...]
    width: float
    height: float


def trace_as_svg(advice: Advice) -> str:
    """Return the phases and trees of all predicates as one drawing."""
    y, width = float(MARGIN), 0.0
    parts: list[str] = []
    for each in trace(advice):
        drawn = _predicate(each, y)
        parts += drawn.parts
        y += drawn.height + LINE
        width = max(width, drawn.width)
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 2 * MARGIN:.0f}" '
        f'height="{y + MARGIN:.0f}" font-family="monospace" font-size="12" role="img">'
    )
    title = "<title>How the advisor came to its advice: phases and materialisation trees</title>"
    background = title + '<rect width="100%" height="100%" fill="white"/>'
    return "\n".join([opening, background, *parts, "</svg>"]) + "\n"


def _predicate(each: PredicateTrace, top: float) -> _Drawing:
    """Draw the phases, the trees, and what comes out."""
    before, after = list(_phase_lines(each)), list(_output_lines(each))
    parts = list(_text(before, top))
    y = top + LINE * (len(before) + 1)
    x, height = float(MARGIN), 0.0
    for tree in each.trees:
        parts += _tree(tree, x, y)
        height = max(height, LAYER_HEIGHT * (_depth(tree) - 1) + BOX_HEIGHT + LINE)
        x += _width(tree) + GAP
    parts += _text(after, y + height)
    longest = max(14 * depth + CHARACTER * len(text) for depth, _, text in (*before, *after))
    return _Drawing(tuple(parts), max(longest, x), y - top + height + LINE * len(after))


def _text(lines: Iterable[tuple[int, str, str]], top: float) -> Iterator[str]:
    for at, (depth, weight, text) in enumerate(lines, 1):
        y = f"{top + LINE * at:.0f}"
        yield f'<text x="{MARGIN + 14 * depth}" y="{y}"{weight}>{escape(text)}</text>'


BOLD = ' font-weight="bold"'


def _phase_lines(each: PredicateTrace) -> Iterator[tuple[int, str, str]]:
    yield 0, BOLD, each.predicate
    for phase in each.phases:
        yield 1, BOLD, phase.title
        yield from ((2, "", text) for text in (*phase.rules, *phase.rewriting))
    if each.trees:
        yield 1, BOLD, TREES_TITLE
        yield 2, "", "double frame: stored; dashed: larger than the criterion allows; grey: input"


def _output_lines(each: PredicateTrace) -> Iterator[tuple[int, str, str]]:
    yield 1, BOLD, "output"
    yield from ((2, "", text) for text in each.output)


def _box_width(node: TreeNode) -> float:
    return CHARACTER * max(len(node.text), len(node.note)) + 20


def _width(node: TreeNode) -> float:
    below = sum(_width(each) for each in node.children) + GAP * max(0, len(node.children) - 1)
    return max(_box_width(node), below)


def _depth(node: TreeNode) -> int:
    return 1 + max((_depth(each) for each in node.children), default=0)


def _tree(node: TreeNode, x: float, y: float) -> Iterator[str]:
    """Yield a tree whose area begins at x, its root at y."""
    total = _width(node)
    centre = x + total / 2
    below = sum(_width(each) for each in node.children) + GAP * max(0, len(node.children) - 1)
    start = x + (total - below) / 2
    for child in node.children:
        width = _width(child)
        yield (
            f'<line x1="{centre:.0f}" y1="{y + BOX_HEIGHT:.0f}" x2="{start + width / 2:.0f}" '
            f'y2="{y + LAYER_HEIGHT:.0f}" stroke="#555"/>'
        )
        yield from _tree(child, start, y + LAYER_HEIGHT)
        start += width + GAP
    yield from _box(node, centre, y)


def _box(node: TreeNode, centre: float, y: float) -> Iterator[str]:
    width = _box_width(node)
    fill = "#e8f0fe" if node.note else "#f4f4f4"
    dash = ' stroke-dasharray="4 3"' if " > " in node.note else ""
    left = centre - width / 2
    frames = [(left, y, width, BOX_HEIGHT)]
    if node.is_stored:
        frames.append((left - 3, y - 3, width + 6, BOX_HEIGHT + 6))
    for at, (one, other, wide, high) in enumerate(frames):
        yield (
            f'<rect x="{one:.0f}" y="{other:.0f}" width="{wide:.0f}" height="{high}" rx="4" '
            f'fill="{"none" if at else fill}" stroke="#555"{dash}/>'
        )
    texts = [node.text, node.note] if node.note else [node.text]
    for at, text in enumerate(texts):
        height = y + BOX_HEIGHT / 2 + 4 + (at - (len(texts) - 1) / 2) * 15
        yield (
            f'<text x="{centre:.0f}" y="{height:.0f}" text-anchor="middle">{escape(text)}</text>'
        )
