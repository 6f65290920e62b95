"""A warehouse whose relations are in partitions, and whose index files are gone."""

from __future__ import annotations

from pathlib import Path

import pytest

import corollary
from support.spark.in_process_partitions import share_out
from support.warehouse_scenarios import store_of

PROGRAM = """
.decl e(x: symbol, y: symbol)
.decl p(x: symbol)
p(x) :- e(x, _).
"""


def test_changes_since_the_snapshot_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    share_out(monkeypatch, "partitions")
    with corollary.open(tmp_path / "w") as db:
        db.load(text=PROGRAM)
        for number in range(4):
            with db.transaction() as tx:
                tx.insert("e", [(f"a{number}", f"b{other}") for other in range(3)])
                tx.delete("e", [(f"a{number - 1}", "b0")])
            if number == 1:
                store_of(db).fold(db._state)
        before = {name: sorted(db.relation(name).rows()) for name in ("e", "p")}
    lost = list((tmp_path / "w").glob("data/*/index-*"))
    assert lost
    for file in lost:
        file.unlink()
    with corollary.open(tmp_path / "w") as db:
        assert {name: sorted(db.relation(name).rows()) for name in ("e", "p")} == before
