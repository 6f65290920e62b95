"""What the trees of random grammars match, and which trees are theirs: by going through trees."""

from __future__ import annotations

import random
from itertools import product

import pytest

from corollary.documents.answers.search_limits import SearchLimits
from corollary.documents.document import ActiveDocument
from corollary.documents.queries.joins import build_shape
from corollary.documents.queries.parse import parse_query
from corollary.documents.queries.shape import expand_alternatives
from corollary.documents.trees.reader import read_terms
from corollary.documents.types.check_update import nonconforming_roots
from corollary.documents.types.function_types import Grammar as PackageGrammar
from corollary.documents.types.satisfiability import Satisfiability, can_bring
from oracles import documents as oracle
from oracles.document_text import shown, shown_query
from oracles.document_types import ANY, Grammar, Largest, Matches, TooLargeError, depth_for
from oracles.documents import Flat, Node, Pattern, Q, Tree
from support.generators.document_types import as_package, random_grammar, random_tree
from support.generators.documents import LABELS, Making
from support.selection import sampled

MOST_TREES = 300
DEMANDS = 6
"""Sets of demands that are tried on one grammar."""


@pytest.mark.parametrize("seed", sampled(range(8), 4))
def test_sat_agrees_with_trees(seed: int) -> None:
    """sat(A, H, D), and can(f, c), hold iff one of the largest trees of the grammar has matches."""
    chance = random.Random(seed)
    found = [each for _ in range(25) for each in judged(chance)]
    assert min(found.count(True), found.count(False)) > 20


def judged(chance: random.Random) -> list[bool]:
    """Compare what a grammar can meet of a query without choices; return what was found."""
    grammar, pattern = random_grammar(chance), plain_query(chance)
    (query,) = oracle.flat(pattern.root)
    where = f"{grammar}, {shown_query(pattern)}"
    nodes = list(build_shape(parse_query(shown_query(pattern))).nodes())
    parts = oracle.all_nodes(query)
    assert [node.label or "*" for node in nodes] == [part.label for part in parts]
    axes = {id(below): axis for part in parts for axis, below in part.edges}
    package = as_package(grammar)
    assert isinstance(package, PackageGrammar)
    sat = Satisfiability(package)
    try:
        trees = all_largest(grammar, pattern)
    except TooLargeError:
        return []
    matches = Matches(pattern, query)
    answers = []
    for node, part in list(zip(nodes, parts, strict=True))[1:]:
        axis = axes[id(part)]
        expected = any(
            matches.at(part, each) or (axis == "//" and matches.below(part, each, "//"))
            for each in trees
        )
        assert can_bring(package, node) == expected, f"{where}: {part.label}"
        answers.append(expected)
    for _ in range(DEMANDS if len(parts) > 1 else 0):
        at = chance.sample(range(1, len(parts)), chance.randint(1, min(3, len(parts) - 1)))
        wanted = [(each, chance.random() < 0.4) for each in at]
        expected = any(meets_all(matches, parts, wanted, each) for each in trees)
        demands = [(expand_alternatives(nodes[each])[0], is_deep) for each, is_deep in wanted]
        assert sat.meets(demands) == expected, f"{where}: {wanted}"
        for _ in range(5):
            tree = random_tree(grammar, chance, 4)
            if tree and meets_all(matches, parts, wanted, oracle.grown(tree)):
                assert expected, f"{where}: {wanted} in {shown(tree)}"
        answers.append(expected)
    return answers


def meets_all(
    matches: Matches, parts: list[Flat], wanted: list[tuple[int, bool]], tree: Node
) -> bool:
    """Whether a tree has matches of parts of a query at its root, or strictly below."""
    return all(
        matches.below(parts[at], tree, "//") if is_deep else matches.at(parts[at], tree)
        for at, is_deep in wanted
    )


def all_largest(grammar: Grammar, pattern: Pattern) -> list[Node]:
    """Return the largest trees; demands overlap, so each node may count three times."""
    labels = {*LABELS, "z", "new"}
    everything = [oracle.grown(each) for each in oracle.wanted(pattern, labels)]
    depth = 3 * (depth_for(pattern, len(grammar.rules)) + 1)
    return Largest(grammar, labels, everything, MOST_TREES).of(grammar.start, depth)


def plain_query(chance: random.Random) -> Pattern:
    """Return a query without choices, outputs and joins."""
    while True:
        root = Making(chance).query().root
        if all(isinstance(edge, tuple) for node in every(root) for edge in node.edges):
            for node in every(root):
                node.variable = None
            return Pattern(root, [])


def every(node: Q) -> list[Q]:
    below = [edge[1] for edge in node.edges if isinstance(edge, tuple)]
    return [node, *(each for child in below for each in every(child))]


# --- which trees are of a grammar ----------------------------------------------------------------


