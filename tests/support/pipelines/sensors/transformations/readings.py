"""Readings of sensors by day, and what a function in Python makes of them."""

from pyspark import pipelines as dp
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import StringType

spark = SparkSession.active()


@dp.materialized_view
def readings():
    frame = spark.read.format("parquet").load("input/readings")
    return frame.withColumn("day", F.to_date("at")).where(F.col("value").isNotNull())


@dp.materialized_view
def daily():
    return (
        spark.read.table("readings")
        .groupBy("sensor", "day")
        .agg(F.count("*").alias("n"), F.max("value").alias("most"), F.min("value").alias("least"))
    )


@dp.materialized_view
def steps():
    in_order = Window.partitionBy("sensor").orderBy("at")
    before = F.lag("value").over(in_order)
    return spark.read.table("readings").select(
        "sensor", "at", (F.col("value") - before).alias("step")
    )


@dp.materialized_view
def labels():
    label = F.udf(lambda name: f"<{name[::-1]}>", StringType())
    return spark.read.table("daily").select("sensor", label("sensor").alias("label")).distinct()


@dp.materialized_view
def labelled():
    return (
        spark.read.table("daily")
        .join(spark.read.table("labels"), "sensor")
        .groupBy("label")
        .agg(F.sum("n").alias("n"))
    )
