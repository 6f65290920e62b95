"""Views that change freely: other columns, rules, names; stored or virtual; dropped."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable

import corollary
from corollary import fault
from corollary.core.arrow import to_python
from corollary.core.states import State
from corollary.database.database import Database, warehouse_of
from corollary.database.intake.dry_run import TableEdit
from corollary.database.intake.pipeline import Inputs, PipelineRun, run
from corollary.database.pending_commit import DeferredOperations
from corollary.database.program.loaded_program import read_programs
from corollary.database.relation_plans import RelationEdit
from corollary.database.upkeep.retention import Retention, collect
from corollary.database.upkeep.status import status
from corollary.database.upkeep.verify import verify
from corollary.database.writing.operations import Operation
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile
from corollary.warehouse.publishing.delta_schema import directory_name
from corollary.warehouse.warehouse import Warehouse
from oracles import evaluation, parser
from support.command_line import tree
from support.comparison import comparable
from support.generators.view_edits import EDITS, SALES, programs
from support.generators.view_variants import EDGE, READERS, TOPS, VIEWS, program
from support.payload_check import check_payload
from support.selection import examples

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
        program, inputs = read_programs([self.root / "shop.dl"]), Inputs(self.root)
        with self.open(**options) as db:
            before = self.files()
            dry = run(db, program, inputs, is_dry=True)
            assert self.files() == before
            outcome = run(db, program, inputs)
        compare(dry, outcome)
        return outcome

    def files(self) -> dict[str, bytes | None]:
        """Everything in the warehouse but the memory that open catalogs share."""
        found = tree(str(self.place)).items()
        return {name: data for name, data in found if data and not name.endswith("-shm")}

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


def compare(dry: PipelineRun, outcome: PipelineRun) -> None:
    """Compare what a dry run has announced with what the run has done."""
    assert dry.commit is None
    assert dry.plan is not None
    said, done = dry.as_json(1000), outcome.as_json(1000)
    plan = said.pop("plan")
    assert said["changes"] == done["changes"]
    assert said["alerts"] == done["alerts"]
    assert said["stats"].keys() == done["stats"].keys()
    assert json.dumps(plan)
    for each in dry.plan.relations:
        if each.rows_before is not None and each.edit is RelationEdit.CHANGED and each.rows_after:
            added, removed = each.counts
            is_relabelled = each.before and each.after and each.before.columns != each.after.columns
            assert is_relabelled or each.rows_after == each.rows_before + added - removed, each
    assert outcome.published is not None
    written = {each.relation: each for each in outcome.published.published}
    rewritten = {
        each.relation: tuple(name for name, _ in each.after or ())
        for each in dry.plan.tables
        if each.edit is TableEdit.REWRITTEN
    }
    assert rewritten == {
        name: each.new_columns for name, each in written.items() if each.new_columns
    }
    announced = {each.relation for each in dry.plan.tables if each.edit is not TableEdit.LEFT}
    assert announced == written.keys()


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


def check_feeds(db: Database) -> None:
    """Apply the feed of every relation in order: it gives the relation as it is now."""
    copies: dict[str, set[Row]] = {}
    for each in db.feed():
        fed, table = each.relation, each.arrow()
        copy, width = copies.setdefault(fed.name, set()), len(fed.columns) - 3
        rows = [(row[:width], row[width], row[width + 1]) for row in to_python(table)]
        assert [commit for _, _, commit in rows] == sorted(commit for _, _, commit in rows)
        for values, kind, _ in rows:
            if kind == "delete":
                copy.remove(values)
            else:
                assert kind == "insert"
                assert values not in copy
                copy.add(values)
    for name, copy in copies.items():
        declared = {each.name for each in db.program.declarations}
        is_stored = name in declared and not db.relation(name).shape.is_virtual
        assert comparable(copy) == (comparable(db.relation(name).rows()) if is_stored else [])


@pytest.mark.long
def test_thirty_edits_of_one_program(tmp_path: Path) -> None:
    """Each edit is one commit; tables and history show what the oracle says."""
    assert len(EDITS) >= 30
    shop = Shop(tmp_path)
    history: dict[int, tuple[str, dict[str, set[Row]]]] = {}
    walk = islice(programs(), examples(6, len(EDITS)))
    for number, (edit, text) in enumerate(walk, 1):
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
        check_feeds(db)


@pytest.mark.slow
@pytest.mark.matrix(2)
@pytest.mark.parametrize("seed", range(2))
def test_any_edit_of_a_warehouse_that_is_folded_and_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Index files, snapshots and changes of relations with other columns do not get in the way."""
    monkeypatch.setattr("corollary.database.warehouse_store.FOLD_MAX_COMMITS", 2)
    monkeypatch.setattr("corollary.warehouse.warehouse.INLINE_BYTES", 1)
    generator = random.Random(seed)
    edges: set[Row] = {(1, 2), (2, 3), (3, 1), (3, 3), (4, 5)}
    shop = Shop(tmp_path)
    past: list[tuple[int, str, dict[str, set[Row]]]] = []
    with shop.open() as db:
        db.load(text=EDGE)
        with db.transaction() as tx:
            tx.insert("edge", sorted(edges))
    for _ in range(12):
        text = program(*(generator.choice(list(each)) for each in (VIEWS, READERS, TOPS)))
        names = re.findall(r"(?m)^\.decl (\w+)\([^)]*\)(?! virtual)", text)
        shop.text = text + "".join(f".output {name}\n" for name in names)
        flip = (generator.randrange(6), generator.randrange(6))
        with shop.open() as db:
            with db.transaction(publish=True) as tx:
                tx.set_program(parse(SourceFile("p", shop.text)))
                if generator.random() < 0.6:
                    (tx.delete if flip in edges else tx.insert)("edge", [flip])
                    edges ^= {flip}
            assert tx.published is None or not tx.published.problems
            shop.expected = evaluation.evaluate(text, {"edge": edges})
            check_relations(db, shop)
            check_payload(db)
            past.append((db.commits, shop.text, shop.expected))
        check_tables(shop)
        with shop.open() as db:
            check_relations(db, shop)
    with closing(Warehouse.open(str(shop.place), create=False)) as files:
        assert not verify(files).findings
    with shop.open() as db:
        for commit, shop.text, shop.expected in past:
            check_relations(db.at(commit), shop)
        check_feeds(db)


