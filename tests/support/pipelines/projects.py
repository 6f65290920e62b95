"""Example projects of pipelines: their inputs, round by round, and Spark's own runner."""

import json
import os
import random
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent


def copy_project(name, folder):
    """Copy an example project, without inputs, to a folder of that name; return the folder."""
    target = Path(folder) / name
    shutil.copytree(HERE / name, target)
    return target


def write_round(root, number):
    """Write what a round adds to the inputs of a project, and changes in them."""
    generator = random.Random(number)
    {"orders": _orders, "customers": _changes, "sensors": _readings}[root.name](
        root / "input", number, generator
    )


def _lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(each)}\n" for each in rows))


def _orders(folder, number, generator):
    people = ["ann", "bob", "cid", "dora", None]
    _lines(
        folder / "orders" / f"{number}.json",
        [
            {
                "order_id": 100 * number + each,
                "customer": generator.choice(people),
                "item": generator.choice(["pen", "ink", "cap"]),
                "quantity": generator.randint(0, 3),
                "price": generator.randint(1, 40) / 4,
            }
            for each in range(12)
        ],
    )
    towns = [f"{name},{generator.choice(['Rome', 'Bern', 'Oslo'])}" for name in people[:3]]
    (folder / "customers").mkdir(parents=True, exist_ok=True)
    (folder / "customers" / "all.csv").write_text("customer,city\n" + "\n".join(towns) + "\n")


def _changes(folder, number, generator):
    rows = []
    for each in range(8):
        gone = generator.random() < 0.25
        rows.append(
            {
                "id": generator.randint(1, 4),
                "name": None if gone else generator.choice(["ann", "bob"]),
                "city": None if gone else generator.choice(["Rome", "Bern"]),
                "version": 8 * generator.randint(max(0, number - 2), number + 1) + each,
                "operation": "DELETE" if gone else "UPSERT",
            }
        )
    _lines(folder / "changes" / f"{number}.json", rows)


def _readings(folder, number, generator):
    (folder / "readings").mkdir(parents=True, exist_ok=True)
    for part in {number, max(0, number - 2)}:  # an earlier file is written anew
        start = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(hours=9 * part)
        rows = {
            "sensor": [generator.choice(["a", "b", "c"]) for _ in range(10)],
            "at": [start + timedelta(minutes=13 * each) for each in range(10)],
            "value": [generator.choice([None, *range(1, 9)]) for _ in range(10)],
        }
        schema = pa.schema(
            {"sensor": pa.string(), "at": pa.timestamp("us", "UTC"), "value": pa.int32()}
        )
        pq.write_table(pa.table(rows, schema), folder / "readings" / f"{part}.parquet")


def rows_of(table):
    """Return the rows of a table, sorted, with its columns by name."""
    names = sorted(table.column_names)
    types = [  # Spark writes times of 96 bits, which have no zone
        pa.timestamp("us", "UTC") if pa.types.is_timestamp(each.type) else each.type
        for each in table.schema
    ]
    table = table.cast(pa.schema(zip(table.column_names, types, strict=True)))
    return sorted((tuple(row[name] for name in names) for row in table.to_pylist()), key=repr)


def run_spark(root, scratch):
    """Return the tables that Spark's own runner makes of a project and its inputs, all anew."""
    copy = Path(scratch) / root.name
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns("storage", "spark-warehouse"))
    spec = copy / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("storage: ", f"storage: {copy.as_uri()}/"))
    from corollary.engines.spark.java import set_java_home

    set_java_home()
    folder = Path(sys.executable).parent
    path = os.pathsep.join((str(folder), os.environ.get("PATH", "")))
    environment = {**os.environ, "PATH": path, "PYSPARK_PYTHON": sys.executable, "TZ": "UTC"}
    for each in ("SPARK_REMOTE", "SPARK_CONNECT_AUTHENTICATE_TOKEN"):
        environment.pop(each, None)
    ran = subprocess.run(
        [folder / "spark-pipelines", "run", "--conf", "spark.sql.session.timeZone=UTC"],
        cwd=copy, env=environment, check=False, capture_output=True, timeout=900, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
    tables = (copy / "spark-warehouse").iterdir()
    return {each.name: rows_of(pq.read_table(each)) for each in tables if each.is_dir()}
