"""Shares without Spark: requests are answered in this process, but pickled as they would be."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from corollary.database import database
from corollary.engines.spark import serving
from corollary.engines.spark.placed import PlacedEngine

SHARES = 3


class InProcess(PlacedEngine):
    """An engine whose jobs are loops."""

    jobs = 0

    def __init__(self, placement: str = "tasks", shares: int = SHARES) -> None:
        super().__init__(placement=placement, shares=shares)

    def _job(self, request: serving.Request) -> list[bytes]:
        InProcess.jobs += 1
        sent = pickle.dumps(request)
        return [
            serving.serve(pickle.loads(sent), share) for share in reversed(range(request.shares))
        ]


def share_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every database that is opened share its strata out."""

    def made(*_: Any, **__: Any) -> InProcess:
        return InProcess()

    monkeypatch.setattr(database, "made", made)
