"""Sideways information passing: what is bound comes first, tests as soon as they can stand."""

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.core.logic import Origin, Rule, head_arguments
from corollary.core.pipeline import AntiProbe, Compute, Filter, Pipeline, Probe, Reference
from corollary.core.plans import WORKING_SEPARATOR
from corollary.core.program import NormalProgram
from corollary.core.statistics import Statistics
from corollary.database.program.goals import read_goal
from corollary.database.program.loaded_program import load_program
from corollary.frontends.datalog.parser import parse
from corollary.maintain.goal_evaluation import solve
from corollary.maintain.sip import Goal, sip
from corollary.source import SourceFile
from support.maintained_database import SAME_GENERATION
from support.selection import examples

DECLARATIONS = """
.decl a(x: number, y: number)
.decl b(x: number, y: number)
.decl c(x: number, y: number, z: number)
.decl n(x: number)
.decl h(x: number)
"""


def normal(text: str) -> NormalProgram:
    return load_program(parse(SourceFile("sip.dl", text))).normal


def rule_of(body: str, head: str = "h(x)") -> Rule:
    return normal(f"{DECLARATIONS}{head} :- {body}.").rules[0]


def planned(body: str, statistics: Statistics | None = None, lead: int | None = None) -> Pipeline:
    rule = rule_of(body)
    goals = [Goal(each, Reference(each.relation)) for each in rule.literals]
    first = None if lead is None else goals[lead]
    statistics = statistics or Statistics()
    return sip(head_arguments(rule), goals, rule.conditions, Origin(body), statistics, lead=first)


def shape(pipeline: Pipeline) -> list[str]:
    """The stages, short: `a^bf`, `!n`, `x:=`, `<`."""
    found = []
    for stage in pipeline.stages:
        match stage:
            case Probe(source=source, slots=slots, bound=bound):
                pattern = "".join("b" if at in bound else "f" for at in range(len(slots)))
                found.append(f"{source.relation}^{pattern}")
            case AntiProbe(source=source):
                found.append(f"!{source.relation}")
            case Compute(variable=variable):
                found.append(f"{variable.name}:=")
            case Filter(condition=condition):
                found.append(condition.operator)
    return found


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("a(x, y), b(y, z), n(z)", "n^f b^fb a^fb", id="the smallest first"),
        pytest.param("a(x, y), b(x, y)", "a^ff b^bb", id="fully bound"),
        pytest.param("a(x, y), c(x, y, z), b(x, w)", "a^ff c^bbf b^bf", id="more bound columns"),
        pytest.param("a(x, y), c(y, z, w), b(y, u)", "a^ff b^bf c^bff", id="fan-out"),
        pytest.param("a(x, y), b(1, y)", "b^bf a^fb", id="constants bind"),
        pytest.param("a(x, y), !n(x), y < 3", "a^ff < !n", id="tests before probes"),
        pytest.param("a(x, y), b(y, z), x < 3, z < 3", "a^ff < b^bf <", id="tests when bound"),
        pytest.param("a(x, y), z = x + 1, b(z, w)", "a^ff z:= b^bf", id="computed, then bound"),
        pytest.param("a(x, y), z = x + 1, !n(z)", "a^ff z:= !n", id="computed, then absent"),
        pytest.param("x = 3, a(x, y)", "x:= a^bf", id="a constant first"),
        pytest.param("x = range(0, 9), a(x, y)", "x:= a^bf", id="a range first"),
        pytest.param("a(x, y), y = z, b(z, w)", "a^ff z:= b^bf", id="another name"),
        pytest.param("a(x, x)", "a^ff", id="repeated"),
        pytest.param("a(x, y), y = range(0, x)", "a^ff y':= =", id="a range as a test"),
        pytest.param("a(x, y), x / y > 1, y != 0, !n(y)", "a^ff != !n >", id="safest first"),
    ],
)
def test_order(body: str, expected: str) -> None:
    statistics = Statistics({"a": 1000, "b": 2000, "c": 4000, "n": 5})
    if "n(z)" not in body:
        statistics = Statistics({"a": 1000, "b": 1000, "c": 9_000_000, "n": 5})
    assert " ".join(shape(planned(body, statistics))) == expected


def test_the_lead_comes_first() -> None:
    assert shape(planned("a(x, y), b(y, z), n(z)", lead=0)) == ["a^ff", "b^bf", "n^b"]
    assert shape(planned("a(x, y), b(y, z), n(z)", lead=2)) == ["n^f", "b^fb", "a^fb"]
    assert planned("a(x, y), b(y, z)", lead=1).adornments == ("ff", "fb")


@pytest.mark.parametrize("literals", list(permutations(("a(x, y)", "y != 0", "x / y > 1"))))
def test_the_judge_has_doubtful_expressions_last(literals: tuple[str, ...]) -> None:
    pipeline = planned(", ".join((*literals, "z = x * 2", "b(z, w)", "!n(w)")))
    kinds = [isinstance(stage, Probe) for stage in pipeline.judge]
    last = max(at for at, is_probe in enumerate(kinds) if is_probe)
    assert kinds.count(True) == 2
    for stage in pipeline.judge[:last]:
        assert isinstance(stage, Probe) or "!=" in str(stage)
    assert len(pipeline.judge) == len(pipeline.stages)


def test_rules_without_fallible_expressions_need_no_judge() -> None:
    assert planned('a(x, y), x < y, z = cat("a", "b"), !n(y)').judge == ()
    assert planned("a(x, y), z = x + y").judge != ()
    assert planned('a(x, y), match("(", to_string(x))').judge != ()


def every_name(bound: str, sizes: Statistics | None = None) -> set[str]:
    loaded = load_program(parse(SourceFile("sg.dl", SAME_GENERATION)))
    goal = read_goal(loaded, f"sg({bound})")
    plan = solve(loaded.normal, goal.literal, sizes or Statistics())
    return {name.split(WORKING_SEPARATOR)[0] for name in plan.types if "^" in name}


def test_same_generation_never_asks_for_everything() -> None:
    assert every_name('"a", y') == {"sg^bf"}
    assert every_name('x, "a"') == {"sg^fb"}
    assert every_name('"a", "b"') == {"sg^bb", "sg^bf"}
    assert "sg^ff" in every_name("x, y")


@settings(max_examples=examples(25, 60))
@given(
    st.fixed_dictionaries(
        {name: st.integers(0, 10**6) for name in ("up", "flat", "down", "sg")}
    ),
    st.sampled_from(('"a", y', 'x, "a"', '"a", "b"')),
)  # fmt: skip
def test_statistics_never_lead_to_everything(rows: dict[str, int], bound: str) -> None:
    assert "sg^ff" not in every_name(bound, Statistics(rows))


@settings(max_examples=examples(25, 60))
@given(
    st.permutations(["a(x, y)", "b(y, z)", "c(z, w, v)", "n(v)", "!n(w)", "x < v", "u = x + z"]),
    st.fixed_dictionaries({name: st.integers(0, 10**6) for name in "abcn"}),
)
def test_every_literal_has_a_place_and_is_bound_there(
    literals: list[str], rows: dict[str, int]
) -> None:
    pipeline = planned(", ".join(literals), Statistics(rows))
    assert len(pipeline.stages) == len(literals)
    assert sum(pattern == "f" * len(pattern) for pattern in pipeline.adornments) == 1
    stages = shape(pipeline)
    inner = next(each for each in stages if each.startswith("c^"))
    assert stages.index("!n") > stages.index(inner)
