"""Functions of DataFrames, whose rows are those of Spark when they are lowered.

Each takes a session, which has the tables `emp`, `dept` and `event`.
"""

import datetime as dt
import decimal
from typing import Any

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

Frame = Any


# --- columns -------------------------------------------------------------------------------------


def selected(spark: Any) -> Frame:
    df = spark.table("emp")
    return df.select("id", df.name, df["salary"] * 2, F.col("emp.dept"))


def starred(spark: Any) -> Frame:
    return spark.read.table("emp").select("*", (F.col("id") + 1).alias("next"))


def expressions_in_text(spark: Any) -> Frame:
    return spark.table("emp").selectExpr("id", "upper(name) AS name", "salary * 2 + id AS more")


def columns_added(spark: Any) -> Frame:
    df = spark.table("emp").withColumn("double", F.col("salary") * 2)
    return df.withColumn("quadruple", df.double * 2).withColumn("double", F.lit("x"))


def columns_added_at_once(spark: Any) -> Frame:
    return spark.table("emp").withColumns({"a": F.col("id") + 1, "name": F.upper("name")})


def renamed(spark: Any) -> Frame:
    df = spark.table("emp").withColumnRenamed("id", "number").withColumnsRenamed({"name": "called"})
    return df.filter(F.col("number") > 1)


def renamed_all(spark: Any) -> Frame:
    return spark.table("dept").toDF("a", "b").filter("a IS NOT NULL")


def dropped(spark: Any) -> Frame:
    df = spark.table("emp")
    return df.drop("salary", "bonus").drop(df.hired).drop("nothing")


def by_pattern(spark: Any) -> Frame:
    df = spark.table("emp")
    return df.select(df.colRegex("`(id|na.*)`"))


def named_by_expression(spark: Any) -> Frame:
    df = spark.table("emp")
    return df.select(
        F.col("id") + 1,
        F.upper("name"),
        df.id > 2,
        df.salary.cast("double"),
        F.when(df.id > 1, "a").otherwise("b"),
        df.name.isNull(),
        F.lit(1),
        F.lit("x").alias("y"),
        -df.id,
        df.dept.isin("it", "hr"),
    )


def casts(spark: Any) -> Frame:
    df = spark.table("emp").filter("id < 6")
    return df.select(
        df.id.cast("string").alias("a"),
        df.salary.cast("int").alias("b"),
        df.bonus.cast("decimal(12,3)").alias("c"),
        df.hired.cast("timestamp").alias("d"),
        df.name.try_cast("int").alias("e"),
        df.id.astype("bigint").alias("f"),
    )


def literals(spark: Any) -> Frame:
    return spark.table("dept").select(
        F.lit(1).alias("a"),
        F.lit(-5).alias("b"),
        F.lit(2**40).alias("c"),
        F.lit(1.5).alias("d"),
        F.lit(-0.25).alias("e"),
        F.lit(True).alias("f"),
        F.lit('it\'s \\ "so"').alias("g"),
        F.lit(decimal.Decimal("12.340")).alias("h"),
        F.lit(dt.date(2024, 2, 29)).alias("i"),
        F.lit(dt.datetime(2024, 2, 29, 12, 30, 1, 5, tzinfo=dt.UTC)).alias("j"),
        F.lit(b"az").alias("k"),
        F.lit([1, 2]).alias("l"),
        F.lit(None).cast("int").alias("m"),
    )


# --- rows ----------------------------------------------------------------------------------------


def filtered(spark: Any) -> Frame:
    df = spark.table("emp")
    return df.where((df.salary > 50) & (df.dept == "it") | ~df.name.like("A%"))


def filtered_in_text(spark: Any) -> Frame:
    return spark.table("emp").filter("salary BETWEEN 40 AND 90 AND dept IN ('it', 'hr')")


def filtered_by_item(spark: Any) -> Frame:
    df = spark.table("emp")
    return df[df.bonus.isNotNull() & (df.bonus >= 1)][["id", "bonus"]]


def filtered_after_projection(spark: Any) -> Frame:
    return (
        spark.table("emp").select((F.col("id") % 2).alias("odd"), "name").filter(F.col("odd") == 1)
    )


def filtered_by_a_dropped_column(spark: Any) -> Frame:
    df = spark.table("emp")
    return df.select("id").filter(df.salary > 50)


def distinct_rows(spark: Any) -> Frame:
    return spark.table("emp").select("dept").distinct()


def without_duplicates(spark: Any) -> Frame:
    return spark.table("emp").select("dept", "boss").dropDuplicates()


