"""Rules of SQL views, each broken once: the corpus notices nearly all of them.

A mutant leaves out a rule, an alternative, a negation or a comparison of what a view became, or
lets null no longer join null. Some are no mistakes (a test for null of what is compared anyway, a
rule for a case that the data never has), so that not quite all can be noticed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

import corollary
from corollary.core.logic import BodyItem, Clause, Comparison, Disjunction, Negation
from corollary.core.printer import print_program
from corollary.core.program import Program
from corollary.errors import CorollaryError
from oracles.sql_engines import bag
from support.selection import examples
from support.sql.corpus import CorpusView, RandomTables, corpus, corpus_tables
from support.sql.view_judge import MaintainedViews, SqlOracles, with_needs

VIEWS = [each for each in corpus() if not each.needs]
CHOSEN = examples(8, 150)
SEEDS, CHANGES = 3, 4
SHARE = 0.7
"""Of mutants that have to be noticed."""


def broken(body: tuple[BodyItem, ...]) -> Iterator[tuple[BodyItem, ...]]:
    """Yield a body with one thing left out."""
    for at, item in enumerate(body):
        match item:
            case Negation() | Comparison():
                yield body[:at] + body[at + 1 :]
            case Disjunction(alternatives=alternatives):
                for number, part in enumerate(alternatives):
                    others = alternatives[:number] + alternatives[number + 1 :]
                    yield (*body[:at], replace(item, alternatives=others), *body[at + 1 :])
                    for less in broken(part):
                        changed = (*alternatives[:number], less, *alternatives[number + 1 :])
                        yield (*body[:at], replace(item, alternatives=changed), *body[at + 1 :])


def mutants(program: Program, view: str) -> Iterator[Program]:
    """Yield programs with one rule of a view broken."""
    clauses = program.clauses
    for at, clause in enumerate(clauses):
        if clause.heads[0].relation.partition(".")[0] != view:
            continue
        found: list[tuple[Clause, ...]] = [
            (replace(clause, body=each),) for each in broken(clause.body)
        ]
        if any(isinstance(item, Negation) for item in clause.body):
            found.append((replace(clause, is_null_safe=not clause.is_null_safe),))
        if sum(each.heads[0].relation == clause.heads[0].relation for each in clauses) > 1:
            found.append(())
        for each in found:
            yield replace(program, clauses=(*clauses[:at], *each, *clauses[at + 1 :]))


def is_noticed(program: Program, view: CorpusView, oracles: SqlOracles) -> bool | None:
    """Whether a program gives other rows than the view has; None if it is refused."""
    for seed in range(SEEDS):
        source = RandomTables(oracles.duckdb.tables, f"{view.label} {seed}")
        with corollary.open(None, engine="local") as database:
            try:
                database.load(text=print_program(program))
                for number in range(CHANGES):
                    change = source.change() if number else source.load()
                    with database.transaction() as transaction:
                        for name, (inserted, deleted) in change.items():
                            transaction.delete(name, deleted)
                            transaction.insert(name, inserted)
                    oracles.fill(source.state)
                    if bag(database.relation(view.name).rows()) != oracles.rows(view.name):
                        return True
            except CorollaryError:
                return None
    return False


@pytest.mark.slow
def test_broken_rules_are_noticed() -> None:
    generator = random.Random("mutants 1")
    found = {True: [], False: [], None: []}
    for view in generator.sample(VIEWS, CHOSEN):
        views = with_needs([view])
        tables = {name: each for name, each in corpus_tables().items() if name in view.reads}
        with closing(SqlOracles(tables, views)) as oracles:
            with closing(MaintainedViews(tables, views)) as maintained:
                possible = list(mutants(maintained.database.program, view.name))
            for program in generator.sample(possible, min(2, len(possible))):
                found[is_noticed(program, view, oracles)].append((view.label, program))
    survivors = "\n".join(f"{label}:\n{print_program(each)}" for label, each in found[False])
    noticed, unnoticed = len(found[True]), len(found[False])
    assert noticed, "no mutant was accepted"
    # One that makes no difference says little where few are tried.
    assert noticed + 1 >= SHARE * (noticed + unnoticed), survivors


@pytest.mark.parametrize(
    "view", [each for each in VIEWS if each.name in {"full_join", "except_all"}]
)
def test_a_view_has_mutants(view: CorpusView) -> None:
    tables = {name: each for name, each in corpus_tables().items() if name in view.reads}
    with closing(MaintainedViews(tables, [view])) as maintained:
        program = maintained.database.program
        found = list(mutants(program, view.name))
    assert len(found) > 2
    assert program not in found
