"""Thousands of partitions, of which a commit touches a few: it costs what it touches."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from corollary.core.arrow import from_python
from corollary.core.program import Relation
from corollary.core.types import NUMBER
from corollary.engines.local.storage.code_range import CodeRange
from corollary.engines.spark.relation.files import (
    PartitionChange,
    PartitionedFiles,
    PartitionFigures,
    PartitionSet,
    StoredPartition,
)
from corollary.engines.spark.relation.manifest import MANIFEST, Manifest
from corollary.engines.spark.relation.partitioning import partition_of
from support.maintained_database import opened
from support.spark.in_process_partitions import share_out

PROGRAM = """
.decl p(x: number, y: number)
.decl q(x: number, y: number)
q(x, y + 1) :- p(x, y).
"""
TOUCHED = 8
BEYOND_SECONDS = 0.03
"""The bar for what the others may cost."""


def made_up(files: PartitionedFiles, touched: set[int]) -> PartitionedFiles:
    """Return files that are not there, but for partitions that are touched."""
    sets = []
    for part in files.sets:
        others = {
            number: StoredPartition(f"b{number}", 1000, (), (900, 10), (CodeRange(0, 20),) * 2)
            for number in range(len(part.partitions))
            if number not in touched
        }
        sets.append(part.with_partitions(others))
    return replace(files, sets=tuple(sets))


def rows_of_partitions(count: int, rounds: int) -> tuple[set[int], list[list[tuple[int, int]]]]:
    """Return some partitions, and for each round a row of each."""
    table = from_python([(n,) for n in range(40 * count)], Relation("r", ("x",), (NUMBER,), False))
    numbers = partition_of(table.column(0), NUMBER, count)
    touched = range(0, count, count // TOUCHED)
    found = [np.flatnonzero(numbers == each)[:rounds].tolist() for each in touched]
    return {*touched}, [[(each[at], at) for each in found] for at in range(rounds)]


def seconds_of_a_commit(count: int, rounds: int = 4) -> float:
    """Return the least processor time of a commit that touches a few of some partitions."""
    touched, rows = rows_of_partitions(count, rounds)
    db = opened(PROGRAM)
    engine: Any = db._state.engine
    for name in ("p", "q"):
        declared, orders = engine.relations[name], engine._tables[name].known_orders
        root = engine.partition_place.root
        files = PartitionedFiles.empty(root, declared, orders, count)
        engine.attach_files(name, made_up(files, touched))
    taken = []
    for each in rows:
        began = time.process_time()
        with db.transaction() as tx:
            tx.insert("p", each)
        taken.append(time.process_time() - began)
    sizes = {len(each.partitions) for each in engine.partitioned_files("q").sets}
    assert sizes == {count}
    assert engine.size("q") == 1000 * (count - TOUCHED) + TOUCHED * rounds
    db.close()
    return min(taken)


@pytest.mark.slow
def test_a_commit_costs_what_it_touches(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch)
    few = seconds_of_a_commit(2 * TOUCHED)
    assert seconds_of_a_commit(8192) < few + BEYOND_SECONDS


def test_figures_follow_the_partitions() -> None:
    chance = random.Random(5)

    def any_partition() -> StoredPartition:
        changes = tuple(
            PartitionChange(f"c{at}", chance.randrange(9), chance.randrange(3))
            for at in range(chance.randrange(3))
        )
        base = chance.choice((None, "b"))
        if base is None and not changes:
            return StoredPartition()
        known = (chance.randrange(50), 7), (CodeRange(0, chance.randrange(1, 9)), None)
        return StoredPartition(base, chance.randrange(100) if base else 0, changes, *known)

    part = PartitionSet(((0, 1),), (StoredPartition(),) * 16)
    for _ in range(30):
        some = chance.sample(range(16), chance.randrange(4))
        part = part.with_partitions({at: any_partition() for at in some})
        found, expected = part.figures, PartitionFigures.of(part.partitions, 2)
        for name in ("sizes", "bases", "changed", "changes", "files", "distinct"):
            assert getattr(found, name).tolist() == getattr(expected, name).tolist(), name
        for kept, least in zip(found.ranges, expected.ranges, strict=True):
            assert kept is least is None or kept.includes(least)  # what went may still count
        assert part.size == sum(each.size for each in part.partitions)
        assert part.used == [at for at, each in enumerate(part.partitions) if each.files]


def test_a_manifest_is_written_by_difference(tmp_path: Path) -> None:
    """Indexes name the same description, and what has changed since, until that is much."""
    relation = Relation("p", ("x", "y"), (NUMBER, NUMBER), False)
    root = tmp_path / "here"
    root.mkdir()
    files = made_up(PartitionedFiles.empty(str(root), relation, [(1, 0)], 64), {5})
    for number in range(64):
        (root / f"b{number}").write_bytes(b"")
    manifest, bases, sizes = Manifest(), list[str | None](), list[int]()
    for numbers in ([], [3], [3, 60], range(50)):
        for number in numbers:
            stored = files.sets[0].partitions[number]
            changed = stored.changed(PartitionChange(f"b{number}", len(numbers), 0), ())
            files = files.with_set(files.sets[0].with_partitions({number: changed}))
        saved = dict(manifest.save([files]))
        bases.append(manifest.base)
        sizes.append(len(saved[MANIFEST]))
        index = {MANIFEST: pa.py_buffer(saved.pop(MANIFEST))}
        reader, other = Manifest(), tmp_path / f"there-{len(bases)}"
        other.mkdir()
        found = reader.restore(str(other), {"p": relation}, index, saved)["p"]
        assert replace(found, root=str(root)) == files
        # Who reads it goes on where the writer is.
        assert dict(reader.save([found]))[MANIFEST] == index[MANIFEST].to_pybytes()
    assert bases[0] == bases[1] == bases[2] != bases[3]
    assert sizes[0] == sizes[3] < sizes[1] < sizes[2] < 1000
