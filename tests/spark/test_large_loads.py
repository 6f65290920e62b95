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
from corollary.engines.spark.partitioned import handle
from corollary.engines.spark.partitioned.run import COLLECT_VARIABLE
from corollary.errors import InputError
from corollary.warehouse.sources.tasks import portions, task_reading
from support.warehouse_scenarios import store_of

pytestmark = pytest.mark.spark

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
    for module in (portions, task_reading):
        monkeypatch.setattr(module, "PORTION_BYTES", 2000)
        monkeypatch.setattr(module, "PARQUET_PORTION_BYTES", 1)
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
            patch.setenv(COLLECT_VARIABLE, "1")
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
            patch.setenv(COLLECT_VARIABLE, "1")
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
