"""Dry runs and views that change, on Spark: the same as on the local engine, edit by edit."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.database.intake.pipeline import Inputs, PipelineRun, run
from corollary.database.program.loaded_program import read_programs
from corollary.database.upkeep.verify import verify
from support.comparison import comparable
from support.generators.view_edits import SALES, programs
from support.selection import examples, sampled


def told(outcome: PipelineRun) -> dict[str, Any]:
    """What a run says, but the seconds and where and how relations were computed."""
    found = {
        "changes": {name: each.as_json(1000) for name, each in outcome.changes.items()},
        "quarantined": outcome.quarantined,
    }
    if outcome.plan is not None:
        found["relations"] = [
            (each.relation, each.edit, each.counts, each.rows_before, each.rows_after)
            for each in outcome.plan.relations
        ]
        found["tables"] = [
            (each.relation, each.edit, each.before, each.after) for each in outcome.plan.tables
        ]
    return found


@pytest.mark.parametrize("placement", sampled(["partitions", "driver", "auto"], 3))
def test_edits_and_dry_runs(spark: Any, placement: str, tmp_path: Path) -> None:
    sales = list(SALES)
    for number, (edit, text) in enumerate(islice(programs(), examples(4, 12)), 1):
        sales = [line for line in sales if line not in edit.removed] + list(edit.added)
        (tmp_path / "shop.dl").write_text(text)
        (tmp_path / "sale.csv").write_text("".join(f"{line}\n" for line in sales))
        program, inputs = read_programs([tmp_path / "shop.dl"]), Inputs(tmp_path)
        seen = []
        for name, options in (
            ("local", {"engine": "local"}),
            ("spark", {"spark": spark, "placement": placement}),
        ):
            with corollary.open(tmp_path / name, **options) as db:
                commits = db.commits
                dry = run(db, program, inputs, is_dry=True)
                assert db.commits == commits
                outcome = run(db, program, inputs)
                assert outcome.commit == commits + 1, edit.title
                assert outcome.published is not None
                assert not outcome.published.problems
                assert told(dry)["changes"] == told(outcome)["changes"]
                stored = [
                    each.name
                    for each in db.program.declarations
                    if not db.relation(each.name).shape.is_virtual
                ]
                held = {each: comparable(db.relation(each).rows()) for each in stored}
                seen.append((told(dry), told(outcome), held))
                warehouse = corollary.database.database.warehouse_of(db)
                assert warehouse is not None
                assert number % 4 or not verify(warehouse).findings
        assert seen[0] == seen[1], edit.title
