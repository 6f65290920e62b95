"""Sources of relations with copies: equal rows add up, in one file and in several."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import corollary
from corollary.core.program import Relation
from corollary.core.types import NUMBER, SYMBOL
from corollary.database.database import Database, warehouse_of
from corollary.database.upkeep.verify import verify
from corollary.database.writing.events import IS_INSERT_COLUMN, net_change
from corollary.errors import InputError
from support.selection import examples

Row = tuple[Any, ...]

FOLDER = """\
.decl u(a: number, b: symbol?) bag
.input u(filename="in/*")
.decl total(n: number)
total(n) :- n = sum c : { u.rows(_, _, c) }.
.output u
"""
ROWS: list[Row] = [(a, b) for a in range(4) for b in ("x", "y", None)]


def put(path: Path, rows: list[Row]) -> None:
    """Write rows into a file of the format of its name."""
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".parquet":
        table = pa.table(
            {"a": pa.array([a for a, _ in rows], pa.int64()), "b": [b for _, b in rows]},
            pa.schema([("a", pa.int64()), ("b", pa.string())]),
        )
        pq.write_table(table, path)
    else:
        text = "".join(f"{a},{'' if b is None else b}\n" for a, b in rows)
        path.write_text(text, "utf-8")


def content(db: Database) -> Counter[Row]:
    return Counter(db.relation("u").rows())


def run(db: Database, program: Path, folder: Path, **options: Any) -> Any:
    return db.run(program, facts=folder, max_deletes="off", **options)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(examples(3, 15)))
def test_files_add_up(seed: int, tmp_path: Path) -> None:
    generator = random.Random(seed)
    program = tmp_path / "p.dl"
    program.write_text(FOLDER, "utf-8")
    folder = tmp_path / "in"
    files: dict[str, list[Row]] = {"first.csv": [ROWS[0], ROWS[0]]}
    put(folder / "first.csv", files["first.csv"])
    with corollary.open(tmp_path / "w", engine="local") as db:
        manual: Counter[Row] = Counter()
        before: Counter[Row] = Counter()
        for _ in range(12):
            for _ in range(generator.choice((1, 1, 2))):
                name = generator.choice(("first.csv", "b.csv", "c.csv", "d.parquet"))
                act = generator.choice(("write", "append", "remove"))
                rows = generator.choices(ROWS, k=generator.randrange(5))
                if act == "remove" and name in files and len(files) > 1:
                    del files[name]
                    (folder / name).unlink()
                else:
                    files[name] = [*(files.get(name, []) if act == "append" else []), *rows]
                    put(folder / name, files[name])
            outcome = run(db, program, tmp_path)
            expected = Counter(row for rows in files.values() for row in rows) + manual
            assert content(db) == expected
            assert db.relation("total").rows() == [(expected.total(),)]
            change = outcome.changes.get("u")
            if before != expected:
                came, went = expected - before, before - expected
                assert change.counts == (came.total(), went.total())
            before = expected
            if generator.random() < 0.4:
                rows = generator.choices(ROWS, k=3)
                with db.transaction() as tx:
                    tx.insert("u", rows)
                manual.update(rows)
                before = before + Counter(rows)
                assert content(db) == before
        warehouse = warehouse_of(db)
        assert warehouse is not None
        assert not verify(warehouse).findings


def test_a_source_that_is_not_read_any_more(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text('.decl u(a: number) bag\n.input u(filename="u.csv")\nu(1).\n', "utf-8")
    (tmp_path / "u.csv").write_text("1\n1\n2\n", "utf-8")
    with corollary.open(tmp_path / "w", engine="local") as db:
        run(db, program, tmp_path)
        assert content(db) == {(1,): 3, (2,): 1}
        program.write_text(".decl u(a: number) bag\nu(1).\n", "utf-8")
        run(db, program, tmp_path)
        assert content(db) == {(1,): 1}


def test_malformed_records_are_set_aside(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text('.decl u(a: number) bag\n.input u(filename="u.csv")\n', "utf-8")
    (tmp_path / "u.csv").write_text("1\nx\n1\n2\n", "utf-8")
    with corollary.open(tmp_path / "w", engine="local") as db:
        assert run(db, program, tmp_path).quarantined == 1
        assert content(db) == {(1,): 2, (2,): 1}
        (tmp_path / "u.csv").write_text("1\n1\n1\n2\n", "utf-8")
        outcome = run(db, program, tmp_path)
        assert outcome.quarantined == 0
        assert outcome.changes["u"].counts == (1, 0)


def test_the_bound_on_deletes_counts_copies(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text('.decl u(a: number) bag\n.input u(filename="u.csv")\n', "utf-8")
    (tmp_path / "u.csv").write_text("1\n" * 2000, "utf-8")
    with corollary.open(tmp_path / "w", engine="local") as db:
        db.run(program, facts=tmp_path)
        (tmp_path / "u.csv").write_text("1\n" * 10, "utf-8")
        with pytest.raises(InputError, match="1,990 of the 2,000 rows"):
            db.run(program, facts=tmp_path)
        assert content(db) == {(1,): 2000}
        db.run(program, facts=tmp_path, max_deletes=1990)
        assert content(db) == {(1,): 10}


def test_a_delta_table_with_copies(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text('.decl u(a: number) bag\n.input u(filename="t", format="delta")\n', "utf-8")
    place = str(tmp_path / "t")

    def append(*values: int) -> None:
        write_deltalake(place, pa.table({"a": pa.array(values, pa.int64())}), mode="append")

    append(1, 1, 2)
    append(1, 3)
    with corollary.open(tmp_path / "w", engine="local") as db:
        run(db, program, tmp_path)
        assert content(db) == {(1,): 3, (2,): 1, (3,): 1}
        append(3)
        assert run(db, program, tmp_path).changes["u"].counts == (1, 0)
        DeltaTable(place).delete("a = 2")
        assert run(db, program, tmp_path).changes["u"].counts == (0, 1)
        DeltaTable(place).optimize.compact()
        run(db, program, tmp_path)
        assert content(db) == {(1,): 3, (3,): 2}
        write_deltalake(place, pa.table({"a": [7, 7]}), mode="overwrite")
        run(db, program, tmp_path)
        assert content(db) == {(7,): 2}


# --- streams --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_events_of_a_batch_apply_in_order(seed: int) -> None:
    generator = random.Random(seed)
    relation = Relation("u", ("a", "b"), (NUMBER, SYMBOL.with_null(True)), is_derived=False)
    for _ in range(20):
        rows = generator.choices(ROWS[:5], k=generator.randrange(12))
        ops = [generator.choice(("insert", "delete", "delete")) for _ in rows]
        table = pa.table(
            {
                "a": pa.array([a for a, _ in rows], pa.int64()),
                "b": pa.array([b for _, b in rows], pa.string()),
                IS_INSERT_COLUMN: pa.array([op == "insert" for op in ops], pa.bool_()),
            }
        )
        change = net_change(table, relation, has_copies=True)
        start = Counter(generator.choices(ROWS[:5], k=generator.randrange(4)))
        expected = Counter(start)
        for row, op in zip(rows, ops, strict=True):
            expected[row] = max(0, expected[row] + (1 if op == "insert" else -1))
        found = start - Counter(zip(*(e.to_pylist() for e in change.removed.columns), strict=True))
        found += Counter(zip(*(e.to_pylist() for e in change.added.columns), strict=True))
        assert found == +expected


def test_inserts_alone_are_copies() -> None:
    relation = Relation("u", ("a",), (NUMBER,), is_derived=False)
    table = pa.table({"a": np.array([1, 1, 2])})
    change = net_change(table, relation, has_copies=True)
    assert change.added.num_rows == 3
