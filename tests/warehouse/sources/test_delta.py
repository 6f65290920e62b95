"""Delta tables as sources: versions, files that went, and tables that must not be read."""

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from corollary.core.arrow import to_python
from corollary.core.program import Relation
from corollary.core.types import DATE, FLOAT, NUMBER, SYMBOL
from corollary.warehouse.sources import delta_source
from corollary.warehouse.sources.file_formats import FORMATS
from corollary.warehouse.sources.source import Source
from support.source_model import Row, Run, a_source, refused
from support.spark.in_process_partitions import InProcessTasks

NewSource = Callable[..., Source]


def put(path: Path, rows: list[Row], mode: Any = "append", **options: Any) -> None:
    columns = {
        "x": pa.array([r[0] for r in rows], pa.int64()),
        "y": pa.array([r[1] for r in rows], pa.string()),
    }
    write_deltalake(str(path), pa.table(columns), mode=mode, **options)


@pytest.fixture(params=["here", "in tasks"])
def new_source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Makes sources that are read in this process, or in tasks."""
    if request.param == "here":
        return a_source
    return partial(a_source, tasks=InProcessTasks(tmp_path_factory.mktemp("tasks")))


@pytest.fixture
def read_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the data files that are read."""
    names: list[str] = []
    parquet = FORMATS["parquet"]

    def note(file: Any, name: str, *rest: Any, **more: Any) -> Any:
        names.append(name)
        return parquet.read(file, name, *rest, **more)

    monkeypatch.setitem(FORMATS, "parquet", replace(parquet, read=note))
    return names


def test_versions(tmp_path: Path, read_files: list[str]) -> None:
    path = tmp_path / "t"
    put(path, [(1, "a"), (2, "b")])
    run = Run(a_source(tmp_path, "t"))
    run.step([(1, "a"), (2, "b")])
    put(path, [(3, "c")])
    read_files.clear()
    run.step([(1, "a"), (2, "b"), (3, "c")])
    assert len(read_files) == 1
    put(path, [(2, "b"), (4, "d")], mode="overwrite")
    read_files.clear()
    run.step([(2, "b"), (4, "d")])
    assert len(read_files) == 1  # those that went need not be read where none was kept
    put(path, [(5, "e")])
    put(path, [(6, "f")])
    run.step([(2, "b"), (4, "d"), (5, "e"), (6, "f")])
    DeltaTable(path).delete("x = 5")
    read_files.clear()
    change = run.step([(2, "b"), (4, "d"), (6, "f")])
    assert len(read_files) == 1  # of tables without a row that stands twice, none that was kept
    assert to_python(change.removed) == [(5, "e")]
    DeltaTable(path).optimize.compact()
    change = run.step([(2, "b"), (4, "d"), (6, "f")])
    assert change.added.num_rows == change.removed.num_rows == 0


@pytest.mark.parametrize("key", [(), ("x",)])
def test_a_change_feed(tmp_path: Path, read_files: list[str], key: tuple[str, ...]) -> None:
    path = tmp_path / "t"
    rows = {n: "abc"[n % 3] for n in range(20)}
    feed = {"delta.enableChangeDataFeed": "true"}
    put(path, list(rows.items()), configuration=feed)
    run = Run(a_source(tmp_path, "t", key=key))
    run.step(rows.items())
    read_files.clear()
    for number in range(3):
        DeltaTable(path).update({"y": f"'new {number}'"}, predicate=f"x = {number}")
        DeltaTable(path).delete(f"x = {10 + number}")
        rows[number] = f"new {number}"
        del rows[10 + number]
        change = run.step(rows.items())
        assert (len(change.added), len(change.removed)) == (1, 2)
    assert not read_files
    put(path, [(100, "more")])
    DeltaTable(path).update({"y": "'twice'"}, predicate="x = 100")
    DeltaTable(path).update({"y": "'again'"}, predicate="x = 100")
    rows[100] = "again"
    run.step(rows.items())
    read_files.clear()
    DeltaTable(path).optimize.compact()
    change = run.step(rows.items())
    assert not len(change.added)
    assert not len(change.removed)
    assert not read_files
    if key:
        put(path, [(100, "in conflict")])
        refused(run.step, "C0954")
        return
    put(path, [(1, "new 1")])  # twice from now on: the feed does not tell whether one is left
    run.step(rows.items())
    DeltaTable(path).delete("x = 2")
    del rows[2]
    run.step(rows.items())
    assert read_files
    DeltaTable(path).alter.set_table_properties({"delta.enableChangeDataFeed": "false"})
    DeltaTable(path).delete("x = 3")
    del rows[3]
    run.step(rows.items())


