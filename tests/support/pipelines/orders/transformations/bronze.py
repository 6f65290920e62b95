"""Orders as they come in, and the customers who make them."""

from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

spark = SparkSession.active()


@dp.table
def orders_bronze():
    return (
        spark.readStream.format("json")
        .schema("order_id BIGINT, customer STRING, item STRING, quantity INT, price DOUBLE")
        .load("input/orders")
    )


@dp.materialized_view
def customers():
    return (
        spark.read.format("csv")
        .schema("customer STRING, city STRING")
        .option("header", "true")
        .load("input/customers")
        .withColumn("city", F.upper("city"))
    )