def top(spark: Any) -> Frame:
    return spark.table("emp").orderBy(F.desc("salary"), "id").limit(3)


def top_of_projection(spark: Any) -> Frame:
    df = spark.table("emp").orderBy("hired", "id").select("name", "hired")
    return df.offset(1).limit(2)


def ordered_only(spark: Any) -> Frame:
    return spark.table("emp").orderBy(F.col("name").asc_nulls_last()).select("name")


def hinted(spark: Any) -> Frame:
    return spark.table("emp").hint("broadcast").repartition(3).coalesce(1).select("id")


# --- joins ---------------------------------------------------------------------------------------


def joined_using(spark: Any) -> Frame:
    return spark.table("emp").join(spark.table("dept"), "dept")


def joined_using_all_kinds(spark: Any) -> Frame:
    emp, dept = spark.table("emp").select("id", "dept"), spark.table("dept")
    one = emp.join(dept, ["dept"], "left").withColumn("kind", F.lit("left"))
    two = emp.join(dept, ["dept"], "right").withColumn("kind", F.lit("right"))
    three = emp.join(dept, ["dept"], "full").withColumn("kind", F.lit("full"))
    return one.union(two).union(three)


def joined_by_columns(spark: Any) -> Frame:
    emp, dept = spark.table("emp"), spark.table("dept")
    return emp.join(dept, emp.dept == dept.dept, "left").select(emp.id, dept.dept, dept.city)


def joined_and_dropped(spark: Any) -> Frame:
    emp, dept = spark.table("emp"), spark.table("dept")
    return emp.join(dept, emp.dept == dept.dept).drop(dept.dept).filter(dept.city != "Rome")


def joined_to_itself(spark: Any) -> Frame:
    e, b = spark.table("emp").alias("e"), spark.table("emp").alias("b")
    return e.join(b, F.col("e.boss") == F.col("b.id")).select(
        "e.name", F.col("b.name").alias("chef")
    )


def joined_three(spark: Any) -> Frame:
    emp, dept, event = spark.table("emp"), spark.table("dept"), spark.table("event")
    df = emp.join(dept, "dept").join(event, emp.id == event.who, "left")
    return df.select("name", "city", "kind").filter(F.col("city").isNotNull())


def semi_and_anti(spark: Any) -> Frame:
    emp, dept = spark.table("emp"), spark.table("dept")
    semi = emp.join(dept, "dept", "left_semi").select("id", F.lit("semi").alias("how"))
    anti = emp.join(dept, emp.dept == dept.dept, "left_anti")
    return semi.unionAll(anti.select("id", F.lit("anti")))


def crossed(spark: Any) -> Frame:
    return spark.table("dept").crossJoin(spark.table("dept").toDF("d", "c"))


def joined_on_inequality(spark: Any) -> Frame:
    emp = spark.table("emp")
    other = emp.select(F.col("id").alias("oid"), F.col("salary").alias("osalary"))
    return emp.join(other, (emp.salary < other.osalary) & (emp.id != other.oid)).select("id", "oid")


def joined_after_filter(spark: Any) -> Frame:
    emp = spark.table("emp").filter("salary > 40")
    dept = spark.table("dept").filter(F.col("city") == "Bern")
    return emp.join(dept, emp["dept"] == dept["dept"], "outer").select("id", "city")


def joined_null_safe(spark: Any) -> Frame:
    emp, dept = spark.table("emp"), spark.table("dept")
    return emp.join(dept, emp.dept.eqNullSafe(dept.dept)).select("id", "city")


def using_key_of_the_other_side(spark: Any) -> Frame:
    emp, dept = spark.table("emp"), spark.table("dept")
    return emp.join(dept, "dept", "left").select("dept", emp.dept.alias("mine"), "city")


# --- groups --------------------------------------------------------------------------------------


def grouped(spark: Any) -> Frame:
    return (
        spark.table("emp")
        .groupBy("dept")
        .agg(
            F.count("*"),
            F.sum("salary").alias("total"),
            F.avg("bonus"),
            F.min("hired"),
            F.max("name"),
            F.count("bonus").alias("n"),
            F.countDistinct("boss").alias("bosses"),
        )
    )


def grouped_by_dictionary(spark: Any) -> Frame:
    df = spark.table("emp").groupBy("dept").agg({"salary": "sum", "id": "max"})
    return df.select("dept", "sum(salary)", "max(id)")


def counted(spark: Any) -> Frame:
    return spark.table("emp").groupBy("dept", "boss").count()


def grouped_by_expression(spark: Any) -> Frame:
    df = spark.table("emp")
    return df.groupBy(F.year("hired").alias("year"), (df.id % 2)).agg(F.sum("id").alias("s"))


