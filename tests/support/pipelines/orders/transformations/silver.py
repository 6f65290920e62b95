"""Orders that can be counted on, and the others."""

from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

spark = SparkSession.active()


@dp.temporary_view
def checked_orders():
    return spark.readStream.table("orders_bronze").withColumn(
        "is_good", (F.col("quantity") > 0) & F.col("customer").isNotNull()
    )


@dp.table
def orders_silver():
    return (
        spark.readStream.table("checked_orders")
        .where("is_good")
        .withColumn("amount", F.col("quantity") * F.col("price"))
        .select("order_id", "customer", "item", "quantity", "amount")
    )


dp.create_streaming_table("orders_rejected")


@dp.append_flow(target="orders_rejected")
def rejected():
    return (
        spark.readStream.table("checked_orders")
        .where("NOT coalesce(is_good, false)")
        .select("order_id", "customer", "item", "quantity", "price")
    )
