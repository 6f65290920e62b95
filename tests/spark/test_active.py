"""A case of active rules with a session of Spark; in this process, partitions run all of them."""

from __future__ import annotations

from typing import Any

from support.cases.active_runs import CASES, name_of, run_case
from support.maintained_database import opened


def test_a_connection_is_lost(spark: Any) -> None:
    case = next(each for each in CASES if name_of(each) == "connection_lost")
    db = opened(case.text, engine="spark", spark=spark, placement="partitions")
    for name in case.virtual:
        db.watch(name)
    run_case(case, "auto", db)
