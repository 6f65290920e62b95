"""Partitions of a relation as files: split, written, changed, read, folded, described."""

from __future__ import annotations

import json
import random
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from corollary.core.arrow import from_python, to_python
from corollary.core.program import Relation
from corollary.core.types import DATE, FLOAT, NUMBER, SYMBOL, UNSIGNED, Type, decimal
from corollary.engines.local.values.symbols import SymbolDomain
from corollary.engines.spark.jobs import PartitionJobs
from corollary.engines.spark.operations import Fold, PartitionAddress
from corollary.engines.spark.relation import change_files, partitioning
from corollary.engines.spark.relation import open_partition as opening
from corollary.engines.spark.relation.files import (
    PartitionedFiles,
    PartitionSet,
    StoredPartition,
)
from corollary.engines.spark.relation.partitioning import (
    Partitioning,
    partition_count,
    partition_of,
    split_table,
)
from corollary.engines.spark.relation.source import PartitionSource
from support.spark.in_process_partitions import matching, present, run_here

PAIRS = Relation("p", ("x", "name"), (NUMBER.with_null(True), SYMBOL), False)


def rows_of(table: pa.Table) -> set[tuple[Any, ...]]:
    found = to_python(table)
    assert len(found) == len(set(found))
    return set(found)


def pairs(count: int, seed: int = 7) -> list[tuple[Any, ...]]:
    chance = random.Random(seed)
    numbers = [None, -(2**63), 2**63 - 1, *range(-20, 20)]
    return sorted(
        {(chance.choice(numbers), f"t{chance.randrange(30)}") for _ in range(count)}, key=repr
    )


def test_counts_are_powers_of_two() -> None:
    # 19 and 190 times half a million tuples; 476 times two million.
    sizes = (0, 1000, 10**6, 10**7, 10**8, 10**9)
    assert [partition_count(each) for each in sizes] == [8, 8, 8, 32, 256, 512]
    assert partition_count(10**14) == 1 << 16


@pytest.mark.parametrize("type_", [NUMBER, UNSIGNED, FLOAT, SYMBOL, DATE, decimal(30, 2)])
def test_a_bit_more_splits_each_partition_in_two(type_: Type) -> None:
    values: list[Any] = list(range(1000))
    if type_ == SYMBOL:
        values = [f"v{each}" for each in values]
    elif type_ == FLOAT:
        values = [each / 7 for each in values]
    elif type_ == DATE:
        values = [date.fromordinal(700000 + each) for each in values]
    elif type_ not in (NUMBER, UNSIGNED):
        values = [each * 10**25 for each in values]
    table = from_python([(each,) for each in values], Relation("r", ("x",), (type_,), False))
    few = partition_of(table.column(0), type_, 8)
    many = partition_of(table.column(0), type_, 16)
    assert (many >> 1).tolist() == few.tolist()
    counts = np.bincount(few, minlength=8)
    assert counts.min() > 60


def test_the_mix_is_the_documented_one() -> None:
    """Queries of Spark compute the same; a change of the mix needs new files."""
    column = pa.chunked_array([[0, 1, 2, -1, 2**62]])
    expected = [(each * 0x9E3779B97F4A7C15 % 2**64) >> 60 for each in (0, 1, 2, -1, 2**62)]
    assert partition_of(column, NUMBER, 16).tolist() == expected


def test_parts_are_all_tuples_once() -> None:
    rows = pairs(500)
    table = from_python(rows, PAIRS)
    for lead in (0, 1):
        found: list[tuple[Any, ...]] = []
        for number, part in split_table(table, PAIRS, Partitioning(lead, 8)):
            numbers = partition_of(part.column(lead), PAIRS.types[lead], 8)
            assert set(numbers.tolist()) == {number}
            found += to_python(part)
        assert sorted(found, key=repr) == rows


def read_set(files: PartitionedFiles, part: PartitionSet) -> pa.Table:
    partitions = [
        table
        for stored in part.partitions
        for table in opening.read_partition(files.root, files.relation, part.orders, stored)
    ]
    return pa.concat_tables(partitions)


