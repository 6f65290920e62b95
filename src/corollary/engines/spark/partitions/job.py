"""One Spark job for each run of a partitioned stratum: a task for every partition."""

import pickle
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from corollary.core.plans import steps_of
from corollary.core.recorder import Recorder
from corollary.engines.spark.partitions.messages import Reply, Request, TaskRecorder
from corollary.engines.spark.partitions.worker import serve
from corollary.engines.spark.remote import RemoteRun
from corollary.engines.spark.session import describe_jobs
from corollary.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_spark_job(session: "SparkSession", request: Request) -> list[bytes]:
    """Return the pickled replies for all partitions.

    Raises:
        InputError: `C0995`, the workers lack this package.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.functions import col, udf
    from pyspark.sql.types import BinaryType

    # Python functions over rows need neither pandas nor Arrow in Spark, and run on Connect too.
    task = udf(partial(serve, request), BinaryType(), useArrow=False).asNondeterministic()
    partitions = session.range(0, request.partitions, 1, request.partitions)
    try:
        with describe_jobs(session, f"corollary: {request.title}"):
            return [bytes(row[0]) for row in partitions.select(task(col("id"))).collect()]
    except PySparkException as error:
        if "No module named 'corollary" not in str(error):
            raise
        raise InputError.of(
            "C0995",
            "The Python that runs Spark's tasks has no package `corollary`.",
            None,
            "install the same version there, or let `PYSPARK_PYTHON` name a Python that has it",
        ) from None


def unpickle_replies(pickled: Iterable[bytes]) -> list[Reply]:
    """Return the replies of all tasks, in the order of the partitions.

    Raises:
        CorollaryError: the error of the first task that failed.
    """
    replies: list[Reply] = sorted(
        (pickle.loads(each) for each in pickled),  # noqa: S301 - our own tasks made it
        key=lambda each: each.partition,
    )
    for reply in replies:
        if reply.error is not None:
            raise reply.error
    return replies


def report_run(remote_run: RemoteRun, records: list[TaskRecorder], recorder: Recorder) -> int:
    """Report the sum over all tasks to a recorder; return the rows that were handled by then."""
    steps = list(steps_of(remote_run.plan))
    for number, step in enumerate(steps):
        size = sum(each.sizes[number] for each in records)
        led = sum(each.led[number] for each in records)
        if size or led:
            recorder.step(step, size, led)  # type: ignore[arg-type]
        if any(number in each.switched for each in records):
            recorder.switch(step)  # type: ignore[arg-type]
    for name in {name for each in records for name in each.probes}:
        recorder.probe(name, sum(each.probes[name] for each in records))
    if rounds := max(each.rounds for each in records):
        recorder.round(rounds)
    for each in records:
        for number, relations, in_round in each.rows:
            recorder.row(steps[number], relations, in_round)  # type: ignore[arg-type]
    handled = remote_run.handled + sum(each.handled for each in records)
    recorder.end(remote_run.plan.main, handled)
    return handled
