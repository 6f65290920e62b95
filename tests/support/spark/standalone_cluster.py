"""A cluster of Spark on this machine: a standalone master and its workers, as processes.

What is sent between driver and executors goes over loopback as it would over a network, executors
are processes of their own, and one that is killed is replaced by the master.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark

from corollary.engines.spark.java import find_java
from corollary.engines.spark.session import LOCAL_SETTINGS, LOG4J_CONFIGURATION
from support.paths import TESTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

HOST = "127.0.0.1"
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
STARTING_SECONDS = 120
MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
REGISTERED = "Registering worker"


class StandaloneCluster:
    """A running master with workers, each with one executor of an application at a time.

    Args:
        directory: for logs, the working directories of executors, and orders to kill.
        points: functions in tasks, `module:name`, in the middle of which executors can be killed.
        machine: a directory that is another one to each worker, as if they were machines: what is
            there belongs to the process that looks. It needs the right to mount.
    """

    def __init__(
        self,
        directory: Path,
        *,
        workers: int = 2,
        cores: int = 1,
        memory: str = "1g",
        points: Sequence[str] = (),
        machine: Path | None = None,
    ) -> None:
        self._machine = machine
        self.workers, self.cores, self.memory = workers, cores, memory
        self._directory = directory
        self._orders = directory / "orders"
        paths = [str(TESTS / "support" / "spark" / "executor_site"), *sys.path]
        self._environment = {
            **os.environ,
            **find_java().environment(),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "COROLLARY_TEST_KILL": str(self._orders),
            "COROLLARY_TEST_KILL_POINTS": " ".join(points),
        }
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start the master, then the workers, and wait until they know each other."""
        at = ["--host", HOST, "--port", "0", "--webui-port", "0"]
        log = self._start("master", "org.apache.spark.deploy.master.Master", *at)
        self.url = self._wait(log, MASTER, 1)[0]
        self._log = log
        for number in range(self.workers):
            self._start_worker(number)
        self._wait(log, re.compile(REGISTERED), self.workers)

    def _start_worker(self, number: int) -> None:
        at = ["--host", HOST, "--port", "0", "--webui-port", "0"]
        name, place = f"worker-{number}", self._directory / f"worker-{number}"
        size = ["--cores", str(self.cores), "--memory", self.memory, "--work-dir", str(place)]
        own: list[str] = []
        if self._machine is not None:
            disk = self._directory / f"disk-{number}"
            disk.mkdir()
            mount = f'mount --bind {disk} {self._machine} && exec "$@"'
            own = ["unshare", "--mount", "sh", "-c", mount, "sh"]
        worker = "org.apache.spark.deploy.worker.Worker"
        self._start(name, worker, *at, *size, self.url, before=own)

    def add_worker(self) -> None:
        """Start one more worker, and wait until the master knows it."""
        self._processes = [each for each in self._processes if each.poll() is None]
        self._start_worker(self.workers)
        self.workers += 1
        self._wait(self._log, re.compile(REGISTERED), self.workers)

    def kill_worker(self) -> None:
        """Kill the oldest worker with its executor, as a machine goes down."""
        worker = self._processes.pop(1)
        for pid in [*_children(worker.pid), worker.pid]:
            os.kill(pid, signal.SIGKILL)
        worker.wait()

    def _start(self, name: str, class_: str, *arguments: str, before: Sequence[str] = ()) -> Path:
        log = self._directory / f"{name}.log"
        with log.open("wb") as file:
            self._processes.append(
                subprocess.Popen(
                    [*before, SPARK_CLASS, class_, *arguments],
                    stdout=file,
                    stderr=file,
                    env=self._environment,
                )
            )
        return log

    def _wait(self, log: Path, pattern: re.Pattern[str], count: int) -> list[str]:
        """Return what a log says as soon as it has said it so many times."""
        for _ in range(STARTING_SECONDS * 10):
            found = pattern.findall(log.read_text(errors="replace"))
            if len(found) >= count:
                return found
            if any(each.poll() is not None for each in self._processes):
                break
            time.sleep(0.1)
        raise AssertionError(f"no {pattern.pattern} in {log.read_text(errors='replace')[-3000:]}")

    def stop(self) -> None:
        """End all processes; executors end with their worker."""
        for each in reversed(self._processes):
            each.terminate()
        for each in self._processes:
            each.wait()

    def settings(self) -> dict[str, str]:
        """Return the settings of a session on this cluster, but for the master."""
        quick = f'-XX:+UseSerialGC "-Dlog4j2.configurationFile={LOG4J_CONFIGURATION}"'
        return {
            **LOCAL_SETTINGS,
            "spark.executor.memory": self.memory,
            "spark.executor.extraJavaOptions": quick,
            "spark.executorEnv.PYTHONPATH": self._environment["PYTHONPATH"],
            "spark.sql.shuffle.partitions": str(self.workers * self.cores),
        }

    @contextmanager
    def session(self, **settings: str) -> Iterator[SparkSession]:
        """Give a session on this cluster; its executors are there."""
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ.update(find_java().environment())
        builder: Any = SparkSession.builder.master(self.url).appName("corollary test")
        for name, value in {**self.settings(), **settings}.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        try:
            self.wait_for_executors()
            yield spark
        finally:
            spark.stop()

    # --- executors -------------------------------------------------------------------------------

    def executors(self) -> list[int]:
        """Return the processes of the executors: the Java processes that the workers started."""
        return [pid for worker in self._processes[1:] for pid in _children(worker.pid)]

    def wait_for_executors(self) -> None:
        """Wait until every worker has an executor; one that has lost it may show both."""
        for _ in range(STARTING_SECONDS * 10):
            if all(_children(worker.pid) for worker in self._processes[1:]):
                return
            time.sleep(0.1)
        raise AssertionError(f"{len(self.executors())} executors")

    def kill(self) -> None:
        """Kill an executor now."""
        os.kill(self.executors()[0], signal.SIGKILL)

    def kill_in(self, point: str, when: str = "before", *, with_worker: bool = False) -> None:
        """Let the first task that comes to a point kill its executor there."""
        self._orders.write_text(f"{point} {when}" + " worker" * with_worker)

    @property
    def is_waiting(self) -> bool:
        """Whether no task has come to the point yet."""
        return self._orders.exists()


def _children(process: int) -> list[int]:
    tasks = Path("/proc", str(process), "task").glob("*/children")
    return [int(pid) for each in tasks for pid in each.read_text().split()]


@contextmanager
def standalone_cluster(**options: Any) -> Iterator[StandaloneCluster]:
    """Run a cluster in a directory for temporary files."""
    with tempfile.TemporaryDirectory(prefix="corollary-cluster-") as directory:
        cluster = StandaloneCluster(Path(directory), **options)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
