"""An application for `spark-submit`: a network in a warehouse, maintained by a cluster.

spark-submit --master spark://HOST:7077 deploy/network.py WAREHOUSE [--placement partitions]

It prints how many routes there are at first, and what one broken link changes. A session of Spark
Connect will do as well: `SPARK_REMOTE=sc://HOST:15002 python deploy/network.py WAREHOUSE`.
"""

import argparse

from pyspark.sql import SparkSession

import corollary

PROGRAM = """
.decl link(x: number, y: number)
.decl route(x: number, y: number)
route(x, y) :- link(x, y).
route(x, z) :- route(x, y), link(y, z).
.decl reached(x: number, n: number)
reached(x, n) :- link(x, _), n = count : { route(x, _) }.
.output reached
"""
NODES = 200


def main() -> None:
    """Fill the warehouse, break a link, and say what changed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("warehouse", help="a directory that driver and executors see")
    parser.add_argument("--placement", default="auto", help="where views are maintained")
    options = parser.parse_args()
    spark = SparkSession.builder.appName("network").getOrCreate()
    with corollary.open(options.warehouse, spark=spark, placement=options.placement) as db:
        db.load(text=PROGRAM)
        with db.transaction() as filled:
            filled.insert("link", [(n, n + 1) for n in range(NODES)])
        print(f"{len(db.relation('route')):,} routes ({filled.stats['route'].placement})")
        with db.transaction() as broken:
            broken.delete("link", [(NODES // 2, NODES // 2 + 1)])
        added, removed = broken.changes["route"].counts
        print(f"a broken link: {removed:,} routes less, {added:,} more")
        db.publish(broken)
    spark.stop()


if __name__ == "__main__":
    main()