def test_a_large_update_of_a_few_rows(tmp_path: Path) -> None:
    """Of a large table, tasks compare the files that were replaced."""
    path = tmp_path / "t"
    tasks = InProcessTasks(tmp_path / "tasks")
    rows = {n: "abc"[n % 3] for n in range(200)}
    for start in (0, 100):
        put(path, [(n, rows[n]) for n in range(start, start + 100)])
    run = Run(a_source(tmp_path, "t", tasks=tasks))
    run.step(rows.items())
    tasks.min_tuples = 50
    DeltaTable(path).update({"y": "'new'"}, predicate="x = 7")
    rows[7] = "new"
    tasks.titles.clear()
    change = run.step(rows.items())
    assert not run.asked
    assert (len(change.added), len(change.removed)) == (1, 1)
    assert tasks.titles.count("read p < t") == 2
    DeltaTable(path).update({"y": "'newer'"}, predicate="x = 7")
    vacuum(path)
    rows[7] = "newer"
    run.step(rows.items())


def test_nothing_new_reads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "t", [(1, "a")])
    run = Run(a_source(tmp_path, "t", IO="delta"))
    run.step([(1, "a")])
    monkeypatch.setattr(delta_source.delta_snapshot, "read_snapshot", None)
    assert run.source.is_unchanged(run.position)
    put(tmp_path / "t", [(1, "a")])
    assert not run.source.is_unchanged(run.position)


def test_rows_that_stand_twice(tmp_path: Path, new_source: NewSource) -> None:
    path = tmp_path / "t"
    put(path, [(1, "a"), (1, "a"), (2, "b")])
    put(path, [(1, "a"), (3, "c")])
    run = Run(new_source(tmp_path, "t"))
    run.step([(1, "a"), (2, "b"), (3, "c")])
    DeltaTable(path).delete("x = 2")
    run.step([(1, "a"), (3, "c")])
    DeltaTable(path).delete("x = 3")
    run.step([(1, "a")])


@pytest.mark.slow
def test_random_versions(tmp_path: Path, new_source: NewSource) -> None:
    numbers = random.Random(7)
    for attempt in range(3):
        path = tmp_path / f"t{attempt}"
        put(path, [(0, "a")])
        run = Run(new_source(tmp_path, path.name))
        for _ in range(8):
            for _ in range(numbers.randrange(1, 3)):
                rows = [(numbers.randrange(5), numbers.choice("ab")) for _ in range(3)]
                match numbers.choice(
                    ["append", "append", "delete", "overwrite", "compact", "vacuum"]
                ):
                    case "append":
                        put(path, rows)
                    case "delete":
                        DeltaTable(path).delete(f"x = {numbers.randrange(5)}")
                    case "overwrite":
                        put(path, rows, mode="overwrite")
                    case "compact":
                        DeltaTable(path).optimize.compact()
                    case _:
                        vacuum(path)
            found = DeltaTable(path).to_pyarrow_table()
            run.step(to_python(found.select(["x", "y"])))


def vacuum(path: Path) -> None:
    DeltaTable(path).vacuum(0, dry_run=False, enforce_retention_duration=False)


def test_after_a_vacuum(tmp_path: Path, new_source: NewSource) -> None:
    path = tmp_path / "t"
    put(path, [(1, "a"), (2, "b")])
    put(path, [(3, "c")])
    run = Run(new_source(tmp_path, "t"))
    run.step([(1, "a"), (2, "b"), (3, "c")])
    DeltaTable(path).delete("x = 1")
    vacuum(path)
    run.step([(2, "b"), (3, "c")])
    for number in range(4, 8):
        put(path, [(number, "z")])
    table = DeltaTable(path)
    table.create_checkpoint()
    for version in range(table.version()):
        (path / "_delta_log" / f"{version:020d}.json").unlink(missing_ok=True)
    run.step([(2, "b"), (3, "c"), *((number, "z") for number in range(4, 8))])


