"""Tables and pictures of docs/ that are made of the code are current; `make docs` writes them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial

import pytest

from support import architecture
from support.functor_tables import (
    bulk_table,
    language_table,
    refused_functions_table,
    sql_functions_table,
)
from support.paths import REPOSITORY
from support.sql.summaries import constructs_tables, corpus_table

DOCS = REPOSITORY / "docs"
FUNCTORS = ("numbers", "logic", "base text", "text", "binary", "conversions", "casts")
FUNCTORS += ("times", "clocks", "arrays", "structs", "maps", "lambdas", "JSON")
TABLES: dict[tuple[str, str], Callable[[], list[str]]] = {
    ("architecture.md", "packages"): architecture.packages_table,
    ("architecture.md", "checks"): architecture.checks_table,
    ("architecture.md", "passes"): architecture.passes_table,
    ("architecture.md", "steps"): architecture.steps_table,
    ("architecture.md", "algorithms"): architecture.algorithms_table,
    ("architecture.md", "literature"): architecture.literature_table,
    ("bulk.md", "functors"): bulk_table,
    ("sql.md", "functions"): sql_functions_table,
    ("sql.md", "refused functions"): refused_functions_table,
    ("sql.md", "corpus"): corpus_table,
    **{("language.md", f"functors: {each}"): partial(language_table, each) for each in FUNCTORS},
}


@pytest.mark.smoke
@pytest.mark.parametrize(("page", "name"), TABLES, ids=map(" ".join, TABLES))
def test_tables_are_current(page: str, name: str) -> None:
    check_table(page, name, TABLES[page, name]())


def test_tables_of_constructs_are_current() -> None:
    for name, lines in zip(("constructs", "refused constructs"), constructs_tables(), strict=True):
        check_table("sql.md", name, lines)


def check_table(page: str, name: str, lines: list[str]) -> None:
    path, mark = DOCS / page, f"<!-- generated: {name} -->\n"
    table = "\n".join([mark, *lines, "\n"])
    if os.environ.get("COROLLARY_ACCEPT"):
        written = path.read_text("utf-8")
        current = re.sub(rf"{mark}\n(?:\|.*\n)*\n", lambda _: table, written)
        path.write_text(current, "utf-8")
    assert table in path.read_text("utf-8"), "run `make docs`"


@pytest.mark.smoke
def test_the_picture_of_the_architecture_is_current() -> None:
    path, drawn = DOCS / "architecture.svg", architecture.architecture_picture()
    if os.environ.get("COROLLARY_ACCEPT"):
        path.write_text(drawn, "utf-8")
    assert path.read_text("utf-8") == drawn, "run `make docs`"


@pytest.mark.smoke
def test_every_document_is_listed_for_people_and_for_agents() -> None:
    """README.md and llms.txt list the same documents, in the same words."""
    readme = (REPOSITORY / "README.md").read_text("utf-8")
    agents = (REPOSITORY / "llms.txt").read_text("utf-8")
    line = re.compile(r"^[*-] \[.*\]\((docs/.*\.md)\): (.*)$", re.MULTILINE)
    listed = dict(line.findall(readme))
    assert listed.keys() == {f"docs/{each.name}" for each in DOCS.glob("*.md")}
    assert dict(line.findall(agents)) == listed
    for path in re.findall(r"\]\(([^)#]+)\)", agents):
        assert (REPOSITORY / path).is_file(), path
