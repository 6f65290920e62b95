"""Answers as text, pictures and HTML: hand-made ones, so that the forms alone are judged."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from corollary.core.types import NUMBER, SYMBOL
from corollary.provenance.nodes import (
    AggregateValue,
    Attempt,
    BaseChange,
    Cause,
    CutReason,
    FactOrigin,
    FailingLiteral,
    InsertionSets,
    ProofCut,
    ProofKind,
    ProofNode,
    ProofRule,
)
from corollary.provenance.proof import Absence, ChangeExplanation, Proof

DERIVED, BASE, ABSENT = ProofKind.DERIVED, ProofKind.BASE, ProofKind.ABSENT
NAMESPACE = "{http://www.w3.org/2000/svg}"
RULES = {
    1: ProofRule(1, "link(x, y) :- direct_link(x, y).", "network.dl", 8),
    2: ProofRule(2, "link(x, z) :- link(x, y), direct_link(y, z).", "network.dl", 9),
}


def node(number: int, kind: ProofKind, text: str, **more: object) -> ProofNode:
    return ProofNode(number, kind, "link", (), (), text=text, **more)  # type: ignore[arg-type]


NETWORK = Proof(
    'link("a", "d")',
    3,
    holds=True,
    height=2,
    height_at_least=2,
    minimal=True,
    canonical=True,
    nodes=(
        node(0, DERIVED, 'link("a", "d")', height=2, rule=2, premises=(1, 2)),
        node(1, DERIVED, 'link("a", "c")', height=1, rule=1, premises=(3,)),
        node(2, BASE, 'direct_link("c", "d")', sources=(FactOrigin("manual", commit=3),)),
        node(
            *(3, BASE, 'direct_link("a", "c")'),
            sources=(FactOrigin("source", "direct_link.facts", 2, 1),),
        ),
    ),
    rules=RULES,
)


def test_the_example_of_the_specification() -> None:
    assert (
        NETWORK.to_text()
        == """\
link("a", "d")               rule 2  network.dl:9
+- link("a", "c")            rule 1  network.dl:8
|  +- direct_link("a", "c")  direct_link.facts:2, commit 1
+- direct_link("c", "d")     by hand, commit 3
height 2, 4 tuples; no proof is lower
"""
    )


def test_only_some_levels_are_unfolded() -> None:
    lines = NETWORK.to_text(depth=1).splitlines()
    assert lines[1:3] == [
        '+- link("a", "c")         rule 1  network.dl:8, …',
        '+- direct_link("c", "d")  by hand, commit 3',
    ]
    assert NETWORK.to_text(depth=0).splitlines()[0] == 'link("a", "d")  rule 2  network.dl:9, …'


def test_what_occurs_again_is_unfolded_once() -> None:
    nodes = (
        node(0, DERIVED, "p(1)", height=2, rule=1, premises=(1, 1)),
        node(1, DERIVED, "p(2)", height=1, rule=2, premises=(2,)),
        node(2, BASE, "e(3)"),
    )
    found = replace(NETWORK, nodes=nodes)
    assert found.to_text() == (
        "p(1)     rule 1  network.dl:8\n"
        "+- p(2)  rule 2  network.dl:9\n"
        "|  +- e(3)\n"
        "+- p(2)  rule 2  network.dl:9, as above\n"
        "height 2, 3 tuples; no proof is lower\n"
    )


def test_notes_and_cuts_are_lines() -> None:
    total = AggregateValue("sum", (("x", 1, NUMBER),), 30, 12, 7, NUMBER)
    missing = Attempt(4, 1, 1, {"x": (1, NUMBER)}, (FailingLiteral("r(1)", "missing"),))
    nodes = (
        node(0, DERIVED, "p(1)", height=1, rule=1, alternative=2, notes=(1, 2, 3)),
        node(1, ABSENT, "!q(1)", attempts=(missing,)),
        node(2, ProofKind.COMPUTED, "30 > 20"),
        node(3, ProofKind.AGGREGATE, "s = 30", aggregate=total, premises=(4,)),
        node(4, BASE, "e(1, 23)", sources=(FactOrigin("text", commit="before 5"),), copies=3),
    )
    cuts = (ProofCut(CutReason.ROWS, 3, 1, 12), ProofCut(CutReason.SECONDS))
    found = replace(NETWORK, nodes=nodes, cuts=cuts, minimal=False, height=1, height_at_least=1)
    assert (
        found.to_text()
        == """\
