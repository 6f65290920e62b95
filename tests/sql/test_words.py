"""Whatever is said about SQL views is said in SQL's words: no name that Corollary has made up."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing

import pytest

import corollary
from corollary.analysis.check import diagnose
from corollary.core.printer import print_relation, print_value
from corollary.core.program import NormalProgram, Program
from corollary.core.statistics import Statistics
from corollary.core.titles import title_of
from corollary.database.database import state_of
from corollary.database.program.loaded_program import load_program
from corollary.explain.dependency_graph import graph_as_dot, graph_as_json, graph_as_svg
from corollary.explain.plan import plan_as_json, print_plan
from corollary.frontends.sql.statements.definitions import compile_files
from corollary.maintain.algorithms.seminaive import plan_program
from corollary.source import SourceFile
from support.selection import sampled
from support.sql.corpus import (
    GRAPHS,
    CorpusView,
    RandomTables,
    corpus,
    corpus_tables,
    has_no_cycle,
)
from support.sql.view_judge import MATERIALIZED, MaintainedViews, with_needs

TABLES = {"views": "tables.sql", "recursive": "recursive_tables.sql"}
FILES = sorted({(folder, each.file) for folder in TABLES for each in corpus(folder)})
VIEWS = {(folder, each.label): each for folder in TABLES for each in corpus(folder)}


def made_names(program: NormalProgram) -> re.Pattern[str]:
    """Return what finds the names that are not the user's."""
    made = [name for name in program.relations if title_of(name, program.statements) != name]
    listed = "|".join(map(re.escape, sorted(made, key=len, reverse=True))) or r"(?!)"
    return re.compile(rf"(?<![\w.])(?:{listed})(?!\w)|\bquestion\.\w")


def texts_about(program: NormalProgram) -> Iterator[str]:
    """Yield what `explain` and `graph` say, and the page shows."""
    plan = plan_program(program, Statistics())
    yield print_plan(plan, program)
    yield json.dumps(plan_as_json(plan, program), ensure_ascii=False)
    yield graph_as_dot(program)
    yield graph_as_svg(program)
    yield json.dumps(graph_as_json(program))
    yield "\n".join(program.declared_relations)


@pytest.mark.slow
@pytest.mark.parametrize(("folder", "file"), sampled(FILES, 6))
def test_plans_and_warnings_have_the_names_of_the_user(folder: str, file: str) -> None:
    statements = [f"{each.text};" for each in corpus_tables(TABLES[folder]).values()]
    statements += [each.statement(MATERIALIZED) for each in corpus(folder) if each.file == file]
    program = compile_files([SourceFile("views.sql", "\n".join(statements))], Program())
    normal = load_program(program).normal
    pattern = made_names(normal)
    assert pattern.pattern.count("|") > 5
    for text in texts_about(normal):
        assert pattern.findall(text) == []
    for found in diagnose(program):
        assert found.code > "C08", str(found)
        assert pattern.findall(str(found)) == []


def answers_about(database: corollary.Database, view: CorpusView) -> Iterator[str]:
    """Yield the proof of a row of a view, and how a question about it is answered."""
    name = print_relation(view.name)
    yield database.explain(f"SELECT COUNT(*) FROM {name} x WHERE EXISTS (SELECT * FROM {name})")
    types = state_of(database).loaded.normal.relations[view.name].types
    for row in list(database.relation(view.name).rows())[:1]:
        values = ", ".join(map(print_value, row, types))
        yield str(database.why(f"{name}({values})"))


@pytest.mark.parametrize(("folder", "label"), sampled(VIEWS, 60))
def test_proofs_have_the_names_of_the_user(folder: str, label: str) -> None:
    views = with_needs([VIEWS[folder, label]])
    read = {name for each in views for name in each.reads}
    tables = {name: each for name, each in corpus_tables(TABLES[folder]).items() if name in read}
    with closing(MaintainedViews(tables, views)) as maintained:
        is_graph = folder == "recursive"
        values = GRAPHS if is_graph else None
        accepts = has_no_cycle if is_graph else lambda name, row: True
        maintained.apply(RandomTables(tables, label, values=values, accepts=accepts).load())
        pattern = made_names(state_of(maintained.database).loaded.normal)
        for text in answers_about(maintained.database, views[-1]):
            assert pattern.findall(text) == [], text
