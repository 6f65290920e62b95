"""The examples of `deploy/`: a cluster on loopback, an application for `spark-submit`, Connect."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from support.paths import REPOSITORY

pytestmark = pytest.mark.spark

DEPLOY = REPOSITORY / "deploy"
PRINTED = ["20,100 routes (tasks)", "a broken link: 10,100 routes less, 0 more"]


def on_a_cluster(place: Path, *command: str, **variables: str) -> list[str]:
    """Run a command on a cluster of this machine; return the lines that it prints."""
    found = subprocess.run(
        [str(DEPLOY / "standalone"), *command],
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
        cwd=place,
        env={**os.environ, "PYTHON": sys.executable, **variables},
    )
    assert found.returncode == 0, found.stderr[-3000:]
    return found.stdout.splitlines()


@pytest.mark.long
def test_spark_submit(tmp_path: Path) -> None:
    application = f"{DEPLOY / 'network.py'} {tmp_path / 'warehouse'} --placement partitions"
    submit = f'spark-submit --master "$SPARK_MASTER" --conf spark.executor.memory=1g {application}'
    assert on_a_cluster(tmp_path, "sh", "-c", submit) == PRINTED
    assert (tmp_path / "warehouse/tables/reached/_delta_log").is_dir()


PACKED = """
import sys
from pyspark.sql import SparkSession
import corollary
spark = SparkSession.builder.getOrCreate()
numbers = spark.sparkContext.parallelize(range(2), 2)
print(*{each for each in numbers.map(lambda _: __import__("corollary").__file__).collect()})
with corollary.open(sys.argv[1], spark=spark, placement="partitions") as db:
    db.load(text=".decl e(x: number) .decl p(x: number) p(x + 1) :- e(x).")
    with db.transaction() as tx:
        tx.insert("e", [(1,), (2,)])
    print(sorted(db.relation("p").rows()))
"""


@pytest.mark.long
def test_a_packed_environment(tmp_path: Path) -> None:
    """Workers run the Python of an archive, and the package that is in it."""
    shutil.copytree(REPOSITORY / "src/corollary", tmp_path / "environment/lib/corollary")
    python = tmp_path / "environment/bin/python"
    python.parent.mkdir()
    own = 'PYTHONPATH="$(cd "$(dirname "$0")/../lib" && pwd):$PYTHONPATH"'
    python.write_text(f'#!/bin/sh\nexport {own}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    archive = shutil.make_archive(str(tmp_path / "environment"), "gztar", tmp_path / "environment")
    (tmp_path / "packed.py").write_text(PACKED)
    submit = (
        'spark-submit --master "$SPARK_MASTER" --conf spark.executor.memory=1g '
        f"--archives {archive}#environment --conf spark.pyspark.driver.python={sys.executable} "
        "--conf spark.pyspark.python=./environment/bin/python packed.py warehouse"
    )
    packages, rows = on_a_cluster(tmp_path, "sh", "-c", f"unset PYSPARK_PYTHON; {submit}")
    assert all("/work-" in each and "/environment/lib/" in each for each in packages.split())
    assert rows == "[(2,), (3,)]"


@pytest.mark.long
def test_connect_on_a_cluster(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs pyspark[connect]")
    command = [sys.executable, str(DEPLOY / "network.py"), str(tmp_path / "warehouse")]
    assert on_a_cluster(tmp_path, *command, "--placement", "partitions", CONNECT="1") == PRINTED


@pytest.mark.long
def test_commands_find_the_cluster(tmp_path: Path) -> None:
    (tmp_path / "closure.dl").write_text(
        ".decl e(x: number, y: number)\n.decl p(x: number, y: number)\n"
        "e(1, 2). e(2, 3). e(3, 1).\n"
        "p(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z).\n"
    )
    settings = "--conf spark.executor.memory=1g --conf spark.eventLog.enabled=true"
    settings += f" --conf spark.eventLog.dir={tmp_path.as_uri()}"
    run = f"{sys.executable} -m corollary"
    script = f"""
        export PYSPARK_SUBMIT_ARGS="--master $SPARK_MASTER {settings} pyspark-shell"
        {run} run closure.dl --warehouse w --placement partitions && {run} query w 'p(1, y)'
    """
    assert on_a_cluster(tmp_path, "sh", "-c", script)[-3:] == ["1", "2", "3"]
    assert list(tmp_path.glob("*app-*"))  # Spark calls one on this machine `local-…`


def test_the_image_copies_what_there_is() -> None:
    for line in (DEPLOY / "Dockerfile").read_text().splitlines():
        if found := re.match(r"COPY (.+) \S+$", line):
            assert all((REPOSITORY / each).exists() for each in found[1].split()), line


def test_kubernetes_shares_no_volume() -> None:
    """What the objects name is there, and no volume is one that several pods write."""
    text = (DEPLOY / "kubernetes.yaml").read_text()
    objects = {each["kind"]: each for each in yaml.safe_load_all(text)}
    assert "ReadWriteMany" not in text
    assert "PersistentVolumeClaim" not in objects
    pod = objects["Job"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    assert [each.keys() for each in pod["spec"]["volumes"]] == [{"name", "emptyDir"}]
    assert objects["Service"]["spec"]["selector"] == pod["metadata"]["labels"]
    assert pod["spec"]["serviceAccountName"] == objects["ServiceAccount"]["metadata"]["name"]
    *settings, application, warehouse, placement = container["args"]
    assert (DEPLOY / Path(application).name).exists()
    assert (warehouse, placement) == ("$(WAREHOUSE)", "--placement=partitions")
    conf = dict(
        each.removeprefix("--conf=").split("=", 1)
        for each in settings
        if each.startswith("--conf=")
    )
    service = {each["name"]: str(each["port"]) for each in objects["Service"]["spec"]["ports"]}
    assert service == {
        "driver": conf["spark.driver.port"],
        "blocks": conf["spark.driver.blockManager.port"],
    }
    known = {each["name"] for each in container["env"]} | {"WAREHOUSE"}
    assert {*re.findall(r"\$\((\w+)\)", " ".join(container["args"]))} <= known


def test_scripts_say_what_they_do() -> None:
    for name, status in (("standalone", 2), ("container", 0)):
        command = [str(DEPLOY / name), *(["help"] if name == "container" else [])]
        found = subprocess.run(command, check=False, capture_output=True, text=True)
        assert found.returncode == status
        assert (found.stdout or found.stderr).count("\n") >= 6
