"""The Spark session of an engine: a private one derived from the user's or from a local one.

A session that is passed in is never configured or stopped: settings go on a `newSession` of it. If
none is passed, and the environment says nothing of a cluster, a local one is started, with presets
for one machine; it needs Java.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from corollary.core.engine import parse_memory
from corollary.core.recorder import JOB_TAG, current_job_group
from corollary.engines.spark.java import set_java_home
from corollary.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Result = TypeVar("Result")

PRIVATE_SETTINGS = {
    "spark.sql.ansi.enabled": "false",  # errors give null, which our SQL tells from other nulls
    "spark.sql.session.timeZone": "UTC",
    # What is broadcast passes the driver, and takes several times its compressed size there. Spark
    # takes what tasks read for small before it has: only sizes that it has measured count.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": str(1 << 20),
    "spark.sql.leafNodeDefaultParallelism": "1",  # so that small tables need no exchange
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
"""The settings of the private session."""

LOG4J_CONFIGURATION = Path(__file__).with_name("log4j2.properties")
"""Only fatal errors are logged."""

LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": (
        "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
        f'"-Dlog4j2.configurationFile={LOG4J_CONFIGURATION}"'
    ),
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.artifact.isolation.enabled": "false",
}
"""The settings of a local session that is started here."""

TASK_MAX_FAILURES = 4
"""A task whose worker dies is run again, as on a cluster, until it has failed so often."""

DRIVER_MEMORY = "spark.driver.memory"
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
"""The setting of the number of partitions of a shuffle."""

JOB_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
"""What a thread says of its jobs, which may be the user's."""

CANCEL_SECONDS = 0.2
"""Jobs that do not end when they are cancelled are cancelled again so often…"""

CANCEL_MAX_SECONDS = 30.0
"""…and are not waited for any longer."""

CONNECT_MAX_PARTITIONS = 8
"""The number of partitions where a server does not say how many tasks it runs at once."""


def require_pyspark() -> None:
    """Check that PySpark is installed.

    Raises:
        InputError: `C0980`, it is not.
    """
    if find_spec("pyspark") is None:
        raise InputError.of(
            "C0980",
            "The Spark engine needs the package `pyspark`, which is not installed.",
            None,
            'install it with `pip install "corollary[spark]"`, or use the local engine',
        )


def private_session(spark: "SparkSession | None") -> "SparkSession":
    """Return a new private session beside the one that is passed, or beside a local one.

    Raises:
        InputError: Java is missing.
    """
    require_pyspark()
    original = local_session() if spark is None else spark
    # On Connect, Spark 4.1 and 4.2 have no sessions without the state of another.
    known: Any = original
    has_new = hasattr(known, "newSession")
    session: SparkSession = known.newSession() if has_new else known.cloneSession()
    shuffles = (
        original.conf.get(SHUFFLE_PARTITIONS) or "2"
    )  # a session that is passed knows its cluster
    for name, value in {**PRIVATE_SETTINGS, SHUFFLE_PARTITIONS: shuffles}.items():
        session.conf.set(name, value)
    return session


def local_session() -> "SparkSession":
    """Return the active session of this process; if there is none, one is started.

    It is one of the cluster that the environment names, or a local one.

    Raises:
        InputError: Java is missing.
    """
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if "SPARK_REMOTE" not in os.environ:  # the client of a Connect server needs no Java
        set_java_home()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("corollary")
    if _is_cluster_named():
        return builder.getOrCreate()
    builder = builder.master(f"local[*,{TASK_MAX_FAILURES}]")
    for name, value in LOCAL_SETTINGS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def may_leave_machine(spark: "SparkSession | None") -> bool:
    """Return whether tasks may run on other machines; no session is started for the answer."""
    from pyspark.sql import SparkSession

    known = spark or SparkSession.getActiveSession()
    if known is None:
        return _is_cluster_named()
    return is_connect(known) or not (known.sparkContext.master or "").startswith("local")


def _is_cluster_named() -> bool:
    """Whether `spark-submit` or `pyspark` started this process, or variables of Spark's are set."""
    arguments = os.environ.get("PYSPARK_SUBMIT_ARGS", "").split()
    return bool(
        {"SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"} & os.environ.keys()
        or any(each.partition("=")[0] in ("--master", "--remote") for each in arguments)
    )


