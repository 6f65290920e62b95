"""Rules of a warehouse keep their places in the user's files."""

from __future__ import annotations

from pathlib import Path

import corollary
from support.maintained_database import insert

TEXT = """// comments are not stored
.decl e(x: number)
.decl p(x: number)

p(x) :- e(x),

    x > 1.
e(7).
lost(x) :- -p(x).
.alert lost "{x}"
"""


def places(db: corollary.Database) -> list[str]:
    return [str(each.span) for each in (*db.program.clauses, *db.program.reactions)]


def test_places_outlive_the_process_and_the_file(tmp_path: Path) -> None:
    file = tmp_path / "p.dl"
    file.write_text(TEXT)
    with corollary.open(tmp_path / "wh", engine="local") as db:
        db.load(file)
        before = places(db)
        with db.transaction() as tx:
            tx.add_rule("p(x) :- e(x), x = 0.")
    assert before == [f"{file}:{line}:1" for line in (5, 8, 9, 10)]
    file.unlink()
    with corollary.open(tmp_path / "wh", engine="local") as db:
        assert places(db) == [*before[:3], "rule:1:1", before[3]]
        span = db.program.clauses[0].span
        assert span is not None
        assert span.file.line(span.line) == "p(x) :- e(x), x > 1."
        assert str(db._state.loaded.normal.rules[0].origin.span) == before[0]
        insert(db, "e", [(5,)])
        assert places(db.at(1)) == before


def test_a_program_that_was_stored_without_places_is_read(tmp_path: Path) -> None:
    with corollary.open(tmp_path / "wh", engine="local") as db:
        db.load(text=TEXT)
        catalog = db._store.warehouse.catalog  # type: ignore[attr-defined]
        stored = catalog.program(1)
    assert stored.layout.pop("places")["files"] == ["program"]
    from corollary.database.program.places import with_places

    assert with_places(db.program, stored.layout) is db.program
