"""What a closure costs without Corollary, on Spark: a loop of DataFrames, and its own recursion."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOOP_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",  # one job a round: nothing is shuffled, so no stages
    "spark.sql.autoBroadcastJoinThreshold": "-1",  # only edges are broadcast
    "spark.sql.requireAllClusterKeysForCoPartition": "false",  # parts by x match joins on (x, y)
}
"""What is best for `loop`."""

RECURSION_SETTINGS = {
    "spark.sql.cteRecursionLevelLimit": "-1",
    "spark.sql.cteRecursionRowLimit": "-1",
}
"""What `recursive` needs."""

RECURSIVE = """
WITH RECURSIVE closure(x, y) AS (
    SELECT x, y FROM edge
    UNION ALL
    SELECT /*+ BROADCAST(edge) */ closure.x, edge.y FROM closure JOIN edge ON closure.y = edge.x)
SELECT x, y FROM closure
"""


def rival_session(spark: "SparkSession", settings: Mapping[str, str]) -> "SparkSession":
    """Return a session beside another, with settings."""
    beside = spark.newSession()
    for name, value in settings.items():
        beside.conf.set(name, value)
    return beside


def loop(edges: "DataFrame", partitions: int) -> tuple[int, int]:
    """Compute the closure of edges semi-naively; return its tuples and the rounds.

    Everything that is kept is partitioned by x, and stays so: a step broadcasts the edges, what it
    finds is made distinct and compared with what is known partition by partition, and nothing but
    the first step shuffles. A round is one job: its tuples are counted as they are kept.
    """
    from pyspark.sql import Observation
    from pyspark.sql.functions import broadcast, col, count, lit

    steps = broadcast(edges.select(col("x").alias("y"), col("y").alias("z")))

    def kept(tuples: "DataFrame") -> "tuple[DataFrame, int]":
        counted = Observation()
        held = tuples.observe(counted, count(lit(1)).alias("tuples")).localCheckpoint()
        return held, int(counted.get["tuples"])

    newest, total = kept(edges.repartition(partitions, "x"))
    known, rounds = newest, 0
    while True:
        found = newest.join(steps, "y").select("x", col("z").alias("y")).distinct()
        newest, size = kept(found.join(known.hint("shuffle_hash"), ["x", "y"], "left_anti"))
        rounds += 1
        if not size:
            return total, rounds
        total += size
        known = known.union(newest).localCheckpoint(eager=False)  # as a part of the next round


def recursive(session: "SparkSession", edges: "DataFrame") -> int:
    """Compute the closure of a tree by `WITH RECURSIVE`; return its tuples, counted on the way."""
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    edges.createOrReplaceTempView("edge")
    counted = Observation()
    found = session.sql(RECURSIVE).observe(counted, count(lit(1)).alias("tuples"))
    found.write.format("noop").mode("overwrite").save()
    return int(counted.get["tuples"])