def test_trees_of_a_grammar_are_told_from_others() -> None:
    chance = random.Random(7)
    found, called = [], []
    for _ in range(600):
        grammar = random_grammar(chance, chance.choice(("", "fg")))
        tree = random_tree(grammar if chance.random() < 0.6 else None, chance, 3)
        if tree is None:
            continue
        tree = with_calls(tree, chance)
        expected = is_of(grammar, grammar.start, tree)
        package = as_package(grammar)
        assert isinstance(package, PackageGrammar)
        where = f"{shown(tree)} in {grammar}"
        assert (nonconforming_roots(package, read_terms(shown(tree))) == []) == expected, where
        found.append(expected)
        called.append(expected and "!" in shown(tree))
    assert min(found.count(True), found.count(False), called.count(True)) > 50


def with_calls(tree: Tree, chance: random.Random) -> Tree:
    """Return a tree with a call here and there."""
    below = [each if each[0].startswith("!") else with_calls(each, chance) for each in tree[1]]
    more = [(f"!{chance.choice('fgh')}", [])] if chance.random() < 0.05 else []
    return tree[0], [*below, *more]


def is_of(grammar: Grammar, name: str, tree: Tree) -> bool:
    """Whether a tree is of a type: every way to give its children to those of the rule is tried."""
    if name == ANY:
        return True
    labels, children = grammar.rules[name]
    if labels is not None and tree[0] not in labels:
        return False
    calls = {each[0][1:] for each in tree[1] if each[0].startswith("!")}
    if not calls <= grammar.calls.get(name, frozenset()) and not any(
        child == ANY and not is_single for child, _, is_single in children
    ):
        return False
    trees = [each for each in tree[1] if not each[0].startswith("!")]
    for given in product(range(len(children)), repeat=len(trees)):
        fits = all(
            is_of(grammar, children[at][0], each) for at, each in zip(given, trees, strict=True)
        )
        if fits and all(
            given.count(at) >= is_required and (not is_single or given.count(at) <= 1)
            for at, (_, is_required, is_single) in enumerate(children)
        ):
            return True
    return False


def satisfiability(clauses: list[tuple[int, ...]], variables: int) -> tuple[str, str, str]:
    """Return document, query and type of the reduction of Theorem 4, for 3SAT."""
    names = range(1, variables + 1)
    document, type_ = [], []
    for name in names:
        literals = [(f"p{name}[!h{name}", name), (f"n{name}[!g{name}", -name)]
        trees = []
        types = []
        for text, literal in literals:
            said = [f"c{at}" for at, clause in enumerate(clauses) if literal in clause]
            trees.append(" ".join((text, *said)) + "]")
            types.append(f"{text.partition('[')[0]}[{', '.join(('(zero | one)', *said))}]")
        document.append(f"x{name}[{' '.join(trees)}]")
        type_.append(f"x{name}[{', '.join(types)}]")
    query = "".join(f"[x{name}[*/zero][*/one]]" for name in names)
    query += "".join(f"[*/*[c{at}][one]]" for at in range(len(clauses)))
    return f"r[{' '.join(document)}]", f"/r{query}", f"r[{', '.join(type_)}]"


@pytest.mark.parametrize(
    ("clauses", "variables", "value"),
    [
        ([(1, 2), (1, 2), (1, -2)], 2, 0.5),
        ([(1, 2), (1, -2), (-1, 2), (-1, -2)], 2, 0),
    ],
)
def test_choices_are_functions_that_answer_once(
    clauses: list[tuple[int, ...]], variables: int, value: float
) -> None:
    document, query, type_ = satisfiability(clauses, variables)
    limits = SearchLimits(nodes=20_000)
    view = ActiveDocument.from_terms(document, document_type=type_, limits=limits).view(query)
    assert (view.value, view.is_exact) == (value, True)


@pytest.mark.parametrize(
    ("document", "type_", "query", "expected"),
    [
        # One tree of a choice; any number of trees; a call that must bring something.
        ("r[x[!f] y[!g]]", "r[x[(a | b)?], y[a*]]", "/r[x/a][y/a]", (0.5, True)),
        ("r[x[!f] y[!g]]", "r[x[(a | b)?], y[a*]]", "/r[x[a][b]][y/a]", (0, True)),
        ("r[x[!f] y[!g]]", "r[x[a | b], y[a*]]", "/r[x[a or b]]", (1, True)),
        # The same function brings the same tree to both of its calls.
        ("r[x[!f] y[!f]]", "r[x[a | b], y[a | b]]", "/r[x/a][y/b]", (0, True)),
        ("r[x[!f] y[!f]]", "r[x[a | b], y[a | b]]", "/r[x/a][y/a]", (0.5, True)),
        # Two functions share one place, two trees are of one choice: not one by one.
        ("r[x[!f !g]]", "r[x[(a | b), c?]]", "/r/x[a][b]", (0, True)),
        ("r[x[!f]]", "r[x[(a, b) | c]]", "/r/x[a][b]", (0.5, True)),
        ("r[x[!f]]", "r[x[(a, b) | c]]", "/r/x[a][c]", (0, True)),
    ],
)
def test_functions_by_themselves_and_together(
    document: str, type_: str, query: str, expected: tuple[float, bool]
) -> None:
    view = ActiveDocument.from_terms(document, document_type=type_).view(query)
    assert (view.value, view.is_exact) == expected
