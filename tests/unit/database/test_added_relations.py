"""Views that are defined one after the other: each costs what it defines, and means the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.core.program import NormalProgram, Program
from corollary.database.database import state_of
from corollary.database.program import added_relations
from corollary.database.program.loaded_program import LoadedProgram, load_program
from support.selection import sampled
from support.sql.corpus import FOLDER, CorpusView, corpus

TABLES = (FOLDER / "tables.sql").read_text("utf-8")
LAYERS = [each for each in corpus() if each.file == "layers"]
OTHERS = [each for each in corpus() if not each.needs]


def statement(view: CorpusView, number: int) -> str:
    columns = f" ({', '.join(view.columns)})" if view.columns else ""
    kind = "MATERIALIZED VIEW" if number % 3 == 0 else "VIEW"
    return f"CREATE {kind} {view.name}{columns} AS {view.query}"


def parts(normal: NormalProgram) -> dict[str, Any]:
    """Return what a program consists of; the order of its rules does not matter."""
    return {
        "relations": {
            name: replace(each, limit=None)
            for name, each in normal.relations.items()
            if "•" not in name
        },
        "rules": set(normal.rules),
        "aggregations": set(normal.aggregations),
        "bags": normal.bags,
        "bases": normal.bases,
        "active": normal.active,
    }


def agree(found: LoadedProgram) -> None:
    """Assert that a program is as if it had been loaded as a whole."""
    whole = load_program(found.program)
    assert parts(found.normal) == parts(whole.normal)
    assert found.checked.program.clauses == whole.checked.program.clauses
    assert found.checked.signatures == whole.checked.signatures


@pytest.mark.parametrize("start", sampled(range(0, len(OTHERS), 8), 12))
def test_one_by_one_is_as_all_at_once(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[bool] = []

    def noted(before: LoadedProgram, program: Program) -> LoadedProgram | None:
        found = added_relations.add_relations(before, program)
        added.append(found is not None)
        return found

    with corollary.open(None, engine="local") as db:
        db.sql(TABLES)
        monkeypatch.setattr("corollary.database.commit.add_relations", noted)
        for number, view in enumerate(OTHERS[start : start + 8]):
            db.sql(statement(view, number))
        assert all(added)
        agree(state_of(db).loaded)


@pytest.mark.slow
def test_views_of_views(tmp_path: Path) -> None:
    with corollary.open(tmp_path / "w", engine="local") as db:
        db.sql(TABLES)
        for number, view in enumerate(LAYERS):
            db.sql(statement(view, number))
        found = state_of(db).loaded
        agree(found)
        db.sql(f"CREATE OR REPLACE {statement(LAYERS[0], 0).removeprefix('CREATE ')}")
        agree(state_of(db).loaded)
    with corollary.open(tmp_path / "w", engine="local") as db:
        assert parts(state_of(db).loaded.normal) == parts(found.normal)


def test_a_definition_checks_only_what_it_defines(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[int] = []
    check = added_relations.check

    def counted(program: Program) -> Any:
        checked.append(len(program.clauses) + len(program.declarations))
        return check(program)

    monkeypatch.setattr(added_relations, "check", counted)
    with corollary.open(None, engine="local") as db:
        db.sql("CREATE TABLE t (k INT PRIMARY KEY, a INT)")
        for number in range(12):
            db.sql(f"CREATE VIEW v{number} AS SELECT a, COUNT(*) AS n FROM t GROUP BY a")
    assert len(checked) == 12
    assert len(set(checked)) == 1


def test_an_edit_is_made_once() -> None:
    made: list[str] = []

    def edit(name: str) -> Any:
        return lambda program: made.append(name) or program

    with corollary.open(None, engine="local") as db, db.transaction() as tx:
        tx.edit(edit("a"))
        tx.edit(edit("b"))
    assert made == ["a", "b"]
