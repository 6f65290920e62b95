"""Customers as a feed of changes tells of them: as they are now, and their history."""

from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, expr

spark = SparkSession.active()


@dp.table
def customer_changes():
    return (
        spark.readStream.format("json")
        .schema("id BIGINT, name STRING, city STRING, version BIGINT, operation STRING")
        .load("input/changes")
    )


dp.create_streaming_table("customers")

dp.create_auto_cdc_flow(
    target="customers",
    source="customer_changes",
    keys=["id"],
    sequence_by=col("version"),
    apply_as_deletes=expr("operation = 'DELETE'"),
    except_column_list=["operation", "version"],
)