# ------------------------------------------------------------------- crashes, others, what is left


NARROW = """\
.decl edge(x: number, y: number)
.decl v(a: number)
v(x) :- edge(x, _).
.output v
.decl w(a: number)
w(x) :- v(x), x > 1.
.output w
"""
WIDE = """\
.decl edge(x: number, y: number)
.decl v(a: number, b: number)
v(x, y) :- edge(x, y).
.output v
.decl u(a: number)
u(x) :- v(x, _), x > 1.
.output u
"""


class Killed(BaseException):
    """Where a process would be killed."""


def opened(place: Path) -> Database:
    return corollary.open(str(place), engine="local")


def read_table(place: Path, name: str) -> tuple[list[str], list[Row]]:
    table = DeltaTable(str(place / "tables" / name)).to_pyarrow_table()
    return table.column_names, sorted(to_python(table))


@pytest.mark.parametrize(
    "point",
    ["before_intent", "after_data_files", "before_commit", "after_commit", "before_publish",
     "after_publish"],
)  # fmt: skip
def test_an_edit_that_is_cut_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """All of it is there, or nothing; the next one brings the tables forward."""
    place = tmp_path / "wh"
    monkeypatch.setattr("corollary.warehouse.warehouse.INLINE_BYTES", 1)
    with opened(place) as db:
        db.load(text=NARROW)
        with db.transaction(publish=True) as tx:
            tx.insert("edge", [(1, 2), (3, 4)])

    def hit(passed: str) -> None:
        if passed == point:
            raise Killed

    with monkeypatch.context() as patch, opened(place) as db:
        patch.setattr(fault, "hit", hit)
        with pytest.raises(Killed), db.transaction(publish=True) as tx:
            tx.set_program(parse(SourceFile("p", WIDE)))
    is_made = point in {"after_commit", "before_publish", "after_publish"}
    with opened(place) as db:
        assert db.commits == 2 + is_made
        assert db.relation("v").arrow().column_names == (["a", "b"] if is_made else ["a"])
        with db.transaction(publish=True) as tx:
            tx.set_program(parse(SourceFile("p", WIDE)))
            tx.insert("edge", [(5, 6)])
    assert read_table(place, "v") == (["a", "b"], [(1, 2), (3, 4), (5, 6)])
    assert read_table(place, "u") == (["a"], [(3,), (5,)])
    assert read_table(place, "w") == (["a"], [(3,)])  # not published any more
    with closing(Warehouse.open(str(place), create=False)) as files:
        assert not verify(files).findings