def test_a_table_made_anew(tmp_path: Path, new_source: NewSource) -> None:
    path = tmp_path / "t"
    put(path, [(1, "a")])
    put(path, [(2, "b")])
    run = Run(new_source(tmp_path, "t"))
    run.step([(1, "a"), (2, "b")])
    for rows in ([(3, "c")], [(4, "d"), (5, "e"), (6, "f")]):
        shutil.rmtree(path)
        for row in rows:
            put(path, [row])
        assert not run.source.is_unchanged(run.position)
        run.step(rows)


def test_a_copy_whose_history_went_another_way(tmp_path: Path, new_source: NewSource) -> None:
    path, copy = tmp_path / "t", tmp_path / "copy"
    put(path, [(1, "a")])
    shutil.copytree(path, copy)
    put(path, [(2, "b")])
    run = Run(new_source(tmp_path, "t"))
    run.step([(1, "a"), (2, "b")])
    put(copy, [(3, "c")])
    put(copy, [(4, "d")])
    shutil.rmtree(path)
    copy.rename(path)  # the same table, with another version 1
    run.step([(1, "a"), (3, "c"), (4, "d")])


def test_partitions_and_later_columns(tmp_path: Path, new_source: NewSource) -> None:
    types = (NUMBER, DATE.with_null(True), SYMBOL, FLOAT.with_null(True))
    p = Relation("p", ("x", "day", "s", "f"), types, is_derived=False)
    path = tmp_path / "t"
    day = date(2026, 1, 2)
    old = pa.table({"x": [1, 2], "day": [day, None], "s": ["a b", "c/ä%"]})
    write_deltalake(path, old, partition_by=["day", "s"])
    run = Run(new_source(tmp_path, "t", relation=p))
    run.step([(1, day, "a b", None), (2, None, "c/ä%", None)])
    new = pa.table({"x": [3], "day": [day], "s": ["d"], "f": [1.5]})
    write_deltalake(path, new, mode="append", schema_mode="merge")
    rows = [(1, day, "a b", None), (2, None, "c/ä%", None), (3, day, "d", 1.5)]
    run.step(rows)
    wide = new.append_column("more", pa.array([1]))
    write_deltalake(path, wide, mode="append", schema_mode="merge")
    (warning,) = run.step(rows).warnings
    assert "has got a new column `more`" in warning.message


def test_drift(tmp_path: Path, new_source: NewSource) -> None:
    path = tmp_path / "t"
    put(path, [(1, "a")])
    run = Run(new_source(tmp_path, "t"))
    run.step([(1, "a")])
    write_deltalake(
        path, pa.table({"x": ["1"], "y": ["a"]}), mode="overwrite", schema_mode="overwrite"
    )
    (found,) = refused(run.step, "C0950")
    assert "Column `x` of `p` is a `number`" in found.message
    write_deltalake(path, pa.table({"x": [1]}), mode="overwrite", schema_mode="overwrite")
    (found,) = refused(run.step, "C0950")
    assert "has no column `y`" in found.message


def test_malformed_rows(tmp_path: Path, new_source: NewSource) -> None:
    path = tmp_path / "t"
    put(path, [(1, "a")])
    put(path, [(2, "b"), (None, "c")])
    refused(Run(new_source(tmp_path, "t")).step, "C0801")
    run = Run(new_source(tmp_path, "t", quarantine=True))
    (bad,) = run.bad_records(run.step([(1, "a"), (2, "b")]))
    assert run.bad_lines() == {bad.file: [2]}
    put(path, [(3, "c")])
    run.step([(1, "a"), (2, "b"), (3, "c")])
    assert run.bad_lines() == {bad.file: [2]}
    DeltaTable(path).delete("y = 'c' and x is null")
    run.step([(1, "a"), (2, "b"), (3, "c")])
    assert run.bad_lines() == {}


