"""Cases of evaluation on Spark: which ones always, and how one is checked."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from corollary.core.engine import BulkMode, Limits
from corollary.core.plans import Plan
from corollary.core.recorder import Recorder
from corollary.database.intake.evaluate_once import run_once
from corollary.database.program.loaded_program import read_programs
from corollary.database.state import DatabaseState
from corollary.database.writing.inputs import FileLocations
from corollary.engines.spark.engine import SparkEngine
from corollary.warehouse.formats.delimited import print_rows

QUICK = {
    "aggregates/all_five",
    "negation/wildcard",
    "recursion/non_linear",
    "types/wide",
}
AMPLE = Limits(rounds=10_000, tuples=1_000_000, seconds=1200)
"""A round takes some tenths of a second here."""


class QueryEngine(SparkEngine):
    """An engine whose facts are in partitions before they are read, and whose steps are queries."""

    def __init__(self, spark: Any) -> None:
        super().__init__(spark, placement="partitions", bulk=BulkMode.ALWAYS)

    def run(self, plan: Plan, recorder: Recorder, limits: Limits) -> int:
        """Run a plan."""
        self.commit()
        return super().run(plan, recorder, limits)


def check(folder: Path, directory: Path, engine: SparkEngine) -> None:
    """Evaluate a case and compare what it writes and prints."""
    program = read_programs([folder / "program.dl"])
    state = DatabaseState(engine, limits=AMPLE)
    outcome = run_once(state, program, FileLocations(folder / "facts", directory))
    printed = io.BytesIO()
    for directive, relation, table in outcome.printed:
        print_rows(table, printed, relation, directive)
    said = "".join(f"{name}\t{size}\n" for name, size in outcome.sizes.items()).encode()
    written = {file.name: file.read_bytes() for file in directory.iterdir()}
    expected = {file.name: file.read_bytes() for file in (folder / "expected").iterdir()}
    assert printed.getvalue() + said == expected.pop("stdout.txt", b"")
    assert written == expected
