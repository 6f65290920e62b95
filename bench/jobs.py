"""A Spark session of the benchmarks' own, and what its jobs cost, by the event log that it writes.

| counter | what the log says |
|---|---|
| jobs, stages, tasks | those that ran; a stage that was skipped has not |
| sent | bytes that the driver broadcast: what tasks run, and small sides of joins |
| shuffled | bytes that tasks wrote for other tasks |
| returned | bytes of results that tasks sent to the driver |

Files of shares and the memory of Python workers are not in the log: both are looked at where they
are, the first in the directory for temporary files, the second in `/proc`.
"""

import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from corollary.engines.spark.java import set_java_home
from corollary.engines.spark.session import LOCAL_SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2
Given = ParamSpec("Given")
Result = TypeVar("Result")
SHUFFLED = "internal.metrics.shuffle.write.bytesWritten"
RETURNED = "internal.metrics.resultSize"
PIECE = re.compile(r"broadcast_\d+_piece\d+$")


@dataclass(frozen=True, slots=True)
class Cost:
    """What jobs cost."""

    jobs: int = 0
    stages: int = 0
    tasks: int = 0
    sent: int = 0
    shuffled: int = 0
    returned: int = 0

    @property
    def moved(self) -> int:
        """All bytes."""
        return self.sent + self.shuffled + self.returned

    def __str__(self) -> str:
        counts = ((self.jobs, "job"), (self.stages, "stage"))
        told = [f"{count:,} {name}{'' if count == 1 else 's'}" for count, name in counts]
        moved = ("sent", "shuffled", "returned")
        return ", ".join([*told, *(f"{size(getattr(self, each))} {each}" for each in moved)])


@dataclass(frozen=True, slots=True)
class Timed(Generic[Result]):
    """What was run: its seconds, its jobs, and what it returned."""

    seconds: float
    cost: Cost
    result: Result


class Session:
    """A session whose jobs are counted.

    Args:
        spark: a session that writes an event log, in one file.
        directory: where it writes it; nothing else is there.
    """

    def __init__(self, spark: "SparkSession", directory: Path) -> None:
        self.spark = spark
        self._directory = directory
        self._position = 0

    def timed(
        self, work: Callable[Given, Result], *given: Given.args, **named: Given.kwargs
    ) -> Timed[Result]:
        """Run something, and see what it cost."""
        self._events()
        began = time.perf_counter()
        result = work(*given, **named)
        seconds = time.perf_counter() - began
        return Timed(seconds, cost_of(self._events()), result)

    def files(self) -> int:
        """Return the bytes of all files of shares that there are now."""
        found = self._directory.parent.glob("corollary-partitions-*/**/*")
        return sum(each.stat().st_size for each in found if each.is_file())

    def forget_peaks(self) -> None:
        """Let `peak` say what it is from now on."""
        for worker in _workers():
            (worker / "clear_refs").write_text("5")

    def peak(self) -> int:
        """Return the bytes that the largest Python worker has had in memory at a time."""
        return max(_kilobytes(worker) for worker in _workers()) * 1024

    def _events(self) -> list[dict[str, Any]]:
        """Return the events since the last time; Spark has written all that happened by now."""
        context: Any = self.spark.sparkContext
        context._jsc.sc().listenerBus().waitUntilEmpty()  # noqa: SLF001 - no public way to wait
        (file,) = self._directory.iterdir()
        with file.open("rb") as log:
            log.seek(self._position)
            lines = log.readlines()
            self._position = log.tell()
        return [json.loads(line) for line in lines]


@contextmanager
def session() -> Iterator[Session]:
    """Start a session on two cores, and stop it at the end."""
    from pyspark.sql import SparkSession

    set_java_home()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with tempfile.TemporaryDirectory(prefix="corollary-bench-") as directory:
        log = Path(directory) / "log"
        log.mkdir()
        builder = SparkSession.builder.master(f"local[{CORES}]").appName("corollary bench")
        settings = {
            **LOCAL_SETTINGS,
            "spark.driver.extraJavaOptions": "",  # rivals are quicker with all compilers
            "spark.driver.memory": "4g",
            "spark.driver.maxResultSize": "0",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": log.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.eventLog.logBlockUpdates.enabled": "true",  # of broadcasts
            "spark.eventLog.rolling.enabled": "false",
        }
        for name, value in settings.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        try:
            tempfile.tempdir = directory
            yield Session(spark, log)
        finally:
            tempfile.tempdir = None
            spark.stop()


def size(count: float) -> str:
    """Return a number of bytes for the reader."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def cost_of(events: list[dict[str, Any]]) -> Cost:
    """Return what the events of a log say."""
    jobs = sum(each["Event"] == "SparkListenerJobStart" for each in events)
    stages = [
        each["Stage Info"] for each in events if each["Event"] == "SparkListenerStageCompleted"
    ]
    tasks = sum(each["Number of Tasks"] for each in stages)
    sent = sum(_sent(each) for each in events)
    return Cost(jobs, len(stages), tasks, sent, _total(stages, SHUFFLED), _total(stages, RETURNED))


def _sent(event: dict[str, Any]) -> int:
    """Return the bytes of a piece of a broadcast, as it is stored, and not as it is removed."""
    block = event.get("Block Updated Info", {})
    is_piece = PIECE.match(block.get("Block ID", "")) and block["Storage Level"]["Use Memory"]
    return int(block["Memory Size"]) if is_piece else 0


def _total(stages: list[dict[str, Any]], metric: str) -> int:
    return sum(
        int(found["Value"])
        for each in stages
        for found in each["Accumulables"]
        if found["Name"] == metric
    )


def _workers() -> list[Path]:
    """Return the Python workers of this process's session, as directories of `/proc`."""
    parents: dict[str, list[Path]] = {}
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = each.read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue  # it has just ended
        parents.setdefault(parent, []).append(each.parent)
    found, below = [], [str(os.getpid())]
    while below:
        children = parents.get(below.pop(), [])
        below += [each.name for each in children]
        found += [each for each in children if b"pyspark.daemon" in _command(each)]
    return found


def _command(process: Path) -> bytes:
    return (process / "cmdline").read_bytes()


def _kilobytes(process: Path) -> int:
    lines = (process / "status").read_text().splitlines()
    return next(int(each.split()[1]) for each in lines if each.startswith("VmHWM:"))
