"""The steps of the algorithm for each predicate, in the paper's notation.

| part | what it shows |
|---|---|
| preliminary calculations | effective arities of stored relations; the processing time as it is |
| stage 1, disjunct phase | each merge of clauses: the new predicate, the rewriting q1, q2 … |
| stage 1, variable folding | each step that applies: new predicates, the next rewriting |
| stage 2 | the materialisation trees: clausal arity, criterion, what is stored |
| output | the new scheme, the rewritten queries, the degree of the reduction |

Candidates are named by the initials of their relations, views of the advice by their names there.
In the drawing leaves are input predicates; a double frame marks what is stored, a dashed one what
the criterion forbids.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from corollary.advisor.advice import Advice, PredicateAdvice
from corollary.advisor.model.candidates import Body, Candidate, FoldedClause, Node
from corollary.advisor.model.shapes import effective_arity
from corollary.advisor.search import view_rules
from corollary.advisor.search.disjuncts import merge_steps
from corollary.advisor.search.folding import fold_steps
from corollary.core.logic import Atom, Literal, Slot
from corollary.core.printer import print_atom, print_clause, print_literal
from corollary.data_class import dataclass
from corollary.drawing.layered_layout import Box, LayeredLayout, Spacing
from corollary.drawing.svg import document, element, escape_text

STEP_NAMES = {
    1: "discarding insignificant nonhead variables",
    2: "merging predicates whose sets of variables are the same",
    3: "predicate subsumption",
    4: "merging predicate clusters",
}


TREES_TITLE = "stage 2, materialisation decision: the trees"


@dataclass(frozen=True, slots=True)
class TracePhase:
    """A phase or step: its title, the rules of new predicates, the rewriting after it."""

    title: str
    rules: tuple[str, ...] = ()
    rewriting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A node of a materialisation tree.

    Attributes:
        text: the predicate with its variables.
        note: its clausal arity and the criterion; empty for a leaf, which is an input predicate.
        is_stored: whether the advice stores it.
    """

    text: str
    note: str = ""
    is_stored: bool = False
    children: tuple["TreeNode", ...] = ()


@dataclass(frozen=True, slots=True)
class PredicateTrace:
    """What the algorithm did for one predicate."""

    predicate: str
    phases: tuple[TracePhase, ...]
    trees: tuple[TreeNode, ...]
    output: tuple[str, ...]


def trace(advice: Advice) -> Iterator[PredicateTrace]:
    """Yield what was done for each query, and for each predicate that was rewritten."""
    for each in advice.predicates.values():
        if each.is_query or each.is_applicable:
            yield _PredicateTracer(advice, each).trace()


def trace_as_text(advice: Advice) -> Iterator[str]:
    """Yield the lines of the trace."""
    for each in trace(advice):
        yield f"trace of {each.predicate}"
        yield from ("  " * depth + text for depth, text in _phase_lines(each))
        for tree in each.trees:
            yield from (f"    {line}" for line in _tree_lines(tree, "", ""))
        yield from ("  " * depth + text for depth, text in _output_lines(each))


def _phase_lines(each: PredicateTrace) -> Iterator[tuple[int, str]]:
    """Yield the lines of phases, each with its depth: 1 for a title."""
    for phase in each.phases:
        yield 1, phase.title
        yield from ((2, text) for text in (*phase.rules, *phase.rewriting))
    if each.trees:
        yield 1, TREES_TITLE


def _output_lines(each: PredicateTrace) -> Iterator[tuple[int, str]]:
    yield 1, "output"
    yield from ((2, text) for text in each.output)


def _one_by_one(before: list[Node], after: list[Node]) -> Iterator[list[Node]]:
    """Yield the nodes after each of the projections that step 1 makes at once."""
    for at, (one, other) in enumerate(zip(before, after, strict=True)):
        if one is not other:
            yield [*after[: at + 1], *before[at + 1 :]]


def _tree_lines(node: TreeNode, first: str, rest: str) -> Iterator[str]:
    mark = "  [stored]" if node.is_stored else ""
    yield f"{first}{node.text}{'  ' if node.note else ''}{node.note}{mark}"
    for at, child in enumerate(node.children):
        is_last = at == len(node.children) - 1
        yield from _tree_lines(
            child, rest + ("└─ " if is_last else "├─ "), rest + ("   " if is_last else "│  ")
        )


