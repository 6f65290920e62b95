"""`explain` and `graph`, on small programs: golden texts, and pictures that are well formed."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corollary.cli.main import group
from corollary.core.logic import Origin, Variable
from corollary.core.pipeline import Pipeline, Probe, Reference
from corollary.core.plans import (
    Accumulate,
    Add,
    Call,
    CancelOut,
    Clear,
    Derive,
    Extend,
    ExtendWithRound,
    Loop,
    Plan,
    RecordTrace,
    Reduce,
    Remove,
    Role,
    Step,
    StoreRelation,
    When,
    Within,
    steps_of,
    working_relation,
)
from corollary.core.program import NormalProgram
from corollary.core.states import State
from corollary.core.statistics import Statistics
from corollary.core.types import NUMBER
from corollary.database.forecast import forecast_for_program
from corollary.database.program.loaded_program import load_program
from corollary.engines.spark import placer
from corollary.explain.dependency_graph import graph_as_dot, graph_as_svg
from corollary.explain.forecast import forecast_as_json, print_forecast
from corollary.explain.plan import plan_as_json, print_plan, print_procedures
from corollary.frontends.datalog.parser import parse
from corollary.maintain.algorithms.seminaive import plan_program
from corollary.source import SourceFile
from support.generators.programs import Case, programs
from support.selection import examples

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
stratum degree (stored): 1 rule
stratum most.aggregate1 (stored): aggregate
stratum most (stored): 1 rule

procedure degree.aggregate1
    aggregate degree.aggregate1•next = count over edge, groups by column 0
    store degree.aggregate1 = degree.aggregate1•next

procedure degree
    derive degree•next
        degree.aggregate1^ff(x, n) ⇒ (x, n)
    store degree = degree•next

procedure most.aggregate1
    aggregate most.aggregate1•next = max of column 1 over degree, groups by column none
    store most.aggregate1 = most.aggregate1•next

procedure most
    derive most•next
        most.aggregate1^f(n) ⇒ (n)
    store most = most•next
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
    derive tc^bf•asked, less tc^bf•calls
        once ⇒ (1)
    call solve tc
    derive •goal
        tc^bf•answers^bf(1, y) ⇒ (y)

procedure solve tc
    extend tc^bf•calls by tc^bf•asked
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

CHANGED = """\
base relations: edge
stratum tc (stored): recursive, pivot tc.x, 2 rules

changes: −edge (1 tuple); sizes are guessed, without facts
candidates: −edge, −tc
relevant: ±edge, ±tc

stratum tc: dred, asked for

delta pipelines
    tc(x, y) :- edge(x, y).
        rem_1: edge@removed^ff(x, y) ⇒ (x, y)
    tc(x, z) :- tc(x, y), edge(y, z).
        rem_1: tc@removed^ff(x, y) → edge@old^bf(y, z) ⇒ (x, z)
        rem_2: edge@removed^ff(y, z) → tc@old^fb(x, y) ⇒ (x, z)

procedure main
    unless empty: edge@removed
        call tc

procedure tc
    derive tc•next_over (approximated)
        edge@removed^ff(x, y) ⇒ (x, y)
        edge@removed^ff(y, z) → tc@old^fb(x, y) ⇒ (x, z)
    extend tc•over by tc•next_over
    repeat until empty: tc•over@added
        derive tc•next_over (approximated), less tc•over
            tc•over@added^ff(x, y) → edge@old^bf(y, z) ⇒ (x, z)
        extend tc•over by tc•next_over
    remove from tc: tc•over
"""
"""The start of what is said about a removal under DRed."""

PROPAGATED = """\
procedure tc rule 2.1 removed (updates)
    locals approximation, filtered, refiltered, disqualified, actual
    call forget
    derive approximation (approximated)
        updates^ff(x, y) → edge@old^bf(y, z) ⇒ (x, z)
    unless empty: approximation
        derive filtered (filtered)
            approximation^ff(_0, _1) ⇒ (_0, _1)
