"""`explain` and `graph`, on small programs: golden texts, and pictures that are well formed."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings

from corollary.cli.main import group
from corollary.core.plan import Derive, steps_of
from corollary.core.program import NormalProgram
from corollary.core.statistics import Statistics
from corollary.database.program import load
from corollary.explain.graph import to_dot, to_svg
from corollary.explain.plan import plan_as_json, print_plan
from corollary.frontends.datalog.parse import parse
from corollary.maintain.seminaive import evaluate
from corollary.source import SourceFile
from programs import Case, programs

SVG = "{http://www.w3.org/2000/svg}"

CLOSURE = """\
.decl edge(x: number, y: number)
.decl tc(x: number, y: number)
tc(x, y) :- edge(x, y).
tc(x, z) :- tc(x, y), edge(y, z).
"""

LEAF = """\
.decl edge(x: number, y: number)
.decl node(x: number)
.decl leaf(x: number) virtual
node(x) :- edge(x, _) ; edge(_, x).
leaf(x) :- node(x), !edge(x, _), x / 2 > 1.
"""

DEGREE = """\
.decl edge(x: number, y: number)
.decl degree(x: number, n: number)
.decl most(n: number)
degree(x, n) :- edge(x, _), n = count : { edge(x, _) }.
most(n) :- n = max d : { degree(_, d) }.
"""

ODD = """\
.decl edge(x: number, y: number)
.decl odd(x: number, y: number)
.decl even(x: number, y: number)
odd(x, y) :- edge(x, y).
odd(x, z) :- even(x, y), edge(y, z).
even(x, z) :- odd(x, y), odd(y, z).
"""

CLOSURE_PLAN = """\
base relations: edge
stratum tc (stored): recursive, pivot tc.x, 2 rules

procedure tc
    derive tc•next
        edge^ff(x, y) ⇒ (x, y)
    extend tc•so_far by tc•next
    repeat until empty: tc•so_far@added
        derive tc•next, less tc•so_far
            tc•so_far@added^ff(x, y) → edge^bf(y, z) ⇒ (x, z)
        extend tc•so_far by tc•next
    store tc = tc•so_far

orders (columns as they are sorted)
    edge: (0 1)
"""

DEGREE_PLAN = """\
base relations: edge
stratum degree.aggregate1 (stored): aggregate
stratum degree.aggregate1.some1 (stored): 1 rule
stratum degree (stored): 2 rules
stratum most.aggregate1 (stored): aggregate
stratum most (stored): 1 rule

procedure degree.aggregate1
    aggregate degree.aggregate1•next = count over edge, groups by column 0
    store degree.aggregate1 = degree.aggregate1•next

procedure degree.aggregate1.some1
    derive degree.aggregate1.some1•next
        degree.aggregate1^ff(x, _) ⇒ (x)
    store degree.aggregate1.some1 = degree.aggregate1.some1•next

procedure degree
    derive degree•next
        edge^ff(x, _) → degree.aggregate1^bf(x, n) ⇒ (x, n)
        n := 0 → edge^ff(x, _) → !degree.aggregate1.some1(x) ⇒ (x, n)
    store degree = degree•next

procedure most.aggregate1
    aggregate most.aggregate1•next = max of column 1 over degree, groups by column none
    store most.aggregate1 = most.aggregate1•next

procedure most
    derive most•next
        most.aggregate1^f(n) ⇒ (n)
    store most = most•next

orders (columns as they are sorted)
    degree.aggregate1: (0 1)
"""

ODD_PLAN = """\
base relations: edge
stratum odd (stored), even (stored): recursive, no pivot, 3 rules

procedure odd even
    derive odd•next
        edge^ff(x, y) ⇒ (x, y)
    derive even•next
    extend odd•so_far by odd•next
    extend even•so_far by even•next
    repeat until empty: odd•so_far@added, even•so_far@added
        derive odd•next, less odd•so_far
            even•so_far@added^ff(x, y) → edge^bf(y, z) ⇒ (x, z)
        derive even•next, less even•so_far
            odd•so_far@added^ff(x, y) → odd•so_far@old^bf(y, z) ⇒ (x, z)
            odd•so_far@added^ff(y, z) → odd•so_far^fb(x, y) ⇒ (x, z)
        extend odd•so_far by odd•next
        extend even•so_far by even•next
    store odd = odd•so_far
    store even = even•so_far

orders (columns as they are sorted)
    edge: (0 1)
    odd•so_far: (0 1), (1 0)
"""

CLOSURE_GOAL = """\
base relations: edge
stratum tc (stored): recursive, pivot tc.x, 2 rules

procedure main
    derive tc^bf•asked
        once ⇒ (1)
    extend tc^bf•calls by tc^bf•asked
    call solve tc
    derive •goal
        tc^bf•answers^bf(1, y) ⇒ (y)

procedure solve tc
    repeat until empty: tc^bf•calls@added, tc^bf•answers@added
        derive tc^bf•asked, less tc^bf•calls
            tc^bf•calls@added^f(x) ⇒ (x)
        derive tc^bf•found, less tc^bf•answers
            tc^bf•calls@added^f(x) → edge^bf(x, y) ⇒ (x, y)
            tc^bf•calls@added^f(x) → tc^bf•answers@old^bf(x, y) → edge^bf(y, z) ⇒ (x, z)
            tc^bf•answers@added^ff(x, y) → tc^bf•calls^b(x) → edge^bf(y, z) ⇒ (x, z)
        extend tc^bf•calls by tc^bf•asked
        extend tc^bf•answers by tc^bf•found

