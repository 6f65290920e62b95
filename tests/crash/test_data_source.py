"""However often what writes a stream is killed, every micro-batch is committed exactly once.

A process does what Spark does with a stream: it notes what a batch has, lets tasks stage the rows,
commits them, and notes that the batch is done; after a kill it begins with the first batch that is
not. Each batch adds a copy of the same row to a bag, so that one done twice would be seen.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import corollary
from corollary.database.database import warehouse_of
from corollary.database.upkeep.retention import Retention, collect
from corollary.database.upkeep.verify import verify
from support.figures import FIGURES, KILLED
from support.paths import TESTS

pytestmark = pytest.mark.crash

KILLS = int(os.environ.get("KILLS", "200"))
POINTS = ("before_intent", "after_intent", "before_commit", "after_commit")
"""Where a process dies by itself; the other kills come from outside, at any moment."""
LONGEST = 0.6
"""Seconds at most between a line of the process and a kill from outside."""
SCRIPT = TESTS / "support" / "processes" / "stream_writer.py"


def start(directory: Path, fault: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-u", str(SCRIPT), str(directory)],
        env={**os.environ, "COROLLARY_FAULT": fault},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_every_batch_is_written_once(tmp_path: Path) -> None:
    chance = random.Random(KILLS)
    with corollary.open(tmp_path / "w", engine="local") as db:
        db.load(text=".decl copies(x: number) bag")
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "metadata").write_text(json.dumps({"id": "killed"}))
    died = 0
    for number in range(KILLS):
        if number % 2:
            point = POINTS[number // 2 % len(POINTS)]
            with start(tmp_path, f"{point}:{chance.randint(1, 6)}") as process:
                process.wait()
        else:
            with start(tmp_path) as process:
                assert process.stdout is not None
                process.stdout.readline()
                time.sleep(chance.random() * LONGEST)
                os.killpg(process.pid, signal.SIGKILL)
        died += process.returncode == -signal.SIGKILL
    assert died == KILLS
    done = len(list((tmp_path / "checkpoint" / "commits").iterdir()))
    FIGURES.update({KILLED: died, "batches of a data source": done})
    with corollary.open(tmp_path / "w", engine="local") as db:
        # The last batch may be committed without being noted.
        assert db.commits - 1 in (done, done + 1)
        assert Counter(db.relation("copies").rows()) == {(7,): 3 * (db.commits - 1)}
        warehouse = warehouse_of(db)
        assert warehouse is not None
        collect(warehouse, Retention(intents=0.0))
        assert verify(warehouse).findings == []
    assert list((tmp_path / "w").rglob("staged-*")) == []
