"""Which task takes a partition, and where it runs: as few as can be move when others come or go."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any
from unittest.mock import Mock

from corollary.engines.spark.jobs import Execution, assign_slots
from corollary.engines.spark.resources import BLOCKS, SparkResources, TaskRunner


def test_partitions_are_spread_evenly_and_few_move() -> None:
    chance = random.Random(1)
    for _ in range(50):
        count, slots = 1 << chance.randrange(9), chance.randrange(1, 70)
        before = assign_slots(count, slots)
        assert before == [number % slots for number in range(count)]
        for _ in range(4):
            slots = max(1, slots + chance.randrange(-9, 9))
            after = assign_slots(count, slots, before)
            for size in (1 << bits for bits in range(count.bit_length())):
                assert max(Counter(after[:size]).values()) <= -(-size // slots)
            before = after
    before = assign_slots(256, 16)
    for slots, most in ((16, 0), (17, 16), (15, 16 + 16), (20, 60)):
        after = assign_slots(256, slots, before)
        assert sum(a != b for a, b in zip(before, after, strict=True)) <= most


def runner_of(names: list[str]) -> TaskRunner:
    """A runner of a cluster that says which executors there are, by a list that may change."""
    context: Any = Mock()
    context.parallelize = lambda numbers, _: Mock(persist=lambda: Mock(numbers=numbers))
    context.union = lambda blocks: [each.numbers for each in blocks]
    keys = context._jsc.sc().getExecutorMemoryStatus().keySet()
    keys.mkString = lambda _: " ".join(names)
    return TaskRunner(Mock(sparkContext=context))


def test_executors_that_come_or_go_move_their_share() -> None:
    names = [f"host:{port}" for port in range(10)]
    runner = runner_of(names)
    placed = runner._placed_numbers(60)
    assert [number for numbers in placed for number in numbers] == [*range(64)]
    first = [block for _, block in runner.blocks]
    assert len(first) == BLOCKS

    def kept() -> list[bool]:
        assert [n for numbers in runner._placed_numbers(60) for n in numbers] == [*range(64)]
        return [block is known for (_, block), known in zip(runner.blocks, first, strict=False)]

    assert all(kept())
    names.pop()  # Spark makes its blocks elsewhere
    assert all(kept())
    names.append("host:77")
    assert sum(kept()) == BLOCKS - 1
    names.clear()  # nobody says
    assert sum(kept()) == BLOCKS - 1
    runner._placed_numbers(100)
    assert [n for numbers, _ in runner.blocks for n in numbers] == [*range(128)]
    assert sum(block in first for _, block in runner.blocks) == BLOCKS - 1


def test_a_cluster_that_does_not_say_who_is_there() -> None:
    runner = runner_of([])
    runner.session.sparkContext._jsc.sc.side_effect = TypeError("JavaPackage is not callable")
    assert len(runner._placed_numbers(3)) == BLOCKS


def test_a_session_is_asked_once_what_workers_may_have() -> None:
    stated = {"spark.executor.pyspark.memory": "3g", "spark.executor.cores": "2"}
    session = Mock()
    session.conf.get = Mock(side_effect=lambda name, _: stated[name])
    resources = SparkResources(session, None, Execution.SPARK)
    assert [resources.worker_memory for _ in range(3)] == [3 << 29] * 3
    assert session.conf.get.call_count == len(stated)