def having(spark: Any) -> Frame:
    df = (
        spark.table("emp")
        .groupBy("dept")
        .agg(F.sum("salary").alias("total"), F.count("*").alias("n"))
    )
    return df.filter((F.col("n") > 1) & (F.col("total") > 50)).withColumn("mean", df.total / df.n)


def all_together(spark: Any) -> Frame:
    return spark.table("emp").agg(F.sum("salary").alias("s"), F.max("id") + 1)


def aggregated_in_select(spark: Any) -> Frame:
    return spark.table("emp").select(F.sum("id").alias("s"), F.count(F.lit(1)).alias("n"))


def rolled_up(spark: Any) -> Frame:
    return spark.table("emp").rollup("dept", "boss").agg(F.count("*").alias("n"), F.grouping_id())


def cubed(spark: Any) -> Frame:
    return spark.table("emp").cube("dept", "boss").agg(F.sum("id").alias("s"))


def grouping_sets(spark: Any) -> Frame:
    df = spark.table("emp")
    return df.groupingSets([[df.dept], [df.boss], []], df.dept, df.boss).agg(
        F.count("*").alias("n")
    )


def pivoted(spark: Any) -> Frame:
    df = spark.table("emp").groupBy("boss").pivot("dept", ["it", "hr"])
    return df.agg(F.sum("salary"))


def pivoted_twice(spark: Any) -> Frame:
    df = spark.table("emp").groupBy("boss").pivot("dept", ["it", "hr"])
    return df.agg(F.count("id").alias("n"), F.max("id").alias("m"))


def conditional_totals(spark: Any) -> Frame:
    paid = F.when(F.col("bonus") > 1, F.col("salary")).otherwise(0)
    return (
        spark.table("emp")
        .groupBy("dept")
        .agg(F.sum(paid).alias("paid"), F.count_if(F.col("id") > 2))
    )


def lists(spark: Any) -> Frame:
    df = spark.table("emp").groupBy("dept")
    return df.agg(
        F.sort_array(F.collect_list("id")).alias("ids"), F.array_size(F.collect_set("boss"))
    )


def statistics(spark: Any) -> Frame:
    return (
        spark.table("emp")
        .groupBy("dept")
        .agg(
            F.max_by("name", "salary").alias("best"),
            F.median("id").alias("m"),
            F.sum_distinct("boss").alias("d"),
        )
    )


# --- windows -------------------------------------------------------------------------------------


def ranked(spark: Any) -> Frame:
    w = Window.partitionBy("dept").orderBy(F.desc("salary"), "id")
    df = (
        spark.table("emp").withColumn("n", F.row_number().over(w)).withColumn("r", F.rank().over(w))
    )
    return df.filter("n <= 2").drop("hired")


def neighbours(spark: Any) -> Frame:
    w = Window.partitionBy("dept").orderBy("hired", "id")
    return spark.table("emp").select(
        "id", F.lag("salary").over(w).alias("before"), F.lead("salary", 1, 0).over(w).alias("after")
    )


def running(spark: Any) -> Frame:
    w = Window.partitionBy("dept").orderBy("id")
    rows = w.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    near = w.rowsBetween(-1, 1)
    return spark.table("emp").select(
        "id", F.sum("salary").over(rows).alias("s"), F.avg("bonus").over(near).alias("a"),
        F.sum("id").over(w.rangeBetween(-2, 0)).alias("r"),
    )  # fmt: skip


def share(spark: Any) -> Frame:
    w = Window.partitionBy("dept")
    df = spark.table("emp")
    return df.select("id", (df.salary / F.sum("salary").over(w)).alias("share"))


def window_of_groups(spark: Any) -> Frame:
    df = spark.table("emp").groupBy("dept").agg(F.sum("salary").alias("total"))
    return df.withColumn("r", F.dense_rank().over(Window.orderBy(F.desc("total"))))


def windows_of_time(spark: Any) -> Frame:
    df = spark.table("event").groupBy(F.window("at", "1 hour")).agg(F.count("*").alias("n"))
    return df.select("window.start", "window.end", "n")


# --- sets ----------------------------------------------------------------------------------------


def united(spark: Any) -> Frame:
    df = spark.table("emp").select("dept")
    return df.union(spark.table("dept").select("dept")).union(df)


def united_by_name(spark: Any) -> Frame:
    return spark.table("dept").unionByName(spark.table("dept").select("city", "dept"))


def united_with_missing(spark: Any) -> Frame:
    one = spark.table("emp").select("id", "dept")
    return one.unionByName(spark.table("dept"), allowMissingColumns=True)


