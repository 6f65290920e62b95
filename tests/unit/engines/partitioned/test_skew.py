"""Leads with heavy values: their tuples are in all partitions, and found there."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corollary
from corollary.core.arrow import DependencyCheck, from_python, to_python
from corollary.core.program import Relation
from corollary.core.types import NUMBER, SYMBOL
from corollary.database.database import state_of
from corollary.engines.spark import exchange
from corollary.engines.spark.jobs import PartitionJobs
from corollary.engines.spark.relation import partitioning
from corollary.engines.spark.relation.dependencies import violations_in
from corollary.engines.spark.relation.files import PartitionedFiles
from corollary.engines.spark.relation.open_partition import ranges_of
from corollary.engines.spark.relation.partitioning import (
    HeavyValues,
    Partitioning,
    choose_heavy,
    measure_values,
)
from corollary.engines.spark.relation.source import PartitionSource
from support.spark.in_process_partitions import (
    InProcess,
    RepeatedRows,
    matching,
    present,
    run_here,
    share_out,
    stage_changes,
)
from support.warehouse_scenarios import store_of

VISITS = Relation("visit", ("town", "name", "day"), (NUMBER.with_null(True), SYMBOL, NUMBER), False)
KEY = Relation("k", ("k",), VISITS.types[:1], False)
PAIR = Relation("k", ("k", "name"), VISITS.types[:2], False)


def visits(count: int, first: int = 0) -> list[tuple[int | None, str, int]]:
    """Of ten tuples, eight are of town 7, and one of none."""
    towns = {0: None, 1: 1000}
    return [
        (towns[n % 10] + n if n % 10 == 1 else towns.get(n % 10, 7), f"v{n}", n % 3)
        for n in range(first, first + count)
    ]


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> PartitionJobs:
    monkeypatch.setattr(partitioning, "PARTITION_TUPLES", 50)
    return PartitionJobs(run_here, lambda: 2)


def changed(files: PartitionedFiles, jobs: PartitionJobs, added: Any, removed: Any = ()) -> Any:
    tables = [from_python(list(each), VISITS) for each in (added, removed)]
    files = PartitionSource(files, jobs).changed(*tables, ranges_of(tables[0], VISITS))
    return PartitionSource(files, jobs).folded()


def largest(files: PartitionedFiles) -> int:
    return max(stored.size for part in files.sets for stored in part.partitions)


def check(files: PartitionedFiles, jobs: PartitionJobs, known: set[Any]) -> None:
    """Everything is found, by one column and by two."""
    source = PartitionSource(files, jobs)
    assert files.size == len(known)
    found = to_python(source.read())
    assert len(found) == len(known)
    assert set(found) == known
    some = [*sorted(known, key=repr)[::7], (7, "none", 1), (None, "v10", 7)]
    assert present(source, from_python(some, VISITS)) == [each in known for each in some]
    keys: list[tuple[Any, ...]] = [(7,), (None,), (1021,), (5,)]
    matched = to_python(matching(source, (0, 1, 2), from_python(keys, KEY)))
    assert sorted(matched, key=repr) == sorted((r for r in known if (r[0],) in keys), key=repr)
    keys = [(7, "v7"), (7, "v8"), (None, "v10"), (1021, "v21"), (1021, "v22"), (3, "v3")]
    matched = to_python(matching(source, (0, 1, 2), from_python(keys, PAIR)))
    assert sorted(matched, key=repr) == sorted((r for r in known if r[:2] in keys), key=repr)
    days = from_python([(2,)], Relation("k", ("k",), (NUMBER,), False))
    matched = to_python(matching(source, (2, 0, 1), days))
    assert sorted(matched, key=repr) == sorted((r for r in known if r[2] == 2), key=repr)


@pytest.mark.slow
def test_partitions_stay_small_while_a_value_grows(tmp_path: Path, jobs: PartitionJobs) -> None:
    """Inserts, deletes, folds and splits; the last lead has three values only."""
    files = PartitionedFiles.empty(str(tmp_path), VISITS, [(2, 0, 1)], 2)
    known: set[Any] = set()
    for first in range(0, 1600, 400):
        added = set(visits(400, first))
        removed = set(list(known)[::5])
        files = changed(files, jobs, added, removed)
        known = known - removed | added
        check(files, jobs, known)
    assert largest(files) < 8 * partitioning.PARTITION_TUPLES
    assert [each.heavy is not None for each in files.sets] == [True, True]
    by_town, by_day = (each.heavy for each in files.sets)
    assert by_town is not None
    assert by_town.columns == (1,)
    assert {7, 0} <= set(by_town.keys)  # null counts as 0
    assert by_day is not None
    assert set(by_day.keys) == {0, 1, 2}
    described = json.loads(json.dumps(files.to_json()))
    assert PartitionedFiles.from_json(str(tmp_path), VISITS, described) == files
    assert files.distinct[0] <= 1600
    # What it has once been found not to help is not tried again.
    before = jobs.counts.jobs
    files = changed(files, jobs, [(5, "one", 1)])
    assert jobs.counts.jobs - before <= 1


def test_a_probe_asks_no_more_partitions_than_it_must(tmp_path: Path, jobs: PartitionJobs) -> None:
    files = changed(PartitionedFiles.empty(str(tmp_path), VISITS, [], 16), jobs, visits(1000))
    part = files.sets[0]
    assert part.heavy is not None

    def asked(keys: list[Any], relation: Relation) -> list[int]:
        rows = from_python(keys, relation)
        return sorted(
            part.partitioning.rows_by_partition(rows, range(len(keys[0])), VISITS.types).keys()
        )

    assert asked([(7,)], KEY) == list(range(16))
    assert len(asked([(1021,)], KEY)) == 1
    assert len(asked([(7, "v7")], PAIR)) == 1
    assert len(asked([(7, "v7", 1)], VISITS)) == 1


@pytest.mark.slow
def test_a_load_is_spread_before_a_task_gets_all(
    tmp_path: Path, jobs: PartitionJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    gathered: list[int] = []
    write = exchange.write_partition

    def counted(*arguments: Any) -> Any:
        gathered.append(arguments[-1].num_rows)
        return write(*arguments)

    monkeypatch.setattr(exchange, "write_partition", counted)
    rows = visits(1500)
    handle = RepeatedRows(from_python(rows, VISITS))
    root = str(tmp_path)
    files = exchange.build_partitions(handle, VISITS, [(2, 0, 1)], root, jobs)
    check(files, jobs, set(rows))
    assert max(gathered) < 4 * partitioning.PARTITION_TUPLES
    arranged = PartitionSource(files, jobs).arranged((1, 0, 2))
    assert arranged.sets[2].heavy is None
    assert not [each for each in tmp_path.iterdir() if "piece" in each.name]


def test_tuples_that_agree_are_found_in_several_partitions(
    tmp_path: Path, jobs: PartitionJobs
) -> None:
    """The heavy tuples are spread by the name: the key (town, day) does not hold them together."""
    known = set(visits(600))
    files = changed(PartitionedFiles.empty(str(tmp_path), VISITS, [], 8), jobs, known)
    source = PartitionSource(files, jobs)
    assert source.unites((0, 1))
    assert not source.unites((0, 2))
    assert source.is_unique((0, 1))
    assert not source.is_unique((0, 2))
    none = source.no_rows
    dependency = DependencyCheck((0, 2), (1,), 2)
    groups = {(row[0], row[2]) for row in known}
    found = violations_in(source, dependency, none, none)
    several = {each for each in groups if sum((r[0], r[2]) == each for r in known) > 1}
    assert found.count == len(several) > 2
    assert [len(to_python(each)) for each in (found.ones, found.others)] == [2, 2]
    for one, other in zip(to_python(found.ones), to_python(found.others), strict=True):
        assert (one[0], one[2]) == (other[0], other[2])
        assert one[1] != other[1]
    held = DependencyCheck((0,), (2,), 9)
    files = changed(
        files, jobs, {(7, f"w{n}", 5) for n in range(90)}, {r for r in known if r[2] - 1}
    )
    source = PartitionSource(files, jobs)
    assert violations_in(source, held, none, none).count == 1
    ones = from_python([r for r in known if r[2] == 1 and r[0] == 7], VISITS)
    assert violations_in(source, held, none, ones).count == 0
    order = (0, 1, 2)
    for added, count in (((7, "z", 5), 0), ((7, "z", 6), 1), ((1021, "z", 1), 0), ((3, "z", 1), 0)):
        rows = from_python([added], VISITS)
        assert violations_in(source, held, rows, ones, order).count == count, added
    both = from_python([(3, "z", 1), (3, "y", 2)], VISITS)
    assert violations_in(source, held, both, ones, order).count == 1


def test_columns_that_spread() -> None:
    """One that tells the tuples of each value apart, the first of them; else all together."""
    rows = from_python([(1, f"n{n % 4}", n) for n in range(40)], VISITS)
    measured = measure_values(rows, (0, 1, 2), VISITS.types)
    assert measured == {1: (40, 10, 1)}
    limit = partitioning.PARTITION_TUPLES // partitioning.HEAVY_DIVISOR
    assert choose_heavy([{1: (limit, 1, 1)}], (1, 2)) is None
    assert choose_heavy([{1: (limit, 9, 1)}, {1: (9, 9, 1)}], (1, 2)) == HeavyValues((1,), (1,))
    wide = {5: (2 * limit, 2 * limit, 1)}
    first = choose_heavy([wide], (1, 2))
    assert first == HeavyValues((5,), (2,))
    assert choose_heavy([wide], (1, 2), first) is None
    assert choose_heavy([{9: (2 * limit, 1, 2 * limit)}], (1, 2), first) == HeavyValues(
        (5, 9), (1, 2)
    )
    assert choose_heavy([{5: (2 * limit, limit + 1, limit + 1)}], (1, 2)) == HeavyValues(
        (5,), (1, 2)
    )
    many = {key: (limit + key, 1, 1) for key in range(1, 3000)}
    found = choose_heavy([many], (1, 2))
    assert found is not None
    assert found.keys == tuple(range(3000 - partitioning.HEAVY_MAX_VALUES, 3000))


def test_one_more_bit_splits_heavy_tuples_as_well() -> None:
    heavy = HeavyValues((7,), (1, 2))
    rows = from_python(visits(500), VISITS)
    columns = dict(enumerate(rows.columns))
    few, many = (Partitioning(0, each, heavy).numbers(columns, VISITS.types) for each in (8, 16))
    assert (many >> 1).tolist() == few.tolist()
    towns = np.array([row[0] == 7 for row in visits(500)])
    assert np.bincount(few[towns], minlength=8).min() > 20


@pytest.fixture
def small_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitioning, "PARTITION_TUPLES", 6)
    share_out(monkeypatch, "partitions")


PROGRAM = """
.decl visit(town: number, name: symbol, day: number) key(name, town)
.decl met(a: symbol, b: symbol)
met(a, b) :- visit(t, a, d), visit(t, b, d), guest(a), guest(b), a != b.
.decl guest(name: symbol)
.decl busy(town: number, n: number)
busy(t, n) :- visit(t, _, _), n = count : { visit(t, _, _) }.
.decl away(name: symbol)
away(x) :- guest(x), !visit(7, x, _).
"""


@pytest.mark.slow
@pytest.mark.parametrize("staged", [None, 4])
def test_maintained_in_a_warehouse_that_is_opened_again(
    tmp_path: Path, small_partitions: None, monkeypatch: pytest.MonkeyPatch, staged: int | None
) -> None:
    """Nine of ten visits are in one town."""
    stage_changes(monkeypatch, staged)
    chance = random.Random(11)
    known: set[tuple[int, str, int]] = set()
    guests = [(f"v{n}",) for n in range(0, 120, 7)]
    place = tmp_path / "warehouse"
    for round_ in range(3):
        with corollary.open(place) as db:
            if not round_:
                db.load(text=PROGRAM)
            engine = state_of(db).engine
            assert isinstance(engine, InProcess)
            opened = engine.partitioned_files("visit")
            assert round_ == 0 or (opened is not None and opened.sets[0].heavy is not None)
            added = {
                (7 if chance.random() < 0.9 else chance.randrange(20), f"v{n}", n % 4)
                for n in range(round_ * 30, round_ * 30 + 50)
            }
            kept = {(row[1], row[0]) for row in known}
            added = {row for row in added if (row[1], row[0]) not in kept}
            removed = set(chance.sample(sorted(known), min(len(known), 8)))
            with db.transaction() as tx:
                tx.delete("visit", sorted(removed))
                tx.insert("visit", sorted(added))
                if not round_:
                    tx.insert("guest", guests)
            known = known - removed | added
            files = engine.partitioned_files("visit")
            assert files is not None
            assert largest(files) <= 8 * partitioning.PARTITION_TUPLES
            wanted = evaluated(known, {name for (name,) in guests})
            for name, rows in wanted.items():
                assert set(db.relation(name).rows()) == rows, (round_, name)
            clash = min(known)
            with pytest.raises(corollary.ConstraintError), db.transaction() as tx:
                tx.insert("visit", [(clash[0], clash[1], clash[2] + 1), (3, "new", 1)])
            store_of(db).fold(db._state)


def evaluated(known: set[tuple[int, str, int]], guests: set[str]) -> dict[str, set[Any]]:
    """The views, written out in Python."""
    invited = [row for row in known if row[1] in guests]
    return {
        "visit": set(known),
        "met": {
            (one[1], other[1])
            for one in invited
            for other in invited
            if (one[0], one[2]) == (other[0], other[2]) and one[1] != other[1]
        },
        "busy": {
            (town, sum(row[0] == town for row in known)) for town in {row[0] for row in known}
        },
        "away": {(name,) for name in guests if not any(r[:2] == (7, name) for r in known)},
    }


def change(db: corollary.Database, removed: set[Any], added: set[Any]) -> None:
    with db.transaction() as tx:
        tx.delete("r", sorted(removed))
        tx.insert("r", sorted(added))


@pytest.mark.slow
@pytest.mark.parametrize("staged", [None, 3])
def test_dependencies_are_checked_where_the_tuples_are(
    small_partitions: None, monkeypatch: pytest.MonkeyPatch, staged: int | None
) -> None:
    """Most tuples agree in a determinant: of these, only what violates it comes to the driver."""
    chance = random.Random(5)
    with corollary.open(None) as db:
        db.load(
            text=".decl r(town: number, land: symbol, name: number)\n.fd r(town -> land)\n"
            ".fd r(land, name -> town)"
        )
        known = {(7, "x", n) for n in range(60)} | {(n, "y", n) for n in range(8, 20)}
        with db.transaction() as tx:
            tx.insert("r", sorted(known))
        stage_changes(monkeypatch, staged)
        refused = 0
        for _ in range(10):
            picked = [chance.choice((7, 7, 8, 90)) for _ in range(chance.choice((1, 6)))]
            added = {
                (each, "xy"[(each != 7) ^ (chance.random() < 0.1)], chance.randrange(80, 110))
                for each in picked
            }
            removed = set(chance.sample(sorted(known), 4))
            after = known - removed | added
            lands: dict[int, set[str]] = {}
            towns: dict[tuple[str, int], set[int]] = {}
            for town, land, name in after:
                lands.setdefault(town, set()).add(land)
                towns.setdefault((land, name), set()).add(town)
            wrong = sum(len(each) > 1 for each in (*lands.values(), *towns.values()))
            before = state_of(db).engine.job_counts
            if not wrong:
                change(db, removed, added)
                known = after
            else:
                with pytest.raises(corollary.ConstraintError) as raised:
                    change(db, removed, added)
                assert str(raised.value).count("two tuples") == wrong
                refused += 1
            assert state_of(db).engine.job_counts.since(before).jobs
            assert set(db.relation("r").rows()) == known
        assert 1 < refused < 9
