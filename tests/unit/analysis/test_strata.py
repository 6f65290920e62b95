"""Strata: in an order in which each comes after what it reads, with polarity and recursion."""

import pytest
from hypothesis import HealthCheck, given, settings

from corollary.analysis.strata import Polarity, dependency_polarities, strata
from corollary.core.program import NormalProgram
from corollary.database.program.loaded_program import load_program
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile
from support.generators.programs import Case, programs
from support.selection import examples

POSITIVE, NEGATIVE, AGGREGATE = Polarity.POSITIVE, Polarity.NEGATIVE, Polarity.AGGREGATE


def normal(text: str) -> NormalProgram:
    return load_program(parse(SourceFile("strata.dl", text))).normal


def layers(text: str) -> list[tuple[tuple[str, ...], bool]]:
    return [(tuple(sorted(each.relations)), each.is_recursive) for each in strata(normal(text))]


EDGE = ".decl edge(x: number, y: number)\n"


def test_a_closure_is_one_recursive_stratum() -> None:
    text = f"""{EDGE}
    .decl tc(x: number, y: number)
    .decl ends(x: number)
    ends(y) :- tc(1, y).
    tc(x, y) :- edge(x, y).
    tc(x, z) :- tc(x, y), edge(y, z).
    """
    assert layers(text) == [(("tc",), True), (("ends",), False)]


def test_mutual_recursion_shares_a_stratum() -> None:
    text = f"""{EDGE}
    .decl odd(x: number, y: number)
    .decl even(x: number, y: number)
    odd(x, y) :- edge(x, y).
    odd(x, z) :- even(x, y), edge(y, z).
    even(x, z) :- odd(x, y), edge(y, z).
    """
    (stratum,) = strata(normal(text))
    assert sorted(stratum.relations) == ["even", "odd"]
    assert stratum.is_recursive
    assert len(stratum.rules) == 3
    assert stratum.aggregations == ()


def test_a_relation_may_be_recursive_in_itself_only() -> None:
    text = f"""{EDGE}
    .decl p(x: number)
    .decl q(x: number)
    p(x) :- edge(x, _).
    q(x) :- p(x), edge(x, _).
    q(y) :- q(x), p(y), edge(x, y).
    """
    assert layers(text) == [(("p",), False), (("q",), True)]


def test_polarities() -> None:
    text = f"""{EDGE}
    .decl node(x: number)
    .decl leaf(x: number)
    .decl both(x: number)
    .decl degree(x: number, n: number)
    node(x) :- edge(x, _) ; edge(_, x).
    leaf(x) :- node(x), !edge(x, _).
    both(x) :- edge(x, y), !edge(y, x).
    degree(x, n) :- node(x), n = count : {{ edge(x, _) }}.
    """
    found = dependency_polarities(normal(text))
    assert found["edge"] == {}
    assert found["node"] == {"edge": {POSITIVE}}
    assert found["leaf"] == {"node": {POSITIVE}, "edge.some1": {NEGATIVE}}
    assert found["edge.some1"] == {"edge": {POSITIVE}}
    assert found["both"] == {"edge": {POSITIVE, NEGATIVE}}
    assert found["degree.aggregate1"] == {"edge": {AGGREGATE}}
    assert found["degree"]["degree.aggregate1"] == {POSITIVE}
    assert found["degree"]["degree.aggregate1.some1"] == {NEGATIVE}


def test_aggregations_stand_in_their_stratum() -> None:
    text = f"""{EDGE}
    .decl most(n: number)
    most(n) :- n = max y : {{ edge(_, y) }}.
    """
    first, second = strata(normal(text))
    assert first.relations == ("most.aggregate1",)
    assert [each.only.operator for each in first.aggregations] == ["max"]
    assert first.rules == ()
    assert not first.is_recursive
    assert second.relations == ("most",)


def test_facts_beside_rules_are_a_base_part() -> None:
    text = ".decl n(x: number)\nn(0).\nn(x + 1) :- n(x), x < 3.\n"
    program = normal(text)
    assert [each.relations for each in strata(program)] == [("n",)]
    assert not program.relations["n.base"].is_derived
    assert dependency_polarities(program)["n"] == {"n": {POSITIVE}, "n.base": {POSITIVE}}


@pytest.mark.slow
def test_a_long_chain_of_rules_does_not_overflow_the_stack() -> None:
    count = 1500
    lines = [".decl r0(x: number)"]
    for at in range(1, count):
        lines += [f".decl r{at}(x: number)", f"r{at}(x) :- r{at - 1}(x)."]
    found = strata(normal("\n".join(lines)))
    assert [each.relations for each in found] == [(f"r{at}",) for at in range(1, count)]


@pytest.mark.slow
@settings(max_examples=examples(25, 40), suppress_health_check=list(HealthCheck))
@given(programs())
def test_every_stratum_comes_after_what_it_reads(case: Case) -> None:
    program = normal(case.text)
    graph = dependency_polarities(program)
    reach = {name: {name, *reads} for name, reads in graph.items()}
    for middle in graph:  # Warshall
        for name in graph:
            if middle in reach[name]:
                reach[name] |= reach[middle]
    done = {name for name, each in program.relations.items() if not each.is_derived}
    for stratum in strata(program):
        members = set(stratum.relations)
        for name in members:
            assert set(graph[name]) <= done | members
            cycle = {other for other in reach[name] if name in reach[other]}
            assert cycle == members
            for below, polarities in graph[name].items():
                assert below not in members or polarities == {POSITIVE}
        reads_itself = any(below in members for name in members for below in graph[name])
        assert stratum.is_recursive == reads_itself
        assert {rule.head.relation for rule in stratum.rules} <= members
        done |= members
    assert done == program.relations.keys()
    rules = [rule for stratum in strata(program) for rule in stratum.rules]
    assert sorted(map(repr, rules)) == sorted(map(repr, program.rules))
