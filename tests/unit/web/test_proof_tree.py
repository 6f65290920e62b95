"""Proofs as lines: levels, what is folded, which literal stands for which line."""

from __future__ import annotations

from typing import Any

from corollary.web.proof_tree import OPEN_LEVELS, ProofTree, TreeLine


def node(id_: int, text: str, kind: str = "derived", **other: object) -> dict[str, Any]:
    """Return a node as JSON has it."""
    return {
        "id": id_,
        "kind": kind,
        "relation": text.partition("(")[0].lstrip("!"),
        "row": [],
        "height": 0,
        "rule": None,
        "premises": [],
        "notes": [],
        "sources": [],
        "text": text,
        **other,
    }


def proof(*nodes: dict[str, Any], **rules: str) -> dict[str, Any]:
    """Return a proof as JSON has it."""
    found = {
        name.removeprefix("r"): {"text": text, "file": "net/work.dl", "line": 8}
        for name, text in rules.items()
    }
    return {"holds": True, "nodes": list(nodes), "rules": found}


def levels(lines: list[TreeLine]) -> list[tuple[int, str]]:
    """Return the lines in short."""
    return [(line.level, line.text) for line in lines]


def test_a_literal_names_the_node_that_stands_for_it() -> None:
    tree = proof(
        node(0, 'link("a", "c")', rule=2, premises=[1, 2], notes=[3, 4]),
        node(1, 'link("a", "b")', "sealed"),
        node(2, 'direct("b", "c")', "base"),
        node(3, '!closed("c")', "absent"),
        node(4, '"a" != "c"', "computed", relation=""),
        r2="link(x, y) :- x != y, !closed(y), link(x, z), direct(z, y).",
    )
    root = ProofTree(tree).lines()[0]
    parts = {part.text: part.child for part in root.rule_parts if part.child is not None}
    assert parts == {"x != y": 4, "!closed(y)": 3, "link(x, z)": 1, "direct(z, y)": 2}
    text = "".join(part.text for part in root.rule_parts)
    assert text == "link(x, y) :- x != y, !closed(y), link(x, z), direct(z, y)."
    assert root.rule_place == "work.dl:8"


def test_a_tuple_is_unfolded_once() -> None:
    tree = proof(
        node(0, "p()", premises=[1, 2]),
        node(1, "q()", premises=[3]),
        node(2, "r()", premises=[1]),
        node(3, "s()", "base"),
    )
    lines = ProofTree(tree).lines()
    assert levels(lines) == [(1, "p()"), (2, "q()"), (3, "s()"), (2, "r()"), (3, "q()")]
    again = lines[-1]
    assert again.repeats == lines[1].id
    assert not again.has_children


def test_a_deep_proof_is_folded_below_three_levels() -> None:
    depth = 3000
    nodes = [node(at, f"p({at})", premises=[at + 1]) for at in range(depth)]
    lines = ProofTree(proof(*nodes, node(depth, f"p({depth})", "base"))).lines()
    assert len(lines) == depth + 1
    assert [line.level for line in lines if not line.is_hidden] == list(range(1, OPEN_LEVELS + 1))
    assert lines[OPEN_LEVELS - 1].has_children
    assert not lines[OPEN_LEVELS - 1].is_open


def test_what_a_tuple_lacks() -> None:
    attempt = {
        "rule": 1,
        "distance": 1,
        "count": 5,
        "bindings": {"x": "a", "n": 3},
        "failing": [{"literal": "q(x)", "kind": "missing", "node": 0}],
    }
    answer = {
        "holds": False,
        "goal": 'p("a")',
        "attempts": [attempt, {**attempt, "bindings": {}}],
        "nodes": [node(0, 'q("a")', "absent")],
        "rules": {"1": {"text": "p(x) :- q(x).", "file": None, "line": None}},
    }
    lines = ProofTree(answer).lines()
    assert levels(lines) == [
        (1, 'p("a")'),
        (2, 'with x = "a", n = 3'),
        (3, 'q("a")'),
        (2, ""),
        (3, 'q("a")'),
        (2, "rule 1 with other values: 3 more alike"),
    ]
    assert [bool(line.rule_parts) for line in lines] == [False, True, False, False, False, False]
    assert lines[2].is_ground
    assert not TreeLine("absent", "q(_)", goal="q(_)").is_ground


def test_where_a_base_tuple_is_from() -> None:
    sources = [
        {"part": "source", "file": "facts/q.facts", "line": 2, "commit": 1},
        {"part": "manual", "file": None, "line": None, "commit": 3},
    ]
    line = ProofTree(proof(node(0, "q(1)", "base", sources=sources))).lines()[0]
    assert (line.beside, line.commit) == ("q.facts:2, by hand", 3)


def test_copies_are_said_where_there_are_several() -> None:
    beside = {
        copies: ProofTree(proof(node(0, "u(1)", "base", copies=copies))).lines()[0].beside
        for copies in (None, 1, 2)
    }
    assert beside == {None: "", 1: "", 2: "2 copies"}