def intersected(spark: Any) -> Frame:
    one, other = spark.table("emp").select("dept"), spark.table("dept").select("dept")
    return one.intersect(other).union(one.intersectAll(other))


def subtracted(spark: Any) -> Frame:
    one, other = spark.table("emp").select("dept"), spark.table("dept").select("dept")
    return one.subtract(other).union(one.exceptAll(other))


# --- missing values ------------------------------------------------------------------------------


def filled(spark: Any) -> Frame:
    return spark.table("emp").fillna(0).na.fill("none", ["dept", "name"])


def filled_by_dictionary(spark: Any) -> Frame:
    return spark.table("emp").fillna({"bonus": 1.5, "dept": "?", "boss": 7})


def without_nulls(spark: Any) -> Frame:
    return spark.table("emp").dropna()


def without_some_nulls(spark: Any) -> Frame:
    df = spark.table("emp").dropna("all", subset=["bonus", "boss"])
    return df.dropna(thresh=2, subset=["bonus", "boss", "dept"])


def replaced(spark: Any) -> Frame:
    return (
        spark.table("emp")
        .replace({"it": "IT", "hr": "HR"}, subset=["dept"])
        .replace(1, 100, "boss")
    )


# --- functions -----------------------------------------------------------------------------------


def texts(spark: Any) -> Frame:
    df = spark.table("emp")
    return df.select(
        F.concat_ws("-", "dept", "name").alias("a"),
        F.substring("name", 1, 2).alias("b"),
        df.name.substr(2, 3).alias("c"),
        F.regexp_replace("name", "[aeiou]", "_").alias("d"),
        F.trim(F.lower("name")).alias("e"),
        F.length("name").alias("f"),
        df.name.startswith("A").alias("g"),
        df.name.contains("n").alias("h"),
        F.split("name", "n").alias("i"),
        F.lpad("name", 5, "*").alias("j"),
        df.name.rlike("^[A-C]").alias("k"),
        F.initcap("dept").alias("l"),
    )


def numbers(spark: Any) -> Frame:
    df = spark.table("emp").filter("id < 6")
    return df.select(
        F.round("salary", 1).alias("a"),
        F.abs(-df.id).alias("b"),
        (df.id / 2).alias("c"),
        F.floor(df.bonus).alias("d"),
        F.greatest("id", "boss").alias("e"),
        F.coalesce("boss", F.lit(0)).alias("f"),
        (df.id % 3).alias("g"),
        F.pow(F.lit(2), "id").alias("h"),
        F.nvl("bonus", F.lit(0.5)).alias("i"),
        df.id.bitwiseAND(1).alias("j"),
        F.expr("id DIV 2").alias("k"),
    )


def dates(spark: Any) -> Frame:
    df = spark.table("emp")
    return df.select(
        F.date_add("hired", 3).alias("a"),
        F.datediff(F.lit(dt.date(2024, 1, 1)), "hired").alias("b"),
        F.month("hired").alias("c"),
        F.date_trunc("month", "hired").alias("d"),
        F.trunc("hired", "year").alias("e"),
        F.date_format("hired", "yyyy-MM").alias("f"),
        F.last_day("hired").alias("g"),
        F.add_months("hired", 1).alias("h"),
        F.dayofweek("hired").alias("i"),
        (df.hired > "2020-06-01").alias("j"),
        (df.hired + F.expr("INTERVAL 1 MONTH")).alias("k"),
        F.to_date(F.lit("2020-01-05"), "yyyy-MM-dd").alias("l"),
    )


def times(spark: Any) -> Frame:
    return spark.table("event").select(
        F.hour("at").alias("a"),
        F.to_date("at").alias("b"),
        F.unix_timestamp("at").alias("c"),
        F.date_trunc("hour", "at").alias("d"),
        F.to_timestamp(F.lit("2024-01-01 10:00:00")).alias("e"),
        F.timestamp_seconds(F.col("who")).alias("f"),
    )


def arrays(spark: Any) -> Frame:
    df = spark.table("event")
    return df.select(
        "who",
        df.tags[0].alias("first"),
        df.tags.getItem(1).alias("second"),
        F.size("tags").alias("n"),
        F.array_contains("tags", "a").alias("has"),
        F.transform("tags", F.upper).alias("up"),
        F.filter("tags", lambda x: x > "a").alias("late"),
        F.exists("tags", lambda x: x == "b").alias("any"),
        F.array("who", F.lit(1)).alias("made"),
        F.aggregate("tags", F.lit(""), lambda acc, x: F.concat(acc, x, F.lit("."))).alias("all"),
    )  # fmt: skip


