"""The engine on a cluster of processes: executors may be lost at any time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.long]

SCRIPT = """
import os, signal, subprocess, sys
from pyspark.sql import SparkSession
import corollary

os.environ["PYSPARK_PYTHON"] = sys.executable
spark = (
    SparkSession.builder.master("local-cluster[2,1,512]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "4")
    .getOrCreate()
)
TEXT = '''
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
'''

def executors():
    found = subprocess.run(["pgrep", "-f", "CoarseGrainedExecutorBackend"], capture_output=True, text=True)
    return [int(each) for each in found.stdout.split()]

edges = [(n, n + 1) for n in range(60)]
db, local = corollary.open(None, spark=spark, placement="tasks"), corollary.open(None, engine="local")
for each in (db, local):
    each.load(text=TEXT)
lost = 0
for turn in range(6):
    victims = executors()
    if turn % 2 and victims:
        os.kill(victims[turn % len(victims)], signal.SIGKILL)
        lost += 1
    for each in (db, local):
        with each.transaction() as tx:
            tx.insert("edge", edges[turn * 10 : turn * 10 + 10])
            if turn:
                tx.delete("edge", [edges[turn * 10 - 3]])
    assert sorted(db.relation("path").rows()) == sorted(local.relation("path").rows()), turn
assert lost >= 2, lost
spark.stop()
print("survived", lost)
"""


def test_executors_may_be_lost(tmp_path: Path) -> None:
    script = tmp_path / "cluster.py"
    script.write_text(SCRIPT)
    found = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=600, cwd=tmp_path
    )
    assert found.returncode == 0, found.stderr[-3000:]
    assert found.stdout.splitlines()[-1].startswith("survived")
