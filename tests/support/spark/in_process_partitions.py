"""Shares without Spark: requests are answered in this process, but pickled as they would be."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from corollary.database import opening
from corollary.engines.local.engine import LocalEngine
from corollary.engines.spark.driver import DriverEngine
from corollary.engines.spark.partitioned import engine, open_partition, partition_files, source
from corollary.engines.spark.partitioned.jobs import serve_slice
from corollary.engines.spark.partitions import worker
from corollary.engines.spark.partitions.messages import Request

SHARES = 3


class InProcess(DriverEngine):
    """An engine whose jobs are loops, and whose queries another engine answers."""

    jobs = 0

    def __init__(
        self, placement: str = "tasks", shares: int = SHARES, memory: int | None = None
    ) -> None:
        super().__init__(placement=placement, partition_count=shares, memory=memory)

    def _new_sql_engine(self) -> Counted:
        return Counted()

    def _run_slices(self, slices: Mapping[int, bytes], title: str) -> list[bytes]:
        assert title
        InProcess.jobs += 1
        return [serve_slice(each) for each in slices.values()]

    def _run_job(self, request: Request) -> list[bytes]:
        InProcess.jobs += 1
        sent = pickle.dumps(request)
        return [
            worker.serve(pickle.loads(sent), partition)
            for partition in reversed(range(request.partitions))
        ]


class Counted(LocalEngine):
    """An engine that counts its runs as jobs."""

    def run(self, *arguments: Any) -> int:
        InProcess.jobs += 1
        return super().run(*arguments)


@contextmanager
def everything_partitioned(number: int) -> Iterator[None]:
    """Let all relations be in partitions in what is opened inside; a number says how it is there.

    Perhaps partitions are tiny, tasks write what else the driver would, folds come early, tasks
    find their partition closed, dictionaries are trimmed, and codes get too few bits at first.
    """
    chance = random.Random(number)
    with pytest.MonkeyPatch.context() as patch:
        share_out(patch, "partitions", chance.choice((1, 2, 3, 5)), chance.choice((1, 4, None)))
        patch.setattr(partition_files, "PARTITION_TUPLES", chance.choice((1, 4, 1 << 21)))
        patch.setattr(partition_files, "MERGE_MIN_FILES", chance.choice((2, 3, 16)))
        patch.setattr(partition_files, "SPLIT_RATIO", chance.choice((1, 2)))
        patch.setattr(partition_files, "FOLD_MIN_TUPLES", chance.choice((1, 1 << 13)))
        patch.setattr(source, "BUILD_MIN_TUPLES", chance.choice((1, 1 << 16)))
        patch.setattr(open_partition, "OPEN_MAX_PARTITIONS", chance.choice((1, 256)))
        patch.setattr(open_partition, "ASKED_MAX", chance.choice((1, 1 << 20)))
        patch.setattr(engine, "DICTIONARY_MAX_BYTES", chance.choice((0, 1 << 26)))
        yield


def share_out(
    monkeypatch: pytest.MonkeyPatch,
    placement: str = "tasks",
    shares: int = SHARES,
    interned_bits: int | None = None,
) -> None:
    """Let every database that is opened have its strata maintained elsewhere."""

    def made(*_: Any, **__: Any) -> InProcess:
        found = InProcess(placement, shares)
        if interned_bits is not None:
            found._partition_place.interned_bits = interned_bits
        return found

    monkeypatch.setattr(opening, "create_engine", made)