def structs_and_maps(spark: Any) -> Frame:
    df = spark.table("event")
    return df.select(
        "place.x",
        df.place.y.alias("y"),
        df["place"]["x"].alias("x2"),
        df.place.getField("y").alias("y2"),
        df.props["k"].alias("k"),
        F.map_keys("props").alias("keys"),
        F.struct("who", "kind").alias("both"),
        F.element_at("props", "k").alias("k2"),
        F.create_map(F.lit("a"), "who").alias("made"),
    )


def star_of_struct(spark: Any) -> Frame:
    return spark.table("event").select("who", "place.*")


def exploded(spark: Any) -> Frame:
    return spark.table("event").select("who", F.explode("tags").alias("tag")).filter("tag <> 'b'")


def exploded_outer(spark: Any) -> Frame:
    return spark.table("event").select("who", F.explode_outer("tags")).groupBy("col").count()


def exploded_with_positions(spark: Any) -> Frame:
    return spark.table("event").select("who", F.posexplode("tags").alias("at", "tag"))


def exploded_into_a_column(spark: Any) -> Frame:
    return (
        spark.table("event")
        .withColumn("tag", F.explode("tags"))
        .drop("tags", "props", "place", "at")
    )


def exploded_map(spark: Any) -> Frame:
    return spark.table("event").select("who", F.explode("props")).filter(F.col("value") > 1)


def unpivoted(spark: Any) -> Frame:
    df = spark.table("emp").select(
        "id", F.col("boss").cast("int"), (F.col("id") * 2).alias("twice")
    )
    return df.unpivot("id", ["boss", "twice"], "what", "n")


def melted(spark: Any) -> Frame:
    return spark.table("dept").melt("dept", None, "what", "value")


# --- others --------------------------------------------------------------------------------------


def ranges(spark: Any) -> Frame:
    return spark.range(1, 10, 3).select((F.col("id") * 2).alias("n"))


def local_rows(spark: Any) -> Frame:
    rows = [(1, "a", 1.5, None), (2, None, None, dt.date(2024, 1, 1))]
    df = spark.createDataFrame(rows, "id INT, t STRING, d DOUBLE, day DATE")
    return df.join(spark.table("emp"), "id", "left").select("id", "t", "d", "day", "name")


def local_rows_without_types(spark: Any) -> Frame:
    return spark.createDataFrame([("it", 10), ("hr", 20)], ["dept", "rate"]).filter("rate > 10")


def sql(spark: Any) -> Frame:
    return spark.sql(
        "SELECT dept, count(*), sum(salary) AS s FROM emp GROUP BY dept HAVING sum(salary) > 1"
    )


def sql_with_parameters(spark: Any) -> Frame:
    df = spark.sql("SELECT id, salary FROM emp WHERE salary > :least", args={"least": 50})
    return df.filter(df.id < 5)


def sql_with_frames(spark: Any) -> Frame:
    few = spark.table("emp").filter("id < 4")
    return spark.sql(
        "SELECT e.id, d.city FROM {few} e LEFT JOIN dept d ON e.dept = d.dept", few=few
    )


def sql_with_tables_of_its_own(spark: Any) -> Frame:
    return spark.sql(
        "WITH emp AS (SELECT dept FROM dept) SELECT * FROM emp UNION ALL SELECT dept FROM dept"
    )


def scalar_subquery(spark: Any) -> Frame:
    emp = spark.table("emp")
    most = spark.table("emp").agg(F.max("salary"))
    return emp.filter(emp.salary == most.scalar()).select("id")


def exists_subquery(spark: Any) -> Frame:
    dept = spark.table("dept").alias("d")
    inner = spark.table("emp").alias("e").where(F.col("e.dept") == F.col("d.dept").outer())
    return dept.where(inner.exists())


def in_subquery(spark: Any) -> Frame:
    emp = spark.table("emp")
    return emp.where(emp.dept.isin(spark.table("dept").select("dept"))).select("id")


def conformed(spark: Any) -> Frame:
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    schema = StructType([StructField("name", StringType()), StructField("id", LongType())])
    return spark.table("emp").to(schema)


def transformed(spark: Any) -> Frame:
    def bigger(df: Frame) -> Frame:
        return df.withColumn("salary", F.col("salary") + 1)

    return spark.table("emp").transform(bigger).transform(bigger)


def in_a_loop(spark: Any) -> Frame:
    df = spark.table("emp").select("id")
    for step in range(5):
        df = df.withColumn(f"c{step}", F.col("id") + step).withColumn("id", F.col(f"c{step}") * 2)
    return df
