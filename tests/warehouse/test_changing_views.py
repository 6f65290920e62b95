"""Views that change freely: other columns, rules, names; stored or virtual; dropped."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
from deltalake import DeltaTable

import corollary
from corollary.core.arrow import to_python
from corollary.database.database import Database
from corollary.database.intake.pipeline import Inputs, PipelineRun, run
from corollary.database.program.loaded_program import read_programs
from corollary.database.upkeep.verify import verify
from corollary.warehouse.publishing.delta_schema import directory_name
from corollary.warehouse.warehouse import Warehouse
from oracles import evaluation, parser
from support.comparison import comparable
from support.payload_check import check_payload
from support.view_edits import EDITS, SALES, programs

Row = tuple[Any, ...]


class Shop:
    """A warehouse, its program, its source, and what the oracle says about them."""

    def __init__(self, root: Path) -> None:
        self.root, self.place = root, root / "wh"
        self.sales: list[str] = list(SALES)
        self.visits: set[Row] = set()
        self.text = ""
        self.expected: dict[str, set[Row]] = {}

    def open(self, **options: Any) -> Database:
        return corollary.open(str(self.place), engine="local", **options)

    def run(self, text: str, **options: Any) -> PipelineRun:
        """Run a program as `corollary run` does, on the present source."""
        self.text = text
        (self.root / "shop.dl").write_text(text)
        (self.root / "sale.csv").write_text("".join(f"{line}\n" for line in self.sales))
        with self.open(**options) as db:
            return run(db, read_programs([self.root / "shop.dl"]), Inputs(self.root))

    def judge(self) -> None:
        """Say what every relation holds now."""
        facts: dict[str, Iterable[Row]] = {"visit": self.visits}
        kinds = (int, str, str, int, int)
        facts["sale"] = [
            tuple(kind(cell) for kind, cell in zip(kinds, line.split(","), strict=True))
            for line in self.sales
        ]
        self.expected = evaluation.evaluate(self.text, facts)

    def columns(self, name: str) -> list[str]:
        return list(parser.parse(self.text).decls[name].names)

    def published(self) -> list[str]:
        lines = (line.split() for line in self.text.splitlines())
        return [words[1] for words in lines if words and words[0] == ".output"]


def check_tables(shop: Shop) -> None:
    """Compare every published table, read by `deltalake` and by DuckDB, with the oracle."""
    for name in shop.published():
        table = DeltaTable(str(shop.place / "tables" / directory_name(name)))
        columns, expected = shop.columns(name), comparable(shop.expected[name])
        read = table.to_pyarrow_table()
        dataset = table.to_pyarrow_dataset()
        selected = ", ".join(f'"{column}"' for column in columns) or "holds"
        by_duckdb = duckdb.sql(f"select {selected} from dataset").fetchall()
        assert dataset.schema.names == (columns or ["holds"]), name
        if columns:
            assert read.column_names == columns, name
            assert comparable(to_python(read)) == expected, name
            assert comparable(by_duckdb) == expected, name
        else:
            assert read.num_rows == len(by_duckdb) == len(expected), name


def check_relations(db: Database, shop: Shop) -> None:
    for name, rows in shop.expected.items():
        relation = db.relation(name)
        assert relation.arrow().column_names == shop.columns(name), name
        assert comparable(relation.rows()) == comparable(rows), name


def test_thirty_edits_of_one_program(tmp_path: Path) -> None:
    """Each edit is one commit; tables and history show what the oracle says."""
    assert len(EDITS) >= 30
    shop = Shop(tmp_path)
    history: dict[int, tuple[str, dict[str, set[Row]]]] = {}
    for number, (edit, text) in enumerate(programs(), 1):
        shop.sales = [line for line in shop.sales if line not in edit.removed] + list(edit.added)
        outcome = shop.run(text)
        assert outcome.commit is not None, edit.title
        if edit.visits:
            shop.visits |= set(edit.visits)
            with shop.open() as db:
                with db.transaction(publish=True) as tx:
                    tx.insert("visit", list(edit.visits))
                assert tx.commit_number is not None
        assert outcome.published is not None
        assert not outcome.published.problems, edit.title
        shop.judge()
        check_tables(shop)
        with shop.open() as db:
            history[db.commits] = shop.text, shop.expected
            check_relations(db, shop)
            check_payload(db)
            if number % 7 == 0:
                with closing(Warehouse.open(str(shop.place), create=False)) as files:
                    assert not verify(files).findings, edit.title
    with shop.open() as db:
        for commit, (text, expected) in history.items():
            past = Shop(tmp_path)
            past.text, past.expected = text, expected
            check_relations(db.at(commit), past)