@contextmanager
def describe_jobs(session: "SparkSession", text: str, *tags: str) -> Iterator[None]:
    """Give the jobs started inside a description, the group of the commit, and tags.

    On Connect, which knows tags only, these are tags. Afterwards jobs have what the user has given
    them before.
    """
    context = None if is_connect(session) else session.sparkContext
    group = current_job_group()
    named = {JOB_TAG, *tags} if context is not None else {JOB_TAG, *tags, group, text}
    added = {each.replace(",", ";") for each in named} - session.getTags()
    for tag in added:
        session.addTag(tag)
        if context is not None:
            context.addJobTag(tag)
    before = (
        {} if context is None else {name: context.getLocalProperty(name) for name in JOB_PROPERTIES}
    )
    if context is not None:
        context.setJobGroup(group, text)
    try:
        yield
    finally:
        for tag in added:
            session.removeTag(tag)
            if context is not None:
                context.removeJobTag(tag)
        if context is not None:
            for name, value in before.items():
                context.setLocalProperty(name, value)  # type: ignore[arg-type]


@contextmanager
def require_package() -> Iterator[None]:
    """Report that the Python of tasks lacks this package.

    Raises:
        InputError: `C0995`.
    """
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if "No module named 'corollary" not in str(error):
            raise
        raise InputError.of(
            "C0995",
            "The Python that runs Spark's tasks has no package `corollary`.",
            None,
            "install the same version there, or let `PYSPARK_PYTHON` name a Python that has it",
        ) from None


def run_jobs(
    session: "SparkSession",
    text: str,
    work: Callable[[], Result],
    seconds: float | None = None,
) -> Result:
    """Return the result of some work with jobs, which end with whoever waits for it.

    The work is done in another thread: one that waits for Java cannot be interrupted. Jobs that do
    not end when they are cancelled are left alone after a while.

    Args:
        session: the session of the jobs.
        text: a description of them.
        work: what starts them.
        seconds: after them they are cancelled, which is an error of Spark's in the work.

    Raises:
        TimeoutError: they did not end when they were cancelled.
    """
    from pyspark import InheritableThread

    tag = f"corollary-{uuid4().hex}"
    found: Future[Result] = Future()
    ended = Event()

    def run() -> None:
        try:
            with describe_jobs(session, text, tag):
                found.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
            found.set_exception(error)
        finally:
            ended.set()

    started = partial(copy_context().run, run)  # which has the group of the jobs
    InheritableThread(started, session=session, daemon=True).start()
    try:
        ended.wait(seconds)
    finally:
        last = time.monotonic() + CANCEL_MAX_SECONDS
        while not ended.is_set() and time.monotonic() < last:
            _cancel_jobs(session, tag)
            ended.wait(CANCEL_SECONDS)  # another job may have begun meanwhile
    return found.result(timeout=0)


def _cancel_jobs(session: "SparkSession", tag: str) -> None:
    """Cancel the jobs with a tag that run now; there may be none."""
    if is_connect(session):
        session.interruptTag(tag)
    else:
        session.sparkContext.cancelJobsWithTag(tag)


def parallelism_of(session: "SparkSession") -> int:
    """Return how many tasks a session runs at once; a guess where a server does not say."""
    if not is_connect(session):
        return max(2, session.sparkContext.defaultParallelism)
    stated = session.conf.get("spark.default.parallelism", None)
    return (
        int(stated)
        if stated
        else min(
            CONNECT_MAX_PARTITIONS,
            int(session.conf.get(SHUFFLE_PARTITIONS) or CONNECT_MAX_PARTITIONS),
        )
    )


def granted_memory(spark: "SparkSession | None") -> int | None:
    """Return the bytes that Spark was told to give the driver, if this process is part of it.

    On Connect the driver is elsewhere.

    >>> granted_memory(None) is None
    True
    """
    if spark is None or is_connect(spark):
        return None
    stated = spark.sparkContext.getConf().get(DRIVER_MEMORY)
    return None if stated is None else _parse_amount(stated)


def worker_memory(session: "SparkSession") -> int:
    """Return the bytes that a worker of an executor may have; 0 if the settings do not say."""
    stated = session.conf.get("spark.executor.pyspark.memory", None)
    if not stated:
        return 0
    return _parse_amount(stated) // int(session.conf.get("spark.executor.cores", None) or 1)


def _parse_amount(stated: str) -> int:
    return parse_memory(f"{stated}M" if stated.isdigit() else stated)


def release_session(session: "SparkSession") -> None:
    """Release a private session; on Connect, the process would wait for its server at the end.

    Releasing it again does nothing.
    """
    if is_connect(session) and not session.client.is_closed:
        session.client.release_session()
        session.client.close()


def is_connect(session: "SparkSession") -> bool:
    """Whether a session is one of Spark Connect, without a `sparkContext`."""
    return "connect" in type(session).__module__
