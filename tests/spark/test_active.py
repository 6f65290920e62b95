"""The cases of `tests/cases/active` on Spark, in every placement: some always, the rest sampled."""

from __future__ import annotations

from typing import Any

import pytest

from support.cases.active import ActiveCase
from support.cases.active_runs import CASES, name_of, run_case
from support.maintained_database import opened

pytestmark = pytest.mark.spark

QUICK = {
    ("connection_lost", "partitions"),
    ("constraint_over_aggregate", "auto"),
}


@pytest.mark.parametrize(
    ("case", "placement"),
    [
        pytest.param(
            case,
            placement,
            id=f"{name_of(case)}-{placement}",
            marks=() if (name_of(case), placement) in QUICK else pytest.mark.matrix(45),
        )
        for case in CASES
        for placement in ("auto", "partitions")
    ],
)
def test_active_rules(case: ActiveCase, placement: str, spark: Any) -> None:
    db = opened(case.text, engine="spark", spark=spark, placement=placement)
    for name in case.virtual:
        db.watch(name)
    run_case(case, "auto", db)