def test_edits_and_writes_of_several_processes(tmp_path: Path) -> None:
    """Who comes second works on what the first one has left, whatever columns that has."""
    place = tmp_path / "wh"
    with opened(place) as one, opened(place) as two:
        one.load(text=NARROW)
        two.refresh()
        two.watch("v")
        mine = two.transaction()
        mine.insert("edge", [(7, 8)])
        one.load(text=WIDE)
        mine.commit()
        assert sorted(to_python(mine.changes["v"].added)) == [(7, 8)]
        late = one.transaction()
        late.set_program(parse(SourceFile("p", NARROW)))
        with two.transaction() as tx:
            tx.insert("edge", [(1, 1)])
        late.commit()
        assert sorted(one.relation("v").rows()) == [(1,), (7,)]
        assert sorted(two.relation("v").rows()) == [(1,), (7,)]
        one.load(text=WIDE.replace("v", "z"))
        assert sorted(two.relation("z").rows()) == [(1, 1), (7, 8)]


def test_a_table_that_was_left_goes_on_where_its_view_comes_back(tmp_path: Path) -> None:
    place = tmp_path / "wh"
    with opened(place) as db:
        for text, rows in ((NARROW, [(1, 2), (3, 4)]), (WIDE, [(5, 6)]), (NARROW, [(8, 9)])):
            with db.transaction(publish=True) as tx:
                tx.set_program(parse(SourceFile("p", text)))
                tx.read(lambda rows=rows: DeferredOperations([_inserted(rows)], {}))
            assert tx.published is not None
            assert not tx.published.problems
    assert read_table(place, "w") == (["a"], [(3,), (5,), (8,)])
    assert read_table(place, "v") == (["a"], [(1,), (3,), (5,), (8,)])
    with opened(place) as db:
        feeds = [(fed.relation.columns, fed.arrow().num_rows) for fed in db.feed("v")]
        assert feeds == [
            (("a", "_change_type", "_commit_version", "_commit_timestamp"), 4),
            (("a", "b", "_change_type", "_commit_version", "_commit_timestamp"), 6),
            (("a", "_change_type", "_commit_version", "_commit_timestamp"), 4),
        ]
        assert [fed.arrow().num_rows for fed in db.feed("u")] == [4]
        collect(warehouse_files(db), Retention(commits=1))
        assert sorted(db.relation("w").rows()) == [(3,), (5,), (8,)]
    with opened(place) as db:
        assert sorted(db.relation("w").rows()) == [(3,), (5,), (8,)]
        report = status(warehouse_files(db))
        assert "u" in str(report.as_json())
    with closing(Warehouse.open(str(place), create=False)) as files:
        assert not verify(files).findings


def _inserted(rows: list[Row]) -> Operation:
    return Operation(State.ADDED, "edge", rows)


def warehouse_files(db: Database) -> Warehouse:
    found = warehouse_of(db)
    assert found is not None
    return found
