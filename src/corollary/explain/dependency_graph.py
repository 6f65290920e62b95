"""The dependency graph: as JSON; as DOT for Graphviz; as SVG, with a layout of its own."""

from collections.abc import Collection
from html import escape
from typing import Any

from corollary.analysis.bags import counts_copies
from corollary.analysis.strata import Polarity, dependency_polarities, strata
from corollary.core.graph import strongly_connected_components
from corollary.core.program import NormalProgram, RelationKind
from corollary.core.titles import show_titles, title_of
from corollary.data_class import dataclass

STYLES = {Polarity.POSITIVE: "solid", Polarity.NEGATIVE: "dashed", Polarity.AGGREGATE: "dotted"}
DASHES = {Polarity.POSITIVE: "", Polarity.NEGATIVE: "6 4", Polarity.AGGREGATE: "2 3"}
ARROW_HEAD = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8"'
    ' markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>'
)
LAYER_HEIGHT, BOX_HEIGHT, GAP, CHARACTER, MARGIN = 90, 32, 30, 8, 24


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
            lines += [f"    {_quoted(name)} [shape=ellipse];" for name in layer.relations]
            lines.append("  }")
    for name, relation in program.relations.items():
        if name not in grouped:
            shape = "ellipse" if relation.is_derived else "box"
            lines.append(f"  {_quoted(name)} [shape={shape}];")
    for arc in _arcs(program):
        style = STYLES[arc.polarity]
        lines.append(f"  {_quoted(arc.below)} -> {_quoted(arc.above)} [style={style}];")
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


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def graph_as_svg(program: NormalProgram) -> str:
    """Return the graph as SVG: base relations at the bottom, every stratum above those it reads."""
    height_of = _heights(program)
    rows: dict[int, list[str]] = {}
    for name, height in height_of.items():
        rows.setdefault(height, []).append(name)
    titles = {name: title_of(name, program.statements) for name in height_of}
    widths = {name: CHARACTER * len(title) + 24 for name, title in titles.items()}
    total = max((sum(widths[name] + GAP for name in names) for names in rows.values()), default=0)
    top = max(rows, default=0)
    place: dict[str, tuple[float, float]] = {}
    for height, names in rows.items():
        used = sum(widths[name] + GAP for name in names)
        x = MARGIN + (total - used) / 2
        for name in names:
            place[name] = (x + widths[name] / 2, MARGIN + (top - height) * LAYER_HEIGHT)
            x += widths[name] + GAP
    size = (total + 2 * MARGIN, (top + 1) * LAYER_HEIGHT + 2 * MARGIN - LAYER_HEIGHT + BOX_HEIGHT)
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]:.0f}" height="{size[1]:.0f}"'
        ' font-family="sans-serif" font-size="14">'
    )
    parts = [opening, ARROW_HEAD, '<rect width="100%" height="100%" fill="white"/>']
    parts += [_arrow(arc, place, widths) for arc in _arcs(program)]
    parts += [
        _box(titles[name], place[name], widths[name], program.relations[name].is_derived)
        for name in place
    ]
    return "\n".join([*parts, "</svg>"])


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


def _box(name: str, at: tuple[float, float], width: float, is_derived: bool) -> str:
    x, y = at
    corner = BOX_HEIGHT / 2 if is_derived else 3
    fill = "#e8f0fe" if is_derived else "#f4f4f4"
    return (
        f'<rect x="{x - width / 2:.0f}" y="{y:.0f}" width="{width:.0f}" height="{BOX_HEIGHT}"'
        f' rx="{corner:.0f}" fill="{fill}" stroke="#555"/>'
        f'<text x="{x:.0f}" y="{y + 21:.0f}" text-anchor="middle">{escape(name)}</text>'
    )


def _arrow(arc: _Arc, place: dict[str, tuple[float, float]], widths: dict[str, int]) -> str:
    dash = f' stroke-dasharray="{DASHES[arc.polarity]}"' if DASHES[arc.polarity] else ""
    style = f'fill="none" stroke="#555"{dash} marker-end="url(#arrow)"'
    x1, y1 = place[arc.below]
    x2, y2 = place[arc.above]
    if arc.below == arc.above:
        right, middle = x1 + widths[arc.below] / 2, y1 + BOX_HEIGHT / 2
        path = f"M{right:.0f} {middle - 6:.0f}c24 -16 24 28 1 12"
    elif y1 == y2:
        path = f"M{x1:.0f} {y1:.0f}Q{(x1 + x2) / 2:.0f} {y1 - 24:.0f} {x2:.0f} {y2:.0f}"
    else:
        path = f"M{x1:.0f} {y1:.0f}L{x2:.0f} {y2 + BOX_HEIGHT:.0f}"
    return f'<path d="{path}" {style}/>'
