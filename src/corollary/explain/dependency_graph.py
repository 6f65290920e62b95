"""The dependency graph: as JSON; as DOT for Graphviz; as SVG."""

from collections.abc import Collection, Sequence
from typing import Any

from corollary.analysis.bags import counts_copies
from corollary.analysis.strata import Polarity, dependency_polarities, strata
from corollary.core.graph import strongly_connected_components
from corollary.core.program import NormalProgram, RelationKind
from corollary.core.records.record_text import quoted
from corollary.core.titles import show_titles, title_of
from corollary.data_class import dataclass
from corollary.drawing.layered_layout import Box, LayeredLayout, Spacing
from corollary.drawing.svg import document, element, escape_text, path

STYLES = {Polarity.POSITIVE: "solid", Polarity.NEGATIVE: "dashed", Polarity.AGGREGATE: "dotted"}
DASHES = {Polarity.POSITIVE: None, Polarity.NEGATIVE: "6 4", Polarity.AGGREGATE: "2 3"}
INK = "#555"
BOX_HEIGHT, CHARACTER, MARGIN = 32.0, 8, 24.0
SPACING = Spacing(BOX_HEIGHT, gap=30.0, bend=10.0, left=MARGIN, top=MARGIN)
SWEEPS, PULLS = 4, 4


@dataclass(frozen=True, slots=True)
class _Arc:
    below: str
    above: str
    polarity: Polarity


def _arcs(program: NormalProgram) -> list[_Arc]:
    return [
        _Arc(below, above, polarity)
        for above, reads in dependency_polarities(program).items()
        for below, found in reads.items()
        for polarity in sorted(found)
    ]


def graph_as_dot(program: NormalProgram) -> str:
    """Return the graph as DOT: arrows go from a relation to those that read it."""
    lines = ["digraph corollary {", "  rankdir=BT;", '  node [fontname="sans-serif"];']
    grouped: set[str] = set()
    for number, layer in enumerate(strata(program)):
        if layer.is_recursive:
            grouped.update(layer.relations)
            lines.append(f"  subgraph cluster_{number} {{ style=rounded; color=gray;")
            lines += [f"    {quoted(name)} [shape=ellipse];" for name in layer.relations]
            lines.append("  }")
    for name, relation in program.relations.items():
        if name not in grouped:
            shape = "ellipse" if relation.is_derived else "box"
            lines.append(f"  {quoted(name)} [shape={shape}];")
    for arc in _arcs(program):
        style = STYLES[arc.polarity]
        lines.append(f"  {quoted(arc.below)} -> {quoted(arc.above)} [style={style}];")
    return show_titles("\n".join([*lines, "}"]), program)


def graph_as_json(program: NormalProgram, shown: Collection[str] | None = None) -> dict[str, Any]:
    """Return the graph of declared relations: nodes with their floor, and arrows.

    Relations that the program has made for itself are left out; an arrow through one of them
    counts as one of its own, which negates or aggregates if any of its parts does.

    Args:
        program: the program.
        shown: the relations to show; all that are declared if it is not given. Arrows through a
            declared relation that is not shown are left out.
    """
    declared = program.declared_relations.keys()
    visible = declared if shown is None else declared & {*shown}
    arcs = {
        name: reads for name, reads in _declared_arcs(program, declared).items() if name in visible
    }
    successors = {name: [each for each in reads if each in visible] for name, reads in arcs.items()}
    floors: dict[str, int] = {}
    nodes: dict[str, dict[str, Any]] = {}
    for number, names in enumerate(strongly_connected_components(successors)):
        below = [floors[each] for name in names for each in successors[name] if each in floors]
        is_base = all(program.kind_of(name) is RelationKind.BASE for name in names)
        floor = 0 if is_base else max(below, default=0) + 1
        floors |= dict.fromkeys(names, floor)
        is_recursive = len(names) > 1 or names[0] in successors[names[0]]
        for name in names:
            nodes[name] = {"name": name, "floor": floor, "recursive": is_recursive, "group": number}
    edges = [
        {"from": below, "to": above, "kind": str(polarity)}
        for above, reads in arcs.items()
        for below, found in reads.items()
        if below in visible
        for polarity in sorted(found)
    ]
    return {"nodes": [nodes[name] for name in program.relations if name in nodes], "edges": edges}