orders (columns as they are sorted)
    edge: (0 1)
    tc^bf•answers: (0 1)
    tc^bf•calls: (0)
"""

CLOSURE_DOT = """\
digraph corollary {
  rankdir=BT;
  node [fontname="sans-serif"];
  subgraph cluster_0 { style=rounded; color=gray;
    "tc" [shape=ellipse];
  }
  "edge" [shape=box];
  "edge" -> "tc" [style=solid];
  "tc" -> "tc" [style=solid];
}
"""

LEAF_DOT = """\
digraph corollary {
  rankdir=BT;
  node [fontname="sans-serif"];
  "edge" [shape=box];
  "node" [shape=ellipse];
  "leaf" [shape=ellipse];
  "edge.some1" [shape=ellipse];
  "edge" -> "node" [style=solid];
  "node" -> "leaf" [style=solid];
  "edge.some1" -> "leaf" [style=dashed];
  "edge" -> "edge.some1" [style=solid];
}
"""

ODD_DOT = """\
digraph corollary {
  rankdir=BT;
  node [fontname="sans-serif"];
  subgraph cluster_0 { style=rounded; color=gray;
    "odd" [shape=ellipse];
    "even" [shape=ellipse];
  }
  "edge" [shape=box];
  "edge" -> "odd" [style=solid];
  "even" -> "odd" [style=solid];
  "odd" -> "even" [style=solid];
}
"""


def normal(text: str) -> NormalProgram:
    return load(parse(SourceFile("explain.dl", text))).normal


def invoke(tmp_path: Path, text: str, command: str, *options: str) -> str:
    path = tmp_path / "program.dl"
    path.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(group, [command, str(path), *options])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    ("text", "expected"), [(CLOSURE, CLOSURE_PLAN), (DEGREE, DEGREE_PLAN), (ODD, ODD_PLAN)]
)
def test_plans(tmp_path: Path, text: str, expected: str) -> None:
    program = normal(text)
    assert print_plan(evaluate(program, Statistics()), program) + "\n" == expected
    assert invoke(tmp_path, text, "explain") == expected


def test_the_plan_of_a_goal(tmp_path: Path) -> None:
    assert invoke(tmp_path, CLOSURE, "explain", "--goal", "tc(1, y)") == CLOSURE_GOAL


def test_virtual_relations_and_tests_are_named() -> None:
    program = normal(LEAF)
    text = print_plan(evaluate(program, Statistics()), program)
    assert "stratum leaf (virtual)" in text
    assert "node^f(x) → !edge.some1(x) → x / 2 > 1 ⇒ (x)" in text


def test_a_plan_as_json(tmp_path: Path) -> None:
    program = normal(CLOSURE)
    document = plan_as_json(evaluate(program, Statistics()), program)
    assert document["base"] == ["edge"]
    assert document["orders"] == {"edge": [[0, 1]]}
    assert document["strata"] == [
        {
            "relations": ["tc"],
            "stored": ["tc"],
            "recursive": True,
            "pivot": {"tc": 0},
            "aggregate": False,
        }
    ]
    assert json.loads(invoke(tmp_path, CLOSURE, "explain", "--format", "json")) == json.loads(
        json.dumps(document)
    )


@pytest.mark.parametrize(
    ("text", "expected"), [(CLOSURE, CLOSURE_DOT), (LEAF, LEAF_DOT), (ODD, ODD_DOT)]
)
def test_dot(tmp_path: Path, text: str, expected: str) -> None:
    assert to_dot(normal(text)) + "\n" == expected
    assert invoke(tmp_path, text, "graph", "--to", "dot") == expected


def boxes(svg: str) -> list[str]:
    """The names in the boxes of a picture; every box has a rectangle before its text."""
    root = ET.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    rectangles = [each for each in root.iter(f"{SVG}rect") if each.get("stroke")]
    names = [each.text or "" for each in root.iter(f"{SVG}text")]
    assert len(rectangles) == len(names)
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    for each in rectangles:
        x, y, w, h = (float(each.get(key, "nan")) for key in ("x", "y", "width", "height"))
        assert 0 <= x <= x + w <= width + 1
        assert 0 <= y <= y + h <= height + 1
    return names


@pytest.mark.parametrize("text", [CLOSURE, LEAF, DEGREE, ODD, ".decl p(x: number)\n", ""])
def test_a_picture_has_one_box_per_relation(tmp_path: Path, text: str) -> None:
    program = normal(text)
    assert sorted(boxes(to_svg(program))) == sorted(program.relations)
    invoke(tmp_path, text, "graph", "--to", "svg", "-o", str(tmp_path / "picture.svg"))
    written = (tmp_path / "picture.svg").read_text(encoding="utf-8")
    assert written == to_svg(program) + "\n"


def test_names_are_escaped() -> None:
    program = normal('.decl `a<b & "c"`(x: number)\n.decl q(x: number)\nq(x) :- `a<b & "c"`(x).\n')
    assert sorted(boxes(to_svg(program))) == ['a<b & "c"', "q"]
    assert '"a<b & \\"c\\"" -> "q" [style=solid];' in to_dot(program)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(programs())
def test_random_programs_are_explained_and_drawn(case: Case) -> None:
    program = normal(case.text)
    assert sorted(boxes(to_svg(program))) == sorted(program.relations)
    assert to_dot(program).count("[shape=") == len(program.relations)
    plan = evaluate(program, Statistics())
    text = print_plan(plan, program)
    for step in steps_of(plan):
        if isinstance(step, Derive):
            assert f"derive {step.target}" in text
    json.dumps(plan_as_json(plan, program))