"""
"""The start of a procedure of EPF: its locals stand without the procedure's name."""

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
    return load_program(parse(SourceFile("explain.dl", text))).normal


def put(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def invoke(tmp_path: Path, text: str, command: str, *options: str) -> str:
    path = put(tmp_path / "program.dl", text)
    result = CliRunner().invoke(group, [command, str(path), *options])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    ("text", "expected"), [(CLOSURE, CLOSURE_PLAN), (DEGREE, DEGREE_PLAN), (ODD, ODD_PLAN)]
)
def test_plans(tmp_path: Path, text: str, expected: str) -> None:
    program = normal(text)
    assert print_plan(plan_program(program, Statistics()), program) + "\n" == expected
    assert invoke(tmp_path, text, "explain") == expected


def test_the_plan_of_a_goal(tmp_path: Path) -> None:
    assert invoke(tmp_path, CLOSURE, "explain", "--goal", "tc(1, y)") == CLOSURE_GOAL


def test_virtual_relations_and_tests_are_named() -> None:
    program = normal(LEAF)
    text = print_plan(plan_program(program, Statistics()), program)
    assert "stratum leaf (virtual)" in text
    assert "node^f(x) → !edge.some1(x) → x / 2 > 1 ⇒ (x)" in text


def test_a_plan_as_json(tmp_path: Path) -> None:
    program = normal(CLOSURE)
    document = plan_as_json(plan_program(program, Statistics()), program)
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


# ----------------------------------------------------------------------------------------- changes


def changed(tmp_path: Path, text: str, *options: str) -> str:
    return invoke(tmp_path, text, "explain", *options)


def document(tmp_path: Path, text: str, *options: str) -> Any:
    return json.loads(changed(tmp_path, text, *options, "--format", "json"))


def test_a_change_is_explained_from_the_strata_to_the_procedures(tmp_path: Path) -> None:
    said = changed(tmp_path, CLOSURE, "--removed", "edge", "--algorithm", "dred")
    assert said.startswith(CHANGED)
    assert said.endswith(
        "orders (columns as they are sorted)\n    edge: (0 1)\n    tc: (0 1), (1 0)\n"
    )


def test_procedures_have_a_parameter_and_locals(tmp_path: Path) -> None:
    said = changed(tmp_path, CLOSURE, "--removed", "edge", "--algorithm", "pf")
    assert PROPAGATED in said
    assert "call tc rule 2.1 removed (actual)" in said


def test_epf_goes_in_rounds(tmp_path: Path) -> None:
    said = changed(tmp_path, CLOSURE, "--removed", "edge", "--algorithm", "epf")
    assert "procedure tc rule" not in said
    assert "    repeat until empty: tc•removed•actual\n" in said


def test_a_choice_is_explained_with_its_cost(tmp_path: Path) -> None:
    said = changed(tmp_path, CLOSURE, "--added", "edge")
    assert "stratum tc: ranked, stored and recursive" in said
    assert re.search(
        r"\n    estimated cost: \d+ rows\n    given up for recompute beyond [\d,]+ rows\n", said
    )
    assert re.search(r"\n    within [\d,]+ rows\n", said)
    assert "rank' := rank0' + 1" in said
    assert "each with the number of the round" in said
    (choice,) = document(tmp_path, CLOSURE, "--added", "edge")["choices"]
    assert choice["relations"] == ["tc"]
    assert choice["algorithm"] == "ranked"
    assert choice["cost"] < choice["budget"]
    assert choice["self_maintainable"] is False


def test_sizes_are_measured_where_there_are_facts(tmp_path: Path) -> None:
    put(tmp_path / "edge.facts", "".join(f"{at}\t{at + 1}\n" for at in range(400)))
    text = CLOSURE + ".input edge\n"
    few = changed(tmp_path, text, "--removed", "edge", "-F", str(tmp_path))
    assert "changes: −edge (1 tuple); sizes are measured" in few
    assert "stratum tc: ranked" in few
    many = document(tmp_path, text, "--removed", "edge=300", "-F", str(tmp_path))
    assert many["guessed"] is False
    assert many["changes"] == {"edge": {"removed": 300}}
    (choice,) = many["choices"]
    assert choice["algorithm"] == "recompute"
    assert "rows" in choice["reason"]


