"""Insertions that make a tuple true, against all sets of base tuples over the known values."""

from itertools import combinations, product
from random import Random

import pytest

import corollary
from corollary.database.database import Database, state_of
from corollary.database.store import MemoryStore
from corollary.provenance.absences.insertions import InsertionSearch, find_insertions
from corollary.provenance.limits import Allowance, ProofLimits
from corollary.provenance.nodes import CutReason
from corollary.provenance.query_state import query_state
from corollary.provenance.trials import Trials
from support.provenance.small_programs import (
    BASES,
    VIEWS,
    Fact,
    SmallProgram,
    known_values,
    open_database,
    random_facts,
    random_program,
)
from support.selection import examples

LIMITS = ProofLimits(seconds=60.0, dry_runs=500)
DOMAIN = (1, 2, 3)
SIZE = 2


def insertions(db: Database, goal: Fact, limits: ProofLimits = LIMITS) -> InsertionSearch:
    state, allowance = state_of(db), Allowance(limits)
    trials = Trials(state, MemoryStore(), allowance)
    return find_insertions(query_state(state), goal, trials, allowance, SIZE)


def loaded(text: str) -> Database:
    db = corollary.open(None)
    db.load(text=text)
    return db


def enough(
    program: SmallProgram, base: set[Fact], goal: Fact, domain: set[int], size: int
) -> set[frozenset[Fact]]:
    """Return all sets of base tuples of a size that make the goal true."""
    every = [(name, row) for name, n in BASES.items() for row in product(domain, repeat=n)]
    new = [fact for fact in every if fact not in base]
    return {
        frozenset(chosen)
        for chosen in combinations(new, size)
        if goal in program.evaluate({*base, *chosen}, domain)
    }


def questions(random: Random, program: SmallProgram, base: set[Fact], count: int) -> list[Fact]:
    facts = program.evaluate(base, DOMAIN)
    shapes = {**VIEWS[0], **VIEWS[1], **VIEWS[2]}
    absent = [
        (name, row)
        for name, arity in shapes.items()
        for row in product(DOMAIN, repeat=arity)
        if (name, row) not in facts
    ]
    return random.sample(absent, min(count, len(absent)))


@pytest.mark.parametrize("seed", range(examples(4, 8)))
def test_all_smallest_sets_are_found(seed: int) -> None:
    random = Random(seed)
    program, base = random_program(random, negation=False), random_facts(random, DOMAIN)
    with open_database(program, base, "virtual" if seed % 2 else "") as db:
        for goal in questions(random, program, base, 3):
            found = insertions(db, goal).sets
            assert found.complete
            domain = known_values(program, base, goal[1])
            expected, size = set[frozenset[Fact]](), None
            for size in (1, 2):
                expected = enough(program, base, goal, domain, size)
                if expected:
                    break
            assert found.size == (size if expected else None)
            sets = {frozenset((c.relation, c.row) for c in each) for each in found.sets}
            assert sets == expected


@pytest.mark.parametrize("seed", range(20, examples(23, 28)))
def test_with_negation_sets_are_enough_and_minimal(seed: int) -> None:
    random = Random(seed)
    program, base = random_program(random), random_facts(random, DOMAIN)
    with open_database(program, base) as db:
        for goal in questions(random, program, base, 4):
            found = insertions(db, goal).sets
            domain = known_values(program, base, goal[1])
            for each in found.sets:
                chosen = {(c.relation, c.row) for c in each}
                assert len(chosen) == found.size
                assert goal in program.evaluate(base | chosen, domain)
                for less in combinations(chosen, len(chosen) - 1):
                    assert goal not in program.evaluate({*base, *less}, domain)


def test_a_key_refutes_a_set() -> None:
    db = loaded("""
        .decl salary(who: symbol, amount: number) key(who)
        .decl rich(who: symbol)
        rich(x) :- salary(x, n), n > 10.
        salary("ann", 5).
        salary("bob", 20).
    """)
    found = insertions(db, ("rich", ("ann",)))
    assert found.sets.sets == ()
    assert not found.sets.complete
    (new,) = insertions(db, ("rich", ("eve",))).sets.sets
    assert [(c.op, c.relation, c.row) for c in new] == [("+", "salary", ("eve", 20))]


def test_few_dry_runs_are_said() -> None:
    db = loaded("""
        .decl edge(x: number, y: number)
        .decl reach(x: number, y: number)
        reach(x, y) :- edge(x, y).
        reach(x, z) :- reach(x, y), edge(y, z).
        edge(1, 2). edge(2, 3). edge(4, 5). edge(5, 6).
    """)
    every = insertions(db, ("reach", (1, 6)))
    assert (every.sets.size, len(every.sets.sets), every.sets.complete) == (1, 9, True)
    few = insertions(db, ("reach", (1, 6)), ProofLimits(seconds=60.0, dry_runs=4))
    assert [each.reason for each in few.cuts] == [CutReason.DRY_RUNS]
    assert not few.sets.complete
    assert set(few.sets.sets) < set(every.sets.sets)
