"""A table for each region, made in a loop."""

from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

spark = SparkSession.active()


@dp.temporary_view
def shop_sales():
    sales, shops = spark.read.table("sales"), spark.read.table("retail_shops")
    return sales.join(shops, "shop").withColumn("day", F.to_date("at"))


@dp.temporary_view
def retail_shops():
    return spark.read.table("shops").where("state IS NOT NULL")


def sales_of(region):
    chosen = spark.read.table("shop_sales").where(F.col("region") == region)
    return chosen.select("shop", "state", "day", "item", "quantity")


for each in ("north", "south"):

    @dp.materialized_view(name=f"{each}_sales")
    def regional_sales(region=each):
        return sales_of(region)


@dp.materialized_view(name="large_items")
def items_of_large_sales():
    large = int(spark.conf.get("retail.large"))
    return (
        spark.read.table("shop_sales")
        .where(F.col("quantity") >= large)
        .groupBy("item")
        .agg(F.countDistinct("shop").alias("shops"), F.max("at").alias("last"))
    )