p(1)                rule 1, alternative 2  network.dl:8
+- !q(1)            absent
|  +- rule 4 with x = 1: r(1) is missing
+- 30 > 20          computed
+- s = 30           sum of 12 rows
   +- e(1, 23) × 3  the program, before commit 5
   +- 11 more rows, together 7
height 1, 1 tuple; every proof has height 1 or more
cut: not all rows are shown at s = 30, 1 of 12 shown
cut: the time was over
"""
    )


def test_several_answers() -> None:
    others = tuple(replace(NETWORK, goal=str(number)) for number in range(9))
    text = replace(NETWORK, others=others, answers=1_234).to_text()
    assert text.count("height 2, 4 tuples") == 10
    assert text.endswith("\n\n10 of 1,234 answers\n")
    assert replace(NETWORK, answers=1).to_text() == NETWORK.to_text()


def test_what_does_not_hold() -> None:
    assert Proof("p(1)", 1, holds=False).to_text() == "p(1) does not hold\n"
    assert "<pre>p(1) does not hold" in Proof("p(1)", 1, holds=False)._repr_html_()


ABSENCE = Absence(
    'link("a", "z")',
    3,
    (
        Attempt(1, 1, 1, {}, (FailingLiteral('direct_link("a", "z")', "missing"),)),
        Attempt(
            *(2, 2, 5),
            {"y": ("c", SYMBOL)},
            (FailingLiteral("1 < 0", "condition"), FailingLiteral("!off()", "blocking", 0)),
        ),
    ),
    InsertionSets(
        ((BaseChange("+", "direct_link", ("a", "z"), (SYMBOL, SYMBOL)),),), 1, complete=True
    ),
    (
        node(0, DERIVED, "off()", height=1, rule=1, premises=(1,)),
        node(1, BASE, "down(7)", sources=(FactOrigin("manual", commit=2),)),
    ),
    RULES,
)


def test_an_absence() -> None:
    assert (
        ABSENCE.to_text()
        == """\
link("a", "z") does not hold
link(x, y) :- direct_link(x, y).              rule 1  network.dl:8
   1 attempt in which 1 literal fails
   rule 1: direct_link("a", "z") is missing
link(x, z) :- link(x, y), direct_link(y, z).  rule 2  network.dl:9
   1 of 5 attempts in which 2 literals fail
   rule 2 with y = "c": 1 < 0 is false
   and off() is there
      off()                                   rule 1  network.dl:8
      +- down(7)                              by hand, commit 2
it would hold after this set of changes (all of the smallest ones)
   +direct_link("a", "z")
"""
    )


def test_a_change_is_a_line_of_a_file_of_changes() -> None:
    tuple_ = BaseChange("-", "direct_link", ("a", "z"), (SYMBOL, SYMBOL))
    rule = BaseChange("+", "p() :- q().", (), ())
    assert tuple_.to_json() == {"op": "delete", "relation": "direct_link", "row": ["a", "z"]}
    assert rule.to_json() == {"op": "add-rule", "rule": "p() :- q()."}


def test_the_cause_of_a_change() -> None:
    insertion = BaseChange("+", "direct_link", ("a", "z"), (SYMBOL, SYMBOL))
    rule = BaseChange("-", "p(x) :- q(x).", (), ())
    found = ChangeExplanation(
        *("link(1)", 4, "+", (Cause(insertion, necessary=True), Cause(rule, necessary=False))),
        smallest=True,
        before=ABSENCE,
        after=NETWORK,
    )
    text = found.to_text()
    assert text.startswith(
        "commit 4 added link(1) because of\n"
        '   +direct_link("a", "z")  necessary\n'
        "   -p(x) :- q(x).          not necessary\n"
        "no smaller set of its changes would have done it\n\n"
        'before commit 4\nlink("a", "z") does not hold\n'
    )
    assert "\nafter commit 4\n" + NETWORK.to_text() in text
    assert found.to_svg() == NETWORK.to_svg()


# ------------------------------------------------------------------------------------ pictures


def boxes(svg: str) -> dict[str, tuple[float, float, float, float]]:
    """Return the boxes of a picture by their titles' first words."""
    found = {}
    for group in ET.fromstring(svg).iter(f"{NAMESPACE}g"):
        frame = group.find(f"{NAMESPACE}rect")
        title = group.findtext(f"{NAMESPACE}title") or ""
        if frame is not None:
            x, y, width, height = (
                float(frame.get(each, "")) for each in ("x", "y", "width", "height")
            )
            found[title.split("  ")[0]] = x, y, width, height
    return found


