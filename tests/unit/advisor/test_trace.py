"""The trace: every phase and tree of the cases, and drawings that are well formed."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import pytest

from corollary.advisor.model.scheme import Options, ViewNaming
from corollary.advisor.render.trace import TreeNode, trace, trace_as_svg, trace_as_text
from support.cases.advisor import CASES, advice_for, program_of

PAPER = Options(naming=ViewNaming(uses_initials=True))
ALL = Options(selection="minimal", partial_clusters=True)


def stored(node: TreeNode) -> int:
    return node.is_stored + sum(map(stored, node.children))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_every_case_has_its_trees(case: dict[str, Any]) -> None:
    for options in (PAPER, ALL):
        advice = advice_for(program_of(case), case["queries"], options)
        found = {each.predicate: each for each in trace(advice)}
        for name, each in advice.queries.items():
            shown = sum(map(stored, found[name].trees))
            assert shown >= len(each.decision.stored), name
            roots = sum(len(folded.roots()) for folded in each.decision.clauses)
            assert len(found[name].trees) == roots
        drawing = ET.fromstring(trace_as_svg(advice))
        texts = {each.text for each in drawing.iter("{http://www.w3.org/2000/svg}text")}
        lines = [line.strip() for line in trace_as_text(advice)]
        assert any("processing time" in (text or "") for text in texts)
        assert lines[0].startswith("trace of ")


def test_views_of_the_paper_are_stored_under_its_names() -> None:
    (case,) = (each for each in CASES if each["name"] == "02_extended")
    advice = advice_for(program_of(case), case["queries"], PAPER)
    assert sorted(advice.views) == ["pw", "st"]
    assert not any(view.is_virtual for view in advice.views.values())
    titles = [phase.title for each in trace(advice) for phase in each.phases]
    steps = [title.partition("step ")[2][:1] for title in titles if "step " in title]
    assert steps == ["2", "3", "4", "1", "1"]  # as the paper prints them
