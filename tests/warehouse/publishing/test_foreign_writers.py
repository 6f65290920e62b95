"""Whoever else writes to a published table is found out, and the table can be rebuilt."""

import errno
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, TableFeatures, write_deltalake
from deltalake.schema import PrimitiveType

from corollary import fault
from corollary.errors import WarehouseError
from corollary.warehouse.files import durable_files
from corollary.warehouse.publishing import published_files
from corollary.warehouse.publishing.checked_log import TableDefect
from corollary.warehouse.publishing.publisher import Publisher
from corollary.warehouse.warehouse import Warehouse
from support.published_table import EDGE, House

STRANGE = pa.table({"x": pa.array([77], pa.int64()), "y": ["strange"]})


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> House:
    """Return a warehouse with a table of three versions."""
    house = House(tmp_path_factory.mktemp("template") / "warehouse")
    house.change([(at, "a") for at in range(10)])
    house.publish()
    house.change([(10, "b")])
    house.publish()
    house.change((), [(1, "a")])
    house.publish()
    house.demand_good()
    house.warehouse.catalog.close()
    return house


@pytest.fixture
def house(template: House, tmp_path: Path) -> House:
    """Return a copy of it."""
    shutil.copytree(template.root, tmp_path / "warehouse")
    house = House(tmp_path / "warehouse")
    house.rows = dict(template.rows)
    return house


def demand_found_out(house: House, trouble: TableDefect, match: str) -> None:
    """Demand that a table is refused, that rebuilding helps, and that publishing goes on."""
    found = house.publisher.check(house.relation)
    assert trouble in {each.defect for each in found}
    house.change([(100 + house.commit, "later")])
    with pytest.raises(WarehouseError, match=match) as caught:
        house.publish()
    (said,) = caught.value.diagnostics
    assert said.code == "C0940"
    assert said.note is not None
    assert "`corollary verify WAREHOUSE --repair`" in said.note
    house.republish()
    house.demand_good()
    house.change([(200, "more")], [(2, "a")])
    house.publish()
    house.demand_good()


# --- writes --------------------------------------------------------------------------------------


def append(house: House) -> None:
    write_deltalake(str(house.path), STRANGE, mode="append")


def delete(house: House) -> None:
    house.delta().delete("x = 2")


def optimize(house: House) -> None:
    house.delta().optimize.compact()


def vacuum(house: House) -> None:
    house.delta().vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)


def add_column(house: House) -> None:
    house.delta().alter.add_columns([Field("z", PrimitiveType("integer"))])


def overwrite(house: House) -> None:
    table = pa.table({"other": [1.5]})
    write_deltalake(str(house.path), table, mode="overwrite", schema_mode="overwrite")


def set_property(house: House) -> None:
    house.delta().alter.set_table_properties({"delta.appendOnly": "true"})


@pytest.mark.parametrize(
    ("write", "operation"),
    [
        (append, "version 3 is WRITE by another writer"),
        (delete, "version 3 is DELETE"),
        (optimize, "version 3 is OPTIMIZE"),
        (vacuum, "VACUUM END"),
        (add_column, "ADD COLUMN"),
        (overwrite, "WRITE"),
        (set_property, "SET TBLPROPERTIES"),
    ],
)
def test_a_write_by_somebody_else(
    house: House, write: Callable[[House], None], operation: str
) -> None:
    write(house)
    demand_found_out(house, TableDefect.FOREIGN_WRITE, operation)


def test_a_write_is_found_when_the_catalog_has_noted_nothing(house: House) -> None:
    append(house)
    house.warehouse.catalog.delete_published("edge")
    demand_found_out(house, TableDefect.FOREIGN_WRITE, "version 3 is WRITE")


def test_a_write_that_a_checkpoint_hides(house: House) -> None:
    append(house)
    house.delta().create_checkpoint()
    house.entry(3).unlink()
    demand_found_out(house, TableDefect.DAMAGE, "entry of its newest version is missing")


