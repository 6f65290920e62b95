"""Tables whose added tuples are in partitions: changes before the commit lose nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from corollary.core.arrow import from_python, to_python
from corollary.core.program import Relation
from corollary.core.states import State
from corollary.core.types import NUMBER, SYMBOL
from corollary.engines.spark.relation.contents import contents_of
from support.spark.in_process_partitions import InProcess

PAIRS = Relation("p", ("x", "name"), (NUMBER, SYMBOL), False)
OTHER = Relation("q", ("x", "name"), (NUMBER, SYMBOL), False)
ROWS = {(n, f"t{n % 5}") for n in range(30)}


@pytest.fixture
def engine() -> Iterator[InProcess]:
    made = InProcess("partitions")
    made.declare({"p": PAIRS, "q": OTHER})
    made.insert("q", from_python(list(ROWS), OTHER))
    made.commit()
    files, contents = made.partitioned_files("q"), contents_of(made._tables["p"])
    assert files is not None
    assert contents is not None
    contents.load(files)
    made._written.add("p")  # as `load` of the engine does
    yield made
    made.close()


def rows(engine: InProcess, state: State = State.NEW) -> set[tuple[Any, ...]]:
    found = to_python(engine.read("p", state))
    assert len(found) == len(set(found)) == engine.size("p", state)
    return set(found)


def test_a_load_is_added_until_it_is_committed(engine: InProcess) -> None:
    assert rows(engine) == rows(engine, State.ADDED) == ROWS
    assert rows(engine, State.OLD) == set()
    engine.commit()
    assert rows(engine) == rows(engine, State.OLD) == ROWS


def test_a_load_is_rolled_back(engine: InProcess) -> None:
    engine.rollback()
    assert rows(engine) == set()


@pytest.mark.parametrize("is_removed_first", [True, False])
def test_more_is_inserted_and_deleted(engine: InProcess, is_removed_first: bool) -> None:
    removed = [(3, "t3"), (4, "none")]
    added = [(3, "new"), (7, "t2"), (100, "t0")]
    if is_removed_first:
        engine.delete("p", removed)
    engine.insert("p", added)
    if not is_removed_first:
        engine.delete("p", removed)
    wanted = ROWS - set(removed) | set(added)
    assert rows(engine) == wanted
    engine.commit()
    assert rows(engine, State.OLD) == wanted


def test_a_recorded_change_follows_a_load(engine: InProcess) -> None:
    added, removed = [(50, "u")], [(5, "t0")]
    engine.apply_change("p", from_python(added, PAIRS), from_python(removed, PAIRS))
    assert rows(engine) == ROWS - set(removed) | set(added)
    engine.commit()
    assert rows(engine, State.OLD) == ROWS - set(removed) | set(added)


def test_columns_are_a_key_as_far_as_tuples_go(engine: InProcess) -> None:
    """Of what is in partitions, and of the open change."""
    table = engine._tables["p"]
    assert table.is_key(1, State.NEW)
    engine.insert("p", [(100, "t0")])
    assert table.is_key(1, State.NEW)
    engine.insert("p", [(100, "t1")])
    assert not table.is_key(1, State.NEW)
    assert table.is_key(2, State.NEW)
    engine.delete("p", [(100, "t0")])
    assert table.is_key(1, State.NEW)
    engine.commit()
    table = engine._tables["p"]
    assert table.is_key(1, State.OLD)
    engine.insert("p", [(3, "other")])
    assert table.is_key(1, State.OLD)
    assert not table.is_key(1, State.NEW)
    engine.delete("p", [(3, "t3")])
    assert table.is_key(1, State.NEW)
    engine.insert("p", [(3, "t3")])
    engine.commit()
    assert not engine._tables["p"].is_key(1, State.OLD)
