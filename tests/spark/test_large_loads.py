"""Loads on Spark: sources of every format, none of whose tuples passes the driver."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import corollary
from corollary.core.arrow import to_python
from corollary.database.upkeep.verify import verify
from corollary.engines.spark.relation import handle
from corollary.errors import InputError
from corollary.warehouse.sources import portions
from support.spark.in_process_partitions import forbid_collecting
from support.warehouse_scenarios import store_of

PROGRAM = """
.decl a(x: number, s: symbol) key(x)
.input a(filename="a.csv", headers=true)
.decl b(x: number, s: symbol)
.input b(filename="b.jsonl")
.decl c(x: number, s: symbol)
.input c(filename="c", format="parquet")
.decl d(x: number, s: symbol)
.input d(filename="d", format="delta")
.decl e(x: number, s: symbol) key(x)
.input e(IO=spark, format="orc", filename="e")
.output a
.output d
"""
ROWS = [(n, f'text "{n % 9}"') for n in range(400)]


@pytest.mark.long
def test_sources_of_every_format(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portions, "PORTION_BYTES", 2000)
    monkeypatch.setattr(portions, "PARQUET_PORTION_BYTES", 1)
    monkeypatch.setattr(handle, "DISTRIBUTED_MIN_TUPLES", 1)
    table = pa.table({"x": [x for x, _ in ROWS], "s": [s for _, s in ROWS]})
    quoted = ((x, s.replace('"', '""')) for x, s in ROWS)
    lines = ["x,s", *(f'{x},"{s}"' for x, s in quoted), "bad,line,here"]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    (tmp_path / "b.jsonl").write_text("".join(json.dumps({"x": x, "s": s}) + "\n" for x, s in ROWS))
    (tmp_path / "c").mkdir()
    pq.write_table(table, tmp_path / "c" / "1.parquet", row_group_size=150)
    write_deltalake(tmp_path / "d", table.slice(0, 200))
    write_deltalake(tmp_path / "d", table.slice(200), mode="append")
    spark.createDataFrame(ROWS, "x long, s string").repartition(3).write.orc(f"{tmp_path}/e")
    program = tmp_path / "p.dl"
    program.write_text(PROGRAM)
    place = tmp_path / "w"
    with corollary.open(place, spark=spark, placement="partitions") as db:
        with monkeypatch.context() as patch:
            forbid_collecting(patch)
            run = db.run(program, facts=tmp_path)
            store_of(db).fold(db._state)
        assert run.quarantined == 1
        assert {name: run.changes[name].counts for name in "abcde"} == dict.fromkeys(
            "abcde", (400, 0)
        )
        for name in "abcde":
            assert set(db.relation(name).rows()) == set(ROWS)
    for name in "ad":
        shown = to_python(DeltaTable(str(place / "tables" / name)).to_pyarrow_table())
        assert set(shown) == set(ROWS)
    DeltaTable(tmp_path / "d").delete("x < 10")
    spark.createDataFrame([(7, "seven"), (1, "two")], "x long, s string").write.orc(
        f"{tmp_path}/e", mode="append"
    )
    with (
        corollary.open(place, spark=spark, placement="partitions") as db,
        pytest.raises(InputError, match="C0954"),
    ):
        db.run(program, facts=tmp_path)
    frame = spark.createDataFrame([*ROWS[1:], (1000, "more")], "x long, s string")
    shutil.rmtree(tmp_path / "e")
    frame.write.orc(f"{tmp_path}/e")
    with (tmp_path / "b.jsonl").open("a") as file:
        file.write('{"x": 1000, "s": "more"}\n')
    with corollary.open(place, spark=spark, placement="partitions") as db:
        with monkeypatch.context() as patch:
            forbid_collecting(patch)
            run = db.run(program, facts=tmp_path)
        assert {name: run.changes[name].counts for name in "bde"} == {
            "b": (1, 0),
            "d": (0, 10),
            "e": (1, 1),
        }
        assert set(db.relation("d").rows()) == set(ROWS[10:])
        assert not verify(store_of(db).warehouse).findings
    with corollary.open(place, engine="local") as db:
        assert set(db.relation("b").rows()) == {*ROWS, (1000, "more")}


CHANGED_PROGRAM = """
.decl sale(id: number, shop: symbol, amount: number) key(id)
.input sale(filename="sale", format="parquet")
.decl shop(shop: symbol, town: symbol)
.decl sold(id: number, town: symbol, amount: number)
sold(i, t, a) :- sale(i, s, a), shop(s, t).
.decl total(town: symbol, s: number)
total(t, s) :- shop(_, t), s = sum a : { sold(_, t, a) }.
.output sale
.output sold
"""


CHANGE_TUPLES = 300
"""Changes of fewer tuples come to the driver."""


def write_sales(folder: Path, first: int, last: int) -> set[Any]:
    rows = [(n, f"s{n % 20}", n % 13) for n in range(first, last)]
    columns = dict(zip(("id", "shop", "amount"), map(list, zip(*rows, strict=True)), strict=True))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    pq.write_table(pa.table(columns), folder / f"{first}-{last}.parquet")
    return set(rows)


@pytest.mark.long
def test_a_large_change_never_passes_the_driver(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a source and of a recomputation: keys, views, files, tables, and opened again."""
    monkeypatch.setattr(handle, "DISTRIBUTED_MIN_TUPLES", CHANGE_TUPLES)
    program, place, folder = tmp_path / "p.dl", tmp_path / "w", tmp_path / "sale"
    program.write_text(CHANGED_PROGRAM)
    shops = [(f"s{n}", f"t{n % 3}") for n in range(18)]
    towns = dict(shops)

    def check(db: corollary.Database, sales: set[Any]) -> None:
        sold = {(n, towns[s], a) for n, s, a in sales if s in towns}
        sums = dict.fromkeys(towns.values(), 0)
        for _, town, amount in sold:
            sums[town] += amount
        assert set(db.relation("sale").rows()) == sales
        assert set(db.relation("sold").rows()) == sold
        assert dict(db.relation("total").rows()) == sums
        for name, rows in (("sale", sales), ("sold", sold)):
            shown = to_python(DeltaTable(str(place / "tables" / name)).to_pyarrow_table())
            assert set(shown) == rows

    sales = write_sales(folder, 0, 2000)
    with corollary.open(place, spark=spark, placement="partitions", bulk="always") as db:
        db.load(program)
        with db.transaction() as tx:
            tx.insert("shop", shops)
        db.run(program, facts=tmp_path)
        check(db, sales)
        sales = write_sales(folder, 600, 2600)
        with monkeypatch.context() as patch:
            forbid_collecting(patch, CHANGE_TUPLES)
            run = db.run(program, facts=tmp_path)
        assert run.changes["sale"].counts == (600, 600)
        check(db, sales)
    with corollary.open(place, spark=spark, placement="partitions", bulk="always") as db:
        moved = [each for each in shops if each[1] == "t0"]
        towns |= dict.fromkeys((shop for shop, _ in moved), "t1")
        with monkeypatch.context() as patch:
            forbid_collecting(patch, CHANGE_TUPLES)
            with db.transaction(algorithm="recompute") as tx:
                tx.delete("shop", moved)
                tx.insert("shop", [(shop, "t1") for shop, _ in moved])
            db.publish()
        assert tx.changes["sold"].counts == (600, 600)
        check(db, sales)
        assert not verify(store_of(db).warehouse).findings