def test_deletion_vectors_are_refused(house: House) -> None:
    house.delta().alter.add_feature(
        [TableFeatures.DeletionVectors], allow_protocol_versions_increase=True
    )
    demand_found_out(house, TableDefect.FEATURE, "deletionVectors")
    assert house.delta().protocol().reader_features is None


def test_somebody_writes_at_the_same_time(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_between(point: str) -> None:
        if point == "before_publish":
            monkeypatch.undo()
            append(house)

    house.change([(11, "c")])
    monkeypatch.setattr(fault, "hit", write_between)
    with pytest.raises(WarehouseError, match="C0940"):
        house.publish()
    demand_found_out(house, TableDefect.FOREIGN_WRITE, "version 3 is WRITE")


# --- damage --------------------------------------------------------------------------------------


def empty(entry: Path) -> None:
    entry.write_bytes(b"")


def cut(entry: Path) -> None:
    entry.write_bytes(entry.read_bytes()[:-20])


def cut_last_line(entry: Path) -> None:
    entry.write_bytes(b"\n".join(entry.read_bytes().splitlines()[:-1]))


def drop_a_file(entry: Path) -> None:
    lines = entry.read_text().splitlines()
    entry.write_text("\n".join(line for line in lines if "add" not in json.loads(line)))


@pytest.mark.parametrize("damage", [empty, cut, cut_last_line, drop_a_file])
def test_a_torn_entry(house: House, damage: Callable[[Path], None]) -> None:
    damage(house.entry(2))
    demand_found_out(house, TableDefect.DAMAGE, "version 2 is (empty or )?cut off")


def test_a_first_entry_torn(house: House) -> None:
    empty(house.entry(0))
    demand_found_out(house, TableDefect.DAMAGE, "the log cannot be read")


def test_an_old_torn_entry_leads_to_a_new_table(house: House) -> None:
    empty(house.entry(1))  # behind the version that is known to be good
    house.republish()
    assert house.delta().version() == 0
    house.demand_good()


def test_a_damaged_checkpoint(house: House) -> None:
    house.delta().create_checkpoint()
    (checkpoint,) = house.log.glob("*.checkpoint.parquet")
    checkpoint.write_bytes(b"PAR1")
    demand_found_out(house, TableDefect.DAMAGE, "the log cannot be read")


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_data_file_lost(house: House, is_gone: bool) -> None:
    for name in house.referenced():
        path = house.path / name
        if is_gone:
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:-9])
    (first, *_) = house.publisher.check(EDGE)
    assert first.defect is TableDefect.CONTENT
    house.change((), [(2, "a")])
    with pytest.raises(WarehouseError, match="is missing or damaged"):
        house.publish()
    house.republish()
    house.demand_good()


def test_rows_altered_in_place(house: House) -> None:
    data = published_files.PublishedFiles(house.path, "other", "edge", STRANGE.schema)
    for name in house.referenced():
        rows = pa.parquet.read_table(house.path / name)
        (new,) = data.write(pa.concat_tables([STRANGE.cast(rows.schema), rows.slice(1)]))
        (house.path / new.path).rename(house.path / name)
    assert house.check()
    house.change((), list(house.rows.values()))
    with pytest.raises(WarehouseError, match=r"C0940.*(gone or altered|damaged)"):
        house.publish()
    house.republish()
    house.demand_good()


# --- strangers -----------------------------------------------------------------------------------


def foreign_table(path: Path) -> None:
    write_deltalake(str(path), STRANGE)


def foreign_files(path: Path) -> None:
    path.mkdir()
    (path / "notes.txt").write_text("mine")


def foreign_file(path: Path) -> None:
    path.write_text("mine")