@pytest.mark.parametrize("orders", [((0, 1),), ((1, 0),)])
def test_a_partition_is_written_changed_probed_and_folded(
    tmp_path: Path, orders: tuple[tuple[int, ...], ...]
) -> None:
    chance = random.Random(3)
    root = str(tmp_path)
    known = set(pairs(300))
    table = from_python(list(known), PAIRS)
    stored = opening.write_partition(root, PAIRS, orders, table)
    assert stored.size == len(known)
    for round_ in range(6):
        removed = set(chance.sample(sorted(known, key=repr), 20))
        added = set(pairs(100, round_)) - known
        change = change_files.write_change(
            root,
            f"change{round_}",
            from_python(list(added), PAIRS),
            from_python(list(removed), PAIRS),
        )
        stored = stored.changed(change, opening.ranges_of(from_python(list(added), PAIRS), PAIRS))
        known = known - removed | added
        assert stored.size == len(known)
        if round_ == 3:
            before, stored = stored, Fold().run(PartitionAddress(root, PAIRS, orders, 0, stored))
            assert stored.base != before.base
            assert not stored.changes
        opened = opening.open_partition(root, PAIRS, orders, 0, stored)
        (table,) = opening.read_partition(root, PAIRS, orders, stored)
        assert rows_of(table) == known
        order = orders[0]
        keys = [-5, None, 2**63 - 1, 77] if order[0] == 0 else ["t3", "t5", "none"]
        keys_table = from_python(
            [(each,) for each in keys], Relation("k", ("k",), (PAIRS.types[order[0]],), False)
        )
        expected = {each for each in known if each[order[0]] in keys}
        found = opened.matches(order, keys_table)
        assert (rows_of(found), found.num_rows) == (expected, len(expected))
        asked = [*known, (99, "t1"), (3, "unknown")]
        mask = opened.contains(from_python(asked, PAIRS))
        assert mask.tolist() == [each in known for each in asked]


def test_files_survive_json(tmp_path: Path) -> None:
    root = str(tmp_path)
    files = PartitionedFiles.empty(root, PAIRS, [(1, 0)], 4)
    table = from_python(pairs(400), PAIRS)
    for each in files.sets:
        changed: dict[int, StoredPartition] = {}
        for number, part in split_table(table, PAIRS, each.partitioning):
            changed[number] = opening.write_partition(root, PAIRS, each.orders, part)
        files = files.with_set(each.with_partitions(changed))
    again = PartitionedFiles.from_json(root, PAIRS, json.loads(json.dumps(files.to_json())))
    assert again == files
    assert files.size == table.num_rows
    assert files.distinct[0] == 43
    for each in files.sets:
        assert rows_of(read_set(files, each)) == rows_of(table)
    other = Relation("p", ("x", "name"), (NUMBER, SYMBOL), False)
    assert PartitionedFiles.from_json(root, other, files.to_json()) is None