def test_a_row_for_each_height() -> None:
    found = boxes(NETWORK.to_svg())
    rows = {text: y for text, (_, y, _, _) in found.items()}
    assert rows['link("a", "d")'] < rows['link("a", "c")'] < rows['direct_link("a", "c")']
    assert rows['direct_link("a", "c")'] == rows['direct_link("c", "d")']


def test_boxes_do_not_overlap_and_the_picture_is_the_same_each_time() -> None:
    nodes = [node(0, DERIVED, "p(0)", height=3, rule=1, premises=tuple(range(1, 30)))]
    nodes += [
        node(each, DERIVED, f"q({each})", height=1 + each % 2, rule=2, premises=(30 + each % 7,))
        for each in range(1, 30)
    ]
    nodes += [node(each, BASE, f"edge({each})" * (each % 5)) for each in range(30, 37)]
    proof = replace(NETWORK, nodes=tuple(nodes))
    svg = proof.to_svg()
    assert svg == replace(NETWORK, nodes=tuple(nodes)).to_svg()
    rows: dict[float, list[tuple[float, float]]] = {}
    for x, y, width, _ in boxes(svg).values():
        rows.setdefault(y, []).append((x, width))
    for row in rows.values():
        for (left, width), (right, _) in pairwise(sorted(row)):
            assert left + width < right


def test_a_picture_has_no_script_and_says_everything_in_text() -> None:
    nasty = 'q("<script>alert(1)</script>\x07&")'
    proof = replace(NETWORK, nodes=(node(0, BASE, nasty * 3),), goal=nasty)
    svg = proof.to_svg()
    root = ET.fromstring(svg)
    assert "<script" not in svg
    assert "<script" not in proof._repr_html_()
    assert nasty.replace("\x07", "�") in (root.findtext(f"{NAMESPACE}desc") or "")
    (text,) = (each.text or "" for each in root.iter(f"{NAMESPACE}text"))
    assert len(text) == 32
    assert text.endswith("…")


@pytest.mark.parametrize("answer", [NETWORK, ABSENCE], ids=["proof", "absence"])
def test_html_unfolds(answer: Proof | Absence) -> None:
    html = answer._repr_html_()
    root = ET.fromstring(html)
    assert root.find(f"{NAMESPACE}svg") is not None
    if isinstance(answer, Proof):
        summaries = ["".join(each.itertext()) for each in root.iter("summary")]
        assert [each.split(" <")[0] for each in summaries] == [
            'link("a", "d") rule 2  network.dl:9',
            'link("a", "c") rule 1  network.dl:8',
        ]


def test_negation_is_dashed_aggregates_are_doubled_changes_have_a_colour() -> None:
    total = AggregateValue("sum", (), 30, 1, None, NUMBER)
    nodes = (
        node(0, DERIVED, "p(1)", height=1, rule=1, premises=(3,), notes=(1, 2)),
        node(1, ABSENT, "!q(1)"),
        node(2, ProofKind.AGGREGATE, "s = 30", aggregate=total),
        node(3, BASE, "e(1)", sign="+"),
    )
    root = ET.fromstring(replace(NETWORK, nodes=nodes).to_svg())
    frames = {
        (group.findtext(f"{NAMESPACE}title") or "").split("  ")[0]: group.findall(
            f"{NAMESPACE}rect"
        )
        for group in root.iter(f"{NAMESPACE}g")
    }
    assert frames["!q(1)"][0].get("stroke-dasharray")
    assert len(frames["s = 30"]) == 2
    assert frames["+e(1)"][0].get("stroke") == "#1a7f37"
