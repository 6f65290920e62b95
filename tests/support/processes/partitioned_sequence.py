"""The sequence of `crash_sequence.py` with all relations in partitions, and tasks in this process.

Besides the points of `fault`, it dies where `COROLLARY_TEST_JOB` says: when the tasks of so many
jobs have done their work, and before the driver hears of it.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest

from corollary.engines.spark.relation import files as partition_files
from corollary.engines.spark.relation import handle, source
from support.processes.crash_sequence import nurse, run
from support.spark.in_process_partitions import InProcess, share_out

if TYPE_CHECKING:
    from collections.abc import Callable

FEW = (
    (handle, "DISTRIBUTED_MIN_TUPLES", 20),
    (source, "BUILD_MIN_TUPLES", 1),
    (partition_files, "FOLD_MIN_TUPLES", 1),
)
"""From here on, tasks write what they would write of many tuples."""


def run_in_partitions(place: str, acknowledge: Callable[[int], object]) -> None:
    """Run the sequence, and say which commits are acknowledged; print how many jobs there were."""
    last = int(os.environ.get("COROLLARY_TEST_JOB") or 0)
    done = 0
    run_tasks = InProcess._run_tasks

    def count(self: InProcess, task: Any, numbers: Any, title: str) -> list[bytes]:
        nonlocal done
        found = run_tasks(self, task, numbers, title)
        done += 1
        if done == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    with pytest.MonkeyPatch.context() as patch:
        share_out(patch, "partitions")
        for module, name, value in FEW:
            patch.setattr(module, name, value)
        patch.setattr(InProcess, "_run_tasks", count)
        run(place, acknowledge)
    if not last:
        acknowledge(1_000_000 + done)


if __name__ == "__main__":
    assert sys.argv[1:] == ["nurse"]
    nurse(run_in_partitions)