@pytest.mark.parametrize("occupy", [foreign_table, foreign_files, foreign_file])
def test_a_directory_of_somebody_else(tmp_path: Path, occupy: Callable[[Path], None]) -> None:
    house = House(tmp_path)
    house.change([(1, "a")])
    house.path.parent.mkdir()
    occupy(house.path)
    (found,) = house.publisher.check(EDGE)
    assert found.defect is TableDefect.NOT_OURS
    for attempt in (
        house.publish,
        house.republish,
        lambda: house.publisher.withdraw("edge"),
    ):
        with pytest.raises(WarehouseError, match=r"C0940(.|\n)*move `.*` away"):
            attempt()
    assert house.publisher.clean(0) == []
    if occupy is foreign_table:
        assert DeltaTable(str(house.path)).to_pyarrow_dataset().to_table() == STRANGE


def test_the_table_of_another_warehouse(house: House, tmp_path: Path) -> None:
    other = House(tmp_path / "other")
    other.change([(1, "a")])
    shutil.copytree(house.root / "tables", other.root / "tables")
    with pytest.raises(WarehouseError, match="not a table of this warehouse"):
        other.publish()


def test_the_table_of_another_relation(house: House) -> None:
    other = House(house.root, replace(EDGE, name="Edge"))
    house.path.rename(other.path)  # as on a file system to which both names are one
    for attempt in (other.publish, other.republish):
        with pytest.raises(WarehouseError, match="not a table of this warehouse"):
            attempt()


def test_a_place_that_cannot_be_written(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def refuse_entries(path: Path) -> None:
        if ".json" in path.name:
            refuse()

    for function in (refuse, refuse_entries):
        house.change([(house.commit, "c")])
        with monkeypatch.context() as patch:
            patch.setattr(durable_files, "sync_path", function)
            with pytest.raises(WarehouseError, match=r"C09(32|42)(.|\n)*No space left"):
                house.publish()
        house.publish()
        house.demand_good()


# --- another time --------------------------------------------------------------------------------


def test_a_warehouse_that_went_back_to_a_backup(house: House, tmp_path: Path) -> None:
    house.warehouse.catalog.close()
    shutil.copytree(house.root, tmp_path / "backup")
    house.change([(11, "c")])
    house.publish()
    backup = House(tmp_path / "backup")
    shutil.rmtree(backup.path)
    shutil.copytree(house.path, backup.path)
    backup.rows = {key: row for key, row in house.rows.items() if row != (11, "c")}
    (found,) = backup.publisher.check(EDGE)
    assert found.defect is TableDefect.UNKNOWN_COMMIT
    demand_found_out(backup, TableDefect.UNKNOWN_COMMIT, "shows a commit 4 that")


def test_an_older_copy_of_the_table_is_brought_forward(house: House, tmp_path: Path) -> None:
    shutil.copytree(house.path, tmp_path / "copy")
    for at in range(3):
        house.change([(50 + at, "c")], [(4 + at, "a")])
        house.publish()
    shutil.rmtree(house.path)
    shutil.copytree(tmp_path / "copy", house.path)
    house.publisher = Publisher(house.root, Warehouse.open(house.root).catalog)
    house.change([(60, "c")])
    house.publish()
    house.demand_good()


@pytest.mark.parametrize("is_empty", [False, True])
def test_a_file_without_statistics_and_with_an_escaped_name(house: House, is_empty: bool) -> None:
    if is_empty:
        house.change((), list(house.rows.values()))
        house.publish()
    pa.parquet.write_table(STRANGE, house.path / "é b%.parquet")
    size = (house.path / "é b%.parquet").stat().st_size
    path = "%C3%A9%20b%25.parquet"
    common = {"partitionValues": {}, "modificationTime": 1, "dataChange": True}
    add = {"add": {"path": path, "size": size, **common}}
    info = {"commitInfo": {"timestamp": 1, "operation": "WRITE"}}
    newest = house.delta().version() + 1
    house.entry(newest).write_text(f"{json.dumps(info)}\n{json.dumps(add)}\n")
    assert house.delta().to_pyarrow_table().num_rows == len(house.rows) + 1
    demand_found_out(house, TableDefect.FOREIGN_WRITE, "by another writer")
