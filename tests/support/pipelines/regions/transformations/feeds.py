"""Sales of two halves of a country, whose tills write other files, in one table."""

from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

spark = SparkSession.active()


def eastern_sales():
    schema = "shop INT, item STRING, quantity INT, at TIMESTAMP"
    return spark.readStream.format("json").schema(schema).load("input/east")


def western_sales():
    tills = (
        spark.readStream.format("csv")
        .schema("at TIMESTAMP, shop INT, article STRING, pieces INT")
        .option("header", "true")
        .load("input/west")
    )
    return tills.withColumnsRenamed({"article": "item", "pieces": "quantity"}).select(
        F.lower(F.trim("item")).alias("item"), "shop", "quantity", "at"
    )


@dp.table(comment="of all shops")
def sales():
    return eastern_sales().unionByName(western_sales())


@dp.materialized_view
def shops():
    return (
        spark.read.format("csv")
        .schema("shop INT, state STRING, region STRING")
        .option("header", "true")
        .load("input/shops")
    )
