"""The corpus of SQL views, maintained under random changes and equal to what other engines say."""

from __future__ import annotations

import re
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

import corollary
from corollary.core.printer import print_program
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile
from support.generators.sql_queries import BULK_MODES, SqlScenario, sql_scenarios
from support.selection import examples, sampled, seed_of_run
from support.sql.corpus import FOLDER, GRAPHS, corpus, corpus_tables, has_no_cycle
from support.sql.query_judge import judge_query
from support.sql.view_judge import KINDS, MATERIALIZED, VIRTUAL, MaintainedViews, judge_views

VIEWS = {each.label: each for each in corpus()}
RECURSIVE = {each.label: each for each in corpus("recursive")}
FILES = sorted({each.file for each in corpus()})
SEEDS = examples(1, 3)


@pytest.mark.slow
@pytest.mark.parametrize(("label", "kind", "bulk"), sampled(product(VIEWS, KINDS, BULK_MODES), 150))
def test_views_are_maintained(label: str, kind: str, bulk: str) -> None:
    for seed in range(SEEDS):
        judge_views(corpus_tables(), [VIEWS[label]], f"{label} {seed}", kind=kind, bulk=bulk)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("label", "kind", "bulk"), sampled(product(RECURSIVE, KINDS, BULK_MODES), 60)
)
def test_recursive_views_are_maintained_under_deletes(label: str, kind: str, bulk: str) -> None:
    tables = corpus_tables("recursive_tables.sql")
    for seed in range(SEEDS):
        judge_views(
            tables,
            [RECURSIVE[label]],
            f"{label} {seed}",
            kind=kind,
            values=GRAPHS,
            accepts=has_no_cycle,
            changes=8,
            bulk=bulk,
        )


@pytest.mark.slow
@pytest.mark.parametrize("file", sampled(FILES, len(FILES)))
def test_all_views_of_a_file_in_one_program(file: str) -> None:
    views = [each for each in corpus() if each.file == file]
    full = judge_views(corpus_tables(), views, f"{file} {seed_of_run()}", kind=MATERIALIZED)
    assert full


@pytest.mark.parametrize("label", sampled(VIEWS, 100))
def test_views_last_in_a_warehouse(tmp_path: Path, label: str) -> None:
    judge_views(corpus_tables(), [VIEWS[label]], label, changes=2, place=str(tmp_path / "w"))


@pytest.mark.parametrize("file", sampled(FILES, len(FILES)))
def test_views_survive_being_printed(file: str) -> None:
    views = [each for each in corpus() if each.file == file]
    with closing(MaintainedViews(corpus_tables(), views)) as maintained:
        text = print_program(maintained.database.program)
    assert print_program(parse(SourceFile("printed.dl", text))) == text
    with corollary.open(None, engine="local") as database:
        database.load(text=text)


# Queries are large: `make fuzz` takes the time to shrink one.
@settings(
    max_examples=examples(1, 300),
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
@given(sql_scenarios())
def test_random_queries_are_maintained(scenario: SqlScenario) -> None:
    judge_query(scenario)


@pytest.mark.parametrize("file", sampled(FILES, len(FILES)))
def test_columns_have_the_types_of_spark(file: str) -> None:
    lines = (FOLDER / "types.txt").read_text("utf-8").splitlines()[1:]
    expected = dict(line.split(": ") for line in lines)
    views = [each for each in corpus() if each.file == file]
    with closing(MaintainedViews(corpus_tables(), views, VIRTUAL)) as maintained:
        for view in views:
            if view.label in expected:
                schema = maintained.database.relation(view.name).arrow().schema
                found = [_kind(str(each)) for each in schema.types]
                assert found == [_kind(each) for each in expected[view.label].split()], view.query


def _kind(type_: str) -> str:
    """Return a type of Spark or Arrow, without what the language does not tell apart: digits."""
    if found := re.fullmatch(r"decimal(?:128)?\(\d+, ?(\d+)\)", type_):
        return f"decimal {found[1]}" if found[1] != "0" else "number"
    words = {"int": "number", "bigint": "number", "int64": "number", "boolean": "bool"}
    words["timestamp[us]"] = "timestamp_ntz"
    return words.get(type_, re.sub(r"\[.*\]|32|64|large_", "", type_)).replace("float", "double")