def test_signs_flip_at_negations_and_stop_where_nobody_asks(tmp_path: Path) -> None:
    said = changed(tmp_path, LEAF, "--added", "edge", "--watch", "leaf")
    assert "candidates: +edge, +node, ±leaf, +edge.some1\n" in said
    assert "relevant: ±edge, ±node, ±leaf, ±edge.some1\n" in said
    assert "stratum leaf: epf, virtual" in said
    assert "rem_2: edge.some1@added^f(x) → x / 2 > 1 → node@old^b(x) ⇒ (x)" in said
    virtual = CLOSURE.replace(
        ".decl tc(x: number, y: number)", ".decl tc(x: number, y: number) virtual"
    )
    two = virtual + ".decl far(x: number, y: number) virtual\nfar(x, y) :- tc(x, y), !edge(x, y).\n"
    one = document(tmp_path, two, "--removed", "edge", "--watch", "tc")
    assert one["candidates"]["far"] == ["added", "removed"]
    assert "far" not in one["relevant"]
    assert [each["relations"] for each in one["choices"]] == [["tc"]]
    said = changed(tmp_path, two, "--removed", "edge", "--watch", "tc")
    assert "stratum far: none, nobody asks for its changes" in said


def test_strata_that_a_change_does_not_reach_are_named(tmp_path: Path) -> None:
    text = CLOSURE + ".decl other(x: number)\n.decl copy(x: number)\ncopy(x) :- other(x).\n"
    assert "stratum tc: none, the change does not reach it" in changed(
        tmp_path, text, "--added", "other"
    )


def test_self_maintainable_updates_are_marked(tmp_path: Path) -> None:
    text = """\
.decl r(id: number, x: number)
.decl s(x: number, y: number)
.decl v(id: number, x: number, y: number)
v(i, x, y) :- r(i, x), s(x, y).
"""
    removed = changed(tmp_path, text, "--removed", "r")
    assert "stratum v: autonomous, " in removed
    assert "    self-maintainable: no base relation is needed" in removed
    (choice,) = document(tmp_path, text, "--added", "r")["choices"]
    assert (choice["algorithm"], choice["self_maintainable"]) == ("dred", False)
    assert "no tuple has two derivations" in choice["reason"]
    virtual = text.replace("y: number)", "y: number) virtual", 1) + "s(x, y) :- r(x, y), x > y.\n"
    virtual += ".decl t(id: number, x: number)\nv(i, x, y) :- t(i, x), s(x, y).\n"
    virtual = virtual.replace("v(i, x, y) :- r(i, x), s(x, y).\n", "")
    told = changed(tmp_path, virtual, "--added", "t")
    assert "stratum v: autonomous, self-maintainable where the view has rows like the new" in told
    assert "no base relation is needed" not in told
    several = text.replace("v(id: number, x", "v(x").replace("v(i, x", "v(x")
    assert "each with the sum of the last column" in changed(tmp_path, several, "--added", "r")


def test_a_relation_with_rules_and_facts_may_change_too(tmp_path: Path) -> None:
    said = changed(tmp_path, CLOSURE + "tc(7, 8).\n", "--removed", "tc", "--algorithm", "epf")
    assert "changes: −tc (1 tuple)" in said
    assert "candidates: −tc, −tc.base" in said


def test_a_change_in_json_has_the_plan_too(tmp_path: Path) -> None:
    said = document(
        tmp_path, CLOSURE, "--added", "edge=3", "--removed", "edge", "--relation", "tc=pf"
    )
    assert said["changes"] == {"edge": {"added": 3, "removed": 1}}
    assert said["guessed"] is True
    assert said["candidates"] == said["relevant"]
    assert said["relevant"] == {"edge": ["added", "removed"], "tc": ["added", "removed"]}
    assert {each["name"] for each in said["deltas"]} == {"add_1", "add_2", "rem_1", "rem_2"}
    assert said["choices"][0]["algorithm"] == "pf"
    assert {"base", "strata", "procedures", "orders"} <= set(said)
    assert "tc rule 2.1 removed" in said["procedures"]