def test_merged_changes_have_the_same_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few tuples come and go many times; a partition that is open stays open."""
    opened: list[str | None] = []
    open_base = opening._open_base

    def counted(root: str, relation: Relation, orders: Any, stored: StoredPartition) -> Any:
        opened.append(stored.base)
        return open_base(root, relation, orders, stored)

    monkeypatch.setattr(opening, "_open_base", counted)
    chance, root, orders = random.Random(5), str(tmp_path), ((0, 1),)
    every = pairs(60)
    known = set(chance.sample(every, 20))
    stored = opening.write_partition(root, PAIRS, orders, from_python(list(known), PAIRS))
    merged = 0
    for at in range(80):
        removed = {each for each in known if chance.random() < 0.05}
        added = {each for each in every if each not in known and chance.random() < 0.05}
        tables = (from_python(list(each), PAIRS) for each in (added, removed))
        change = change_files.write_change(root, f"change{at}", *tables)
        stored = stored.changed(change, stored.ranges)
        known = known - removed | added
        if (first := stored.merged_from) is not None:
            name = f"merged{at}"
            made = change_files.merge_changes(root, name, PAIRS, stored.changes[first:-1])
            stored = stored.with_merged(first, made)
            merged += 1
        assert stored.size == len(known)
        found = opening.open_partition(root, PAIRS, orders, 0, stored)
        mask = found.contains(from_python(every, PAIRS))
        assert mask.tolist() == [each in known for each in every]
    assert merged > 2
    assert len(stored.changes) < 17
    assert opened == [stored.base]


@pytest.mark.slow
def test_a_relation_that_grows_gets_more_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitioning, "PARTITION_TUPLES", 50)
    monkeypatch.setattr(partitioning, "LEAST_PARTITIONS", 2)
    jobs = PartitionJobs(run_here, lambda: 2)
    files = PartitionedFiles.empty(str(tmp_path), PAIRS, [(1, 0)], 2)
    known: set[tuple[Any, ...]] = set()
    counts = []
    for at in range(12):
        added = {(n, f"t{n % 40}") for n in range(100 * at, 100 * at + 100)}
        rows = from_python(list(added), PAIRS)
        source = PartitionSource(files, jobs)
        files = source.changed(rows, rows.slice(0, 0), opening.ranges_of(rows, PAIRS))
        files = PartitionSource(files, jobs).folded()
        known |= added
        counts.append(len(files.sets[0].partitions))
        for each in files.sets:
            assert rows_of(read_set(files, each)) == known
    assert counts[0] == 2
    assert counts[-1] >= 16
    source = PartitionSource(files, jobs)
    keys = from_python([("t7",), ("none",)], Relation("k", ("k",), (SYMBOL,), False))
    assert rows_of(matching(source, (1, 0), keys)) == {each for each in known if each[1] == "t7"}


def test_partitions_share_a_file_of_changes(tmp_path: Path) -> None:
    root = str(tmp_path)
    empty = from_python([], PAIRS)
    changes = [
        (from_python([(1, "a"), (2, "b")], PAIRS), from_python([(3, "c")], PAIRS)),
        (empty, from_python([(None, "d")], PAIRS)),
        (from_python([(5, "e")], PAIRS), empty),
    ]
    written = change_files.write_changes(root, "changes", changes)
    assert [each.file for each in written] == ["changes"] * 3
    parts = tuple(StoredPartition().changed(each, ()) for each in written)
    files = PartitionedFiles(root, PAIRS, (PartitionSet(((0, 1),), parts),))
    again = PartitionedFiles.from_json(root, PAIRS, json.loads(json.dumps(files.to_json())))
    assert again == files
    for part, expected in zip(again.sets[0].partitions, changes, strict=True):
        found = change_files.read_change(root, part.changes[0])
        assert [rows_of(each) for each in found] == [rows_of(each) for each in expected]


SALES = Relation("s", ("id", "store", "amount"), (NUMBER, NUMBER, NUMBER.with_null(True)), False)


@pytest.mark.parametrize("is_unique", [True, False])
def test_keys_of_an_order_without_a_file(tmp_path: Path, is_unique: bool) -> None:
    """Where the first column nearly says the tuple, nothing is sorted to look two columns up."""
    rows = [(at if is_unique else at % 7, at % 3, None if at % 5 else at % 4) for at in range(200)]
    table, root = from_python(rows, SALES), str(tmp_path)
    stored = opening.write_partition(root, SALES, [(0, 1, 2)], table)
    known = set(rows)
    assert stored.distinct[0] == len({row[0] for row in known})
    order = (0, 2, 1)
    opened = opening.open_partition(root, SALES, ((0, 1, 2), order), 0, stored)
    keys = [(3, None), (5, 1), (20, 0), (21, None), (21, 1), (999, None)]
    asked = from_python(keys, Relation("k", ("id", "amount"), (NUMBER, SALES.types[2]), False))
    found = rows_of(opened.matches(order, asked))
    assert found == {row for row in known if (row[0], row[2]) in keys}
    sorted_orders = opened._base._tables[opening.STORED_NAME].old_layers().keys()
    assert (order in sorted_orders) is not is_unique


def test_texts_of_changes_are_not_looked_up_in_the_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, orders = str(tmp_path), ((0, 1),)
    rows = [(at, f"text {at}") for at in range(300)]
    stored = opening.write_partition(root, PAIRS, orders, from_python(rows, PAIRS))
    sides = [(7, "text 7"), (300, "text 8")], [(9, "text 9")]
    removed = change_files.write_change(
        root, "one", *(from_python(each, PAIRS) for each in ([], [rows[7], rows[8]]))
    )
    added = change_files.write_change(root, "two", *(from_python(each, PAIRS) for each in sides))
    for change in (removed, added):
        stored = stored.changed(change, stored.ranges)
    monkeypatch.setattr(SymbolDomain, "_find_stored", lambda *_: pytest.fail("looked up"))
    opened = opening.open_partition(root, PAIRS, orders, 0, stored)
    keys = Relation("k", ("k",), PAIRS.types[:1], False)
    found = opened.matches((0, 1), from_python([(7,), (8,), (9,), (10,), (300,)], keys))
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == [
        (7, "text 7"),
        (10, "text 10"),
        (300, "text 8"),
    ]


@pytest.mark.parametrize(
    ("rows", "is_unique"),
    [
        ([(1, "a"), (2, "a"), (None, "a")], True),
        ([(1, "a"), (1, "b")], False),
        ([(None, "a"), (None, "b"), (1, "a")], False),
    ],
)
def test_bases_say_whether_the_lead_is_unique(
    tmp_path: Path, rows: list[tuple[Any, ...]], is_unique: bool
) -> None:
    root, orders, table = str(tmp_path), ((0, 1),), from_python(rows, PAIRS)
    stored = opening.write_partition(root, PAIRS, orders, table)
    assert PartitionSet(orders, (StoredPartition(), stored)).has_unique_lead is is_unique
    change = change_files.write_change(root, "change", from_python([(9, "z")], PAIRS), table[:0])
    changed = stored.changed(change, ())
    assert not PartitionSet(orders, (changed, StoredPartition())).has_unique_lead


def test_reading_all_pushes_nothing_out(tmp_path: Path) -> None:
    root = str(tmp_path)
    table = from_python(pairs(300), PAIRS)
    stored = opening.write_partition(root, PAIRS, [(0, 1)], table)
    files = PartitionedFiles(root, PAIRS, (PartitionSet(((0, 1),), (stored,)),))
    opening._open.clear()
    jobs = PartitionJobs(run_here, lambda: 1)
    source = PartitionSource(files, jobs)
    assert rows_of(source.read()) == rows_of(table)
    assert not source.is_unique((0,))
    assert source.is_unique((0, 1))
    assert not opening._open
    assert all(present(source, table))
    assert len(opening._open) == 1
