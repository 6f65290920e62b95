"""Shares without Spark: requests are answered in this process, but pickled as they would be."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import pytest

from corollary.database import opening
from corollary.engines.local.engine import LocalEngine
from corollary.engines.spark.driver import DriverEngine
from corollary.engines.spark.partitioned.jobs import serve_slice
from corollary.engines.spark.partitions import worker
from corollary.engines.spark.partitions.messages import Request

SHARES = 3


class InProcess(DriverEngine):
    """An engine whose jobs are loops, and whose queries another engine answers."""

    jobs = 0

    def __init__(self, placement: str = "tasks", shares: int = SHARES) -> None:
        super().__init__(placement=placement, partition_count=shares)

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


def share_out(monkeypatch: pytest.MonkeyPatch, placement: str = "tasks") -> None:
    """Let every database that is opened have its strata maintained elsewhere."""

    def made(*_: Any, **__: Any) -> InProcess:
        return InProcess(placement)

    monkeypatch.setattr(opening, "create_engine", made)
