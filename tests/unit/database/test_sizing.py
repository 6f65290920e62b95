"""Goals are planned with the sizes of the relations as they are, in a new database too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.core.pipeline import Probe
from corollary.core.plans import Plan, pipelines_of
from corollary.database.database import Database
from corollary.database.reading import read_access as asked
from corollary.database.size_estimates import query_sizes

PROGRAM = """
.decl large(x: number, y: number)
.decl small(x: number, y: number)
.decl both(x: number, z: number) virtual
both(x, z) :- large(x, y), large(x, z), small(y, z).
.decl far(x: number, y: number) virtual
far(x, y) :- large(x, y).
far(x, z) :- far(x, y), large(y, z).
.decl near(x: number, y: number) virtual
near(x, y) :- far(x, y), small(x, _).
.decl counted(n: number) virtual
counted(n) :- n = count : { small(_, _) }.
.decl kept(x: number) stored
kept(x) :- small(x, _).
"""


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """The plans of the goals that are asked."""
    made: list[Plan] = []
    answer = asked.answer_goal

    def noted(*arguments: Any) -> Plan:
        made.append(answer(*arguments))
        return made[-1]

    monkeypatch.setattr(asked, "answer_goal", noted)
    return made


def filled(place: Path | None) -> Database:
    database = corollary.open(place, engine="local")
    database.load(text=PROGRAM)
    with database.transaction() as transaction:
        transaction.insert("large", [(x, x + y) for x in range(300) for y in (1, 2)])
        transaction.insert("small", [(1, 2), (4, 5)])
    return database


def probed(plan: Plan, head: str) -> list[str]:
    """Return the relations that the rule of a relation probes, in order, behind its call."""
    (found,) = {
        tuple(stage.source.relation for stage in each.stages if isinstance(stage, Probe))
        for each in pipelines_of(plan)
        if each.origin.text.startswith(f"{head}(") and len(each.stages) > 2
    }
    return list(found[1:])


@pytest.mark.parametrize("is_opened_again", [False, True], ids=["at once", "opened again"])
def test_a_join_begins_with_what_is_small(
    tmp_path: Path, plans: list[Plan], is_opened_again: bool
) -> None:
    database = filled(tmp_path / "warehouse")
    if is_opened_again:
        database.close()
        database = corollary.open(tmp_path / "warehouse", engine="local")
    with database:
        rows = database.query("both(x, z)").to_pylist()
    assert sorted(each["x"] for each in rows) == [0, 3]
    assert probed(plans[0], "both") == ["small", "large", "large"]


def test_what_is_computed_comes_behind_what_is_small(plans: list[Plan]) -> None:
    with filled(None) as database:
        assert database.query("near(x, y)").num_rows == 300 + 297
    assert probed(plans[0], "near") == ["small", "far^bf•answers"]


def test_what_is_computed_is_as_large_as_what_it_is_computed_from() -> None:
    with filled(None) as database:
        sizes = query_sizes(database._state.loaded.normal, database._state.engine.size)
    told = {name: sizes[name] for name in ("large", "both", "far", "near", "counted", "kept")}
    assert told == {"large": 600, "both": 600, "far": 600, "near": 600, "counted": 2, "kept": 2}
