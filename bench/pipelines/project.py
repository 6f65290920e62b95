"""The project: 18 datasets in Python and SQL, by their files."""

HEAD = """\
from pyspark import pipelines as dp
from pyspark.sql import SparkSession, Window, functions as F

spark = SparkSession.active()
"""
BRONZE = """

@dp.table
def orders_bronze():
    schema = "id BIGINT, customer BIGINT, day DATE, status STRING"
    return spark.readStream.format("parquet").schema(schema).load("input/orders")


@dp.table
def lines_bronze():
    schema = "order_id BIGINT, line INT, product BIGINT, quantity INT"
    return spark.readStream.format("parquet").schema(schema).load("input/lines")


@dp.materialized_view
def customers():
    schema = "customer BIGINT, name STRING, city STRING"
    return spark.read.format("csv").option("header", "true").schema(schema).load("input/customers")


@dp.materialized_view
def products():
    schema = "product BIGINT, category STRING, price DECIMAL(10, 2)"
    return spark.read.format("csv").option("header", "true").schema(schema).load("input/products")
"""
"""What comes in: orders and their lines as they are placed, customers and products as they are."""
SILVER = """

@dp.table
def orders():
    return spark.readStream.table("orders_bronze").where(F.col("status") != "cancelled")


dp.create_streaming_table("cancelled")


@dp.append_flow(target="cancelled")
def cancellations():
    return spark.readStream.table("orders_bronze").where("status = 'cancelled'")


@dp.materialized_view
def lines():
    priced = spark.read.table("lines_bronze").join(spark.read.table("products"), "product")
    return priced.withColumn("amount", F.col("quantity") * F.col("price"))


@dp.materialized_view
def totals():
    grouped = spark.read.table("lines").groupBy("order_id")
    return grouped.agg(F.sum("amount").alias("amount"), F.count("*").alias("lines"))


@dp.materialized_view
def sales():
    found = spark.read.table("orders").join(spark.read.table("customers"), "customer")
    found = found.join(spark.read.table("totals"), found["id"] == F.col("order_id"), "left")
    return found.select(
        "id", "customer", "day", "city", F.coalesce("amount", F.lit(0)).alias("amount")
    )


@dp.materialized_view
def latest_orders():
    newest = Window.partitionBy("customer").orderBy(F.desc("day"), F.desc("id"))
    found = spark.read.table("sales").withColumn("place", F.row_number().over(newest))
    return found.where("place <= 3").select("customer", "id", "day", "amount")


@dp.materialized_view
def steps():
    by_day = Window.partitionBy("city").orderBy("day")
    before = F.lag("amount").over(by_day)
    return spark.read.table("city_days").withColumn("step", F.col("amount") - before)
"""
"""Orders that count, with what they are about."""
GOLD = """
CREATE MATERIALIZED VIEW city_days AS
SELECT city, day, sum(amount) AS amount, count(*) AS orders FROM sales GROUP BY city, day;

CREATE MATERIALIZED VIEW cities AS
SELECT city, sum(amount) AS amount, count(DISTINCT customer) AS customers
FROM sales GROUP BY city;

CREATE MATERIALIZED VIEW categories AS
SELECT category, sum(quantity) AS quantity, sum(amount) AS amount, max(price) AS dearest
FROM lines GROUP BY category;

CREATE MATERIALIZED VIEW customer_totals AS
SELECT c.customer, c.name, count(s.id) AS orders, coalesce(sum(s.amount), 0) AS amount
FROM customers c LEFT JOIN sales s ON s.customer = c.customer
GROUP BY c.customer, c.name;

CREATE MATERIALIZED VIEW segments AS
SELECT CASE WHEN amount >= 2000 THEN 'gold' WHEN amount > 0 THEN 'silver' ELSE 'none' END AS kind,
       count(*) AS customers, sum(orders) AS orders
FROM customer_totals
GROUP BY CASE WHEN amount >= 2000 THEN 'gold' WHEN amount > 0 THEN 'silver' ELSE 'none' END;

CREATE MATERIALIZED VIEW idle_customers AS
SELECT c.customer, c.name FROM customers c LEFT ANTI JOIN orders o ON o.customer = c.customer;

CREATE MATERIALIZED VIEW lost_sales AS
SELECT x.day, count(*) AS orders, sum(t.amount) AS amount
FROM cancelled x JOIN totals t ON t.order_id = x.id GROUP BY x.day;
"""
FILES = {
    "spark-pipeline.yml": """\
name: retail
storage: storage
libraries:
  - glob:
      include: transformations/**
""",
    "transformations/bronze.py": HEAD + BRONZE,
    "transformations/silver.py": HEAD + SILVER,
    "transformations/gold.sql": GOLD,
}
MORE = """
CREATE MATERIALIZED VIEW more{number} AS SELECT city, sum(amount) AS amount FROM sales
WHERE day >= DATE '2026-01-{number}' GROUP BY city HAVING count(*) > {number};
"""
"""One dataset more, for a number with two digits."""
