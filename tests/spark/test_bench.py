"""The benchmark of Spark at a tiny size, in the session that there is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.paths import REPOSITORY

sys.path.append(str(REPOSITORY))  # `bench` stands beside `tests`, not in `src`

import corollary
from bench import jobs, orders
from bench import spark as figures
from bench.jobs import Cost, Session

pytestmark = pytest.mark.spark


@pytest.mark.long
def test_its_answers_agree(spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Unlogged(Session):
        """The session of the tests writes no event log."""

        def _events(self) -> list[dict[str, Any]]:
            return []

    @contextmanager
    def session() -> Iterator[Session]:
        yield Unlogged(spark, tmp_path)

    tree = figures.data.random_tree(8)
    monkeypatch.setattr(figures, "session", session)
    monkeypatch.setattr(figures, "_warm", lambda _: None)
    monkeypatch.setattr(figures, "DELETES", 1)
    monkeypatch.setattr(figures, "RECOMPUTED", 1)
    monkeypatch.setattr(figures.data, "random_tree", lambda _: tree)  # few levels, so few jobs
    found = list(figures.run(0.01))
    assert {each.differences for each in found} == {()}
    assert all(each.value > 0 for each in found if not each.name.endswith("jobs"))


@pytest.mark.long
def test_orders_are_found_and_collected(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "BATCHES", 3)
    found = {each.name: each for each in orders.run(0.005)}
    assert {each.differences for each in found.values()} == {()}
    assert found["workers"].value > 0
    assert found["growth"].verdict == "ok"


def test_wrong_orders_would_be_noticed() -> None:
    sent = [orders.Order("s", "o1", 0, 9000), orders.Order("s", "o2", 1, 3601)]
    with corollary.open(None, engine="local") as database:
        database.load(
            text=f".decl document_answer(d: symbol, v: symbol, a: symbol){orders.PROGRAM}"
        )
        with database.transaction() as transaction:
            transaction.insert("document_answer", [("s", "done", '["o1", "0", "9000"]')])
            labels = [("o3", "0", "3601"), ("o4", "0", "3600")]
            for answer, each in enumerate(labels):
                rows = [("s", "done", f"{answer}", at, label) for at, label in enumerate(each)]
                transaction.insert("document_label", rows)
        assert list(orders._differences(database, sent)) == [
            "document_answer: of 2, 1 are missing, 0 are wrong",
            "slow: of 1, 1 are missing, 1 are wrong",
        ]


def _stored(is_stored: bool) -> dict[str, Any]:
    return {"Storage Level": {"Use Memory": is_stored}}


def test_costs_are_those_of_the_log() -> None:
    stages = [
        {
            "Event": "SparkListenerStageCompleted",
            "Stage Info": {
                "Number of Tasks": 2,
                "Accumulables": [
                    {"Name": jobs.SHUFFLED, "Value": 300},
                    {"Name": jobs.RETURNED, "Value": "40"},
                    {"Name": "duration", "Value": "7"},
                ],
            },
        }
    ] * 2
    blocks = [
        {"Event": "SparkListenerBlockUpdated", "Block Updated Info": each}
        for each in (
            {"Block ID": "broadcast_1", "Memory Size": 5_000},
            {"Block ID": "broadcast_1_piece0", "Memory Size": 1_000, **_stored(True)},
            {"Block ID": "broadcast_0_piece0", "Memory Size": 7_000, **_stored(False)},
            {"Block ID": "rdd_1_0", "Memory Size": 5_000},
        )
    ]
    cost = jobs.cost_of([{"Event": "SparkListenerJobStart"}, *stages, *blocks])
    assert cost == Cost(jobs=1, stages=2, tasks=4, sent=1_000, shuffled=600, returned=80)
    assert str(cost) == "1 job, 2 stages, 1.0 kB sent, 600 B shuffled, 80 B returned"
