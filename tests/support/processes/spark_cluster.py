"""What must hold on a cluster that loses executors, run as a program: it has a session of its own.

`PYTHONPATH=tests python -m support.processes.spark_cluster` maintains a view on
`local-cluster[2,1,512]`, kills executors between transactions, and compares the view with what
the local engine gives.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from pyspark.sql import SparkSession

import corollary
from corollary.engines.spark.java import set_java_home
from support.maintained_database import closure

NODES, TURNS = 60, 6
STEP = NODES // TURNS


def executors() -> list[int]:
    """Return the processes of the executors."""
    command = ["pgrep", "-f", "CoarseGrainedExecutorBackend"]
    found = subprocess.run(command, check=False, capture_output=True, text=True)
    return [int(each) for each in found.stdout.split()]


def main() -> None:
    """Maintain the view, and kill an executor before every other transaction."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    set_java_home()
    spark = (
        SparkSession.builder.master("local-cluster[2,1,512]")
        .config("spark.executor.memory", "512m")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    edges = [(n, n + 1) for n in range(NODES)]
    there = corollary.open(None, spark=spark, placement="tasks")
    here = corollary.open(None, engine="local")
    for database in (there, here):
        database.load(text=closure(type_="number"))
    lost = 0
    for turn in range(TURNS):
        if turn % 2:
            os.kill(executors()[0], signal.SIGKILL)
            lost += 1
        for database in (there, here):
            with database.transaction() as transaction:
                transaction.insert("edge", edges[turn * STEP : (turn + 1) * STEP])
                if turn:
                    transaction.delete("edge", [edges[turn * STEP - 3]])
        one, two = (sorted(each.relation("reach").rows()) for each in (there, here))
        assert one == two, turn
    there.close()
    spark.stop()
    print("lost", lost)


if __name__ == "__main__":
    main()