def _declared_arcs(
    program: NormalProgram, declared: Collection[str]
) -> dict[str, dict[str, set[Polarity]]]:
    """Return which declared relations each of them reads, also through undeclared ones.

    Who reads the counts of a bag reads the bag. That a view has copies, which are counted, does not
    make its arrows those of an aggregate.
    """
    graph = dependency_polarities(program)
    bags = {rows: bag for bag, rows in program.bags.items()}
    found: dict[str, dict[str, set[Polarity]]] = {}
    for name in program.relations:
        if name not in declared:
            continue
        reads: dict[str, set[Polarity]] = {}
        seen: set[tuple[str, Polarity]] = set()
        waiting = [(name, Polarity.POSITIVE)]
        while waiting:
            at, so_far = waiting.pop()
            for read, polarities in graph.get(at, {}).items():
                is_own = at == name and read == program.bags.get(name)
                below = read if is_own else bags.get(read, read)
                for polarity in sorted(polarities):
                    is_plain = polarity is Polarity.POSITIVE or counts_copies(at)
                    combined = so_far if is_plain else polarity
                    if below in declared:
                        reads.setdefault(below, set()).add(combined)
                    elif (below, combined) not in seen:
                        seen.add((below, combined))
                        waiting.append((below, combined))
        found[name] = reads
    return found


def graph_as_svg(program: NormalProgram) -> str:
    """Return the graph as SVG: base relations at the bottom, every stratum above those it reads."""
    layout = LayeredLayout(SPACING)
    titles = {name: title_of(name, program.statements) for name in program.relations}
    boxes = {
        name: layout.add(at, height, CHARACTER * len(titles[name]) + 24)
        for at, (name, height) in enumerate(_heights(program).items())
    }
    ways = [
        (arc.polarity, layout.connect(boxes[arc.below], boxes[arc.above])) for arc in _arcs(program)
    ]
    layout.arrange(SWEEPS, PULLS)
    tip = element("path", d="M0 0L8 4L0 8z", fill=INK)
    size = {"refX": 8, "refY": 4, "markerWidth": 8, "markerHeight": 8}
    marker = element("marker", tip, id="arrow", viewBox="0 0 8 8", **size, orient="auto")
    parts = [element("defs", marker)]
    parts += [_arrow(polarity, way) for polarity, way in ways]
    for name, box in boxes.items():
        parts += _box(titles[name], box, is_derived=program.relations[name].is_derived)
    width, height = layout.width + 2 * MARGIN, layout.bottom + MARGIN
    font = {"font_family": "sans-serif", "font_size": 14}
    return document(width, height, *parts, title="The dependency graph", **font).rstrip()


def _heights(program: NormalProgram) -> dict[str, int]:
    graph = dependency_polarities(program)
    heights = {name: 0 for name, each in program.relations.items() if not each.is_derived}
    for layer in strata(program):
        below = [
            heights[read]
            for name in layer.relations
            for read in graph[name]
            if read not in layer.relations
        ]
        heights |= dict.fromkeys(layer.relations, max(below, default=-1) + 1)
    return heights


def _box(name: str, box: Box, *, is_derived: bool) -> list[str]:
    size = {"x": box.left, "y": box.y, "width": box.width, "height": BOX_HEIGHT}
    corner, fill = (BOX_HEIGHT / 2, "#e8f0fe") if is_derived else (3, "#f4f4f4")
    return [
        element("rect", **size, rx=corner, fill=fill, stroke=INK),
        element("text", escape_text(name), x=box.x, y=box.y + 21, text_anchor="middle"),
    ]


def _arrow(polarity: Polarity, way: Sequence[Box]) -> str:
    start, end = way[0], way[-1]
    if start is end:
        right, middle = start.left + start.width, start.y + BOX_HEIGHT / 2
        line = path((right, middle - 6), ("c", (24, -16, 24, 28, 1, 12)))
    elif start.layer == end.layer:
        line = path((start.x, start.y), ("Q", ((start.x + end.x) / 2, start.y - 24, end.x, end.y)))
    else:
        bends = [("L", (bend.x, y)) for bend in way[1:-1] for y in (bend.y + BOX_HEIGHT, bend.y)]
        line = path((start.x, start.y), *bends, ("L", (end.x, end.y + BOX_HEIGHT)))
    look = {"fill": "none", "stroke": INK, "stroke_dasharray": DASHES[polarity]}
    return element("path", d=line, **look, marker_end="url(#arrow)")