@pytest.mark.parametrize(
    ("options", "code", "fragment"),
    [
        (["--added", "egde"], 1, "did you mean `edge`"),
        (["--added", "tc"], 1, "C0915"),
        (["--added", "edge", "--algorithm", "counting"], 1, "C0820"),
        (["--added", "edge", "--relation", "edge=epf"], 1, "C0917"),
        (["--added", "edge", "--watch", "nothing"], 1, "C0916"),
        (["--added", "edge=none"], 2, "--added"),
        (["--added", "edge=0"], 2, "edge=100"),
        (["--added", "edge", "--goal", "tc(1, y)"], 2, "--goal"),
        (["--added", "edge", "--relation", "tc"], 2, "--relation"),
        (["--added", "edge", "--algorithm", "magic"], 2, "--algorithm"),
        (["--added", "edge", "-F", "nowhere"], 1, "nowhere/edge.facts"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else None,
)
def test_changes_that_cannot_be_explained(
    tmp_path: Path, options: list[str], code: int, fragment: str
) -> None:
    path = put(tmp_path / "program.dl", CLOSURE + ".input edge\n")
    result = CliRunner().invoke(group, ["explain", str(path), *options])
    assert result.exit_code == code, result.output
    assert fragment in result.output


def test_every_step_is_printed() -> None:
    kept = Reference("p", State.OLD)
    local = Reference(working_relation("f", "actual"))
    probe = Probe(local, (Variable("x", NUMBER),), ())
    head = (Variable("x", NUMBER),)
    derive = Derive(
        local.relation, (Pipeline((probe,), head, Origin("")),), (kept,), Reduce.MIN, Role.MEMO_HITS
    )
    steps: tuple[Step, ...] = (
        derive,
        Extend("p•all", "p•new"),
        ExtendWithRound("p•ranked", "p•new"),
        Clear(("p•new", "p•all")),
        Clear(()),
        StoreRelation("p", "p•new"),
        Remove("p", local.relation),
        Add("p", "p•new"),
        CancelOut("p"),
        Accumulate("p", "p•new", 1, (Add("p", "p•new"),)),
        Accumulate("p", "p•new", 2, ()),
        When((local, kept), (Loop((Call("f", local.relation),), (local,)),)),
        Within(1000, (Call("g"),), None),
        Within(1000, (Call("g"),), (Clear(("p•new",)),)),
        RecordTrace("r", (), (local,), (), (Reference("p", State.REMOVED),)),
    )
    plan = Plan({"f": steps}, {}, locals={"f": (working_relation("f", "updates"), local.relation)})
    assert print_procedures(plan) == [
        "",
        "procedure f (updates)",
        "    locals actual",
        "    derive actual (memo hits), each with the least last column, less p@old",
        "        actual^f(x) ⇒ (x)",
        "    extend p•all by p•new",
        "    extend p•ranked by p•new, each with the number of the round",
        "    clear p•new, p•all",
        "    clear nothing",
        "    store p = p•new",
        "    remove from p: actual",
        "    add to p: p•new",
        "    cancel p: tuples both added and removed",
        "    accumulate p: add the last column of p•new, key by key",
        "    accumulate p: add the last 2 columns of p•new, key by key",
        "    unless empty: actual, p@old",
        "        repeat until empty: actual",
        "            call f (actual)",
        "    within 1,000 rows",
        "        call g",
        "    otherwise fail",
        "    within 1,000 rows",
        "        call g",
        "    otherwise",
        "        clear p•new",
        "    record updates none | approximation actual | disqualified none | actual p@removed",
    ]


@pytest.mark.slow
@settings(max_examples=examples(8, 25), suppress_health_check=list(HealthCheck))
@given(programs(), st.sampled_from(["auto", "recompute", "dred", "pf", "epf", "ranked"]))
def test_changes_of_random_programs_are_explained(case: Case, algorithm: str) -> None:
    program = normal(case.text)
    changes = {
        name: {State.ADDED: 1, State.REMOVED: 2}
        for name, each in program.relations.items()
        if not each.is_derived and each.is_declared
    }
    forecast = forecast_for_program(program, changes, algorithm)
    text = print_forecast(forecast)
    json.dumps(forecast_as_json(forecast))
    for decision in forecast.strata:
        assert f"stratum {', '.join(decision.relations)}: {decision.algorithm}, " in text
    for delta in forecast.deltas:
        lead = delta.pipeline.stages[0]
        assert isinstance(lead, Probe)
        assert lead.source.state in (State.ADDED, State.REMOVED)


@pytest.mark.parametrize(
    ("text", "expected"), [(CLOSURE, CLOSURE_DOT), (LEAF, LEAF_DOT), (ODD, ODD_DOT)]
)
def test_dot(tmp_path: Path, text: str, expected: str) -> None:
    assert graph_as_dot(normal(text)) + "\n" == expected
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
    assert sorted(boxes(graph_as_svg(program))) == sorted(program.relations)
    invoke(tmp_path, text, "graph", "--to", "svg", "-o", str(tmp_path / "picture.svg"))
    written = (tmp_path / "picture.svg").read_text(encoding="utf-8")
    assert written == graph_as_svg(program) + "\n"


def test_names_are_escaped() -> None:
    program = normal('.decl `a<b & "c"`(x: number)\n.decl q(x: number)\nq(x) :- `a<b & "c"`(x).\n')
    assert sorted(boxes(graph_as_svg(program))) == ['a<b & "c"', "q"]
    assert '"a<b & \\"c\\"" -> "q" [style=solid];' in graph_as_dot(program)


@settings(max_examples=examples(8, 25), suppress_health_check=list(HealthCheck))
@given(programs())
def test_random_programs_are_explained_and_drawn(case: Case) -> None:
    program = normal(case.text)
    assert sorted(boxes(graph_as_svg(program))) == sorted(program.relations)
    assert graph_as_dot(program).count("[shape=") == len(program.relations)
    plan = plan_program(program, Statistics())
    text = print_plan(plan, program)
    for step in steps_of(plan):
        if isinstance(step, Derive):
            assert f"derive {step.target}" in text
    json.dumps(plan_as_json(plan, program))


def test_placements_are_told(tmp_path: Path) -> None:
    said = changed(tmp_path, CLOSURE, "--removed", "edge", "--placement", "partitions")
    assert "    placed in tasks: partitioned, in one Spark job" in said.splitlines()
    assert "(tasks, partitioned: " in said
    for placement, run in (("partitions", "tasks"), ("driver", "driver")):
        found = document(tmp_path, CLOSURE, "--removed", "edge", "--placement", placement)
        assert [each["placement"] for each in found["choices"]] == [run]
    assert "placed in" not in changed(tmp_path, CLOSURE, "--removed", "edge")


def test_a_stratum_that_reads_more_than_a_worker_holds_has_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placer, "WORKER_MEMORY", -1)
    said = changed(tmp_path, CLOSURE, "--removed", "edge", "--placement", "partitions")
    assert "placed in rounds: what it reads does not fit into a worker" in said


TWO_VIEWS = """
.decl edge(x: number, y: number)
.decl near(x: number, y: number) virtual
.decl far(x: number, y: number) virtual
near(x, y) :- edge(x, y), x < y.
far(x, z) :- edge(x, y), edge(y, z).
"""


@pytest.mark.parametrize(
    ("directives", "relevant"),
    [("", {"edge", "near", "far"}), (".output far", {"edge", "far"}), (".output edge", set())],
)
@pytest.mark.parametrize("options", [[], ["-F", "."]])
def test_what_the_program_asks_for_is_watched(
    tmp_path: Path, directives: str, relevant: set[str], options: list[str]
) -> None:
    found = document(tmp_path, TWO_VIEWS + directives, "--added", "edge", *options)
    assert found["relevant"].keys() == relevant