@dataclass(slots=True)
class _PredicateTracer:
    advice: Advice
    predicate: PredicateAdvice
    _names: dict[str, str] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)
    _number: int = 0

    def __post_init__(self) -> None:
        forms = self.predicate.rewriter.forms
        for name, view in self.advice.views.items():
            self._names[forms.key(view.node)] = name
        self._taken = {*self.advice.scheme.relations, *self.advice.views}

    def trace(self) -> PredicateTrace:
        phases = [self._preliminaries(), *self._disjuncts()]
        for folded in self.predicate.decision.clauses:
            phases += self._folding(folded)
        trees = [
            self._tree(root)
            for folded in self.predicate.decision.clauses
            for root in folded.roots()
        ]
        output = tuple(self._output())
        return PredicateTrace(self.predicate.query.relation, tuple(phases), tuple(trees), output)

    # --- names ---------------------------------------------------------------------------------

    def _name(self, node: Candidate) -> str:
        """Return the name of a candidate; children first, as their names come first in a trace."""
        key = self.predicate.rewriter.forms.key(node)
        if key not in self._names:
            for child in node.children:
                self._name(child)
            self._names[key] = view_rules.unused_name(view_rules.initials(node), self._taken)
        return self._names[key]

    def _name_of(self, node: Candidate) -> tuple[str, tuple[Slot, ...]]:
        return self._name(node), node.arguments

    def _text(self, node: Node) -> str:
        if isinstance(node, Candidate):
            return print_atom(Atom(*self._name_of(node)))
        return print_literal(node) if isinstance(node, Literal) else str(node.item)

    # --- phases --------------------------------------------------------------------------------

    def _preliminaries(self) -> TracePhase:
        scheme, shapes = self.advice.scheme, self.predicate.rewriter.shapes
        read = scheme.reachable([self.predicate.query.relation])
        arities = [
            f"effective arity of {name}: {effective_arity(each, shapes)}"
            for name, each in scheme.relations.items()
            if each.is_stored and name in read
        ]
        arity = self.advice.arity
        lines = [
            *arities,
            f"effective arity of the scheme: {arity.value}, set by {arity.set_by}",
            f"processing time: O(N^{self.predicate.before.left_deep})",
        ]
        rules = tuple(print_clause(each) for each in self.predicate.originals)
        return TracePhase("preliminary calculations", tuple(lines), rules)

    def _disjuncts(self) -> Iterator[TracePhase]:
        originals = self.advice.scheme.clauses.get(self.predicate.query.relation, ())
        if len(self.predicate.decision.clauses) >= len(originals):
            return
        known: set[int] = set()
        for clauses in merge_steps(originals):
            new = [root for each in clauses for root in each.roots() if id(root) not in known]
            known |= set(map(id, new))
            rules = self._rules(new)
            rewriting = tuple(self._rewriting(each, each.nodes) for each in clauses)
            yield TracePhase("stage 1, disjunct reformulation", rules, rewriting)

    def _folding(self, folded: FoldedClause) -> Iterator[TracePhase]:
        start = folded.nodes if folded.start is None else folded.start
        steps = list(fold_steps(start, folded.clause.significant))
        forms = self.predicate.rewriter.forms
        last = steps[-1][1] if steps else list(start)
        keys = [
            sorted(forms.key(node) for node in nodes if isinstance(node, Candidate))
            for nodes in (last, folded.nodes)
        ]
        if keys[0] != keys[1]:  # parts of clusters were better than the whole ones
            rules = self._rules(folded.roots())
            rewriting = self._rewriting(folded, folded.nodes)
            yield TracePhase("stage 1, parts of clusters", rules, (rewriting,))
            return
        before = list(start)
        for number, nodes in steps:
            title = f"stage 1, variable folding, step {number}: {STEP_NAMES[number]}"
            for after in _one_by_one(before, nodes) if number == 1 else [nodes]:
                known = set(map(id, before))
                new = [n for n in after if isinstance(n, Candidate) and id(n) not in known]
                yield TracePhase(title, self._rules(new), (self._rewriting(folded, tuple(after)),))
                before = after

    def _rules(self, nodes: Sequence[Candidate]) -> tuple[str, ...]:
        return tuple(
            print_clause(clause)
            for node in nodes
            for clause in view_rules.step_clauses(self._name(node), node, self._name_of)
        )

    def _rewriting(self, folded: FoldedClause, nodes: Body) -> str:
        """Return the clause over some nodes, under the next number of the predicate."""
        self._number += 1
        clause = view_rules.body_clause(folded.clause, nodes, self._name_of)
        text = print_clause(clause)
        head = print_atom(clause.heads[0])
        numbered = head.replace("(", f"{self._number}(", 1) if "(" in head else head
        return text.replace(head, numbered, 1)

    # --- trees and output ----------------------------------------------------------------------

    def _tree(self, node: Node) -> TreeNode:
        if not isinstance(node, Candidate):
            return TreeNode(self._text(node))
        rewriter, limit = self.predicate.rewriter, self.advice.arity.value
        degree = rewriter.shapes.clausal_arity(node)
        verdict = "<=" if degree <= limit else ">"
        return TreeNode(
            self._text(node),
            f"clausal arity {degree} {verdict} {limit}",
            rewriter.forms.key(node) in self.predicate.decision.stored,
            tuple(self._tree(each) for body in node.bodies for each in body),
        )

    def _output(self) -> Iterator[str]:
        found = self.predicate
        if not found.is_applicable:
            yield f"not applicable: {found.reason}"
            return
        yield f"P' = {{{', '.join(found.views)}}}"
        yield from (f"Q': {print_clause(each)}" for each in found.rewritten)
        before, after = found.before.left_deep, found.after.left_deep
        yield f"processing time O(N^{before}) -> O(N^{after}), reduced by N^{before - after}"


# --- the drawing ---------------------------------------------------------------------------------


CHARACTER, LINE, BOX_HEIGHT, GAP, MARGIN = 7.4, 19, 40.0, 18.0, 16.0
"""Sizes in pixels."""
PULLS = 8
LEGEND = "double frame: stored; dashed: larger than the criterion allows; grey: input"


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
    before, after = [(0, each.predicate), *_phase_lines(each)], list(_output_lines(each))
    if each.trees:
        before.append((2, LEGEND))
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
    longest = max(14 * depth + CHARACTER * len(text) for depth, text in (*before, *after))
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


def _text(lines: Iterable[tuple[int, str]], top: float) -> Iterator[str]:
    for at, (depth, text) in enumerate(lines, 1):
        place = {"x": MARGIN + 14 * depth, "y": top + LINE * at}
        yield element("text", escape_text(text), **place, font_weight=None if depth > 1 else "bold")


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
        yield element("text", escape_text(text), x=box.x, y=y, text_anchor="middle")