def test_keys(tmp_path: Path, new_source: NewSource) -> None:
    path = tmp_path / "t"
    put(path, [(1, "a"), (2, "b")])
    put(path, [(3, "c")])
    run = Run(new_source(tmp_path, "t", key=("x",)))
    ordered = Run(new_source(tmp_path, "t", key=("x",), order="y"))
    for each in (run, ordered):
        each.step([(1, "a"), (2, "b"), (3, "c")])
    DeltaTable(path).update({"y": "'z'"}, predicate="x = 3")
    for each in (run, ordered):
        each.step([(1, "a"), (2, "b"), (3, "z")])
    put(path, [(1, "b")])
    refused(run.step, "C0954")
    ordered.step([(1, "b"), (2, "b"), (3, "z")])
    DeltaTable(path).delete("y = 'b'")
    for each in (run, ordered):
        each.step([(1, "a"), (3, "z")])


def alter_log(path: Path, version: int, change: Any) -> None:
    commit = path / "_delta_log" / f"{version:020d}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        change(action)
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))


def test_deletion_vectors_are_refused(tmp_path: Path) -> None:
    def give(action: Any) -> None:
        if "protocol" in action:
            action["protocol"] = {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["deletionVectors"],
                "writerFeatures": ["deletionVectors"],
            }

    def use(action: Any) -> None:
        if "add" in action:
            action["add"]["deletionVector"] = {
                "storageType": "u",
                "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
                "offset": 1,
                "sizeInBytes": 36,
                "cardinality": 2,
            }

    put(tmp_path / "t", [(1, "a")])
    alter_log(tmp_path / "t", 0, give)
    Run(a_source(tmp_path, "t")).step([(1, "a")])
    alter_log(tmp_path / "t", 0, use)
    (found,) = refused(Run(a_source(tmp_path, "t")).step, "C0955")
    assert "has deletion vectors" in found.message
    assert "PURGE" in str(found.note)


def test_tables_that_cannot_be_read(tmp_path: Path) -> None:
    def rename(action: Any) -> None:
        if "metaData" in action:
            action["metaData"]["configuration"] = {"delta.columnMapping.mode": "name"}
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}

    put(tmp_path / "t", [(1, "a")])
    alter_log(tmp_path / "t", 0, rename)
    (found,) = refused(Run(a_source(tmp_path, "t")).step, "C0955")
    assert "`columnMapping`" in found.message or "damaged" in found.message
    (tmp_path / "plain").mkdir()
    for name in ("plain", "missing"):
        refused(Run(a_source(tmp_path, name, IO="delta")).step, "C0804")


@pytest.mark.parametrize("text", ["", "\n", '{"add":{"path":"x', '{"add"'])
def test_a_damaged_log(tmp_path: Path, text: str) -> None:
    put(tmp_path / "t", [(1, "a")])
    run = Run(a_source(tmp_path, "t"))
    run.step([(1, "a")])
    (tmp_path / "t" / "_delta_log" / f"{1:020d}.json").write_text(text)
    for each in (run, Run(a_source(tmp_path, "t"))):
        (found,) = refused(each.step, "C0955")
        assert found.message.startswith(f"The log of the Delta table `{tmp_path}/t` is damaged: ")


def test_files_that_are_elsewhere_or_missing(tmp_path: Path) -> None:
    root = tmp_path / "root"
    put(root / "t", [(1, "a")])
    put(tmp_path / "other", [(2, "b")])
    (secret,) = (tmp_path / "other").glob("*.parquet")
    for path, code in (
        (str(secret), "C0955"),
        (f"file://{secret}", "C0955"),
        (f"../../other/{secret.name}", "C0805"),
        ("gone.parquet", "C0953"),
    ):
        shutil.copytree(root / "t", root / "bad", dirs_exist_ok=True)
        alter_log(root / "bad", 0, lambda each, path=path: each.get("add", {}).update(path=path))
        refused(Run(a_source(root, "bad")).step, code)
