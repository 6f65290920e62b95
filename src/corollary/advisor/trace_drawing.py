"""The trace as SVG: for each predicate its phases in lines, then the materialisation trees.

Leaves are input predicates; a double frame marks what is stored, a dashed one what the criterion
forbids.
"""

from collections.abc import Iterable, Iterator

from corollary.advisor.advice import Advice
from corollary.advisor.trace import TREES_TITLE, PredicateTrace, TreeNode, trace
from corollary.data_class import dataclass
from corollary.drawing.layered_layout import Box, LayeredLayout, Spacing
from corollary.drawing.svg import document, element, escaped

CHARACTER, LINE, BOX_HEIGHT, GAP, MARGIN = 7.4, 19, 40.0, 18.0, 16.0
"""Sizes in pixels."""
PULLS = 8


@dataclass(frozen=True, slots=True)
class _Drawing:
    parts: tuple[str, ...]
    width: float
    height: float


def trace_as_svg(advice: Advice) -> str:
    """Return the phases and trees of all predicates as one drawing."""
    y, width = MARGIN, 0.0
    parts: list[str] = []
    for each in trace(advice):
        drawn = _predicate(each, y)
        parts += drawn.parts
        y += drawn.height + LINE
        width = max(width, drawn.width)
    title = "How the advisor came to its advice: phases and materialisation trees"
    font = {"font_family": "monospace", "font_size": 12}
    return document(width + 2 * MARGIN, y + MARGIN, *parts, title=title, **font, role="img")


def _predicate(each: PredicateTrace, top: float) -> _Drawing:
    """Draw the phases, the trees, and what comes out."""
    before, after = list(_phase_lines(each)), list(_output_lines(each))
    parts = list(_text(before, top))
    y = top + LINE * (len(before) + 1)
    layout = LayeredLayout(Spacing(BOX_HEIGHT, GAP, 0.0, MARGIN, y, layer=38.0))
    boxes: list[tuple[TreeNode, Box]] = []
    height = max(map(_depth, each.trees), default=0)
    for tree in each.trees:
        _add_tree(tree, None, height - 1, layout, boxes)
    layout.arrange(pulls=PULLS)
    for node, box in boxes:
        for child in box.below:
            ends = {"x1": box.x, "y1": box.y + BOX_HEIGHT, "x2": child.x, "y2": child.y}
            parts.append(element("line", **ends, stroke="#555"))
        parts += _box(node, box)
    bottom = layout.bottom + LINE if boxes else y
    parts += _text(after, bottom)
    longest = max(14 * depth + CHARACTER * len(text) for depth, _, text in (*before, *after))
    size = max(longest, layout.width), bottom - top + LINE * len(after)
    return _Drawing(tuple(parts), *size)


def _depth(node: TreeNode) -> int:
    return 1 + max(map(_depth, node.children), default=0)


def _add_tree(
    node: TreeNode,
    above: Box | None,
    layer: int,
    layout: LayeredLayout,
    boxes: list[tuple[TreeNode, Box]],
) -> None:
    """Add a tree to a layout: children one layer below their node, in their order."""
    width = CHARACTER * max(len(node.text), len(node.note)) + 20
    box = layout.add(len(boxes), layer, width)
    boxes.append((node, box))
    if above is not None:
        layout.connect(box, above)
    for child in node.children:
        _add_tree(child, box, layer - 1, layout, boxes)


def _text(lines: Iterable[tuple[int, str | None, str]], top: float) -> Iterator[str]:
    for at, (depth, weight, text) in enumerate(lines, 1):
        place = {"x": MARGIN + 14 * depth, "y": top + LINE * at}
        yield element("text", escaped(text), **place, font_weight=weight)


def _phase_lines(each: PredicateTrace) -> Iterator[tuple[int, str | None, str]]:
    yield 0, "bold", each.predicate
    for phase in each.phases:
        yield 1, "bold", phase.title
        yield from ((2, None, text) for text in (*phase.rules, *phase.rewriting))
    if each.trees:
        yield 1, "bold", TREES_TITLE
        yield 2, None, "double frame: stored; dashed: larger than the criterion allows; grey: input"


def _output_lines(each: PredicateTrace) -> Iterator[tuple[int, str | None, str]]:
    yield 1, "bold", "output"
    yield from ((2, None, text) for text in each.output)


def _box(node: TreeNode, box: Box) -> Iterator[str]:
    look = {"rx": 4, "stroke": "#555", "stroke_dasharray": "4 3" if " > " in node.note else None}
    fill = "#e8f0fe" if node.note else "#f4f4f4"
    size = {"x": box.left, "y": box.y, "width": box.width, "height": BOX_HEIGHT}
    yield element("rect", **size, fill=fill, **look)
    if node.is_stored:
        outer = {"x": box.left - 3, "y": box.y - 3, "width": box.width + 6}
        yield element("rect", **outer, height=BOX_HEIGHT + 6, fill="none", **look)
    texts = [node.text, node.note] if node.note else [node.text]
    for at, text in enumerate(texts):
        y = box.y + BOX_HEIGHT / 2 + 4 + (at - (len(texts) - 1) / 2) * 15
        yield element("text", escaped(text), x=box.x, y=y, text_anchor="middle")
