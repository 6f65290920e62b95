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
import yaml

HERE = Path(__file__).parent


def copy_project(name, folder):
    """Copy an example project, without inputs, to a folder of that name; return the folder."""
    target = Path(folder) / name
    shutil.copytree(HERE / name, target)
    return target


def write_round(root, number):
    """Write what a round adds to the inputs of a project, and changes in them."""
    generator = random.Random(number)
    {"orders": _orders, "customers": _changes, "sensors": _readings, "regions": _sales}[root.name](
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
    for each in range(100):  # 40 customers; versions come in any order, each but once
        gone = generator.random() < 0.25
        rows.append(
            {
                "id": generator.randint(1, 40),
                "name": None if gone else generator.choice(["ann", "bob"]),
                "city": None if gone else generator.choice(["Rome", "Bern"]),
                "version": 1000 * generator.randint(max(0, number - 2), number + 1)
                + 100 * number
                + each,
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


def _sales(folder, number, generator):
    def sale():
        day, hour = 1 + generator.randint(0, number + 2), generator.randint(8, 19)
        items = ["pen", "ink", "cap"]
        return (
            f"2026-03-{day:02}T{hour:02}:00:00Z",
            generator.choice(items),
            generator.randint(-1, 9),
        )

    lines = []
    for _ in range(15):
        at, item, quantity = sale()
        shop = generator.randint(1, 4)
        row = {"shop": shop, "item": item, "quantity": quantity, "at": at}
        lines.append(row)
    _lines(folder / "east" / f"{number}.json", lines)
    lines = ["at,shop,article,pieces"]
    for _ in range(15):
        at, item, quantity = sale()
        lines.append(f"{at},{generator.randint(5, 9)}, {item.upper()},{quantity}")
    for name, text in ((f"west/{number}.csv", lines), ("shops/all.csv", _shops(generator))):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("\n".join(text) + "\n")


def _shops(generator):
    states = [("BE", "north"), ("TI", "south"), ("VS", "south"), ("", "north")]
    chosen = ((number, *generator.choice(states)) for number in range(1, 9))
    return ["shop,state,region", *(",".join(map(str, each)) for each in chosen)]


def rows_of(table):
    """Return the rows of a table, sorted, with its columns by name."""
    names = sorted(table.column_names)
    table = table.cast(pa.schema([(each.name, _plain(each.type)) for each in table.schema]))
    return sorted((tuple(row[name] for name in names) for row in table.to_pylist()), key=repr)


def columns_of(table):
    """Return the columns of a table, in order, with their types."""
    return [(each.name, str(_plain(each.type))) for each in table.schema]


def _plain(type_):
    """Return a type as all have it: times with a zone, and so on."""
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", "UTC")
    return pa.string() if pa.types.is_large_string(type_) else type_


OF_AUTO_CDC = "__spark_autocdc_metadata"
"""The column that Spark adds to the targets of AUTO CDC."""


class SparkRunner:
    """Spark's own runner: one server, and a schema of its own for each run.

    `spark-pipelines` starts `pyspark.pipelines.cli` beside a server that begins with nothing. Here
    the server stays, as with `spark-pipelines --remote`, since its start takes most of the time;
    schema, checkpoints, and the copy of the project are new for each run.

    Attributes:
        can_merge: whether tables can be the target of AUTO CDC, which takes a compiler of Java.
    """

    def __init__(self, folder):
        from corollary.engines.spark.java import set_java_home
        from corollary.pipelines.spark_server import start_server

        set_java_home()
        self.folder, self.runs = Path(folder), 0
        self.can_merge = _compile_catalog(self.folder / "classes")
        before = os.environ.get(ARGUMENTS)
        if self.can_merge:
            os.environ[ARGUMENTS] = (
                f"--conf {CATALOG}=MergeCatalog --conf spark.sql.codegen.wholeStage=false "
                "--conf spark.sql.codegen.factoryMode=NO_CODEGEN "  # slow, for a few rows
                f"--driver-class-path {self.folder / 'classes'} pyspark-shell"
            )
        try:
            self.server = start_server(self.folder)
        finally:
            os.environ[ARGUMENTS] = before or "pyspark-shell"

    def tables(self, root, names):
        """Return tables that Spark makes of a project and its inputs, all anew."""
        self.runs += 1
        schema = f"run{self.runs}"
        copy = self.folder / schema
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns("storage", "input"))
        shutil.rmtree(self.folder / "input", ignore_errors=True)
        shutil.copytree(root / "input", self.folder / "input")
        spec = copy / "spark-pipeline.yml"
        fields = yaml.safe_load(spec.read_text())
        fields |= {"schema": schema, "storage": (copy / "storage").as_uri()}
        spec.write_text(yaml.safe_dump(fields))
        session = self.server.session
        session.sql(f"CREATE DATABASE {schema}")
        environment = {**os.environ, "SPARK_REMOTE": self.server.address, "TZ": "UTC"}
        environment.pop("SPARK_LOCAL_REMOTE", None)
        ran = subprocess.run(
            [sys.executable, "-m", "pyspark.pipelines.cli", "run", "--spec", str(spec)],
            cwd=self.folder, env=environment, check=False, capture_output=True, timeout=900,
            text=True,
        )  # fmt: skip
        assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
        return {
            name: session.table(f"{schema}.{name}").drop(OF_AUTO_CDC).toArrow() for name in names
        }

    def stop(self):
        """End the server."""
        self.server.stop()


ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
CATALOG = "spark.sql.catalog.spark_catalog"


def _compile_catalog(folder):
    """Compile the catalog that can merge; return whether there is a compiler."""
    import pyspark

    compiler = shutil.which("javac", path=f"{os.environ['JAVA_HOME']}/bin:{os.environ['PATH']}")
    if compiler is None:
        return False
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    subprocess.run(
        [compiler, "-nowarn", "-d", folder, "-cp", jars, HERE / "MergeCatalog.java"],
        check=True, capture_output=True,
    )  # fmt: skip
    return True
