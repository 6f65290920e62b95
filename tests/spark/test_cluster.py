"""The engine in other sessions: on Spark Connect, and on a cluster that loses executors."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from support.paths import TESTS
from support.selection import sampled

pytestmark = pytest.mark.spark
PARTS = ("partitions", "auto")
LONG_PARTS = ("documents", "cases")
TIMEOUT_SECONDS = 1500
"""An executor that was lost is started again: on a busy machine that takes its time."""


def last_line(*command: str) -> str:
    """Run a program of this directory; return the last line that it prints."""
    script, *arguments = command
    found = subprocess.run(
        [sys.executable, str(TESTS / "support" / "processes" / script), *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
    )
    assert found.returncode == 0, found.stderr[-3000:]
    return found.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "what",
    [*sampled(PARTS, 3), *(pytest.param(each, marks=pytest.mark.long) for each in LONG_PARTS)],
)
@pytest.mark.oldest
def test_all_is_right_on_connect(what: str) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs pyspark[connect]")
    assert last_line("spark_connect.py", what) == "right"


@pytest.mark.long
def test_executors_may_be_lost_in_the_middle() -> None:
    assert last_line("spark_cluster.py", "partitions") == "lost 10"


@pytest.mark.long
def test_executors_may_be_lost_while_sources_and_streams_are_read() -> None:
    assert last_line("spark_cluster.py", "readers") == "lost 7"


@pytest.mark.long
@pytest.mark.parametrize(("what", "number"), [("cases", 10), ("programs", 6)])
def test_partitions_are_right_while_executors_are_lost(what: str, number: int) -> None:
    found = re.fullmatch(r"run (\d+) lost (\d+)", last_line("spark_cluster.py", what, str(number)))
    assert found is not None
    assert all(int(each) > 0 for each in found.groups())


@pytest.mark.long
def test_machines_share_the_object_store_only_and_come_and_go() -> None:
    """Each worker has a disk of its own where the driver has its temporary files."""
    if subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode:
        pytest.skip("only who may mount can give workers a disk of their own")
    assert last_line("spark_machines.py").startswith("right")
