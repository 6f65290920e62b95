"""A pivot: the column that a recursion hands on unchanged."""

import pytest

from corollary.analysis.pivots import pivots
from corollary.analysis.strata import strata
from corollary.database.program.loaded_program import load_program
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile
from support.comparison import package_result

DECLARATIONS = """
.decl edge(x: number, y: number)
.decl flat(x: number, y: number)
.decl p(x: number, y: number)
.decl q(x: number, y: number)
p(x, y) :- edge(x, y).
q(x, y) :- edge(y, x).
"""


def pivot_of(rules: str, relation: str = "p") -> dict[str, int] | None:
    program = load_program(parse(SourceFile("pivots.dl", DECLARATIONS + rules))).normal
    (stratum,) = (each for each in strata(program) if relation in each.relations)
    return pivots(stratum)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        pytest.param("p(x, z) :- p(x, y), edge(y, z).", {"p": 0}, id="left-linear"),
        pytest.param("p(x, z) :- edge(x, y), p(y, z).", {"p": 1}, id="right-linear"),
        pytest.param("p(x, z) :- p(x, y), p(y, z).", None, id="non-linear"),
        pytest.param(
            "p(x, y) :- edge(x, u), p(u, v), edge(y, v).", None, id="same generation"
        ),
        pytest.param("p(y, x) :- p(x, y).", None, id="turned around"),
        pytest.param("p(x, z) :- p(x, y), p(x, z), edge(y, z).", {"p": 0}, id="two with one pivot"),
        pytest.param("p(x, 1) :- p(x, y), edge(y, _).", {"p": 0}, id="constant elsewhere"),
        pytest.param("p(1, y) :- p(_, y).", {"p": 1}, id="constant in the first column"),
        pytest.param("p(1, y) :- p(1, x), edge(x, y).", None, id="constants are no pivot"),
        pytest.param("p(x + 1, y) :- p(x, y), x < 9.", {"p": 1}, id="computed"),
        pytest.param("p(x, z) :- p(x, y), edge(y, z). p(x, z) :- edge(x, y), p(y, z).", None,
                     id="left and right"),
        pytest.param("p(x, x) :- edge(x, _).", None, id="not recursive"),
    ],
)  # fmt: skip
def test_one_relation(rules: str, expected: dict[str, int] | None) -> None:
    assert pivot_of(rules) == expected


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        pytest.param(
            "p(x, z) :- q(x, y), edge(y, z). q(x, z) :- p(x, y), edge(y, z).",
            {"p": 0, "q": 0},
            id="both hand on the first column",
        ),
        pytest.param(
            "p(x, z) :- q(y, x), edge(y, z). q(z, x) :- p(x, y), edge(y, z).",
            {"p": 0, "q": 1},
            id="different columns",
        ),
        pytest.param(
            "p(x, z) :- q(x, y), edge(y, z). q(x, z) :- edge(x, y), p(y, z).",
            None,
            id="one left, one right",
        ),
        pytest.param(
            "p(x, z) :- q(x, y), p(x, z), edge(y, z). q(x, z) :- p(x, y), q(x, z), flat(y, z).",
            {"p": 0, "q": 0},
            id="non-linear with a common column",
        ),
    ],
)
def test_mutual_recursion(rules: str, expected: dict[str, int] | None) -> None:
    assert pivot_of(rules) == expected


def test_equivalences_have_their_first_column() -> None:
    rules = ".decl e(x: number, y: number) eqrel\ne(x, y) :- edge(x, y).\n"
    assert pivot_of(rules, "e") == {"e": 0}


def test_every_recursive_rule_counts() -> None:
    """The rules that read no tuple of the stratum may put anything into the pivot column."""
    rules = "p(y, x) :- flat(x, y). p(7, x) :- flat(x, _). p(x, z) :- p(x, y), edge(y, z)."
    assert pivot_of(rules) == {"p": 0}


def test_nothing_crosses_partitions() -> None:
    """Evaluating the facts of one pivot value alone gives the tuples with that value."""
    text = DECLARATIONS.replace("p(x, y) :- edge(x, y).", "p(x, y) :- flat(x, y).")
    text += "p(x, z) :- p(x, y), edge(y, z)."
    edges = [(1, 2), (2, 3), (3, 1), (3, 4)]
    flat = [(1, 1), (2, 3), (2, 1), (4, 4)]
    whole = package_result(text, {"edge": edges, "flat": flat})
    parts = [
        package_result(text, {"edge": edges, "flat": [row for row in flat if row[0] == start]})
        for start in (1, 2, 3, 4)
    ]
    assert isinstance(whole, dict)
    assert sorted(row for part in parts for row in part["p"]) == whole["p"]  # type: ignore[index]
